"""fio: JSON with bins (``json+``) or percentiles, terse lines, the normal text, and its logs.

Bins and percentiles are printed as the middle of a bucket of fio's plot layout: 64 buckets per
power of two, exact below 128. The logs are those of ``write_lat_log`` (one row per request, or a
window's mean) and ``write_hist_log`` (one histogram per window).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from latencykit._typing import Ints
from latencykit.core.buckets import EdgeBuckets
from latencykit.core.consistency import busy
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.rows import RowLayout, line_refuser, read_table
from latencykit.io.source import (
    Confidence,
    Data,
    Head,
    ReadOptions,
    Series,
    SeveralDocuments,
    Source,
)
from latencykit.io.text_reports import blocks, certain, fact, has_match, line_numbers, plain
from latencykit.units import NANOSECONDS

_JSON = '"fio version"'
_JOB_START = re.compile(r'"job_start" : (\d+)')
_DIRECTIONS = ("read", "write", "trim", "sync")
_TERSE = re.compile(r"^([345]);fio-[^;]*;.*$", re.MULTILINE)
_TERSE_WIDTH = {"3": 41, "4": 41, "5": 47}
_GROUP = re.compile(r"^(\S.*?): \(groupid=\d+, jobs=(\d+)\): err= *(\d+)", re.MULTILINE)
_SIDE = re.compile(
    r"^[ \t]*(read|write|trim|(?:f?sync/)?f?(?:data)?sync(?:/sync_file_range)?) ?:(?: |$)",
    re.MULTILINE,
)
_CLAT_ROW = re.compile(
    r"^[ \t]*(?:clat|sync) \((\w+)\): +min= *(\S+?), max= *(\S+?), avg= *(\S+?), stdev= *(\S+)",
    re.MULTILINE,
)
_CLAT_TABLE = re.compile(r"(?:clat|sync) percentiles \((\w+)\):\n((?:[ \t]*\|.*\n?)+)")
_SCALE = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_RUN = Run(tool="fio", measure="service", corrected="none")
_CLAT = "completion latency (clat)"
_HINT = "--output-format=json+ contains the full distribution"


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every job and direction; with ``--status-interval`` the last report counts."""
    text = source.text()
    begins = [match.start() for match in re.finditer(r"^\{", text, re.MULTILINE)]
    if not begins:
        raise source.corrupt(None, "it contains no JSON", "fio's JSON output")
    ends = [*begins[1:], len(text)]
    runs = {
        fact(text[begin:end], _JOB_START, int): (begin, end)
        for begin, end in zip(begins, ends, strict=True)
    }
    if len(runs) > 1:
        line_at = line_numbers(text)
        raise SeveralDocuments(
            [(text[begin:end], line_at(begin) - 1) for begin, end in runs.values()]
        )
    record: dict[str, Any] = json_text.parse(text, source, begins[-1], whole=False)
    series: dict[str, Data] = {}
    requests: list[Data] = []
    for job in record.get("jobs") or record.get("client_stats") or []:
        settings = {**(record.get("global options") or {}), **(job.get("job options") or {})}
        for direction in _DIRECTIONS:
            side = job.get(direction) or {}
            # Total latency where fio kept its distribution, else completion latency.
            candidates = [
                (side[f"{kind}{suffix}"], unit, kind)
                for suffix, unit in (("_ns", "ns"), ("", "us"))
                for kind in ("lat", "clat")
                if isinstance(side.get(f"{kind}{suffix}"), dict)
            ]
            candidates = [row for row in candidates if row[0].get("N", row[0].get("max", 0))]
            full = [row for row in candidates if row[0].get("bins") or row[0].get("percentile")]
            if not candidates:
                continue
            latency, unit, kind = (full or candidates)[0]
            count = int(latency.get("N") or side.get("total_ios") or 0) or None
            rate = fact(str(settings.get("rate_iops", "")), r"\A([1-9]\d*)", float)
            grouped = "group_reporting" in settings
            jobs = int(settings.get("numjobs", 1)) if grouped else 1
            run = _RUN.replace(
                version=str(record.get("fio version", "")).removeprefix("fio-") or None,
                loop="paced" if rate else "closed",
                start=job["job_start"] / 1e3 if job.get("job_start") else None,
                duration=side["runtime"] / 1e3 if side.get("runtime") else None,
                rate=rate * jobs if rate else None, achieved=side.get("iops"), unit=unit,
                connections=int(settings.get("iodepth", 1)) * jobs, unit_from="format",
                failed=int(job.get("total_err") or 0),
            )  # fmt: skip
            if kind != "lat":
                run = run.with_notes(f"{_CLAT}; --lat_percentiles=1 adds the time to submit")
            _, stats = build.statistics_in(latency)
            # of all sections of a group, of which the options are the first one's
            if grouped and busy(build.in_nanoseconds(stats, unit), count or 0, run):
                run = run.replace(connections=None)
            points = {float(p): value for p, value in (latency.get("percentile") or {}).items()}
            points = {p: value for p, value in points.items() if 0 < p < 100}
            data: Data
            if bins := latency.get("bins"):
                middle = np.array(sorted(map(int, bins)), np.int64)
                counts = np.array([bins[str(key)] for key in middle.tolist()], np.int64)
                edges = bin_edges(middle)
                data = build.data_from_buckets(*edges, counts, run, stats=stats, points=points)
            else:
                data = build.data_from_points(points, count, stats, run.with_notes(_HINT), unit)
            name = f"{job.get('jobname', 'job')} {direction}"
            if "hostname" in job:  # of one client of several
                name = f"{job['hostname']} {name}"
            series[build.unique_name(name, series)] = data
            requests += [data] if direction != "sync" else []
    exact = [
        data for data in requests if isinstance(data, Histogram) and _HINT not in data.run.notes
    ]
    if len(exact) < 2 or len(exact) < len(requests):  # printed percentiles cannot be added
        return series
    return {"all": sum(exact[1:], exact[0]).with_run(aggregate=True, unit="ns")} | series


