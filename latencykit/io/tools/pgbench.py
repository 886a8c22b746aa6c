"""pgbench: the transaction log (``-l``), the log of intervals (``--aggregate-interval``), and what it prints.

A row's stamp is the end of the transaction. With ``-R`` its time counts from the moment the transaction was due, and the
column behind the stamp is how much later it began.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.core.summary import Summary
from latencykit.io.build import nanoseconds, per_operation, several, without_negative
from latencykit.io.rows import Layout, read_table
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_FAILED = ("failed", "serialization", "deadlock")
_ROW = re.compile(
    rf"\d+ \d+ (?:\d+|skipped|{'|'.join(_FAILED)}) \d+ \d{{9,11}} \d{{1,6}}(?: \d+(?:\.\d+)?)?(?: \d+)?"
)
_INTERVAL = re.compile(r"\d{9,11}(?: \d{1,30}){5,14}")
_COLUMNS = ("client", "transaction", "time", "script", "epoch", "us", "lag", "retries")
_HINT = "pgbench -l writes every transaction: the distribution"


def _all_match(head: Head, pattern: re.Pattern[str]) -> bool:
    lines = [line for line in head.lines[:200] if line.strip()]
    return bool(lines) and all(pattern.fullmatch(line.strip()) for line in lines)


def sniff_log(head: Head) -> Confidence:
    """Tell six to eight numbers per line, the fifth of them seconds since the epoch."""
    return Confidence.CERTAIN if _all_match(head, _ROW) else Confidence.NO


def sniff_intervals(head: Head) -> Confidence:
    """Tell lines that begin with seconds since the epoch and whose sums, minima and maxima agree."""
    if not _all_match(head, _INTERVAL):
        return Confidence.NO
    for line in head.lines[:20]:
        _, count, total, _, low, high, *_ = map(int, line.split())
        if count and not (low <= total / count <= high):
            return Confidence.NO
    return Confidence.CERTAIN


def sniff_text(head: Head) -> Confidence:
    """Tell the closing report."""
    found = "transaction type:" in head.text and re.search(
        r"^latency average[ :=]", head.text, re.MULTILINE
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read_log(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every transaction; skipped and failed ones are counted apart."""
    width = len(source.head.lines[0].split())
    layout = Layout(
        _COLUMNS[:width], _COLUMNS[:width], sep=" ", optional=("time",), na=("skipped", *_FAILED)
    )
    frame, notes = read_table(source, options, layout)
    retried = width == 7 and _are_retries(frame["lag"].to_numpy())
    timed = frame["time"].to_numpy(np.float64)
    outcome = _outcomes(source, options, layout, np.isnan(timed))
    time = np.nan_to_num(timed).astype(np.int64) * 1000
    lag = (
        np.rint(frame["lag"].to_numpy(np.float64) * 1000).astype(np.int64)
        if width > 6 and not retried
        else None
    )
    end = (frame["epoch"].to_numpy(np.int64) * 1_000_000 + frame["us"].to_numpy(np.int64)) * 1000
    columns: dict[str, Any] = {
        "duration": time if lag is None else np.where(np.isnan(timed), 0, time - lag),
        "start": end - time if lag is None else end - np.where(np.isnan(timed), 0, time - lag),
        "intended": None if lag is None else end - np.where(np.isnan(timed), lag, time),
        "outcome": outcome,
        "connection": frame["client"].to_numpy(np.int64),
        "script": frame["script"].to_numpy(np.int64),
    }
    columns, left_out = without_negative(columns, options)
    scripts, code = np.unique(columns.pop("script"), return_inverse=True)
    run = Run(
        tool="pgbench",
        loop="closed" if lag is None else "open",
        measure="service" if lag is None else "response",
        corrected="none" if lag is None else "schedule",
        connections=np.unique(columns["connection"]).size or None,
        unit="us",
        unit_from="format",
        notes=(*notes, *left_out, *_sampled(frame)),
    )
    everything = Samples(run=run, **columns)
    if scripts.size < 2:
        return {"": everything}
    return per_operation(
        everything, code.reshape(-1), [f"script {number}" for number in scripts.tolist()]
    )


def _are_retries(column: NDArray[Any]) -> bool:
    """Whether a seventh column counts retries (mostly 0) instead of microseconds of lag."""
    return column.size > 0 and bool(column.max() < 100) and bool(np.median(column) == 0)


def _outcomes(
    source: Source, options: ReadOptions, layout: Layout, missing: NDArray[np.bool_]
) -> NDArray[np.int8] | None:
    """What became of transactions that have a word in place of a time: the file is read again for it."""
    if not missing.any():
        return None
    words, _ = read_table(source, options, Layout(layout.columns, (), ("time",), " "))
    skipped = (words["time"] == "skipped").to_numpy()[: missing.size]
    outcome = np.where(missing, OUTCOMES.index("error"), 0)
    return np.where(missing & skipped, OUTCOMES.index("dropped"), outcome).astype(np.int8)


