"""Monitoring metrics: families of labelled series, their names, their units, and the sum of a family."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.buckets import EdgeBuckets
from latencykit.errors import LatencyKitError, MixedInputsError
from latencykit.formats.raw.names import unit_in, word_set
from latencykit.formats.shaping import distinct
from latencykit.histogram import Histogram
from latencykit.units import format_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from latencykit.formats.base import ReadOptions, Rung
    from latencykit.run import UnitFrom

__all__ = ["family_series", "is_failure", "label_text", "quantile_note", "unit_of", "unit_said"]

_DASHBOARD = "histogram_quantile interpolates within a bucket and prints"
_BRIEF = word_set("s us ns ms µs μs sec micro milli nano")  # in a sentence, a unit only behind "in", or in brackets
_NO_TIME = word_set(
    "bytes byte size sizes count counts ratio percent percentage length rows items kb kib mb mib gb kilobytes megabytes "
    "celsius total number depth connections retries attempts"
)
_SIZES = word_set("bytes byte size")
_NO_TIME_SAID = re.compile(
    r"\b(?:in|of)\s+(?:kilo|mega|giga)?(?:bytes?|kib|mib|kb|mb|percent)\b|\((?:bytes?|kb|kib|mb|mib|%|percent)\)"
    r"|^(?:the\s+)?number of\b",
    re.IGNORECASE,
)
_SPANS = re.compile(r"\d\s*[-]?\s*$|\b(?:per|last|each|every|a|one)\s+$|/\s*$", re.IGNORECASE)
_STATUS = re.compile(r"(?:.*[._])?(?:code|status|status_code|http_status)$", re.IGNORECASE)


def unit_of(name: str, options: ReadOptions, stated: str | None = None, described: str = "") -> tuple[str, UnitFrom] | None:
    """Return the unit of a metric and where it comes from: what is stated, its name, its description, else seconds.

    Parameters
    ----------
    name : str
    options : ReadOptions
    stated : str or None
        Unit that the metric's metadata state; it wins.
    described : str
        The metric's description (``# HELP``).

    Returns
    -------
    tuple or None
        None for a metric that is no time by any of these.

    Examples
    --------
    >>> from latencykit.formats.base import ReadOptions
    >>> unit_of("rpc_duration_ms", ReadOptions()), unit_of("response_size", ReadOptions())
    (('ms', 'format'), None)
    >>> unit_of("rpc_latency", ReadOptions(), described="Latency of calls in microseconds."), unit_of("rpc", ReadOptions())
    (('us', 'file'), ('s', 'assumed'))
    """
    lowered = (stated or "").strip().lower()
    if lowered:
        own = unit_in(lowered)
        return None if own is None else (own, "file")
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    last = len(words) - 1
    named = {unit for k, word in enumerate(words) if k and (len(word) > 1 or k == last) and (unit := unit_in(word)) is not None}
    if len(named) == 1 and "per" not in words:
        return named.pop(), "format"
    if "per" in words or set(words[-1:]) & _NO_TIME or set(words[-2:]) & _SIZES:
        return None
    said = unit_said(described)
    if said is not None:
        return said, "file"
    if _NO_TIME_SAID.search(described):
        return None
    return options.resolve_unit("s", "assumed")


def unit_said(text: str) -> str | None:
    """Return the unit of time that a sentence states for its values; None where there is none, or more than one.

    Examples
    --------
    >>> unit_said("RPC latency in milliseconds."), unit_said("Latency (us)"), unit_said("Latency over the last 60 seconds")
    ('ms', 'us', None)
    """
    found = set()
    for hit in re.finditer(r"[^\W\d_]+", text[:1000]):
        word, before, after = hit[0].lower(), text[: hit.start()], text[hit.end() :]
        unit = unit_in(word)
        if unit is None or _SPANS.search(before):
            continue
        enclosed = before.rstrip().endswith(("(", "[")) and after.lstrip().startswith((")", "]"))
        if word in _BRIEF and not (enclosed or re.search(r"\b(?:in|unit:?|units:?)\s+$", before, re.IGNORECASE)):
            continue
        found.add(unit)
    return found.pop() if len(found) == 1 else None


def label_text(labels: Mapping[str, Any]) -> str:
    """Return labels as a scrape writes them: ``{code="200",path="/"}``, or nothing."""
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def is_failure(labels: Mapping[str, Any]) -> bool:
    """Whether a label says that these requests failed: a status of 5xx, or an outcome in words."""
    for name, value in labels.items():
        text = str(value).lower()
        if _STATUS.match(name) and re.fullmatch(r"5\d\d|5xx|error|failed|failure|internal|unavailable|deadline_?exceeded", text):
            return True
        if name.lower() in ("outcome", "result") and text in ("error", "failed", "failure", "server_error", "timeout"):
            return True
    return False


def family_series(family: str, members: Sequence[tuple[Mapping[str, Any], Any]]) -> dict[str, Rung]:
    """Return the series of a family: the sum of all first, where they can be added, then one a set of labels.

    Series whose labels say that their requests failed are counted apart in the sum.
    """
    if len(members) == 1:
        return {family + label_text(members[0][0]): members[0][1]}
    found: dict[str, Rung] = {}
    good = [rung for labels, rung in members if not is_failure(labels)]
    failed = sum(_size(rung) for labels, rung in members if is_failure(labels))
    if good and hasattr(good[0], "histogram"):
        try:
            found[family] = _sum_of(good, failed)
        except LatencyKitError:  # unlike units, or percentiles that cannot be added: each stands for itself
            found.clear()
    for labels, rung in members:
        found[distinct(family + label_text(labels), found)] = rung
    return found


def _sum_of(parts: Sequence[Any], failed: int) -> Any:
    """All parts together; the mean is exact where each part states its own."""
    total = sum(parts[1:], parts[0])
    notes = [note for note in total.run.notes if not note.startswith(_DASHBOARD)]
    if isinstance(total, Histogram):
        if any(part.printed[0] for part in parts):
            raise MixedInputsError("printed percentiles cannot be added")
        if all("mean" in part.told for part in parts):
            weighted = sum(part.told["mean"] * (part.count + part.censored) for part in parts)
            mean = round(weighted / (total.count + total.censored), 3)
            total = replace(total, told={**total.told, "mean": mean})
        if len(notes) < len(total.run.notes):
            notes.append(quantile_note(total))
    if failed:
        notes.append(f"{failed:,} failed requests are counted apart")
    return total.but(aggregate=True, failed=failed, unit=parts[0].run.unit, notes=tuple(notes))


def quantile_note(histogram: Histogram) -> str:
    """Return what Prometheus' ``histogram_quantile`` prints, for people who know their number from a dashboard."""
    buckets = histogram.buckets
    assert isinstance(buckets, EdgeBuckets)
    counts = np.zeros(len(buckets), np.int64)
    counts[histogram.index] = histogram.counts
    cumulative, total = np.cumsum(counts), histogram.count + histogram.censored
    shown = []
    for q in (0.5, 0.99):
        rank = q * total
        at = int(np.searchsorted(cumulative, rank, "left"))
        if at >= len(buckets):
            value = float(buckets.highs[-1])
        else:
            share = (rank - cumulative[at] + counts[at]) / counts[at] if counts[at] else 1.0
            value = float(buckets.lows[at] + (buckets.highs[at] - buckets.lows[at]) * share)
        shown.append(f"p{q * 100:g} {format_value(value, histogram.unit)}")
    return f"{_DASHBOARD} {', '.join(shown)}"


def _size(rung: Any) -> int:
    if hasattr(rung, "histogram"):
        whole = rung.histogram()
        return int(whole.count + whole.censored)
    return int(rung.count or 0)
