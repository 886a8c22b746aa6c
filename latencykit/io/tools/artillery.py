"""Artillery: the JSON of ``artillery run --output``, of version 2 and of version 1.

Users arrive by a schedule; each sends its requests one after the other, timed from their send. The
percentiles of version 2 come from a sketch that is right within 1 %.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import json_text
from latencykit.io.build import data_from_points, nothing_answered, percentiles_in
from latencykit.io.sniffing import has_json_keys
from latencykit.io.source import Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

_TIMES = re.compile(r"response_time|session_length|duration|latency|(?:^|\.)(?:FCP|LCP|TTFB|INP)\b")
_SKETCH = "Artillery estimates percentiles by a sketch, within 1 %"
_LATE = re.compile(r"timed?_?out|ETIMEDOUT|ESOCKETTIMEDOUT", re.IGNORECASE)


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the response times of the whole run; other histograms where they are asked for."""
    report = json_text.entry(json_text.load(source), "aggregate", source)
    counters: dict[str, Any] = report.get("counters") or {}
    kept: dict[str, dict[str, object]] = report.get("histograms") or {}
    errors = {k[7:]: int(v) for k, v in counters.items() if k.startswith("errors.")}
    codes: dict[str, Any] = {
        k.rpartition(".")[2]: v for k, v in counters.items() if re.search(r"\.codes\.\d+$", k)
    }
    first, last = report.get("firstCounterAt"), report.get("lastCounterAt")
    notes: tuple[str, ...] = (_SKETCH,)
    if not kept and isinstance(report.get("latency"), dict):  # version 1
        kept = {"latency": dict(report["latency"])}
        kept["latency"].setdefault("count", report.get("requestsCompleted"))
        errors, codes = report.get("errors") or {}, report.get("codes") or {}
        first = last = None
        notes = ()
    late = sum(int(number) for name, number in errors.items() if _LATE.search(name))
    run = Run(
        tool="Artillery", measure="service", corrected="none", unit="ms", unit_from="format",
        start=first / 1e3 if first else None,
        duration=(last - first) / 1e3 if first and last and last > first else None,
        failed=sum(map(int, errors.values())) - late, timeouts=late, notes=notes,
    )  # fmt: skip
    bad = sum(int(number) for code, number in codes.items() if not code.startswith(("1", "2", "3")))
    main = next((name for name in kept if name.endswith("response_time")), None) or next(
        (name for name in kept if _TIMES.search(name)), ""
    )
    if not main:
        raise nothing_answered(source, run)
    series: dict[str, Data] = {}
    for name, row in kept.items():
        endpoint = "metrics-by-endpoint.response_time." in name
        if name not in (main, *options.series) and not endpoint:
            continue
        own = run if name == main else run.replace(failed=0, timeouts=0)
        if name == main and bad:
            good = f"{name}.2xx"
            hint = f"; --series {good} has the good ones alone" if good in kept else ""
            own = own.with_notes(
                f"{bad:,} answers of status 4xx and 5xx are among the values{hint}"
            )
        points = {50.0: row.get("median")} | percentiles_in(row)
        stats = {key: row.get(key) for key in ("min", "max", "mean")}
        count: Any = row.get("count")
        series[name.rpartition("endpoint.response_time.")[2]] = data_from_points(
            points, None if count is None else int(count), stats, own, "ms"
        )
    if len(series) > 1:
        series[main] = series[main].with_run(aggregate=True)
    return series


FORMATS = (
    Format(
        "artillery", "Artillery (JSON)", "histogram", (".json",),
        has_json_keys(
            ("aggregate", "counters", "firstCounterAt"),
            ("aggregate", "scenariosCreated", "requestsCompleted"),
        ),
        read, unit="ms", example="artillery run --output out.json script.yml",
    ),
)  # fmt: skip
