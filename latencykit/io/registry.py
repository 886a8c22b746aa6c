"""The registry of formats: the modules that read them, and the marks that inputs are known by.

``formats.csv`` has a row per format: its module, name, title, level of detail, suffixes, unit and
the command that makes such an output. The module's ``FORMATS`` has the functions: name → sniff,
read and, of what is written, write. To add a built-in format, add its row, name its module and its
marks here, and put a sample under ``tests/data/formats``. A third party adds one by an entry point
in the group ``latencykit.formats`` that refers to a `latencykit.io.source.Format` or a tuple of
them, and tests it with `latencykit.testing.FormatContract`.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import re
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from latencykit.io.source import Format, Head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENTRY_POINTS = "latencykit.formats"

# Module below latencykit.io: marks of its formats. An input that has none of the marks is not of
# any of the formats; of one that has, the module's own recognisers decide. So only modules that may
# know an input are imported to detect its format. A mark is text in lower case that the head
# contains (whatever its case), or with a leading ^ an expression that the first line matches.
_MARKS: dict[str, tuple[str, ...]] = {
    "hlog": ("",),
    "hgrm": ("totalcount", "#[overall percentile distribution"),
    "tools.hey": ("fastest:", "response-time,dns+dialup"),
    "native_json": ('{"latencykit":',),
    "tools.ab": (
        "concurrency level:", "this is apachebench", "starttime\tseconds", "percentage served,",
    ),
    "tools.access_log": (
        '] "', "] ", '"request_time"', "request_time=", '"duration"', r"^\d{9,11}\.\d{3} ",
    ),
    "tools.artillery": ('"aggregate"', " report @ ", '"scenarioscreated"'),
    "tools.autocannon": ('"p99_9', "stdev"),
    "tools.benchmarkdotnet": ("method", '"hostenvironmentinfo"'),
    "tools.bombardier": ('"spec"', "reqs/sec", "bombarding "),
    "tools.bpf": ("\n@", "\r@", "^@", '{"type":', ": count"),
    "tools.brokers": (
        "percentiles: 50th = ", "/75th/95th/99th", "latency: mean:", " ms max latency.",
    ),
    "tools.cassandra": (
        "total ops,", "latency 99.9th percentile", "total ops:", "partition count:", '"workload"',
    ),
    "tools.circllhist": (
        "h[", '":"a', '": "a', r"^(?:.*[^A-Za-z0-9+/=])?A[A-Za-z0-9+/]{7,}={0,2}[\"'\]},;\s]*$",
    ),
    "tools.criterion": (
        '"sampling_mode"', '"confidence_interval"', "sample_measured_value", "time: ", "time:\t",
        " ... bench: ",
    ),
    "tools.cyclictest": ("# histogram", " act:", " interval:", '"cyclictest', " irq-", " thr-"),
    "tools.datasketches": (
        "\x05\x01\x0f", "\x02\x01\x0f", "\x02\x02\x0f", "\x02\x01\x14", "\x01\x01\x14",
        r"^(?:BQEP|AgEP|AgIP|AgEU|AQEU)",
    ),
    "tools.ddsketch": ('"gamma"', "\n\t\t", "\n\x0b\t", "\n\x12\t", "\n\x14\t"),
    "tools.fio": (
        '"fio version"', ";fio-", "(groupid=", " clat (", "sync (", "clat percentiles (",
        r"^\d+, \d+, \d",
    ),
    "tools.flotilla": ("|", "│", "║", "p99", "99%", "99th", "p95", "95%"),
    "tools.fortio": (
        '"durationhistogram"', " queries per second", "aggregated function time : count ",
        "all done ",
    ),
    "tools.gatling": (
        "run\t", "request\t", "\0", '"numberofrequests"', "---- global information -",
    ),
    "tools.ghz": (
        '"endreason"', '"latencydistribution"', "duration (ms),status,error", "requests/sec:",
    ),
    "tools.go_tpc": (" - takes(s): ", " - count: ", '"takes(s)"', "takes(s) |"),
    "tools.gobench": ("ns/op", '"action":'),
    "tools.google_benchmark": ('"real_time"', "name,iterations,real_time", " iterations"),
    "tools.h2load": (" started, ", r"^\d{15,17}\t"),
    "tools.hdr_base64": ("hist", "dhis", "\x1c\ufffd\ufffd", "\x0cr\x12"),
    "tools.hyperfine": ('"stddev"', "command,mean,stddev", "mean [", "time ("),
    "tools.hyperfoil": (
        "hyperfoil.io/run-schema", '"percentileresponsetime"', "phase,metric,start",
    ),
    "tools.jmeter": ("timestamp", "<testresults", r"^\d{13},\d+,", "/s avg: ", '"pct1restime"'),
    "tools.jmh": (
        '"primarymetric"', '"jmhversion"', '"benchmark"', "# jmh version", " score ", " mean error",
        " avgt ", " thrpt ", " sample ", " ss ", 'result "',
    ),
    "tools.k6": (
        '"metrics"', '"results"', "metric_name,", '"metric":', "_duration", " complete and ",
    ),
    "tools.log_lines": (
        '] "', "[gin]", "completed ", "sent ", "chunked ", "query_time:", "duration: ",
        "service=", "http/", '"- - -', "[conn", "#fields:",
    ),
    "tools.llm": (
        '"mean_ttft_ms"', '"num_prompts"', '"benchmarks"', '"random_range_ratio"', '"metadata"',
        '"request_latency"', '"time_to_first_token"', '"experiments"', '"end_time"', '"successes"',
        '"ttft_s"', '"results_ttft_s', " serving benchmark result ",
    ),
    "tools.locust": (
        "request count", "# requests", "occurrences", "traceback", '"num_none_requests"', "# reqs",
        '"avg_response_time"',
    ),
    "tools.log_processor": ("intervalpercentiles:", '"int_count"'),
    "tools.messaging": (
        "hdr percentiles:", " msgs/sec", "#runid,clientid", r"^\d+\.\d{6}$", "1/(1-percentile)",
        '"workload"',
    ),
    "tools.named_results": ('"unit',),
    "tools.mlperf": ("mlperf results summary",),
    "tools.nighthawk": ('"pstdev"', "nighthawk - a layer 7", "\n    statistics:"),
    "tools.nosqlbench": ("99.9% <= ", ", name=", "duration_unit", "tag,interval_start"),
    "tools.oha": ('"latencypercentiles"', "request-start,dns", "success rate:"),
    "tools.otel": ('metrics"', "\x12", "histogramdatapoints #"),
    "tools.traces": (
        "\x12", '"resourcespans"', '"resource_spans"', '"operationname"', '"localendpoint"',
        '"traceid"', '"scopespans"',
    ),
    "parquet": ("par1",),
    "tools.perf_gauge": (
        "request rate: ", "done gauging", "perf_gauge::", "latency_tm9", "error_latency",
    ),
    "tools.pgbench": (
        "transaction type:", "scaling factor:", "progress: ",
        r"^\d+ (\d|skipped|failed|serialization|deadlock)",
    ),
    "tools.ping": (
        "ping ", "pinging ", "min/avg/max", "icmp_seq=", ": request=", "ioping statistics ---",
        '"ignored"', '"mdev"', r"^\d{1,18} \d{1,18} ",
    ),
    "tools.prometheus": (
        "# type ", "_bucket{", ',le="', ' le="', '{le="', '"resulttype"', r'^name\s*:\s*"', "\x18",
        '"timeseries"', '"errortype"', '"samplecount"', '"sample_count"',
    ),
    "tools.python_benchmarks": (
        '"machine_info"', '"benchmarks"', "mean +- std dev: ", "name (time in ",
    ),
    "tools.rally": ("percentile latency", "percentile service time"),
    "tools.mtr": ("loss%", "owping statistics", "winmtr statistics"),
    "tools.statistics": (": p0(", ": b", "computed_quantiles", "histogram (unit: ", " lat hist ",
        ",lat io us,"),
    "tools.redis_cli": (
        " samples)", " total runs (avg", "max latency so far",
        r"^\d+[ ,]\d+[ ,]\d+\.\d\d[ ,]\d+$",
    ),
    "tools.redis": (
        '"run information"', "ops/sec ", "requests completed in",
        "latency summary", "requests per second", "rps=", '","',
    ),
    "tools.siege": ("availability:", '"availability":'),
    "tools.sockperf": ("sockperf: ", "packet, txtime"),
    "tools.sysbench": (
        "sysbench ", " thds: ", "latency histogram (values are", "threads fairness:",
    ),
    "tools.tdigest": (r"^\0\0\0[\1\2]", "^AAAAA[QTUVgjkl]", '"centroids"'),
    "tools.two_columns": (
        r"^\s*\d{1,18}[ \t]+\d{1,15}\s*$",
        r"^#?\s*(?:S?TIME|END|START|TS|s?time|end|start|ts)\b|^#?\s*(?:S?TIME|s?time)[nums(]",
    ),
    "tools.vegeta": (
        "\x06result\x01", '"bytes_in":', '"status_codes":', "latencies", "bucket", "value(ms)",
        r"^\d{16,19},\d",
    ),
    "tools.wrk": ("thread stats",),
    "tools.ycsb": (
        "[overall], runtime(ms),", "[overall],runtime(ms),", "latency(us)", '"measurement"',
        ": count=", r"^[A-Za-z][\w-]*,\d{12,14},",
    ),
    # Binary formats only: any table of numbers may be text of the others, see `generic_formats`.
    "raw": ("par1", "arrow1", "fea1", "\ufffd\ufffd\ufffd\ufffd", "\ufffdnumpy", "pk\x03\x04"),
    # the last of all, see `rounds`
    "tools.request_lines": (),
    "percentile_lines": (),
}  # fmt: skip


_MAGICS = (b"PAR1", b"ARROW1", b"FEA1")
"""Beginnings of binary tables: behind them, marks of text stand by chance."""


def candidates(head: Head) -> Iterator[Format]:
    """Yield the formats that an input may be of, in order: those of the package, then plug-ins'."""
    yield from _formats_in("hlog")
    text = head.text.lower()
    first = next((line.strip() for line in head.lines if line.strip()), "")
    # Recognisers look at directories themselves, and at text without a terminal's escapes.
    everything = head.is_dir or "\x1b" in text
    magic = next((magic for magic in _MAGICS if head.data.startswith(magic)), b"")
    if magic:
        everything, first, text = False, "", magic.decode().lower()
    for module, marks in itertools.islice(_MARKS.items(), 1, len(_MARKS) - 2):
        if everything or any(
            re.match(mark, first) if mark.startswith("^") else mark in text for mark in marks
        ):
            yield from _formats_in(module)
    yield from plugin_formats()


