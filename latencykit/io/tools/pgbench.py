"""pgbench: the transaction log (``-l``), the log of intervals, and what it prints.

A row's stamp is the end of the transaction. With ``-R`` its time counts from the moment the
transaction was due, and the column behind the stamp is how much later it began. Intervals need
``--aggregate-interval``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from latencykit._text import format_items
from latencykit.core.columns import matching
from latencykit.core.run import CLOSED, SCHEDULED, Run
from latencykit.io.build import data_from_points, outcome_codes, samples_of
from latencykit.io.rows import RowLayout, line_refuser, read_table
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain, fact, has_match, text_of_run

_FAILED = ("failed", "serialization", "deadlock")
_ROW = re.compile(
    rf"\d{{1,19}} \d{{1,19}} (?:\d{{1,19}}|skipped|{'|'.join(_FAILED)}) \d{{1,19}} \d{{9,11}}"
    r" \d{1,6}(?: \d+(?:\.\d+)?)?(?: \d+)?"
)
_INTERVAL = re.compile(r"\d{9,11}(?: \d{1,30}){5,14}")
_COLUMNS = ("client", "transaction", "time", "script", "epoch", "us", "lag", "retries")
_BEGIN = (
    r"^(?:pgbench \(|starting vacuum|transaction type:|progress: 1\.0 s|scaling factor:"
    "|number of clients:|latency average)"
)
_HINT = "pgbench -l writes every transaction: the distribution"
_SUMS = (
    "intervals contain sums only; "
    "pgbench -l without --aggregate-interval writes every transaction: the distribution"
)


def _all_match(head: Head, pattern: re.Pattern[str]) -> bool:
    lines = [line.strip() for line in head.lines[:200] if line.strip()]
    return bool(lines) and all(map(pattern.fullmatch, lines))


def sniff_log(head: Head) -> Confidence:
    """Recognise six to eight numbers per line, the fifth of them seconds since the epoch."""
    return certain(_all_match(head, _ROW))


def sniff_intervals(head: Head) -> Confidence:
    """Recognise lines of seconds since the epoch whose sums, minima and maxima agree."""
    if not _all_match(head, _INTERVAL):
        return Confidence.NO
    rows = [list(map(int, line.split())) for line in head.lines[:20] if line.strip()]
    return certain(all(not row[1] or row[4] <= row[2] / row[1] <= row[5] for row in rows))


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every transaction; skipped and failed ones are counted apart."""
    width = len(source.head.lines[0].split())
    names = _COLUMNS[:width]
    layout = RowLayout(names, names, sep=" ", optional=("time",), na=("skipped", *_FAILED))
    frame, notes = read_table(source, options, layout)
    timed = frame["time"].astype(np.float64)
    missing = np.isnan(timed)
    end = (frame["epoch"].astype(np.int64) * 1_000_000 + frame["us"].astype(np.int64)) * 1000
    duration = np.nan_to_num(timed).astype(np.int64) * 1000
    seventh = frame["lag"].astype(np.float64) if width > 6 else np.zeros(0)
    # A seventh column may count retries (mostly 0) instead of microseconds of lag.
    retries = seventh.size > 0 and bool(seventh.max() < 100) and bool(np.median(seventh) == 0)
    intended, facts = None, CLOSED
    if width > 7 or (width > 6 and not retries):
        lag = np.rint(seventh * 1000).astype(np.int64)
        intended, facts = end - np.where(missing, lag, duration), SCHEDULED
        duration = np.where(missing, 0, duration - lag)
    outcome = None
    if missing.any():  # the file is read again for the words in place of times
        words, _ = read_table(source, options, RowLayout(names, (), ("time",), " "))
        skipped = matching(words["time"], "skipped".__eq__)[: missing.size]
        outcome = outcome_codes(error=missing, dropped=missing & skipped)
    scripts, code = np.unique(frame["script"].astype(np.int64), return_inverse=True)
    columns: dict[str, Any] = {
        "duration": duration, "start": end - duration, "intended": intended, "outcome": outcome,
        "connection": frame["client"].astype(np.int64),
        "code": code.reshape(-1) if scripts.size > 1 else None,
    }  # fmt: skip
    order = np.lexsort((frame["transaction"], columns["connection"]))
    number, client = frame["transaction"][order], columns["connection"][order]
    last = np.flatnonzero(np.diff(client, append=-1))  # of each client
    first = np.append(0, last[:-1] + 1)[: last.size]
    expected = int((number[last] - number[first] + 1).sum())
    share = timed.size / expected if expected else 1.0
    if share <= 0.98:  # transaction numbers have gaps
        note = f"the log is a sample of about {share:.0%} of the transactions (--sampling-rate)"
        notes += (f"{note}: a stall may be missing from it",)
    run = Run(
        tool="pgbench", connections=last.size or None, unit="us",
        unit_from="format", notes=notes, **facts,
    )  # fmt: skip
    return samples_of(columns, run, options, [f"script {number}" for number in scripts])


