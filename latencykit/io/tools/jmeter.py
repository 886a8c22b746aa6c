"""Apache JMeter's result files (JTL), as CSV and as XML.

``timeStamp`` is the start of a sample, ``elapsed`` the time to the last byte; both in ms. (With
``sampleresult.timestamp.start=false``, the old way, it is the end; nothing in the file tells.) A transaction
controller writes a row that sums up the samples in it.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io.build import per_operation, without_negative
from latencykit.io.rows import Layout, line_chunks, read_table
from latencykit.io.source import Confidence, Format
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_DEFAULT_COLUMNS = (
    "timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success",
    "failureMessage", "bytes", "sentBytes", "grpThreads", "allThreads", "URL", "Latency", "IdleTime",
    "Connect",
)  # fmt: skip
_LARGEST = {"timeStamp": 9e12, "elapsed": 9e12}  # ms that fit in 63 bits as ns
_NEEDED = {"timeStamp", "elapsed", "label"}
_HEADLESS = re.compile(r"\d{13},\d+,[^,]*,[^,]*,.*,(?:true|false),")
_TRANSACTION = "Number of samples in transaction"
_TIMEOUT = r"(?i)timeout|timed out"
_SAMPLE = re.compile(rb"<(/?)(?:httpSample|sample)\b([^<>]*?)(/?)>")
_ATTRIBUTE = {
    "timeStamp": "ts", "elapsed": "t", "label": "lb", "success": "s", "threadName": "tn", "allThreads": "na",
    "responseCode": "rc", "responseMessage": "rm",
}  # fmt: skip


def sniff_csv(head: Head) -> Confidence:
    """Tell the header, or rows in the default order."""
    line = head.lines[0] if head.lines else ""
    if "timeStamp" in line and set(re.split(r"[,;\t|]", line)) >= _NEEDED:
        return Confidence.CERTAIN
    return Confidence.LIKELY if _HEADLESS.match(line) and line.count(",") >= 14 else Confidence.NO


def read_csv(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every label as a series, and all of them first."""
    first = source.head.lines[0]
    named = "timeStamp" in first
    sep = next((c for c in ",;\t|" if f"timeStamp{c}" in first or f"{c}timeStamp" in first), ",")
    columns = tuple(first.split(sep)) if named else _DEFAULT_COLUMNS
    dated = (
        named
        and len(source.head.lines) > 1
        and not _plain_stamps(source.head.lines[1], columns, sep)
    )
    words: list[str] = [
        c
        for c in ("label", "success", "responseCode", "responseMessage", "threadName")
        if c in columns
    ]
    numbers: list[str] = [c for c in ("timeStamp", "elapsed", "allThreads") if c in columns]
    if dated:
        numbers.remove("timeStamp")
        words.append("timeStamp")
    layout = Layout(
        columns,
        tuple(numbers),
        tuple(words),
        sep,
        skip=int(named),
        optional=("allThreads",),
        na=("null",),
        largest=_LARGEST,
    )
    frame, notes = read_table(source, options, layout)
    if dated:
        frame["timeStamp"], note = _parsed_stamps(frame["timeStamp"], source)
        notes = (*notes, note)
    return _series(frame, notes, options)


def _plain_stamps(line: str, columns: Sequence[str], sep: str) -> bool:
    fields = line.split(sep)
    at = columns.index("timeStamp")
    return len(fields) > at and fields[at].strip().isdigit()


