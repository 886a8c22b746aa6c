"""Prometheus text exposition and OpenMetrics: classic histograms and summaries of one scrape.

Counts are since the server began: the difference of two scrapes (``h2 - h1``) is what lies between them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from latencykit.formats.base import Confidence, Format
from latencykit.formats.labelled import family_series, quantile_note, unit_of
from latencykit.formats.shaping import nanoseconds, nanoseconds_of, rung_of_points
from latencykit.histogram import Histogram
from latencykit.run import Run
from latencykit.units import printable

if TYPE_CHECKING:
    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["FORMATS", "from_cumulative"]

_LINE = re.compile(
    r'^([a-zA-Z_:][\w:]*)?[ \t]*(\{(?:[^"{}]|"(?:\\.|[^"\\])*")*\})?[ \t]+(\S+)(?:[ \t]+[\d.]+)?(?:[ \t]+#.*)?[ \t]*$'
)
_LABEL = re.compile(r'([a-zA-Z_][\w.]*|"(?:\\.|[^"\\])*")[ \t]*=[ \t]*"((?:\\.|[^"\\])*)"')
_QUOTED_NAME = re.compile(r'\{[ \t]*"((?:\\.|[^"\\])*)"[ \t]*[,}]')
_RUNTIME = ("go_", "promhttp_", "process_", "python_", "jvm_", "prometheus_", "scrape_", "nodejs_", "net_conntrack_")
_NO_DISTRIBUTION = "this summary holds a sum and a count only; a histogram metric would hold the distribution"


@dataclass
class _Metric:
    """One histogram or summary with one set of labels, as it is gathered line by line."""

    edges: dict[float, float] = field(default_factory=dict)
    quantiles: dict[float, float] = field(default_factory=dict)
    sum: float = math.nan
    count: float = math.nan
    line: int = 0


def sniff(head: Head) -> Confidence:
    """Tell a type line of a histogram or summary, or a bucket."""
    found = re.search(r"^# TYPE \S+ (?:gauge)?(?:histogram|summary)\s*$", head.text, re.MULTILINE)
    bucket = re.search(r'^[a-zA-Z_:][\w:]*_bucket\{[^}\n]*le="', head.text, re.MULTILINE)
    return Confidence.LIKELY if found or bucket else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every histogram and summary of a time; those of the runtime itself only where nothing else is there."""
    families, units, helps = _families(source, options)
    mine = {name: members for name, members in families.items() if not name.startswith(_RUNTIME)} or families
    found: dict[str, Rung] = {}
    for name, members in mine.items():
        unit = unit_of(name, options, units.get(name), helps.get(name, ""))
        if unit is None:
            continue
        run = Run(tool="Prometheus client", measure="service", corrected="none", unit=unit[0], unit_from=unit[1])
        rungs = [(dict(labels), _rung(metric, run, source)) for labels, metric in members.items()]
        held = [(labels, rung) for labels, rung in rungs if rung is not None]
        if held:
            found |= family_series(name, held)
    return found


def _families(
    source: Source, options: ReadOptions
) -> tuple[dict[str, dict[tuple[tuple[str, str], ...], _Metric]], dict[str, str], dict[str, str]]:
    """Families by name: labels → metric; and the units and descriptions that the text states."""
    types: dict[str, str] = {}
    units: dict[str, str] = {}
    helps: dict[str, str] = {}
    families: dict[str, dict[tuple[tuple[str, str], ...], _Metric]] = {}
    lines = source.text().split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            words = line.split()
            if len(words) > 3 and words[1] == "HELP":
                helps[words[2]] = " ".join(words[3:])
            if len(words) > 3 and words[1] in ("TYPE", "UNIT"):
                (types if words[1] == "TYPE" else units)[words[2]] = words[3]
            continue
        if not line.strip():
            continue
        if number == len(lines) and _LINE.match(line) is None:
            continue  # the last line is cut
        name, labels, value = _parsed(line, number, source, options)
        base = re.sub(r"_(?:bucket|g?sum|g?count)$", "", name)
        kind = types.get(base, types.get(name, ""))
        is_bucket = name.endswith("_bucket") and "le" in labels
        if not (is_bucket or "quantile" in labels or (name != base and kind in ("histogram", "gaugehistogram", "summary", ""))):
            continue
        own = tuple((key, text) for key, text in labels.items() if key not in ("le", "quantile"))
        metric = families.setdefault(base, {}).setdefault(own, _Metric(line=number))
        if is_bucket:
            metric.edges[_number(labels["le"])] = value
        elif "quantile" in labels:
            metric.quantiles[_number(labels["quantile"]) * 100] = value
        elif name.endswith("sum"):
            metric.sum = value
        else:
            metric.count = value
    for base, members in families.items():
        for own in [own for own, one in members.items() if base not in types and not one.edges and not one.quantiles]:
            del members[own]  # a counter that is called _sum or _count
    return {base: members for base, members in families.items() if members}, units, helps


