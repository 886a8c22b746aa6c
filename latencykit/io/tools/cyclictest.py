"""cyclictest: the histogram of ``-h`` as text and JSON, the cycles of ``-v``, and the closing status lines.

A thread sleeps until a moment that was set before and notes by how many whole microseconds it woke late. Values at or
above the last bucket are counted as overflows; only the maximum is known of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from latencykit.core.histogram import Histogram
from latencykit.core.run import Run, UnitFrom
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.io import text as jsontext
from latencykit.io.build import nanoseconds, per_operation
from latencykit.io.source import Confidence, Format
from latencykit.units import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_BUCKET = re.compile(
    r"^(\d{6,18})((?:[ \t]+\d{6,18})+)[ \t]*$", re.MULTILINE
)  # blanks between numbers, or it takes for ever
_CYCLE = re.compile(r"^ *(\d+): *(\d+): *(-?\d+)$", re.MULTILINE)
_STATUS = re.compile(
    r"^T: *(\d+) *\( *\d+\) P: *\d+ I: *(\d+) C: *(\d+) Min: *(\d+) Act: *\d+ Avg: *(\d+) Max: *(\d+)",
    re.MULTILINE,
)
_HINT = "run cyclictest with --histogram=N (or --json beside it) for the distribution"


def sniff_text(head: Head) -> Confidence:
    """Tell the histogram's head, or a status line."""
    text = head.text
    if "# Histogram" in text and _BUCKET.search(text):
        return Confidence.CERTAIN
    return Confidence.CERTAIN if _STATUS.search(text) else Confidence.NO


def sniff_verbose(head: Head) -> Confidence:
    """Tell the line before the first cycle."""
    found = re.search(r"^Thread \d+ Interval: \d+", head.text, re.MULTILINE)
    return Confidence.CERTAIN if found and _CYCLE.search(head.text) else Confidence.NO


def sniff_json(head: Head) -> Confidence:
    """Tell the keys; the suite's other tests have no histogram per thread."""
    found = jsontext.has_keys(head, "rt_test_version:", "thread") or jsontext.has_keys(
        head, "rt_test_version", "thread"
    )
    return Confidence.CERTAIN if found and '"cyclictest' in head.text else Confidence.NO


