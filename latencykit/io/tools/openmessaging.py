"""OpenMessaging Benchmark: the JSON of a workload.

Publish latencies (ms) count from the actual send; the publish delay (µs) is how much later than due
that was. End-to-end latencies compare the clocks of producer and consumer. The file holds rates,
not counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, in_nanoseconds
from latencykit.io.sniffing import has_json_keys
from latencykit.io.source import Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, ReadOptions, Source

__all__ = ["FORMATS"]

_PERIOD = 10.0  # seconds between two reports of the framework
_POINTS = {
    "50pct": 50.0, "75pct": 75.0, "95pct": 95.0, "99pct": 99.0, "999pct": 99.9, "9999pct": 99.99,
    "99999pct": 99.999,
}  # fmt: skip
_SERIES = (
    ("publish", "Publish", "ms", "publishRate"),
    ("publish delay", "PublishDelay", "us", "publishRate"),
    ("end-to-end", "EndToEnd", "ms", "consumeRate"),
)
_APPROXIMATE = "the number of messages is their rate x 10 s per report: approximate"
_NOTES = {
    "publish": "counts from the actual send; its delay is in the series publish delay",
    "end-to-end": "from the producer's clock to the consumer's: "
    "on two machines their difference is in it",
}


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read publish, publish delay and end-to-end latencies of the whole run."""
    record: dict[str, Any] = jsontext.load(source)
    errors = record.get("publishErrorRate") or []
    series: dict[str, Data] = {}
    for name, kind, unit, rate in _SERIES:
        key, rates = f"aggregated{kind}Latency", record.get(rate) or []
        points = {float(p): value for p, value in (record.get(f"{key}Quantiles") or {}).items()}
        points |= {
            p: record[f"{key}{end}"] for end, p in _POINTS.items() if record.get(f"{key}{end}")
        }
        ends = {"mean": "Avg", "max": "Max"}
        cells = {kind: record.get(f"{key}{end}") or None for kind, end in ends.items()}
        stats = in_nanoseconds(cells, unit)
        if not stats:
            continue
        run = Run(
            tool="OpenMessaging Benchmark", command=record.get("workload"), measure="service",
            corrected="none", duration=len(rates) * _PERIOD or None,
            achieved=sum(rates) / len(rates) if rates else None,
            failed=round(sum(errors) * _PERIOD), unit=unit, unit_from="format",
            notes=(_APPROXIMATE,),
        )  # fmt: skip
        data = data_from_points(
            in_nanoseconds(points, unit), round(sum(rates) * _PERIOD) or None, stats, run
        )
        notes = (_NOTES[name],) if name in _NOTES else ()
        series[name] = data.with_run(notes=(*data.run.notes, *notes))
    return series


FORMATS = (
    Format(
        "openmessaging", "OpenMessaging Benchmark (JSON)", "histogram", (".json",),
        has_json_keys(  # the aggregates follow long lists, so those of the lists count, too
            ("workload", "driver", "publishRate"),
            ("workload", "driver", "aggregatedPublishLatencyAvg"),
        ),
        read,
        example="bin/benchmark --drivers driver.yaml workload.yaml"
        "   # writes WORKLOAD-DRIVER-TIME.json",
    ),
)  # fmt: skip
