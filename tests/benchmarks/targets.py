"""What the project holds itself to, and what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Found", "Target", "table_of_targets"]

Found = dict[tuple[str, str], float]
NOISE = 0.15
_CHART, _SUMMARY = "latencykit chart of a small log", "latencykit summary of a small log"
SUM, SERIES, WARM, FLOOR = (
    "ours, sum",
    "ours, sum and series",
    "ours, in process, warm",
    "floor: base64 and inflate",
)
BARE = "bare array operations, sum"


@dataclass(frozen=True)
class Target:
    """One bound: at least so many times, or at most."""

    words: str
    bound: float
    at_least: bool
    measured: Callable[[Found], float]
    unit: str = "×"


def _times(corpus: str, peer: str, ours: str, bound: float) -> Target:
    words = (
        f"{corpus}: as fast as {peer}"
        if bound >= 1
        else f"{corpus}: as fast as {peer} (a known limit)"
    )
    return Target(words, bound, True, lambda found: found[corpus, peer] / found[corpus, ours])


def _floor(corpus: str, bound: float) -> Target:
    return Target(
        f"{corpus}: of the {FLOOR}",
        bound,
        False,
        lambda found: found[corpus, SERIES] / found[corpus, FLOOR],
    )


def _bare(corpus: str) -> Target:
    words = f"{corpus}: of bare array operations that check nothing, sum only"
    return Target(words, 1.0, False, lambda found: found[corpus, SUM] / found[corpus, BARE])


def _memory(corpus: str) -> Target:
    return Target(
        f"{corpus}: peak memory less 32 B an interval", 50.0, False,
        lambda found: found[corpus, "peak"] - 32e-6 * found[corpus, "intervals"], "MB",
    )  # fmt: skip


TARGETS = (
    _times("a", "PyPI, sum and series", SERIES, 10), _times("d", "PyPI, sum and series", SERIES, 2.5),
    _times("a", "PyPI, sum", SUM, 1.7), _times("e", "PyPI, sum", SUM, 5), _times("b", "PyPI, sum", SUM, 2),
    _times("d", "PyPI, sum", SUM, 0.5),
    _times("a", "Java, sum and series", SERIES, 4), _times("a", "Java, in process, warm", WARM, 2),
    _times("e", "Java, in process, warm", WARM, 3.5), _times("d", "Java, in process, warm", WARM, 1),
    _floor("a", 2.5), _floor("e", 2.5), _floor("b", 1.8),
    _bare("a"), _bare("b"),
    _memory("a"), _memory("e"), _memory("b"),
    Target("raw samples: of one sum over the array", 4.5, False, lambda found: found["raw", "floor"]),
    Target("raw samples, int64: of one sum over the array", 4.5, False, lambda found: found["raw", "floor of int64"]),
    Target("raw samples: as fast as numpy's percentile", 6, True, lambda found: found["raw", "numpy"]),
    Target("raw samples: memory on top of the array", 10, False, lambda found: found["raw", "extra"], "MB"),
    Target("latencykit --help, wall", 100, False, lambda found: found["command", "latencykit --help"], "ms"),
    Target(
        "latencykit summary of a small log, of importing numpy", 2.5, False,
        lambda found: found["CPU of command", _SUMMARY] / found["CPU of command", "importing numpy"],
    ),
    Target(
        "latencykit chart of a small log, of importing Figure and Agg", 1.32, False,
        lambda found: found["CPU of command", _CHART] / found["CPU of command", "importing Figure and Agg"],
    ),
)  # fmt: skip


def table_of_targets(found: Found) -> str:
    """Return every target with what was measured, as Markdown; 15 % are allowed for noise.

    Examples
    --------
    >>> print(table_of_targets({("raw", "extra"): 11.0}).splitlines()[-2])
    | raw samples: memory on top of the array | ≤ 10 MB | 11.0 MB | met within noise |
    """
    lines = ["| target | bound | measured | |", "|---|--:|--:|---|"]
    for target in TARGETS:
        sign = "≥" if target.at_least else "≤"
        bound = f"{sign} {target.bound:g} {target.unit}"
        try:
            value = target.measured(found)
        except KeyError:
            lines.append(f"| {target.words} | {bound} | | not measured here |")
            continue
        ratio = (
            value / target.bound if target.at_least else target.bound / value if value > 0 else 9.0
        )
        places = 2 if target.bound < 2 else 1
        verdict = (
            "met" if ratio >= 1 else "met within noise" if ratio >= 1 - NOISE else "**missed**"
        )
        lines.append(f"| {target.words} | {bound} | {value:.{places}f} {target.unit} | {verdict} |")
    return "\n".join(lines)