def _sampled(frame: pd.DataFrame) -> tuple[str, ...]:
    """A note where transaction numbers have gaps: the log is a sample."""
    spans = frame.groupby("client")["transaction"].agg(["min", "max", "count"])
    expected = int((spans["max"] - spans["min"] + 1).sum())
    share = len(frame) / expected if expected else 1.0
    if share > 0.98:
        return ()
    return (
        f"the log is a sample of about {share:.0%} of the transactions (--sampling-rate): a stall may be missing from it",
    )


def read_intervals(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the sums of every interval as one summary."""
    rows: list[list[int]] = []
    notes = [
        "intervals hold sums only; pgbench -l without --aggregate-interval writes every transaction: the distribution"
    ]
    text = source.text()
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        last = number == len(lines) and not text.endswith("\n")
        if _INTERVAL.fullmatch(line.strip()) and not (
            last and rows and len(line.split()) < len(rows[-1])
        ):
            rows.append([int(part) for part in line.split()])
        elif last:
            notes.append("the last line is cut; it was left out")
        elif line.strip():
            options.reject(
                source.corrupt(
                    number,
                    "this is no interval",
                    "6 to 15 whole numbers",
                    "--lenient skips the line",
                )
            )
    width = min((len(row) for row in rows), default=0)
    if not width:
        return {}
    table = np.array([row[:width] for row in rows], np.float64)
    used = table[table[:, 1] > 0]
    count = int(used[:, 1].sum())
    mean = used[:, 2].sum() / max(count, 1)
    spread = max(used[:, 3].sum() / max(count, 1) - mean**2, 0.0) ** 0.5
    stats = {
        "mean": mean,
        "std": spread,
        "min": used[:, 4].min(initial=np.inf),
        "max": used[:, 5].max(initial=0),
    }
    late = width > 9 and bool(table[:, 6].any())
    run = Run(
        tool="pgbench", loop="open" if late else "closed", measure="response" if late else "service",
        corrected="schedule" if late else "none", start=float(table[0, 0]), unit="us", unit_from="format",
        dropped=int(table[:, 10].sum()) if width > 10 and late else 0,
        failed=int(table[:, 13:15].sum()) if width == 15 else 0,
        notes=tuple(notes),
    )  # fmt: skip
    return (
        {
            "": Summary(
                {name: nanoseconds(value, "us") for name, value in stats.items()},
                {},
                count,
                "ns",
                run,
            )
        }
        if count
        else {}
    )


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the closing report."""
    text = source.text()

    def number(pattern: str) -> float | None:
        found = re.search(pattern, text, re.MULTILINE)
        return float(found[1]) if found else None

    stats = {
        "mean": number(r"^latency average[ :=]+([\d.]+) ms"),
        "std": number(r"^latency stddev[ :=]+([\d.]+) ms"),
    }
    held = {name: nanoseconds(value, "ms") for name, value in stats.items() if value is not None}
    version = re.search(r"^pgbench \(.*?(\d+\.\d+)", text, re.MULTILINE)
    clients, scheduled = number(r"^number of clients: (\d+)"), "rate limit schedule lag" in text
    over = number(r"transactions above the [\d.]+ ms latency limit: (\d+)")
    late = (f"{several(int(over), 'transaction')} above the latency limit",) if over else ()
    run = Run(
        tool="pgbench",
        version=version[1] if version else None,
        loop="open" if scheduled else "closed",
        measure="response" if scheduled else "service",
        corrected="schedule" if scheduled else "none",
        duration=number(r"^duration: (\d+) s"),
        achieved=number(r"^tps = ([\d.]+)"),
        connections=int(clients) if clients else None,
        failed=int(number(r"^number of failed transactions: (\d+)") or 0),
        dropped=int(number(r"^number of transactions skipped: (\d+)") or 0),
        unit="ms",
        notes=(*late, _HINT),
    )
    count = number(r"^number of transactions actually processed: (\d+)")
    return {"": Summary(held, {}, int(count) if count is not None else None, "ns", run)}


FORMATS = (
    Format(
        "pgbench-log", "pgbench's transaction log", "samples", (".log", ".txt"), sniff_log, read_log, unit="us",
        example="pgbench -l -R 1000 -T 60 DB   # writes pgbench_log.PID",
    ),
    Format(
        "pgbench-intervals", "pgbench's log of intervals", "summary", (".log", ".txt"), sniff_intervals, read_intervals,
        unit="us", example="pgbench -l --aggregate-interval=1 -T 60 DB   # writes pgbench_log.PID",
    ),
    Format(
        "pgbench", "pgbench (text)", "summary", (".txt",), sniff_text, read_text, unit="ms",
        example="pgbench -T 60 DB > out.txt",
    ),
)  # fmt: skip