def _run(options: ReadOptions, default: str = "us", origin: UnitFrom = "format") -> Run:
    unit, unit_from = options.resolve_unit(default, origin)
    return Run(
        tool="cyclictest",
        loop="paced",
        measure="response",
        corrected="none",
        unit=unit,
        unit_from=unit_from,
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histogram, one series per thread, or the last status of each thread."""
    text = source.text()
    rows = _BUCKET.findall(text)
    run = _run(options)
    if not rows:
        return _statuses(text, run)
    numbers = [[int(row[0]), *map(int, row[1].split())] for row in rows]
    if len({len(row) for row in numbers}) > 1:
        raise source.corrupt(
            None,
            "rows of the histogram have unlike numbers of columns",
            "one a thread",
            "run cyclictest anew",
        )
    table = np.array(numbers, np.int64)
    lows, highs, means = (_footer(text, f"{name} Latencies") for name in ("Min", "Max", "Avg"))
    over = _footer(text, "Histogram Overflows")
    threads = len(lows) or table.shape[1] - 1  # --histofall adds a column with the sum of all
    if threads >= table.shape[1] or any(
        len(row) < threads for row in (lows, highs, means, over) if row
    ):
        seen = "the closing lines and the rows have unlike numbers of columns"
        raise source.corrupt(None, seen, "one a thread", "run cyclictest anew")
    if not highs:
        run = run.with_notes(
            "the closing lines are missing: the file is cut, overflows and maxima are unknown"
        )
    found: dict[str, Data] = {}
    for thread in range(threads):
        reported_stats = {
            name: float(row[thread])
            for name, row in (("min", lows), ("max", highs), ("mean", means))
            if row
        }
        beyond = int(over[thread]) if over else 0
        counts = table[:, thread + 1]
        found[f"thread {thread}"] = _histogram(
            table[:, 0], counts, beyond, int(table[-1, 0]) + 1, reported_stats, run
        )
    return _with_all(found, run)


def _footer(text: str, name: str) -> list[int]:
    found = re.search(rf"^# {name}:((?: \d+)+)", text, re.MULTILINE)
    return [int(part) for part in found[1].split()] if found else []


def _histogram(
    value: NDArray[np.int64],
    counts: NDArray[np.int64],
    beyond: int,
    limit: int,
    reported_stats: Mapping[str, float],
    run: Run,
) -> Histogram:
    """One thread's counts; a bucket holds what lies from its whole number up to the next."""
    factor = NANOSECONDS.get(run.unit, 1.0)
    width = factor - 1 if factor > 1 else 0.0
    low = value * factor
    known = {name: nanoseconds(number, run.unit) for name, number in reported_stats.items()}
    high = np.minimum(low + width, max(known.get("max", np.inf), low[-1] if low.size else 0.0))
    return Histogram.from_buckets(
        np.minimum(low, high), high, counts, "none" if run.unit == "none" else "ns", run=run, reported_stats=known,
        censored=beyond, censored_at=limit * factor if beyond else float("inf"),
    )  # fmt: skip


def _with_all(found: dict[str, Data], run: Run) -> dict[str, Data]:
    """All threads first; a single thread is the file itself."""
    parts = [one for one in found.values() if isinstance(one, Histogram)]
    if len(found) == 1:
        return {"": next(iter(found.values()))}
    if len(parts) < len(found):
        return found
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return {
        "all": total.with_run(
            aggregate=True, connections=len(parts), unit=run.unit, notes=run.notes
        )
    } | found


def _statuses(text: str, run: Run) -> dict[str, Data]:
    found: dict[str, Data] = {}
    for thread, interval, cycles, low, mean, high in _STATUS.findall(
        text
    ):  # the last one of each thread stays
        stats = {"min": low, "mean": mean, "max": high}
        expected = nanoseconds(float(interval), "us")
        found[f"thread {thread}"] = Summary(
            {name: nanoseconds(float(value), run.unit) for name, value in stats.items()},
            {},
            int(cycles),
            "ns",
            run.replace(expected_interval=expected).with_notes(_HINT),
        )
    return found if len(found) != 1 else {"": next(iter(found.values()))}


def read_verbose(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every cycle, one series per thread."""
    rows = np.array(_CYCLE.findall(source.text()), dtype=np.int64)
    run = _run(options)
    bad = rows[:, 2] < 0
    if bad.any():
        note = f"{int(bad.sum())} cycles with a negative latency left out"
        options.report(note)
        run, rows = run.with_notes(note), rows[~bad]
    names, code = np.unique(rows[:, 0], return_inverse=True)
    samples = Samples(
        duration=rows[:, 2],
        connection=rows[:, 0],
        unit=run.unit,
        run=run.replace(connections=names.size),
    )
    found = per_operation(samples, code.reshape(-1), [f"thread {name}" for name in names.tolist()])
    return found if len(found) > 1 else {"": samples}


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the histogram of every thread."""
    record = jsontext.load(source)
    threads = jsontext.entry(record, "thread", source)
    command = str(record.get("cmdline:", record.get("cmdline", "")))
    fine = bool(record.get("resolution_in_ns"))
    interval = re.search(r"(?:^|\s)(?:-i ?|--interval=)(\d+)", command)
    run = _run(options, "ns" if fine else "us", "file").replace(
        version=record.get("rt_test_version:", record.get("rt_test_version")),
        command=command or None,
        connections=len(threads),
    )
    found: dict[str, Data] = {}
    for name, thread in threads.items():
        reported_stats = {
            k: float(thread[v])
            for k, v in (("min", "min"), ("max", "max"), ("mean", "avg"))
            if v in thread
        }
        histogram = thread.get("histogram")
        expected = nanoseconds(float(interval[1]), "us") if interval and name == "0" else None
        own = run.replace(expected_interval=expected)
        if not histogram:
            stats = {key: nanoseconds(value, run.unit) for key, value in reported_stats.items()}
            found[f"thread {name}"] = Summary(
                stats, {}, thread.get("cycles"), "ns", own.with_notes(_HINT)
            )
            continue
        value = np.array([int(key) for key in histogram], np.int64)
        counts = np.array(list(histogram.values()), np.int64)
        beyond = max(int(thread.get("cycles", counts.sum())) - int(counts.sum()), 0)
        limit = re.search(r"(?:-h ?|--hist(?:ogram|ofall)=|-H ?)(\d+)", command)
        edge = int(limit[1]) if limit else int(value.max(initial=0)) + 1
        order = np.argsort(value)
        found[f"thread {name}"] = _histogram(
            value[order], counts[order], beyond, edge, reported_stats, own
        )
    return _with_all(found, run)


FORMATS = (
    Format(
        "cyclictest", "cyclictest (histogram, status)", "histogram", (".txt",), sniff_text, read_text, unit="us",
        example="cyclictest -q -D 60 --histogram=400 > cyclictest.txt",
    ),
    Format(
        "cyclictest-verbose", "cyclictest (-v)", "samples", (".txt",), sniff_verbose, read_verbose, unit="us",
        example="cyclictest -v -l 3000 > cyclictest.txt",
    ),
    Format(
        "cyclictest-json", "cyclictest (JSON)", "histogram", (".json",), sniff_json, read_json,
        example="cyclictest -q -D 60 --histogram=400 --json=out.json",
    ),
)  # fmt: skip
