"""Message brokers' own tools: Kafka's EndToEndLatency, RabbitMQ's PerfTest, pulsar-perf.

PerfTest and pulsar-perf print a line every few seconds. Percentiles of intervals do not add up, so
each line is a series of its own; where there is a line of the complete run, it is the only one.
"""

from __future__ import annotations

import re

from latencykit.core.run import Run
from latencykit.io.build import data_from_points, unit_in
from latencykit.io.declared import TRUNCATED
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import fact, has_match, plain

_KAFKA = re.compile(
    r"^Avg latency: ([\d.]{1,20}) ms\s{1,9}Percentiles: 50th = (\d{1,9}), 99th = (\d{1,9}), "
    r"99\.9th = (\d{1,9})[ \t]*$",
    re.MULTILINE,
)
_CUT = "EndToEndLatency cuts its percentiles to whole milliseconds"
_INTERVAL = re.compile(
    r"^(?:\[[^\]\n]{1,60}\] )?(\d{1,18}) ((?:steady state )?)records sent, [\d.]{1,20} records/sec"
    r" \([^)\n]{1,40}\), ([\d.]{1,20}) ms avg latency, ([\d.]{1,20}) (?:ms )?max latency"
    r"((?:, [\d.]{1,20} ms [\d.]{1,9}th)*)\.[ \t]*$",
    re.MULTILINE,
)
_RABBIT = re.compile(
    r"^id: [^,\n]{1,200}, (?:time: ?([\d.]{1,20})s?, )?[^\n]{0,400}?min/median/75th/95th/99th"
    r"[^\n]*",
    re.MULTILINE,
)
# The letter µ is lost where the terminal had no such.
_FIVE = re.compile(
    r"((?:(?:message|consumer|confirm) )?latency)(?: min/median/75th/95th/99th)?:?[ ,]{1,3}"
    r"((?:[\d.]{1,20}(?:/|, )){4}[\d.]{1,20}) (ms|microseconds|[^\sm]?s)\b"
)
_LEVELS = (0.0, 50.0, 75.0, 95.0, 99.0)
_PULSAR = re.compile(
    r"^(\S{1,40})[^\n]{0,300}? (Aggregated latency stats|Throughput (?:produced|received))"
    r"[^\n]{0,300}?[Ll]atency: mean: *([\d.]{1,20}) ms - "
    r"((?:(?:med|[\d.]{1,9}pct|Max): *[\d.]{1,20}(?: - )?){1,20})",
    re.MULTILINE,
)
_PAIR = re.compile(r"([\d.]{1,12}pct|Max): *([\d.]+)")


def read_kafka(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read the mean and the percentiles; a message is sent when the one before has come back."""
    run = Run(
        tool="Kafka EndToEndLatency", loop="closed", measure="service", corrected="none",
        unit="ms", unit_from="format", notes=(_CUT,),
    )  # fmt: skip
    for number, (mean, *cells) in enumerate(_KAFKA.findall(plain(source.text())), 1):
        points = dict(zip((50.0, 99.0, 99.9), cells, strict=True))
        name = f"run {number}" if number > 1 else ""
        yield name, data_from_points(points, None, {"mean": mean}, run, "ms")


def read_intervals(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read the mean and the maximum of every interval, or the line of the run, if it is there."""
    run = Run(tool="Kafka ProducerPerformance", unit="ms", unit_from="file")
    text = plain(source.text())
    rows, last = _INTERVAL.findall(text), text.rstrip().rpartition("\n")[2]
    if " records sent" in last and not _INTERVAL.match(last):
        run = run.with_notes(TRUNCATED)
    totals = [row for row in rows if row[4]]
    single = sum(not row[1] for row in totals) == 1
    for number, (count, kind, mean, top, cells) in enumerate(totals or rows, 1):
        points = {float(p): value for value, p in re.findall(r", ([\d.]++) ms ([\d.]++)th", cells)}
        name = "" if single else f"{'run' if totals else 'interval'} {number}"
        name = kind.strip() or name
        yield name, data_from_points(points, int(count), {"mean": mean, "max": top}, run, "ms")


def read_rabbit(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read the latencies of consumers and of confirms, of the run or of every interval."""
    lines = list(_RABBIT.finditer(plain(source.text())))
    totals = [line for line in lines if line[1] is None]
    for line in totals or lines:
        for what, cells, unit in _FIVE.findall(line[0]):
            points = dict(zip(_LEVELS, re.split(r"/|, ", cells), strict=True))
            run = Run(tool="RabbitMQ PerfTest", unit=unit_in(unit) or "us", unit_from="file")
            name = what if line[1] is None else f"{line[1]} s {what}"
            yield name, data_from_points(points, None, {}, run, run.unit)


def read_pulsar(source: Source, options: ReadOptions) -> Series:  # noqa: ARG001
    """Read the aggregated latencies of the run, or those of every interval."""
    text = plain(source.text())
    lines = list(_PULSAR.finditer(text))
    totals = [line for line in lines if line[2].startswith("Aggregated")]
    count = fact(text, r"Aggregated throughput stats --- (\d{1,18}) records", int)
    run = Run(tool="pulsar-perf", unit="ms", unit_from="file")
    for line in totals or lines:
        cells = dict(_PAIR.findall(line[4].replace("med", "50pct")))
        stats = {"mean": line[3], "max": cells.pop("Max", None)}
        points = {float(name.removesuffix("pct")): value for name, value in cells.items()}
        total = count if len(totals) == 1 else None
        name = "" if len(totals or lines) == 1 else line[1]
        yield name, data_from_points(points, total, stats, run, "ms")


FORMATS = {
    "kafka-end-to-end": (has_match(_KAFKA), read_kafka),
    "kafka-intervals": (has_match(_INTERVAL), read_intervals),
    "rabbitmq-perf-test": (has_match(_RABBIT, _FIVE), read_rabbit),
    "pulsar-perf": (has_match(_PULSAR), read_pulsar),
}
