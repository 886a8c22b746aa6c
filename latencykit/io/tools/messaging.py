"""Message brokers: NATS, the OpenMessaging Benchmark, and tylertreat/bench.

``nats latency`` sends messages at a pace without waiting; a latency is from the send of a message
to its receipt. There are its text, the raw values of its ``--histogram``, and ``nats bench``.

Distribution files of Go's hdrhistogram-writer come from bench and ``nats latency --histogram``. A
row is a percentile and its value in ms. TotalCount is the percentile's share of the total, rounded,
and not what was counted up to the value. With a rate, bench writes two files: one back-filled for
coordinated omission, and beside it ``uncorrected_`` with what was measured; without a rate only the
first, and nothing is back-filled then.

The OpenMessaging Benchmark writes the JSON of a workload. Publish latencies (ms) count from the
actual send; the publish delay (µs) is how much later than due that was. End-to-end latencies
compare the clocks of producer and consumer. The file holds rates, not counts.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from latencykit._text import printable
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.io import build, json_text
from latencykit.io.build import data_from_points, unit_in
from latencykit.io.declared import TRUNCATED, Rows
from latencykit.io.rows import line_refuser
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import (
    blocks,
    certain,
    durations,
    fact,
    has_match,
    line_numbers,
    plain,
    text_of_run,
)

_CLOCK = r"^(?:\d\d:\d\d:\d\d )?"
_NATS_POINT = re.compile(_CLOCK + r"([\d.]+): +(\S+)\s*$", re.MULTILINE)
_NATS_FACT = re.compile(_CLOCK + r"([A-Z1][\w/ ]{1,60}?) *: ++(\S++(?: ++\S++)*+)", re.MULTILINE)
_NATS_RAW = re.compile(r"\d+\.\d{6}")
_NATS_BENCH = re.compile(
    r"^ *(NATS .+? stats): ([\d,]+) msgs/sec(?: ~ [^~\n]+)?(?: ~ ([\d.]+(?:ns|us|µs|ms|s|m)))?\s*$",
    re.MULTILINE,
)
_MEANS = re.compile(
    r"^[ \t]*avg latencies min \S+ \| avg (\S+) \| max \S+ \| stddev \S+", re.MULTILINE
)
_NATS_RUN = Run(tool="nats latency", loop="open", measure="service", corrected="none")
_NATS_HINT = "nats latency measures single messages and prints the distribution"
_HEADER = re.compile(r"^Value {4}Percentile {4}TotalCount {4}1/\(1-Percentile\)\s*$", re.MULTILINE)
_ROW = re.compile(r"^\s*(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|\+?Inf)\s*$")
_LONGEST = 200
_BESIDE = "uncorrected_"
_NATS_LEVELS = (10.0, 25.0, 50.0, 75.0, 90.0, 99.0)
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


def sniff_raw(head: Head) -> Confidence:
    """Recognise values with six decimals in a file that ends in .raw."""
    lines = head.lines[:50]
    if head.suffix == ".raw" and lines and all(map(_NATS_RAW.fullmatch, lines)):
        return Confidence.LIKELY
    return Confidence.NO


def read_latency(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the percentiles and the facts around them."""
    text = text_of_run(source, _CLOCK + r"Pub Server RTT :", r"Last Recv Wall Time")
    _, _, body = text.partition("HDR Percentiles:")
    facts = {name.strip(): value for name, value in _NATS_FACT.findall(text)}
    line = text.count("\n", 0, len(text) - len(body)) + 1
    cells = {float(p): value for p, value in _NATS_POINT.findall(body)}
    points = durations(cells, source, "1.049ms", line=line)
    kinds = ("Latency", "Time", "Duration")
    timed = {name: value for name, value in facts.items() if name.endswith(kinds)}
    times = durations(timed, source, "1.049ms", line=line)
    for number, row in enumerate(body.split("=====")[0].split("\n")[1:-1], line + 1):
        numbered = row.strip() and re.search(r"\d", row.partition(" ")[2] or row)
        if numbered and _NATS_POINT.match(row) is None:
            seen, expected = f"{printable(row.strip())!r}", "a percentile, such as 99:  238µs"
            raise source.corrupt(number, seen, expected, "run it again")
    if 100.0 not in points and "Maximum Latency" not in times:
        seen, hint = "the percentiles end before 100", "did nats latency end?"
        raise source.corrupt(line, seen, "10 to 100", hint)
    names = {"min": "Minimum Latency", "max": "Maximum Latency"}
    stats = {kind: times[name] for kind, name in names.items() if name in times}
    rate, achieved = (
        int(text) if text.isdigit() and len(text) < 12 else None
        for text in (facts.get("Target Msgs/Sec", ""), facts.get("Actual Msgs/Sec", ""))
    )
    # It sends that many, and waits for all of them.
    count = rate * int(times.get("Target Duration", 0.0) / 1e9) if rate else None
    run = _NATS_RUN.replace(
        rate=float(rate) if rate else None,
        achieved=float(achieved) if achieved else None,
        duration=times.get("Last Recv Wall Time", 0.0) / 1e9 or None,
    )
    run = run.with_notes(
        "nats latency cuts what it prints to whole microseconds; "
        "--histogram FILE writes every value to FILE.raw"
    )
    return {"": build.data_from_points(points, count, stats, run)}


