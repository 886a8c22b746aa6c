"""fio: JSON with bins (``json+``) or percentiles, the same between other outputs, terse lines, and the normal text.

Bins and percentiles are printed as the middle of a bucket of fio's plot layout: 64 buckets a power of two, exact below 128.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.blocks import Block, MemoryPart
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.histogram import Histogram
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.io import text as jsontext
from latencykit.io.build import (
    data_from_points,
    distinct,
    nanoseconds,
    nanoseconds_of,
    per_operation,
)
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]


_DIRECTIONS = ("read", "write", "trim")
_TERSE = re.compile(r"^([345]);fio-[^;]*;.*$", re.MULTILINE)
_TERSE_WIDTH = {"3": 41, "4": 41, "5": 47}
_GROUP = re.compile(r"^(\S.*?): \(groupid=\d+, jobs=(\d+)\): err= *(\d+)", re.MULTILINE)
_HINT = "--output-format=json+ holds the whole distribution"


def sniff_json(head: Head) -> Confidence:
    """Tell the first key; other outputs may stand before it."""
    return Confidence.CERTAIN if '"fio version"' in head.text else Confidence.NO


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read every job and direction; with ``--status-interval`` the last report counts."""
    text = source.text()
    begins = [found.start() for found in re.finditer(r"^\{", text, re.MULTILINE)]
    if not begins:
        raise source.corrupt(None, "there is no JSON in it", "fio's JSON output", "")
    record: dict[str, Any] = jsontext.parse(text, source, begins[-1], whole=False)
    jobs = record.get("jobs") or record.get("client_stats") or []
    found: dict[str, Data] = {}
    requests: list[Data] = []
    for job in jobs:
        asked = {**(record.get("global options") or {}), **(job.get("job options") or {})}
        for direction in (*_DIRECTIONS, "sync"):
            part = _series(job, direction, asked, record)
            if part is not None:
                found[distinct(f"{job.get('jobname', 'job')} {direction}", found)] = part
                requests += [part] if direction != "sync" else []
    exact = [
        part for part in requests if isinstance(part, Histogram) and _HINT not in part.run.notes
    ]
    if len(exact) < 2 or len(exact) < len(requests):  # printed percentiles cannot be added
        return found
    return {"all": sum(exact[1:], exact[0]).with_run(aggregate=True, unit="ns")} | found


def _latency(side: dict[str, Any]) -> tuple[dict[str, Any], str, str] | None:
    """Total latency where fio kept its distribution, else completion latency; its unit and name."""
    held = [
        (side[f"{kind}{suffix}"], unit, kind)
        for suffix, unit in (("_ns", "ns"), ("", "us"))
        for kind in ("lat", "clat")
        if isinstance(side.get(f"{kind}{suffix}"), dict)
    ]
    held = [one for one in held if one[0].get("N", one[0].get("max", 0))]
    whole = [one for one in held if one[0].get("bins") or one[0].get("percentile")]
    return next(iter(whole or held), None)


def _series(
    job: dict[str, Any], direction: str, asked: dict[str, Any], record: dict[str, Any]
) -> Data | None:
    """One direction of one job."""
    side = job.get(direction) or {}
    chosen = _latency(side)
    if chosen is None:
        return None
    latency, unit, kind = chosen
    count = int(latency.get("N") or side.get("total_ios") or 0)
    notes = (
        ()
        if kind == "lat"
        else ("completion latency (clat); --lat_percentiles=1 adds the time to submit",)
    )
    run = _run(job, side, asked, record).replace(unit=unit, notes=notes)
    names = {"min": "min", "max": "max", "mean": "mean", "std": "stddev"}
    reported_stats = {
        ours: nanoseconds(latency[theirs], unit)
        for ours, theirs in names.items()
        if theirs in latency
    }
    table = {
        float(p): nanoseconds(v, unit)
        for p, v in (latency.get("percentile") or {}).items()
        if 0 < float(p) < 100
    }
    bins = latency.get("bins")
    if not bins:
        return data_from_points(table, count, reported_stats, run.with_notes(_HINT))
    middle = np.array(sorted(map(int, bins)), np.int64)
    counts = np.array([bins[str(key)] for key in middle.tolist()], np.int64)
    low, high = bin_edges(middle)
    factor = nanoseconds(1, unit)
    reported_percentiles = (tuple(sorted(table)), tuple(table[p] for p in sorted(table)))
    return Histogram.from_buckets(
        low * factor,
        high * factor,
        counts,
        run=run,
        reported_stats=reported_stats,
        reported_percentiles=reported_percentiles,
    )


