"""cyclictest: the histogram of ``-h`` (text, JSON), the cycles of ``-v``, the closing status lines.

rtla timerlat, which measures the same within the kernel: its histogram.

A thread sleeps until a moment that was set before and records by how many whole microseconds it
woke late. Values at or above the last bucket are counted as overflows: they lie between it and the
maximum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from latencykit.core.histogram import Histogram
from latencykit.core.run import Note, Run, UnitFrom
from latencykit.io import build, json_text
from latencykit.io.source import Data, ReadOptions, Series, Source
from latencykit.io.text_reports import either, fact, has_match, text_of_run
from latencykit.units import NANOSECONDS

# blanks between numbers, or it backtracks without end
_BUCKET = re.compile(r"^(\d{6,18})((?:[ \t]+\d{6,18})+)[ \t]*$", re.MULTILINE)
_CYCLE = re.compile(r"^ *(\d+): *(\d+): *(-?\d+)$", re.MULTILINE)
_INTERVAL = re.compile(r"^Thread (\d+) Interval: (\d+)$", re.MULTILINE)
_STATUS = re.compile(
    r"^T: *(\d+) *\( *\d+\) P: *\d+ I: *(\d+) C: *(\d+) "
    r"Min: *(\d+) Act: *\d+ Avg: *(\d+) Max: *(\d+)",
    re.MULTILINE,
)
_BEGIN = r"^# /dev/cpu_dma_latency|^policy: |^# Histogram$"
_END = re.compile(rf"{_STATUS.pattern}|^# Max Latencies:", re.MULTILINE)
_HINT = "run cyclictest with --histogram=N (or --json beside it) for the distribution"


def _run(options: ReadOptions, default: str = "us", origin: UnitFrom = "format") -> Run:
    unit, unit_from = options.resolve_unit(default, origin)
    return Run(
        tool="cyclictest", loop="paced", measure="response", corrected="none", unit=unit,
        unit_from=unit_from, connections=1,
    )  # fmt: skip


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histogram, one series per thread, or the last status of each thread."""
    text = text_of_run(source, _BEGIN, _END)
    rows = _BUCKET.findall(text)
    run = _run(options)
    series: dict[str, Data] = {}
    if not rows:
        for thread, interval, cycles, low, mean, high in _STATUS.findall(text):
            stats = {"min": low, "mean": mean, "max": high}
            own = run.replace(expected_interval=build.nanoseconds(interval, "us"), notes=(_HINT,))
            series[f"thread {thread}"] = build.data_from_points(
                {}, int(cycles), stats, own, run.unit
            )
        return _with_all(series, run)
    numbers = [[int(row[0]), *map(int, row[1].split())] for row in rows]
    width = {len(row) for row in numbers}
    lows, highs, means, over = (
        [int(part) for part in fact(text, rf"^# {name}:((?: \d+)+)", str.split) or ()]
        for name in ("Min Latencies", "Max Latencies", "Avg Latencies", "Histogram Overflows")
    )
    threads = len(lows) or max(width) - 1  # --histofall adds a column with the sum of all
    footers = [len(row) for row in (lows, highs, means, over) if row]
    if len(width) > 1 or threads >= max(width) or min(footers, default=threads) < threads:
        seen = "the rows, or they and the closing lines, have unlike numbers of columns"
        raise source.corrupt(None, seen, "one per thread", "run cyclictest anew")
    table = np.array(numbers, np.int64)
    if not highs:
        cut = (
            "the closing lines are missing: the file is truncated, overflows and maxima are unknown"
        )
        run = run.with_notes(Note(cut))
    value, edge = table[:, 0], int(table[-1, 0]) + 1
    for thread in range(threads):
        footer = {"min": lows, "max": highs, "mean": means}
        stats = {name: float(row[thread]) for name, row in footer.items() if row}
        beyond = over[thread] if over else 0
        histogram = _histogram(value, table[:, thread + 1], beyond, edge, stats, run)
        series[f"thread {thread}"] = histogram
    return _with_all(series, run)


def _histogram(
    value: NDArray[np.int64],
    counts: NDArray[np.int64],
    beyond: int,
    limit: int,
    stats: Mapping[str, float],
    run: Run,
) -> Histogram:
    """One thread's counts; a bucket reaches from its whole number up to the next."""
    top = max(stats.get("max", np.inf), value[-1] if value.size else 0.0)
    high = np.minimum(value + (1 - 1 / NANOSECONDS.get(run.unit, 1.0)), top)
    low = np.minimum(value, high)
    if beyond and limit <= top < np.inf:
        low, high = np.append(low, limit), np.append(high, top)
        counts, beyond = np.append(counts, beyond), 0
    return build.data_from_buckets(low, high, counts, run, stats=stats, above=beyond, bound=limit)


def _with_all(series: dict[str, Data], run: Run) -> dict[str, Data]:
    """All threads first; a single thread is the file itself."""
    parts = [data for data in series.values() if isinstance(data, Histogram)]
    if len(series) == 1:
        return {"": next(iter(series.values()))}
    if len(parts) < len(series):
        return series
    total = sum(parts[1:], parts[0]).with_run(
        aggregate=True, connections=len(parts), unit=run.unit, notes=run.notes
    )
    return {"all": total} | series