def read_bench(source: Source, options: ReadOptions) -> Series:
    """Read the mean latency of versions that print one."""
    text = plain(source.text())
    line_at = line_numbers(text)
    none = True
    anywhere = _MEANS.search(text)
    for begin, end in blocks(text, _NATS_BENCH):
        means = _MEANS.search(text[begin.end() : end]) or anywhere
        cell = means[1] if means else begin[3]
        if cell:
            none = False
            stats = durations({"mean": cell}, source, "29.35us", line=line_at(begin.start()))
            run = Run(
                tool="nats bench", measure="service", corrected="none", notes=(_NATS_HINT,),
                achieved=float(begin[2].replace(",", "")),
            )  # fmt: skip
            yield begin[1].removesuffix(" stats"), Summary(stats, {}, None, "ns", run)
    if none:
        seen = "this version of nats bench prints throughput only"
        raise source.corrupt(None, seen, "a latency", _NATS_HINT)


def sniff_distribution(head: Head, *, nats: bool = False) -> Confidence:
    """Recognise a header whose columns are four blanks apart, above the percentiles of a tool."""
    header = _HEADER.search(head.text[:4000])
    if header is None or "#[" in head.text:
        return Confidence.NO
    if head.text[: header.start()].lstrip().startswith("#"):
        return Confidence.NO
    rows = [row for line in head.lines[:20] if len(line) < _LONGEST and (row := _ROW.match(line))]
    levels = tuple(round(float(row[2]) * 100, 4) for row in rows[: len(_NATS_LEVELS)])
    return certain((levels == _NATS_LEVELS) is nats)