def _run(
    job: dict[str, Any], side: dict[str, Any], asked: dict[str, Any], record: dict[str, Any]
) -> Run:
    rate = re.match(r"[1-9]\d*", str(asked.get("rate_iops", "")))
    jobs = int(asked.get("numjobs", 1)) if "group_reporting" in asked else 1
    return Run(
        tool="fio",
        version=str(record.get("fio version", "")).removeprefix("fio-") or None,
        loop="paced" if rate else "closed",
        measure="service",
        corrected="none",
        start=job["job_start"] / 1e3 if job.get("job_start") else None,
        duration=side["runtime"] / 1e3 if side.get("runtime") else None,
        rate=float(rate[0]) * jobs if rate else None,
        achieved=side.get("iops"),
        connections=int(asked.get("iodepth", 1)) * jobs,
        failed=int(job.get("total_err") or 0),
        unit_from="format",
    )


def bin_edges(middle: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lowest and highest value of the bucket that fio prints as `middle`, int64 arrays.

    Source: ``plat_idx_to_val`` in fio's stat.c.
    """
    magnitude = np.frexp(np.maximum(middle, 1).astype(np.float64))[1] - 1
    half = np.where(middle < 128, 0, np.int64(1) << np.maximum(magnitude - 7, 0))
    return middle - half, middle + half - (half > 0)


def sniff_terse(head: Head) -> Confidence:
    """Tell a terse line, where there is no JSON."""
    return (
        Confidence.CERTAIN
        if _TERSE.search(head.text) and '"fio version"' not in head.text
        else Confidence.NO
    )


def read_terse(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every terse line; its times are whole microseconds."""
    found: dict[str, Data] = {}
    for number, line in enumerate(source.text().splitlines(), 1):
        if not _TERSE.match(line):
            continue
        fields = line.split(";")
        width = _TERSE_WIDTH[fields[0]]
        if len(fields) < 5 + 2 * width:
            error = source.corrupt(
                number,
                f"a terse line of {len(fields)} fields",
                f"at least {5 + 2 * width}",
                "--lenient skips it",
            )
            options.reject(error)
            continue
        for place, direction in enumerate(_DIRECTIONS[: 3 if fields[0] != "3" else 2]):
            side = fields[5 + place * width : 5 + (place + 1) * width]
            if len(side) == width and int(side[0]):
                found[distinct(f"{fields[2]} {direction}", found)] = _terse_side(side, fields)
    return found


def _terse_side(side: list[str], fields: list[str]) -> Data:
    """One direction: clat_min, max, mean, deviation are fields 8 to 11, the percentiles 12 to 31."""
    low, high, mean, spread = (nanoseconds(float(value), "us") for value in side[8:12])
    pairs = [part.partition("%=") for part in side[12:32]]
    points = {
        float(p): nanoseconds(float(value), "us") for p, _, value in pairs if 0 < float(p) < 100
    }
    seconds = float(side[3]) / 1e3
    run = Run(
        tool="fio", version=fields[1].removeprefix("fio-"), loop="unknown", measure="service", corrected="none",
        duration=seconds, achieved=float(side[2]), failed=int(fields[4] != "0"), unit="us", unit_from="format",
        notes=("the number of requests is IOPS x seconds", "completion latency (clat)", _HINT),
    )  # fmt: skip
    reported_stats = {"min": low, "max": high, "mean": mean, "std": spread}
    return data_from_points(points, round(float(side[2]) * seconds), reported_stats, run)


def sniff_text(head: Head) -> Confidence:
    """Tell a group of the normal output, where neither JSON nor terse lines are there."""
    found = (
        _GROUP.search(head.text)
        and '"fio version"' not in head.text
        and not _TERSE.search(head.text)
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the normal output: the percentiles of every group and direction."""
    text = source.text()
    groups = list(_GROUP.finditer(text))
    version = re.search(r"^fio-(\S+)$", text, re.MULTILINE)
    found: dict[str, Data] = {}
    for place, group in enumerate(groups):
        end = groups[place + 1].start() if place + 1 < len(groups) else len(text)
        body = text[group.end() : end].split("\nRun status group")[0]
        known = Run(
            tool="fio", version=version[1] if version else None, measure="service", corrected="none",
            failed=int(group[3] != "0"), unit_from="file",
        )  # fmt: skip
        for direction, data in _sides(body, known):
            found[distinct(f"{group[1]} {direction}", found)] = data
    return found


def _sides(body: str, run: Run) -> Iterator[tuple[str, Data]]:
    """Directions of a group: ``read:``, ``write:`` … and what is indented below each."""
    issued = re.search(r"issued (?:rwtsd?)\s*: total=([\d,]+)", body)
    totals = [int(part) for part in issued[1].split(",")] if issued else []
    parts = re.split(r"^ +(read|write|trim) ?: ", body, flags=re.MULTILINE)
    for direction, block in zip(parts[1::2], parts[2::2], strict=True):
        block = block.split("fsync/fdatasync")[0]
        stats = re.search(
            r"^ +clat \((\w+)\): +min= *(\S+?), max= *(\S+?), avg= *(\S+?), stdev= *(\S+)",
            block,
            re.MULTILINE,
        )
        table = re.search(r"clat percentiles \((\w+)\):\n((?: +\|.*\n?)+)", block)
        if stats is None:
            continue
        unit = _unit(stats[1])
        reported_stats = {
            name: nanoseconds(_number(stats[k]), unit)
            for k, name in enumerate(("min", "max", "mean", "std"), 2)
        }
        points = {
            float(p): nanoseconds(float(value), _unit(table[1]))
            for p, value in re.findall(r"([\d.]+)th=\[ *>?=?([\d.]+)\]", table[2])
        } if table else {}  # fmt: skip
        order = _DIRECTIONS.index(direction)
        count = totals[order] if len(totals) > order else None
        iops = re.search(r"IOPS=([\d.]+)([kM]?)", block)
        achieved = float(iops[1]) * {"": 1, "k": 1e3, "M": 1e6}[iops[2]] if iops else None
        known = run.replace(unit=unit, achieved=achieved).with_notes(
            "completion latency (clat)", _HINT
        )
        yield direction, data_from_points(points, count, reported_stats, known)


def _unit(word: str) -> str:
    return {"nsec": "ns", "usec": "us", "msec": "ms", "sec": "s"}.get(word, word)


def _number(text: str) -> float:
    factor = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)
    return float(text.rstrip("kKMG")) * factor


_FIO = (
    Format(
        "fio-json", "fio (JSON, also between other outputs)", "histogram", (".json", ".txt"), sniff_json, read_json,
        example="fio --output-format=json+ --output=out.json JOB",
    ),
    Format(
        "fio-terse", "fio (terse)", "histogram", (".txt",), sniff_terse, read_terse, unit="us",
        example="fio --output-format=terse JOB > out.txt",
    ),
    Format("fio", "fio (normal text)", "histogram", (".txt",), sniff_text, read_text, example="fio JOB > out.txt"),
)  # fmt: skip


# ------------------------------------------------------------
# fio's logs: ``write_lat_log`` (one row per request, or a window's mean) and ``write_hist_log``
# (one histogram a window).

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
    if (
        not lines
        or not all(_ROW.fullmatch(line.strip()) for line in lines)
        or _HIST.fullmatch(lines[0].strip())
    ):
        return Confidence.NO
    return Confidence.CERTAIN if re.search(r"_[sc]?lat|_bw|_iops", head.name) else Confidence.LIKELY


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; the time is its end, in ms since the job began."""
    other = _OTHER.search(source.name)
    if other:
        raise source.corrupt(
            None, f"this is a log of {'bandwidth' if other[1] == 'bw' else 'IOPS'}", "latencies",
            "read the _lat or _clat log beside it",
        )  # fmt: skip
    width = source.head.lines[0].count(",") + 1
    if width < 4:
        raise source.corrupt(
            1, "a row of too few fields", "time, value, direction, size", "is this log fio's?"
        )
    names = ("time", "value", "direction", "size", "offset", *(f"more{k}" for k in range(width)))[
        :width
    ]
    frame, notes = read_table(
        source,
        options,
        Layout(names, names[:5], largest={"time": 9e12, "direction": len(_NAMES) - 1}),
    )
    unit, unit_from = options.resolve_unit("ns")
    value = nanoseconds_of(frame["value"].to_numpy(), unit).astype(np.int64)
    averaged = (
        len(frame) > 0 and not frame["size"].any() and not frame.get("offset", frame["size"]).any()
    )
    if averaged:
        notes = (
            *notes,
            "each value is the mean of a window (log_avg_msec): the tail is hidden, as a log without it would show",
        )
    kind = re.search(r"_([sc]?lat)", source.name)
    if kind and kind[1] != "lat":
        notes = (
            *notes,
            "time to submit (slat)" if kind[1] == "slat" else "completion latency (clat)",
        )
    run = Run(
        tool="fio", measure="service", corrected="none", unit=unit, unit_from=unit_from, notes=notes
    )
    start = frame["time"].to_numpy(np.int64) * 1_000_000 - value
    everything = Samples(
        duration=value, start=start, run=run, unit="none" if unit == "none" else "ns"
    )
    code = frame["direction"].to_numpy(np.int64)
    if len(frame) and code.min() < 0:
        raise source.corrupt(
            None, f"direction {code.min()}", f"0 to {len(_NAMES) - 1}", "is this log fio's?"
        )
    return (
        per_operation(everything, code, _NAMES)
        if np.unique(code).size > 1
        else {"": everything}
        if len(frame)
        else {}
    )


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


def read_histograms(source: Source, options: ReadOptions) -> dict[str, Data]:
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
                options.reject(
                    source.corrupt(
                        number,
                        f"a row of {len(fields)} numbers",
                        str(width),
                        "--lenient skips the line",
                    )
                )
        elif fields[1] not in ("0", "1", "2") or max(map(len, fields)) > _DIGITS or "-" in line:
            seen = f"a row that fio does not write, of direction {fields[1]}"
            options.reject(
                source.corrupt(
                    number, seen, "direction 0, 1 or 2, then counts", "--lenient skips the line"
                )
            )
        else:
            rows.append(np.array(fields, np.int64))
    if not rows:
        raise source.corrupt(
            None, "no row is whole", f"rows of {width} numbers", "run fio to its end"
        )
    table = np.stack(rows)
    halved, whole = _coarseness(width - 3) or (0, _BINS)
    unit, unit_from = options.resolve_unit("ns" if whole == _BINS else "us")
    notes = (*notes, "completion latency (clat)")
    run = Run(
        tool="fio", measure="service", corrected="none", unit=unit, unit_from=unit_from, notes=notes
    )
    return {"": _log(table, _layout(whole, halved, NANOSECONDS.get(unit, 1.0)), run)}


def _layout(whole: int, halved: int, factor: float) -> EdgeBuckets:
    """Edges of all bins in ns."""
    index = np.arange(whole, dtype=np.int64)
    shift = np.maximum((index >> 6) - 1, 0)
    half = np.int64(1) << np.maximum(shift - 1, 0)
    middle = np.where(
        index < 128, index, (np.int64(1) << (shift + 6)) + (index % 64 << shift) + half
    )
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
    block = Block(
        np.arange(len(counts)), indptr, index.astype(np.int64), counts[row, index], buckets
    )
    several = np.unique(direction).size > 1
    return HistogramLog(
        before, times - before, [MemoryPart([block])], tag_code=direction if several else None,
        tag_names=_NAMES if several else ("",), unit="none" if run.unit == "none" else "ns", run=run,
    )  # fmt: skip


_FIO_LOGS = (
    Format(
        "fio-log", "fio's latency log", "samples", (".log",), sniff_log, read_log, unit="ns",
        example="fio --write_lat_log=run JOB   # writes run_lat.1.log",
    ),
    Format(
        "fio-histograms", "fio's histogram log", "log", (".log",), sniff_histograms, read_histograms,
        example="fio --write_hist_log=run --log_hist_msec=1000 JOB   # writes run_clat_hist.1.log",
    ),
)  # fmt: skip

FORMATS = (*_FIO, *_FIO_LOGS)
