"""The bounds that the project sets itself, and what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Found", "Target", "table_of_targets"]

Found = dict[tuple[str, str], float]
NOISE = 0.1


@dataclass(frozen=True)
class Target:
    """One bound on a ratio, from below or from above, and the figure of version 0.1.0."""

    name: str
    before: float | None
    bound: float
    measured: Callable[[Mapping[tuple[str, str], float]], float]
    at_least: bool = False
    unit: str = ""


def _ratio(section: str, mine: str, peer: str, *more: str) -> Callable[..., float]:
    """CPU of a job over that of others together."""
    return lambda found: found[section, mine] / sum(found[section, one] for one in (peer, *more))


def _of(section: str, job: str, before: float | None, bound: float, peer: str, mine: str) -> Target:
    return Target(f"{section}: {job}", before, bound, _ratio(section, mine, peer))


SUM, SERIES = "latencykit, sum", "latencykit, sum and series"
FLOOR = "pybase64 and isal"
_NUMPY = "latencykit without kernel, sum and series"


def _log_targets() -> list[Target]:
    rows: list[Target] = []
    for name, before, bound in (("a", 5.1, 1.8), ("e", 14.6, 3.1)):
        for command in ("summary", "summary --interval 1s --format json", "diagnose", "check"):
            rows.append(_of(name, f"{command} / API job", before, bound, SERIES, command))
    rows += [
        _of("b", "diagnose / API job", 5.5, 1.6, SERIES, "diagnose"),
        _of("d", "report / API job", 9, 4, SERIES, "report"),
        _of("b", "dashboard / API job", 1.9, 1.2, SERIES, "chart --kind dashboard"),
    ]
    for peer, words, figures in (
        (FLOOR, "API sum and series / inflate and base64", ((4.3, 2.6), (3.6, 1.9), (5.7, 3.0), (2.2, 1.6))),
        ("Rust crate", "/ Rust crate", ((0.89, 0.55), (0.57, 0.3), (2.8, 1.5), (0.73, 0.5))),
        ("HdrHistogram_c", "/ HdrHistogram_c", ((0.37, 0.25), (0.17, 0.1), (1.1, 0.65), (1.07, 0.75))),
    ):  # fmt: skip
        for name, (before, bound) in zip("abde", figures, strict=True):
            rows.append(_of(name, words, before, bound, peer, SERIES))
    for name, before, bound in (("a", 4.3, 4.3), ("b", 3.6, 3.5)):
        rows.append(_of(name, "the same without a compiler", before, bound, FLOOR, _NUMPY))
    for name, before, bound in (("a", 1.8, 3), ("b", 2.8, 5), ("d", 0.67, 1.2), ("e", 4.8, 7)):
        ratio = _ratio(name, "PyPI hdrhistogram, sum", SUM)
        rows.append(Target(f"{name}: PyPI hdrhistogram, sum / ours", before, bound, ratio, True))
    return rows


def _one(section: str, name: str) -> Callable[..., float]:
    return lambda found: found[section, name]


TARGETS = (
    *_log_targets(),
    Target("raw float64 / x.sum()", 3.9, 2.2, _one("raw", "floor")),
    Target("raw: numpy.percentile / ours", None, 6, _one("raw", "numpy"), True),
    Target("Recorder.record / PyPI's record_value", 0.82, 0.06, _one("recorder", "record")),
    Target("10,000 small logs --merge, default / --jobs 1, wall", 1.0, 0.7, _one("files", "jobs")),
    Target("small logs --merge, per file", 1.3, 0.6, _one("files", "each"), unit=" ms"),
    Target("later questions about b in a notebook", None, 50, _one("notebook", "later"), unit=" ms"),
    Target("memory kept for them", None, 64, _one("notebook", "kept"), unit=" MB"),
    Target("Parquet of a", 84, 30, _one("parquet", "size"), unit=" MB"),
    Target("summary of b, wall, two threads / one", 1.05, 0.62, _one("cores", "summary")),
    Target("summary of b, CPU, two threads / one", 1.0, 1.12, _one("cores", "summary CPU")),
    *(
        Target(f"{name} of b, wall, two threads / one", 1.0, 0.7, _one("cores", name))
        for name in ("check", "diagnose", "chart", "report")
    ),
    Target("summary of 16,000 tags", 25, 12, _one("tags", "t"), unit=" s"),
    Target("summary of 100,000 tags", 365, 60, _one("tags", "t-100000"), unit=" s"),
    *(
        Target(f"summary of requests {kind} / pyarrow's reader", None, 1.5, _one("tables", kind))
        for kind in ("with starts, csv", "with starts, parquet", "with tags, csv", "with tags, parquet")
    ),
    Target("peak memory of summary on b, one thread", 116, 90, _one("peak", "summary"), unit=" MB"),
    Target("growth exponent of the worst command", 1.83, 1.1, _one("growth", "worst")),
    Target("peak memory of summary --interval on b", 252, 150, _one("peak", "b"), unit=" MB"),
    Target("peak memory of report on d", 305, 200, _one("peak", "d"), unit=" MB"),
    Target("summary of a small log / importing numpy", 2.0, 1.9, _ratio("start", "summary", "numpy")),
    Target(
        "chart of a small log / importing Figure and Agg", 1.42, 1.25,
        _ratio("start", "chart", "Figure and Agg"),
    ),
)  # fmt: skip


def table_of_targets(found: Found) -> str:
    """Return every target with its figure as Markdown; a tenth is allowed for noise.

    Examples
    --------
    >>> print(table_of_targets({("parquet", "size"): 31.0}).splitlines()[-7])
    | Parquet of a | 84 MB | ≤ 30 MB | 31 MB | within noise |
    """
    lines = ["| figure | 0.1.0 | aim | now | |", "|---|--:|--:|--:|---|"]
    for target in TARGETS:
        before = "" if target.before is None else f"{target.before:g}{target.unit}"
        aim = f"{'≥' if target.at_least else '≤'} {target.bound:g}{target.unit}"
        try:
            value = target.measured(found)
        except KeyError:
            lines.append(f"| {target.name} | {before} | {aim} | | not measured here |")
            continue
        share = value / target.bound if target.at_least else target.bound / max(value, 1e-9)
        verdict = "met" if share >= 1 else "within noise" if share >= 1 - NOISE else "**missed**"
        lines.append(f"| {target.name} | {before} | {aim} | {value:.3g}{target.unit} | {verdict} |")
    return "\n".join(lines)