def bin_edges(middle: Ints) -> tuple[Ints, Ints]:
    """Return the lowest and highest value of the bucket that fio prints as `middle`."""
    # Source: ``plat_idx_to_val`` in fio's stat.c.
    magnitude = np.frexp(np.maximum(middle, 1).astype(np.float64))[1] - 1
    half = np.where(middle < 128, 0, np.int64(1) << np.maximum(magnitude - 7, 0))
    return middle - half, middle + half - (half > 0)


def read_terse(source: Source, options: ReadOptions) -> Series:
    """Read every terse line; its times are whole microseconds."""
    for number, line in enumerate(source.text().splitlines(), 1):
        if not _TERSE.match(line):
            continue
        fields = line.split(";")
        width = _TERSE_WIDTH[fields[0]]
        if len(fields) < 5 + 2 * width:
            seen = f"a terse line of {len(fields)} fields"
            options.refuse(source, number, seen, f"at least {5 + 2 * width}")
            continue
        for place, direction in enumerate(_DIRECTIONS[: 3 if fields[0] != "3" else 2]):
            side = fields[5 + place * width : 5 + (place + 1) * width]
            if len(side) == width and int(side[0]):
                # Fields 8 to 11 are clat_min, max, mean, deviation, 12 to 31 percentiles
                stats = dict(zip(("min", "max", "mean", "std"), side[8:12], strict=True))
                pairs = [part.partition("%=") for part in side[12:32]]
                points = {float(p): value for p, _, value in pairs}
                seconds = float(side[3]) / 1e3
                run = _RUN.replace(
                    version=fields[1].removeprefix("fio-"), duration=seconds, unit="us",
                    achieved=float(side[2]), failed=int(fields[4] != "0"), unit_from="format",
                    notes=("the number of requests is IOPS x seconds", _CLAT, _HINT),
                )  # fmt: skip
                count = round(float(side[2]) * seconds)
                data = build.data_from_points(points, count, stats, run, "us")
                yield f"{fields[2]} {direction}", data


