"""siege: its closing table as text, and the same as JSON (``-j``, the default of some distributions).

siege prints times in seconds with two decimals and holds no distribution.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import text as jsontext
from latencykit.io.build import nanoseconds, nothing_answered
from latencykit.io.source import Confidence, Format
from latencykit.units import format_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_LINE = re.compile(
    r"^[ \t]*\"?([A-Za-z_ ]+?)\"?[ \t]*:[ \t]*([\d.]+)[ \t]*([A-Za-z/%]*)", re.MULTILINE
)
_HINT = (
    "siege keeps no distribution; its --log and verbose lines hold single requests to 10 ms at best: "
    "measure with a tool that prints percentiles"
)


def sniff_text(head: Head) -> Confidence:
    """Tell the closing table."""
    found = "Availability:" in head.text and re.search(r"Longest transaction:\s", head.text)
    return Confidence.CERTAIN if found else Confidence.NO


def sniff_json(head: Head) -> Confidence:
    """Tell the keys; lines of advice may stand before the object."""
    needed = ('"transactions":', '"availability":', '"longest_transaction":')
    return Confidence.CERTAIN if all(key in head.text for key in needed) else Confidence.NO


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the table."""
    text = source.text()
    table = text[text.rfind("Transactions:") :]
    facts: dict[str, float] = {}
    for name, number, unit in _LINE.findall(table):
        key = name.strip().lower().replace(" ", "_")
        scale = 1e-3 if unit == "ms" else 1.0
        facts.setdefault(key, float(number) * scale)
    return {"": _summary(facts, source)}


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the object."""
    record = jsontext.load(source, after_noise=True)
    return {"": _summary({name: float(value) for name, value in record.items()}, source)}


def _summary(facts: dict[str, float], source: Source) -> Summary:
    for key in ("transactions", "response_time", "longest_transaction"):
        if key not in facts:
            raise source.corrupt(
                None, f"the table holds no {key}", "siege's closing table", "run siege anew"
            )
    count, failed = int(facts["transactions"]), int(facts.get("failed_transactions", 0))
    if not count:
        raise nothing_answered(source, Run(failed=failed))
    printed = facts["response_time"]
    notes = ["siege prints times to 10 ms", _HINT]
    busy = facts.get("concurrency", 0.0) * facts.get("elapsed_time", 0.0)
    if printed < 0.1 and busy:
        mean = nanoseconds(busy / count, "s")
        notes.insert(
            0,
            f"the mean is concurrency x elapsed time / transactions; siege printed {format_duration(printed * 1e9)}",
        )
    else:
        mean = nanoseconds(printed, "s")
    stats = {
        "mean": mean,
        "min": nanoseconds(facts.get("shortest_transaction", 0.0), "s"),
        "max": nanoseconds(facts["longest_transaction"], "s"),
    }
    run = Run(
        tool="siege", loop="closed", measure="service", corrected="none", unit="s", unit_from="format",
        duration=facts.get("elapsed_time"), achieved=facts.get("transaction_rate"), failed=failed, notes=tuple(notes),
    )  # fmt: skip
    return Summary(stats, {}, count, "ns", run)


FORMATS = (
    Format(
        name="siege",
        title="siege (text)",
        level="summary",
        suffixes=(".txt",),
        sniff=sniff_text,
        read=read_text,
        unit="s",
        example="siege -b -c 4 -t 60S URL 2> siege.txt",
    ),
    Format(
        name="siege-json",
        title="siege (JSON)",
        level="summary",
        suffixes=(".json", ".txt"),
        sniff=sniff_json,
        read=read_json,
        unit="s",
        example="siege -j -b -c 4 -t 60S URL > siege.json",
    ),
)
