"""siege: its closing table as text, and as JSON (``-j``, the default of some distributions).

siege prints times in seconds with two decimals and no distribution.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, unanswered
from latencykit.io.sniffing import has_match
from latencykit.io.source import Format
from latencykit.io.text_reports import section_runs, text_of_run
from latencykit.units import format_duration

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

_LINE = re.compile(
    r"^[ \t]*\"?([A-Za-z_][A-Za-z_ ]{0,60}?)\"?[ \t]*:[ \t]*([\d.]+)[ \t]*([A-Za-z/%]*)",
    re.MULTILINE,
)
_BEGIN = re.compile(r"^[ \t]*Transactions:", re.MULTILINE)
_HINT = (
    "siege keeps no distribution; its --log and verbose lines contain single requests to 10 ms at "
    "best: measure with a tool that prints percentiles"
)


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the table of every run."""
    series: dict[str, Data] = {}
    for run, part in section_runs(source, _BEGIN).items():
        facts: dict[str, float] = {}
        for name, number, unit in _LINE.findall(part.text[part.text.find("Transactions:") :]):
            key = name.strip().lower().replace(" ", "_")
            facts.setdefault(key, float(number) * (1e-3 if unit == "ms" else 1.0))
        series[run] = _summary(facts, source)
    return series


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read the object of a run."""
    text_of_run(source, r'^[ \t]*\{\s*"transactions":')
    record = json_text.load(source, after_noise=True)
    return {"": _summary({name: float(value) for name, value in record.items()}, source)}


def _summary(facts: dict[str, float], source: Source) -> Data:
    for key in ("transactions", "response_time", "longest_transaction"):
        if key not in facts:
            seen = f"the table contains no {key}"
            raise source.corrupt(None, seen, "siege's closing table", "run siege anew")
    count, failed = int(facts["transactions"]), int(facts.get("failed_transactions", 0))
    if not count:
        return unanswered(Run(failed=failed))
    mean = facts["response_time"]
    notes = ["siege prints times to 10 ms", _HINT]
    busy = facts.get("concurrency", 0.0) * facts.get("elapsed_time", 0.0)
    if mean < 0.1 and busy:
        note = "the mean is concurrency x elapsed time / transactions"
        notes.insert(0, f"{note}; siege printed {format_duration(mean * 1e9)}")
        mean = busy / count
    low, high = facts.get("shortest_transaction", 0.0), facts["longest_transaction"]
    run = Run(
        tool="siege", loop="closed", measure="service", corrected="none", unit="s", failed=failed,
        unit_from="format", duration=facts.get("elapsed_time"),
        achieved=facts.get("transaction_rate"), notes=tuple(notes),
    )  # fmt: skip
    return data_from_points({}, count, {"mean": mean, "min": low, "max": high}, run, "s")


FORMATS = (
    Format(
        "siege", "siege (text)", "summary", (".txt",),
        has_match("Availability:", r"Longest transaction:\s"), read_text, unit="s",
        example="siege -b -c 4 -t 60S URL 2> siege.txt",
    ),
    Format(
        "siege-json", "siege (JSON)", "summary", (".json", ".txt"),
        has_match('"transactions":', '"availability":', '"longest_transaction":'), read_json,
        unit="s", example="siege -j -b -c 4 -t 60S URL > siege.json",
    ),
)  # fmt: skip
