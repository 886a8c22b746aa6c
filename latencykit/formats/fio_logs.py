"""fio's logs: ``write_lat_log`` (one row a request, or a window's mean) and ``write_hist_log`` (one histogram a window)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.blocks import Block, MemoryPart
from latencykit.buckets import EdgeBuckets
from latencykit.formats.base import Confidence, Format
from latencykit.formats.fio import bin_edges
from latencykit.formats.rows import Layout, read_table
from latencykit.formats.shaping import nanoseconds_of, per_operation
from latencykit.log import HistogramLog
from latencykit.run import Run
from latencykit.samples import Samples
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latencykit.formats.base import Head, ReadOptions, Rung, Source

__all__ = ["FORMATS"]

_ROW = re.compile(r"\d+, \d+, [0123], \d+(?:, \d+)?(?:, (?:0x[0-9a-f]+|\d+))?(?:, \d+)*")
_HIST = re.compile(r"\d+, [012], \d+(?:, \d+){57,}")
_OTHER = re.compile(r"_(bw|iops)(?:\.\d+)?\.log$")
_NAMES = ("read", "write", "trim", "sync")
_DIGITS = 18  # a number of so many fits an int64
_BINS = 1856  # fio 3: 29 groups of 64 buckets, in ns; fio 2 had 19 groups, in µs
_OLD_BINS = 1216


def sniff_log(head: Head) -> Confidence:
    """Tell time, value, direction and block size; the name says whether the values are latencies."""
    lines = [line for line in head.lines[:100] if line.strip()]
    if not lines or not all(_ROW.fullmatch(line.strip()) for line in lines) or _HIST.fullmatch(lines[0].strip()):
        return Confidence.NO
    return Confidence.CERTAIN if re.search(r"_[sc]?lat|_bw|_iops", head.name) else Confidence.LIKELY


def read_log(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every request; the time is its end, in ms since the job began."""
    other = _OTHER.search(source.name)
    if other:
        raise source.corrupt(
            None, f"this is a log of {'bandwidth' if other[1] == 'bw' else 'IOPS'}", "latencies",
            "read the _lat or _clat log beside it",
        )  # fmt: skip
    width = source.head.lines[0].count(",") + 1
    if width < 4:
        raise source.corrupt(1, "a row of too few fields", "time, value, direction, size", "is this log fio's?")
    names = ("time", "value", "direction", "size", "offset", *(f"more{k}" for k in range(width)))[:width]
    frame, notes = read_table(source, options, Layout(names, names[:5], largest={"time": 9e12, "direction": len(_NAMES) - 1}))
    unit, unit_from = options.resolve_unit("ns")
    value = nanoseconds_of(frame["value"].to_numpy(), unit).astype(np.int64)
    averaged = len(frame) > 0 and not frame["size"].any() and not frame.get("offset", frame["size"]).any()
    if averaged:
        notes = (*notes, "each value is the mean of a window (log_avg_msec): the tail is hidden, as a log without it would show")
    kind = re.search(r"_([sc]?lat)", source.name)
    if kind and kind[1] != "lat":
        notes = (*notes, "time to submit (slat)" if kind[1] == "slat" else "completion latency (clat)")
    run = Run(tool="fio", measure="service", corrected="none", unit=unit, unit_from=unit_from, notes=notes)
    start = frame["time"].to_numpy(np.int64) * 1_000_000 - value
    everything = Samples(duration=value, start=start, run=run, unit="none" if unit == "none" else "ns")
    code = frame["direction"].to_numpy(np.int64)
    if len(frame) and code.min() < 0:
        raise source.corrupt(None, f"direction {code.min()}", f"0 to {len(_NAMES) - 1}", "is this log fio's?")
    return per_operation(everything, code, _NAMES) if np.unique(code).size > 1 else {"": everything} if len(frame) else {}


def sniff_histograms(head: Head) -> Confidence:
    """Tell time, direction, block size and a long row of counts."""
    line = head.lines[0].strip() if head.lines else ""
    if not _HIST.fullmatch(line):
        return Confidence.NO
    return Confidence.CERTAIN if _coarseness(line.count(",") - 2) is not None else Confidence.NO


