"""OpenMessaging Benchmark: the JSON of a workload.

Publish latencies (ms) count from the actual send; the publish delay (µs) is how much later than due that was. End-to-end
latencies compare the clocks of producer and consumer. The file holds rates, not counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.core.run import Run
from latencykit.io import text as jsontext
from latencykit.io.build import data_from_points, nanoseconds
from latencykit.io.source import Confidence, Format

if TYPE_CHECKING:
    from latencykit.io.source import Data, Head, ReadOptions, Source

__all__ = ["FORMATS"]

_PERIOD = 10.0  # seconds between two reports of the framework
_NAMED = {
    "50pct": 50.0,
    "75pct": 75.0,
    "95pct": 95.0,
    "99pct": 99.0,
    "999pct": 99.9,
    "9999pct": 99.99,
    "99999pct": 99.999,
}
_SERIES = (
    ("publish", "Publish", "ms", "publishRate"),
    ("publish delay", "PublishDelay", "us", "publishRate"),
    ("end-to-end", "EndToEnd", "ms", "consumeRate"),
)


def sniff(head: Head) -> Confidence:
    """Tell the keys; the aggregates come behind long lists, so those of the lists count, too."""
    found = jsontext.has_keys(head, "workload", "driver") and (
        '"publishRate"' in head.text or '"aggregatedPublishLatencyAvg"' in head.text
    )
    return Confidence.CERTAIN if found else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:  # noqa: ARG001
    """Read publish, publish delay and end-to-end latencies of the whole run."""
    record: dict[str, Any] = jsontext.load(source)
    found: dict[str, Data] = {}
    for name, key, unit, rate in _SERIES:
        data = _data(record, f"aggregated{key}Latency", unit, record.get(rate) or [])
        if data is not None:
            found[name] = data.with_run(notes=(*data.run.notes, *_note(name)))
    return found


def _note(name: str) -> tuple[str, ...]:
    return {
        "publish": (
            "counts from the actual send; what it was later than due stands in the series publish delay",
        ),
        "end-to-end": (
            "from the producer's clock to the consumer's: on two machines their difference is in it",
        ),
    }.get(name, ())


def _data(record: dict[str, Any], key: str, unit: str, rates: list[float]) -> Data | None:
    points = {
        float(p): nanoseconds(value, unit)
        for p, value in (record.get(f"{key}Quantiles") or {}).items()
    }
    points |= {
        p: nanoseconds(record[f"{key}{name}"], unit)
        for name, p in _NAMED.items()
        if record.get(f"{key}{name}")
    }
    stats = {name: record.get(f"{key}{end}") for name, end in (("mean", "Avg"), ("max", "Max"))}
    reported_stats = {name: nanoseconds(value, unit) for name, value in stats.items() if value}
    if not reported_stats:
        return None
    seconds = len(rates) * _PERIOD
    count = round(sum(rates) * _PERIOD)
    errors = record.get("publishErrorRate") or []
    run = Run(
        tool="OpenMessaging Benchmark", command=record.get("workload"), loop="unknown", measure="service", corrected="none",
        duration=seconds or None, achieved=sum(rates) / len(rates) if rates else None, failed=round(sum(errors) * _PERIOD),
        unit=unit, unit_from="format", notes=("the number of messages is their rate x 10 s a report: approximate",),
    )  # fmt: skip
    return data_from_points(points, count or None, reported_stats, run)


FORMATS = (
    Format(
        name="openmessaging",
        title="OpenMessaging Benchmark (JSON)",
        level="histogram",
        suffixes=(".json",),
        sniff=sniff,
        read=read,
        example="bin/benchmark --drivers driver.yaml workload.yaml   # writes WORKLOAD-DRIVER-TIME.json",
    ),
)