def generic_formats() -> tuple[Format, ...]:
    """Return the formats of raw samples, which take any table of numbers with low confidence."""
    return _formats_in("raw")


def rounds(head: Head) -> Iterator[Iterable[Format]]:
    """Yield the formats to ask: those of the head's marks, then any table, then the last resort."""
    yield candidates(head)
    yield generic_formats()
    yield _formats_in("tools.request_lines") + _formats_in("percentile_lines")


@cache
def builtin_formats() -> tuple[Format, ...]:
    """Return the formats of the package, in order."""
    return tuple(entry for module in _MARKS for entry in _formats_in(module))


@cache
def plugin_formats() -> tuple[Format, ...]:
    """Return the formats that installed packages add; one that cannot be imported is a warning."""
    from importlib.metadata import entry_points

    formats: list[Format] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:  # noqa: BLE001 - another package's code may raise anything
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"the format plug-in {point.name!r} cannot be imported: {reason}", stacklevel=2
            )
            continue
        formats += loaded if isinstance(loaded, tuple | list) else [loaded]
    return tuple(formats)


def all_formats() -> tuple[Format, ...]:
    """Return every format: those of the package, then those of plug-ins."""
    return builtin_formats() + plugin_formats()


def named_format(name: str) -> Format | None:
    """Return the format of that name, or None."""
    row = table().get(name)
    formats = plugin_formats() if row is None else _formats_in(row["module"])
    return next((entry for entry in formats if entry.name == name), None)


@cache
def table() -> dict[str, dict[str, str]]:
    """Return the row of each format of the package by its name."""
    text = Path(__file__).with_name("formats.csv").read_text("utf-8")
    return {row["name"]: row for row in csv.DictReader(text.splitlines())}


@cache
def _formats_in(module: str) -> tuple[Format, ...]:
    formats = []
    for name, functions in importlib.import_module(f"latencykit.io.{module}").FORMATS.items():
        row = table()[name]
        sniff, read, write = (*functions, None)[:3]
        formats.append(
            Format(
                name, row["title"], row["level"], tuple(row["suffixes"].split()), sniff, read,
                write, row["unit"] or None, row["example"],
            )
        )  # fmt: skip
    return tuple(formats)