def _parsed_stamps(stamps: pd.Series[Any], source: Source) -> tuple[pd.Series[Any], str]:
    """Milliseconds since the epoch of dates written by a format of the user's choice."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "error", UserWarning
            )  # pandas would guess what each cell alone may mean
            when = pd.to_datetime(stamps.astype(str), utc=True).dt.tz_localize(None)
        bad = "it is empty" if when.isna().any() else ""
    except (ValueError, OverflowError, UserWarning) as error:
        bad = printable(str(error), 80)
    if bad:
        raise source.corrupt(
            2, f"timeStamp is no date that can be read ({bad})", "milliseconds since the epoch",
            "set jmeter.save.saveservice.timestamp_format=ms",
        )  # fmt: skip
    ms = pd.Series(when.to_numpy().astype("datetime64[ms]").astype(np.int64), index=stamps.index)
    return ms, "timeStamp holds dates without a time zone; they were taken as UTC"


def _series(frame: pd.DataFrame, notes: tuple[str, ...], options: ReadOptions) -> dict[str, Data]:
    """Columns of a JTL as samples, one series a label."""
    label = frame["label"].astype("category").cat
    facts = {
        "start": np.rint(frame["timeStamp"].to_numpy()).astype(np.int64) if "timeStamp" in frame else None,
        "duration": frame["elapsed"].to_numpy(np.float64),
        "outcome": _outcomes(frame),
        "connection": _codes(frame["threadName"]) if "threadName" in frame else None,
        "code": _codes(frame["label"]),
        "sums": _is_transaction(frame),
    }  # fmt: skip
    columns, left_out = without_negative(facts, options)
    code, sums = columns.pop("code"), columns.pop("sums")
    names = [str(name) for name in label.categories]
    apart = [names[k] for k in np.unique(code[sums]).tolist()]
    if apart:
        left_out += (
            f"{', '.join(apart)}: transactions, sums of other samples; they are left out of the aggregate",
        )
    threads = frame["allThreads"].max() if "allThreads" in frame and len(frame) else np.nan
    if not np.isfinite(threads) and "connection" in columns and len(frame):
        threads = np.unique(columns["connection"]).size
    run = Run(
        tool="JMeter", loop="closed", measure="service", corrected="none", unit="ms", unit_from="format",
        connections=int(threads) if np.isfinite(threads) and threads > 0 else None, notes=(*notes, *left_out),
    )  # fmt: skip
    everything = Samples(unit="ms", run=run, **columns)
    return per_operation(everything, code, names, apart=apart)


def _codes(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(column.astype("category").cat.codes, np.int64)


def _outcomes(frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int8]] | None:
    if "success" not in frame:
        return None
    failed = _matching(frame["success"], "(?i)^false$")
    outcome = np.where(failed, OUTCOMES.index("error"), 0).astype(np.int8)
    for name in ("responseCode", "responseMessage"):
        if name in frame and failed.any():
            outcome[failed & _matching(frame[name], _TIMEOUT)] = OUTCOMES.index("timeout")
    return outcome


def _is_transaction(frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if "responseMessage" not in frame:
        return np.zeros(len(frame), np.bool_)
    return _matching(frame["responseMessage"], f"^{_TRANSACTION}")


def _matching(column: pd.Series[Any], pattern: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows match: each distinct text is looked at once."""
    kinds = column.astype("category").cat
    matches = [re.search(pattern, str(kind)) is not None for kind in kinds.categories]
    return np.asarray([*matches, False], np.bool_)[
        kinds.codes.to_numpy()
    ]  # the code of a missing text is -1


def sniff_xml(head: Head) -> Confidence:
    """Tell the root element."""
    return Confidence.CERTAIN if re.search(r"<testResults\b", head.text[:2000]) else Confidence.NO


def read_xml(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read every label as a series; samples inside samples (redirects, …) are parts of theirs."""
    import pandas as pd

    depth, frames, ended = 0, [], False
    for line, chunk in line_chunks(source):
        found = _SAMPLE.findall(chunk)
        ended = b"</testResults>" in chunk
        closing = np.array([bool(one[0]) for one in found], np.bool_)
        open_again = np.array([not one[0] and not one[2] for one in found], np.bool_)
        steps = np.where(closing, -1, np.where(open_again, 1, 0))
        before = (
            depth + np.concatenate(([0], np.cumsum(steps)[:-1])) if found else np.zeros(0, np.int64)
        )
        depth += int(steps.sum()) if found else 0
        top = np.flatnonzero((before == 0) & ~closing).tolist()
        text = pd.Series([found[k][1].decode("utf-8", "replace") for k in top], dtype=object)
        part = pd.DataFrame(
            {
                name: text.str.extract(rf'(?:^|\s){key}="([^"]*)"', expand=False)
                for name, key in _ATTRIBUTE.items()
            }
        )
        for name in ("timeStamp", "elapsed", "allThreads"):
            part[name] = pd.to_numeric(part[name], errors="coerce")
        bad = part["elapsed"].isna() | part["timeStamp"].isna() | part["label"].isna()
        bad |= (part["elapsed"].abs() > _LARGEST["elapsed"]) | (
            part["timeStamp"].abs() > _LARGEST["timeStamp"]
        )
        if bad.any():
            options.reject(
                source.corrupt(
                    line, "a sample without t, ts or lb", "all three", "--lenient skips it"
                )
            )
        frames.append(part[~bad])
    notes = (
        ()
        if ended
        else (
            "the file ends before </testResults>: the test was still running, or the file is cut",
        )
    )
    frame = (
        pd.concat(frames, ignore_index=True)
        if frames
        else pd.DataFrame({name: [] for name in _ATTRIBUTE})
    )
    if not len(frame):
        return {}
    frame["label"] = _unescaped(frame["label"])
    return _series(frame.dropna(axis=1, how="all"), notes, options)


def _unescaped(labels: pd.Series[Any]) -> pd.Series[Any]:
    from html import unescape

    kinds = labels.astype("category")
    return kinds.map({name: unescape(name) for name in kinds.cat.categories}).astype(str)


FORMATS = (
    Format(
        name="jmeter-csv",
        title="JMeter results (JTL, CSV)",
        level="samples",
        suffixes=(".jtl", ".csv"),
        sniff=sniff_csv,
        read=read_csv,
        unit="ms",
        example="jmeter -n -t plan.jmx -l result.jtl",
    ),
    Format(
        name="jmeter-xml",
        title="JMeter results (JTL, XML)",
        level="samples",
        suffixes=(".jtl", ".xml"),
        sniff=sniff_xml,
        read=read_xml,
        unit="ms",
        example="jmeter -n -t plan.jmx -l result.jtl -Jjmeter.save.saveservice.output_format=xml",
    ),
)