def read_verbose(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every cycle, one series per thread."""
    rows = np.array(_CYCLE.findall(source.text()), np.int64)
    if not rows.size:
        return {}
    run = _run(options)
    bad = rows[:, 2] < 0
    if bad.any():
        note = f"{int(bad.sum())} cycles with a negative latency left out"
        options.report(note)
        run, rows = run.with_notes(note), rows[~bad]
    threads, code = np.unique(rows[:, 0], return_inverse=True)
    given = {"duration": rows[:, 2], "connection": rows[:, 0]}
    given |= {"code": code.reshape(-1)} if threads.size > 1 else {}
    names = [f"thread {k}" for k in threads]
    series = build.samples_of(given, run, options, names, unit=run.unit)
    for number, interval in _INTERVAL.findall(source.text()):
        name = f"thread {number}" if threads.size > 1 else ""
        if name in series:
            own = build.nanoseconds(interval, "us")
            series[name] = series[name].with_run(expected_interval=own)
    if threads.size > 1:
        series["all"] = series["all"].with_run(connections=threads.size)
    return series


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histogram of every thread."""
    record = json_text.load(source)
    threads = json_text.entry(record, "thread", source)
    command = str(record.get("cmdline:", record.get("cmdline", "")))
    fine = bool(record.get("resolution_in_ns"))
    interval = fact(command, r"(?:^|\s)(?:-i ?|--interval=)(\d+)", float) or 1000  # its default
    limit = fact(command, r"(?:-h ?|--hist(?:ogram|ofall)=|-H ?)(\d+)", int)
    run = _run(options, "ns" if fine else "us", "file").replace(
        version=record.get("rt_test_version:", record.get("rt_test_version")),
        command=command or None,
    )
    series: dict[str, Data] = {}
    for name, thread in threads.items():
        stats = {name: float(value) for name, value in build.statistics_in(thread)[1].items()}
        histogram, own = thread.get("histogram"), run
        if command and (histogram or name == "0"):  # else each has a longer one than the last
            own = run.replace(expected_interval=build.nanoseconds(interval, "us"))
        if not histogram:
            series[f"thread {name}"] = build.data_from_points(
                {}, thread.get("cycles"), stats, own.with_notes(_HINT), run.unit
            )
            continue
        value = np.array([int(key) for key in histogram], np.int64)
        counts = np.array(list(histogram.values()), np.int64)
        beyond = max(int(thread.get("cycles", counts.sum())) - int(counts.sum()), 0)
        edge = int(value.max(initial=0)) + 1 if limit is None else limit
        order = np.argsort(value)
        data = _histogram(value[order], counts[order], beyond, edge, stats, own)
        series[f"thread {name}"] = data
    return _with_all(series, run)


_RTLA = re.compile(r"^[ \t]*Index((?:[ \t]+\w+-\d+)+)[ \t]*$", re.MULTILINE)
_RTLA_ROW = re.compile(
    r"^[ \t]*(\d+|over:|min:|avg:|max:)((?:[ \t]+(?:\d+|-))+)[ \t]*$", re.MULTILINE
)


def read_rtla(source: Source, options: ReadOptions) -> Series:
    """Read rtla's histograms: one series per column, and the sum of those of one kind first."""
    text = text_of_run(source, _RTLA)
    nano = "unit is nanoseconds" in text
    run = _run(options, "ns" if nano else "us", "file").replace(tool="rtla timerlat")
    header = _RTLA.search(text)
    names = header[1].split() if header else []
    rows = [(label, cells.split()) for label, cells in _RTLA_ROW.findall(text)]
    rows = [(label, cells) for label, cells in rows if len(cells) == len(names)]
    counted = [(int(label), cells) for label, cells in rows if label.isdigit()]
    footer = {label[:-1]: cells for label, cells in rows if not label.isdigit()}
    value = np.array([index for index, _ in counted], np.int64)
    parts: dict[str, dict[str, Histogram]] = {}
    for k, name in enumerate(names):
        counts = np.array([int(cells[k]) for _, cells in counted], np.int64)
        beyond = int(footer["over"][k]) if "over" in footer else 0
        if counts.any() or beyond:
            _, stats = build.statistics_in({key: float(cells[k]) for key, cells in footer.items()})
            stats = {stat: number for stat, number in stats.items() if number or stat == "min"}
            edge = int(value[-1]) + 1 if value.size else 0
            threads = parts.setdefault(name.partition("-")[0], {})
            threads[name] = _histogram(value, counts, beyond, edge, stats, run)
    for kind, threads in parts.items():
        first, *others = threads.values()
        if others:
            total = sum(others, first)
            yield kind, total.with_run(aggregate=True, connections=len(threads), unit=run.unit)
        yield from threads.items()


FORMATS = {
    "cyclictest": (either(has_match("# Histogram", _BUCKET), has_match(_STATUS)), read_text),
    "rtla": (has_match(_RTLA), read_rtla),
    "cyclictest-verbose": (has_match(r"^Thread \d+ Interval: \d+", _CYCLE), read_verbose),
    "cyclictest-json": (
        has_match(r"\A\s*[{\[]", '"rt_test_version:?"', '"thread"', '"cyclictest'),
        read_json,
    ),
}