def _coarseness(bins: int) -> tuple[int, int] | None:
    """How often fio halved the number of bins, and the number before; None where it is none of fio's."""
    for whole in (_BINS, _OLD_BINS):
        for halved in range(7):
            if whole >> halved == bins:
                return halved, whole
    return None


def read_histograms(source: Source, options: ReadOptions) -> dict[str, Rung]:
    """Read every window as an interval of a log; directions are its tags where there are several."""
    lines = source.text().splitlines()
    width = lines[0].count(",") + 1
    rows = []
    notes: tuple[str, ...] = ()
    for number, line in enumerate(lines, 1):
        fields = re.findall(r"-?\d+", line)
        if len(fields) != width and number == len(lines):
            notes = ("the last line is cut; it was left out",)
        elif len(fields) != width:
            if line.strip():
                options.damaged(source.corrupt(number, f"a row of {len(fields)} numbers", str(width), "--lenient skips the line"))
        elif fields[1] not in ("0", "1", "2") or max(map(len, fields)) > _DIGITS or "-" in line:
            seen = f"a row that fio does not write, of direction {fields[1]}"
            options.damaged(source.corrupt(number, seen, "direction 0, 1 or 2, then counts", "--lenient skips the line"))
        else:
            rows.append(np.array(fields, np.int64))
    if not rows:
        raise source.corrupt(None, "no row is whole", f"rows of {width} numbers", "run fio to its end")
    table = np.stack(rows)
    halved, whole = _coarseness(width - 3) or (0, _BINS)
    unit, unit_from = options.resolve_unit("ns" if whole == _BINS else "us")
    notes = (*notes, "completion latency (clat)")
    run = Run(tool="fio", measure="service", corrected="none", unit=unit, unit_from=unit_from, notes=notes)
    return {"": _log(table, _layout(whole, halved, NANOSECONDS.get(unit, 1.0)), run)}


def _layout(whole: int, halved: int, factor: float) -> EdgeBuckets:
    """Edges of all bins in ns."""
    index = np.arange(whole, dtype=np.int64)
    shift = np.maximum((index >> 6) - 1, 0)
    half = np.int64(1) << np.maximum(shift - 1, 0)
    middle = np.where(index < 128, index, (np.int64(1) << (shift + 6)) + (index % 64 << shift) + half)
    low, high = bin_edges(middle)
    step = 1 << halved
    return EdgeBuckets(low[::step] * factor, high[step - 1 :: step] * factor)


def _log(table: NDArray[np.int64], buckets: EdgeBuckets, run: Run) -> HistogramLog:
    """Rows of counts as a log; a window reaches from the one before it of its direction."""
    order = np.lexsort((table[:, 0], table[:, 1]))
    times, direction = table[order, 0] / 1e3, table[order, 1]
    fresh = np.concatenate(([True], np.diff(direction) != 0))
    before = np.where(fresh, 0.0, np.concatenate(([0.0], times[:-1])))
    counts = table[order, 3:]
    row, index = np.nonzero(counts)
    indptr = np.searchsorted(row, np.arange(len(counts) + 1)).astype(np.int64)
    block = Block(np.arange(len(counts)), indptr, index.astype(np.int64), counts[row, index], buckets)
    several = np.unique(direction).size > 1
    return HistogramLog(
        before, times - before, [MemoryPart([block])], tag_code=direction if several else None,
        tag_names=_NAMES if several else ("",), unit="none" if run.unit == "none" else "ns", run=run,
    )  # fmt: skip


FORMATS = (
    Format(
        "fio-log", "fio's latency log", "samples", (".log",), sniff_log, read_log, unit="ns",
        example="fio --write_lat_log=run JOB   # writes run_lat.1.log",
    ),
    Format(
        "fio-histograms", "fio's histogram log", "log", (".log",), sniff_histograms, read_histograms,
        example="fio --write_hist_log=run --log_hist_msec=1000 JOB   # writes run_clat_hist.1.log",
    ),
)  # fmt: skip