def _parsed(line: str, number: int, source: Source, options: ReadOptions) -> tuple[str, dict[str, str], float]:
    """Name, labels and value of one sample."""
    found = _LINE.match(line.rstrip("\r"))
    value = _number(found[3]) if found else None
    if found is None or value is None:
        options.damaged(
            source.corrupt(number, f"this is no sample: {printable(line)!r}", "name{labels} value", "--lenient skips it")
        )
        return "", {}, math.nan
    quoted = _QUOTED_NAME.match(found[2] or "")
    labels = {
        key.strip('"'): re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)
        for key, text in _LABEL.findall(found[2] or "")
    }
    return found[1] or (quoted[1] if quoted else ""), labels, value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _rung(metric: _Metric, run: Run, source: Source) -> Rung | None:
    """A histogram from buckets or quantiles, else a mean; None where nothing was counted."""
    count = metric.count
    mean = metric.sum / count if count > 0 and math.isfinite(metric.sum) else None
    told = {} if mean is None else {"mean": nanoseconds(mean, run.unit)}
    if metric.edges:
        return from_cumulative(metric.edges, count, told, run, source, metric.line)
    if not count > 0 or (mean is None and not metric.quantiles):
        return None
    points = {p: nanoseconds(value, run.unit) for p, value in metric.quantiles.items()}
    noted = run.noting("quantiles are the client's own, over its sliding window") if points else run.noting(_NO_DISTRIBUTION)
    return rung_of_points(points, int(count), told, noted)


def from_cumulative(
    edges: dict[float, float], count: float, told: dict[str, float], run: Run, source: Source, line: int | None
) -> Histogram | None:
    """Return the histogram of cumulative counts by upper edge (``le``); what lies above the last finite one is censored.

    Raises
    ------
    CorruptInputError
        Where a count is smaller than one below it.
    """
    limits = np.array(sorted(edge for edge in edges if math.isfinite(edge)))
    cumulative = np.rint([edges[edge] for edge in limits.tolist()])
    total = edges.get(math.inf, count)
    total = round(total) if math.isfinite(total) else int(cumulative[-1]) if cumulative.size else 0
    if total <= 0:
        return None
    if not np.isfinite(cumulative).all() or (np.diff(cumulative) < 0).any() or (cumulative.size and cumulative[-1] > total):
        raise source.corrupt(line, "the buckets' counts shrink towards higher edges", "counts that add up (le is cumulative)", "")
    above = total - (int(cumulative[-1]) if cumulative.size else 0)
    if not limits.size:
        return None
    high = nanoseconds_of(limits, run.unit)
    low = np.concatenate(([min(0.0, high[0])], high[:-1]))
    found = Histogram.from_buckets(
        low, high, np.diff(cumulative, prepend=0).astype(np.int64), "none" if run.unit == "none" else "ns", run=run, told=told,
        censored=above, censored_at=float(high[-1]) if above else math.inf,
    )  # fmt: skip
    return found.but(notes=(*run.notes, quantile_note(found)))


FORMATS = (
    Format(
        name="prometheus",
        title="Prometheus text exposition, OpenMetrics",
        rung="histogram",
        suffixes=(".txt", ".prom", ".om"),
        sniff=sniff,
        read=read,
        example="curl -s HOST/metrics > scrape.txt",
    ),
)