def read_text(source: Source, options: ReadOptions) -> Series:
    """Read the normal output: the percentiles of every group and direction, and of its syncs."""
    # Of a copied part, what stands above the first group is a group without a name.
    text = plain(source.text())
    version = fact(text, r"^fio-(\S+)$", str)
    groups = [(match[1], match[3], match.end(), end) for match, end in blocks(text, _GROUP)]
    for title, errors, begin, end in groups or [("", "0", 0, len(text))]:
        body = text[begin:end].split("\nRun status group")[0]
        totals = fact(body, r"issued[ \w]*: total=([rwd\d=/,]+)", partial(re.findall, r"\d+")) or []
        parts = _SIDE.split(body)
        for name, block in zip(["", *parts[1::2]], parts[::2], strict=True):
            row, table = _CLAT_ROW.search(block), _CLAT_TABLE.search(block)
            if row is None and table is None:
                continue
            direction = "sync" if "sync" in name else name
            unit = build.unit_in((row or table or [""] * 2)[1]) or "us"
            stats: dict[str, float] = {}
            if row:
                cells = zip(("min", "max", "mean", "std"), row.groups()[1:], strict=True)
                stats = {
                    key: float(cell.rstrip("kKMG")) * _SCALE.get(cell[-1], 1.0)
                    for key, cell in cells
                }
            points: dict[float, float] = {}
            if table:
                pairs = re.findall(r"([\d.]{1,12})th=\[ *>?=?([\d.]+)\]", table[2])
                own = build.unit_in(table[1]) or table[1]
                points = build.in_nanoseconds({float(p): cell for p, cell in pairs}, own)
            order = _DIRECTIONS.index(direction) if name else len(totals)
            count = int(totals[order]) if len(totals) > order else None
            iops = re.search(r"IOPS=([\d.]+)([kM]?)", block)
            lasted = fact(block, r"(?:/|\brunt= *)(\d+)msec\b", float)
            run = _RUN.replace(
                version=version, unit=unit, failed=int(errors != "0"),
                duration=lasted / 1e3 if lasted else None,
                achieved=float(iops[1]) * _SCALE.get(iops[2], 1.0) if iops else None,
                notes=(_HINT,) if direction == "sync" else (_CLAT, _HINT),
            )  # fmt: skip
            stats = build.in_nanoseconds(stats, unit)
            data = build.data_from_points(points, count or None, stats, run)
            yield f"{title} {direction}".strip(), data


# ------------------------------------------------------------
# Logs.

_ROW = re.compile(r"\d+, \d+, [0123], \d+(?:, \d+)?(?:, (?:0x[0-9a-f]+|\d+))?(?:, \d+)*")
_HIST = re.compile(r"\d+, [012], \d+(?:, \d+){57,}")
_DIGITS = 18  # a number with this many digits fits an int64
_BINS = 1856  # fio 3: 29 groups of 64 buckets, in ns; fio 2 had 19 groups, in µs
_OLD_BINS = 1216