def read_distribution(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read bench's distribution; a second file beside it shows whether bench back-filled it."""
    name = source.path.name
    run = Run(tool="bench", measure="service")
    if source.shown != "-" and name.startswith(_BESIDE):
        run = run.replace(corrected="none", loop="paced")
    elif source.shown != "-" and source.path.with_name(_BESIDE + name).exists():
        run = run.replace(corrected="tool", loop="paced").with_notes(
            "bench back-filled these counts for coordinated omission; "
            f"{_BESIDE}{name} beside it contains the measured ones"
        )
    elif source.shown != "-":
        run = run.with_notes(
            "without a rate bench corrects nothing, with one it does; "
            f"there is no {_BESIDE}{name} beside this file to show which"
        )
    return _distribution(source, options, run)


def _distribution(source: Source, options: ReadOptions, run: Run = _NATS_RUN) -> dict[str, Data]:
    """Read a distribution; messages of ``nats latency`` are sent at a pace, without waiting."""
    unit, unit_from = options.resolve_unit("ms")
    points: dict[float, float] = {}
    total, share, value, notes = 0, 0.0, 0.0, list(run.notes)
    text = source.text()
    lines, refuse = text.split("\n"), line_refuser(source, options, text, notes)
    begin = next((k for k, line in enumerate(lines, 1) if _HEADER.match(line)), 0)
    for number, line in enumerate(lines[begin:], begin + 1):
        row = _ROW.match(line) if len(line) < _LONGEST else None
        if not line.strip():
            continue
        if number == len(lines) and row and not re.search(r"\.\d{6}$", row[4]):
            row = None
        if row is None or float(row[2]) > 1 or float(row[1]) < value:
            expected = "value, percentile, count, 1/(1-percentile), ascending"
            refuse(number, f"{printable(line.strip(), 50)!r}", expected)
        else:
            value, share, total = float(row[1]), float(row[2]), int(row[3])
            points[round(share * 100, 6)] = build.nanoseconds(value, unit)
    if not points:
        raise source.corrupt(None, "no value was counted", "rows of values")
    points.pop(0.0, None)  # not the minimum: the writer prints 0 there
    count = round(total / share) if share else 0
    if not count:
        notes.append(
            "this version does not print how many values it counted: "
            "of the distribution there are percentiles only"
        )
    run = run.replace(unit=unit, unit_from=unit_from, notes=tuple(notes))
    return {"": build.data_from_points(points, count or None, {}, run)}


def read_openmessaging(source: Source, options: ReadOptions) -> Series:
    """Read publish, publish delay and end-to-end latencies of the whole run."""
    record: dict[str, Any] = json_text.load(source)
    errors = record.get("publishErrorRate") or []
    for name, kind, unit, rate in _SERIES:
        key, rates = f"aggregated{kind}Latency", record.get(rate) or []
        points = {float(p): value for p, value in (record.get(f"{key}Quantiles") or {}).items()}
        points |= {p: v for end, p in _POINTS.items() if (v := record.get(f"{key}{end}"))}
        ends = {"mean": "Avg", "max": "Max"}
        stats = {stat: record.get(f"{key}{end}") or None for stat, end in ends.items()}
        if not any(stats.values()):
            continue
        run = Run(
            tool="OpenMessaging Benchmark", command=record.get("workload"), measure="service",
            corrected="none", duration=len(rates) * _PERIOD or None,
            achieved=sum(rates) / len(rates) if rates else None,
            failed=round(sum(errors) * _PERIOD), unit=unit, unit_from="format",
            notes=(_APPROXIMATE,),
        )  # fmt: skip
        count = round(sum(rates) * _PERIOD) or None
        data = build.data_from_points(points, count, stats, run, unit)
        notes = (_NOTES[name],) if name in _NOTES else ()
        yield name, data.with_run(notes=(*data.run.notes, *notes))


# ------------------------------------------------------------
# Message brokers' own tools: Kafka's ProducerPerformance, RabbitMQ's PerfTest, pulsar-perf.
#
# PerfTest and pulsar-perf print a line every few seconds. Percentiles of intervals do not add up,
# so each line is a series of its own; where there is a line of the complete run, it is the only
# one.

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


def read_intervals(source: Source, options: ReadOptions) -> Series:
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


def read_rabbit(source: Source, options: ReadOptions) -> Series:
    """Read the latencies of consumers and of confirms, of the run or of every interval."""
    lines = list(_RABBIT.finditer(plain(source.text())))
    totals = [line for line in lines if line[1] is None]
    for line in totals or lines:
        for what, cells, unit in _FIVE.findall(line[0]):
            points = dict(zip(_LEVELS, re.split(r"/|, ", cells), strict=True))
            run = Run(tool="RabbitMQ PerfTest", unit=unit_in(unit) or "us", unit_from="file")
            name = what if line[1] is None else f"{line[1]} s {what}"
            yield name, data_from_points(points, None, {}, run, run.unit)


def read_pulsar(source: Source, options: ReadOptions) -> Series:
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
    "nats-latency": (has_match(_CLOCK + "HDR Percentiles:"), read_latency),
    "nats-latency-raw": (
        sniff_raw,
        Rows(run=_NATS_RUN.replace(unit="ms"), columns="value", duration="value"),
    ),
    "nats-bench": (has_match(_NATS_BENCH, plain=plain), read_bench),
    "bench": (sniff_distribution, read_distribution),
    "nats-latency-histogram": (partial(sniff_distribution, nats=True), _distribution),
    "openmessaging": read_openmessaging,
    "kafka-intervals": (has_match(_INTERVAL), read_intervals),
    "rabbitmq-perf-test": (has_match(_RABBIT, _FIVE), read_rabbit),
    "pulsar-perf": (has_match(_PULSAR), read_pulsar),
}