def read_intervals(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the sums of every interval as one summary."""
    rows: list[list[int]] = []
    notes = [_SUMS]
    text = source.text()
    lines, refuse = text.split("\n"), line_refuser(source, options, text, notes)
    for number, line in enumerate(lines, 1):
        narrower = number == len(lines) and rows and len(line.split()) < len(rows[-1])
        if _INTERVAL.fullmatch(line.strip()) and not narrower:
            rows.append([int(part) for part in line.split()])
        elif line.strip():
            refuse(number, "not an interval", "6 to 15 whole numbers")
    width = min((len(row) for row in rows), default=0)
    if not width:
        return {}
    table = np.array([row[:width] for row in rows], np.float64)
    used = table[table[:, 1] > 0]
    count = int(used[:, 1].sum())
    if not count:
        return {}
    mean = used[:, 2].sum() / count
    stats = {
        "mean": mean,
        "std": max(used[:, 3].sum() / count - mean**2, 0.0) ** 0.5,
        "min": used[:, 4].min(),
        "max": used[:, 5].max(),
    }
    late = width > 9 and bool(table[:, 6].any())
    run = Run(
        tool="pgbench", start=float(table[0, 0]), unit="us", unit_from="format",
        dropped=int(table[:, 10].sum()) if width > 10 and late else 0,
        failed=int(table[:, 13:15].sum()) if width == 15 else 0, notes=tuple(notes),
        **(SCHEDULED if late else CLOSED),
    )  # fmt: skip
    return {"": data_from_points({}, count, stats, run, "us")}


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the closing report."""
    text = text_of_run(source, _BEGIN, r"^tps = ")
    stats = {
        "mean": fact(text, r"^latency average[ :=]+([\d.]+) ms", float),
        "std": fact(text, r"^latency stddev[ :=]+([\d.]+) ms", float),
    }
    over = fact(text, r"transactions above the [\d.]+ ms latency limit: (\d+)", int)
    late = (f"{format_items(over, 'transaction')} above the latency limit",) if over else ()
    run = Run(
        tool="pgbench", version=fact(text, r"^pgbench \(.*?(\d+\.\d+)", str),
        duration=fact(text, r"^duration: (\d+) s", float),
        achieved=fact(text, r"^tps = ([\d.]+)", float),
        connections=fact(text, r"^number of clients: (\d+)", int) or None,
        failed=fact(text, r"^number of failed transactions: (\d+)", int) or 0,
        dropped=fact(text, r"^number of transactions skipped: (\d+)", int) or 0, unit="ms",
        notes=(*late, _HINT), **(SCHEDULED if "rate limit schedule lag" in text else CLOSED),
    )  # fmt: skip
    count = fact(text, r"^number of transactions actually processed: (\d+)", int)
    cells = re.findall(r"^latency percentile ([\d.]+) = ([\d.]+) ms", text, re.MULTILINE)  # Neon's
    points = {float(level): float(value) for level, value in cells}
    return {"": data_from_points(points, count, stats, run, "ms")}


FORMATS = {
    "pgbench-log": (sniff_log, read_log),
    "pgbench-intervals": (sniff_intervals, read_intervals),
    "pgbench": (has_match(r"^latency average[ :=]", r"^tps = "), read_text),
}