def sniff_log(head: Head) -> Confidence:
    """Recognise time, value, direction and block size; the name says of what."""
    lines = [line.strip() for line in head.lines[:100] if line.strip()]
    if not lines or not all(map(_ROW.fullmatch, lines)) or _HIST.fullmatch(lines[0]):
        return Confidence.NO
    return Confidence.CERTAIN if re.search(r"_[sc]?lat|_bw|_iops", head.name) else Confidence.LIKELY


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every request; the time is its end, in ms since the job began."""
    other = re.search(r"_(bw|iops)(?:\.\d+)?\.log$", source.name)
    if other:
        seen = f"this is a log of {'bandwidth' if other[1] == 'bw' else 'IOPS'}"
        hint = "read the _lat or _clat log beside it"
        raise source.corrupt(None, seen, "latencies", hint)
    width = source.head.lines[0].count(",") + 1
    if width < 4:
        expected = "time, value, direction, size"
        raise source.corrupt(1, "a row of too few fields", expected, "is this log fio's?")
    names = ("time", "value", "direction", "size", "offset", *(f"more{k}" for k in range(width)))
    largest = {"time": 9e12, "direction": len(_DIRECTIONS) - 1}
    layout = RowLayout(names[:width], names[: min(width, 5)], largest=largest)
    frame, notes = read_table(source, options, layout)
    unit, unit_from = options.resolve_unit("ns")
    value = build.nanoseconds_of(frame["value"], unit).astype(np.int64)
    if value.size and not frame["size"].any() and not frame.get("offset", frame["size"]).any():
        note = (
            "each value is the mean of a window (log_avg_msec): "
            "the tail is hidden, as a log without it would show"
        )
        notes += (note,)
    kind = fact(source.name, r"_([sc]?lat)", str)
    if kind and kind != "lat":
        notes += ("time to submit (slat)" if kind == "slat" else _CLAT,)
    run = _RUN.replace(unit=unit, unit_from=unit_from, notes=notes)
    start = frame["time"].astype(np.int64) * 1_000_000 - value
    code = frame["direction"].astype(np.int64)
    if not value.size:
        return {}
    if code.min() < 0:
        expected = f"0 to {len(_DIRECTIONS) - 1}"
        raise source.corrupt(None, f"direction {code.min()}", expected, "is this log fio's?")
    given = {"duration": value, "start": start} | ({"code": code} if np.ptp(code) else {})
    return build.samples_of(given, run, options, _DIRECTIONS, unit=build.base_unit(unit))


def sniff_histograms(head: Head) -> Confidence:
    """Recognise time, direction, block size and a long row of counts."""
    line = head.lines[0].strip() if head.lines else ""
    return certain(_HIST.fullmatch(line) and _coarseness(line.count(",") - 2))


def _coarseness(bins: int) -> tuple[int, int] | None:
    """How often fio halved the number of bins, and the number before; None for another number."""
    for full in (_BINS, _OLD_BINS):
        for halved in range(7):
            if full >> halved == bins:
                return halved, full
    return None


def read_histograms(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every window as an interval of a log; several directions are its tags."""
    text, rows, notes = source.text(), [], [_CLAT]
    width = text.partition("\n")[0].count(",") + 1
    refuse = line_refuser(source, options, text, notes)
    for number, line in enumerate(text.split("\n"), 1):
        fields = re.findall(r"-?\d+", line)
        if len(fields) != width:
            if line.strip():
                refuse(number, f"a row of {len(fields)} numbers", str(width))
        elif fields[1] not in ("0", "1", "2") or max(map(len, fields)) > _DIGITS or "-" in line:
            seen = f"a row that fio does not write, of direction {fields[1]}"
            options.refuse(source, number, seen, "direction 0, 1 or 2, then counts")
        else:
            rows.append(np.array(fields, np.int64))
    if not rows:
        expected = f"rows of {width} numbers"
        raise source.corrupt(None, "no row is complete", expected, "run fio to its end")
    halved, full = _coarseness(width - 3) or (0, _BINS)
    unit, unit_from = options.resolve_unit("ns" if full == _BINS else "us")
    run = _RUN.replace(unit=unit, unit_from=unit_from, notes=tuple(notes))
    table = np.stack(rows)
    order = np.lexsort((table[:, 0], table[:, 1]))
    times, direction = table[order, 0] / 1e3, table[order, 1]
    fresh = np.concatenate(([True], np.diff(direction) != 0))
    before = np.where(fresh, 0.0, np.concatenate(([0.0], times[:-1])))
    # groups of 64 bins, each twice as wide as those before
    index, step = np.arange(full, dtype=np.int64), 1 << halved
    shift = np.maximum((index >> 6) - 1, 0)
    half = np.int64(1) << np.maximum(shift - 1, 0)
    middle = (np.int64(1) << (shift + 6)) + (index % 64 << shift) + half
    low, high = bin_edges(np.where(index < 128, index, middle))
    factor = NANOSECONDS.get(unit, 1.0)
    buckets = EdgeBuckets(low[::step] * factor, high[step - 1 :: step] * factor)
    several = np.unique(direction).size > 1
    log = build.log_of_counts(
        table[order, 3:], buckets, before, times - before, unit=build.base_unit(unit), run=run,
        tag_code=direction if several else None,
        tag_names=_DIRECTIONS if several else ("",),
    )  # fmt: skip
    return {"": log}


FORMATS = {
    "fio-json": (has_match(_JSON), read_json),
    "fio-terse": (has_match(_TERSE, without=_JSON), read_terse),
    "fio": (
        has_match(
            f"{_GROUP.pattern}|{_CLAT_ROW.pattern}|{_CLAT_TABLE.pattern}",
            without=f"{_JSON}|{_TERSE.pattern}",
        ),
        read_text,
    ),
    "fio-log": (sniff_log, read_log),
    "fio-histograms": (sniff_histograms, read_histograms),
}
