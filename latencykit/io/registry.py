"""The registry of formats: the module that reads each, and the marks that inputs are known by.

A module has a tuple ``FORMATS`` of `latencykit.io.source.Format`. To add a built-in format, name
its module and its marks here, and put a sample under ``tests/data/formats``. A third party adds one
by an entry point in the group ``latencykit.formats`` that refers to such a tuple (or to one
format), and tests it with `latencykit.testing.FormatContract`.
"""

from __future__ import annotations

import importlib
import itertools
import re
import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.io.source import Format, Head

ENTRY_POINTS = "latencykit.formats"

# Module below latencykit.io: its formats, and marks. An input that has none of the marks is not of
# any of the formats; of one that has, the module's own recognisers decide. So only modules that may
# know an input are imported to detect its format. A mark is text in lower case that the head
# contains (whatever its case), or with a leading ^ an expression that the first line matches.
_FORMATS: dict[str, tuple[str, ...]] = {
    "hlog": ("hlog", ""),
    "hgrm": ("hgrm", "totalcount", "#[overall percentile distribution"),
    "tools.hey": ("hey hey-csv", "fastest:", "response-time,dns+dialup"),
    "native_json": ("json", '{"latencykit":'),
    "tools.ab": (
        "ab ab-gnuplot ab-csv",
        "server software:", "this is apachebench", "starttime\tseconds", "percentage served,",
    ),
    "tools.access_log": (
        "access-json access-log",
        '] "', "] ", '"request_time"', "request_time=", '"duration"', r"^\d{9,11}\.\d{3} ",
    ),
    "tools.artillery": (
        "artillery artillery-text", '"aggregate"', "summary report @ ", '"scenarioscreated"',
    ),
    "tools.autocannon": ("autocannon-json autocannon", '"p99_9', "stdev"),
    "tools.benchmarkdotnet": (
        "benchmarkdotnet benchmarkdotnet-json", "method", '"hostenvironmentinfo"',
    ),
    "tools.bombardier": ("bombardier-json bombardier", '"spec"', "reqs/sec", "bombarding "),
    "tools.bpf": ("bpftrace bpftrace-json bcc", "\n@", "\r@", "^@", '{"type":', ": count"),
    "tools.brokers": (
        "kafka-end-to-end rabbitmq-perf-test pulsar-perf",
        "percentiles: 50th = ", "/75th/95th/99th", "latency: mean:",
    ),
    "tools.cassandra": (
        "cassandra-stress scylla-bench latte",
        "total ops,", "latency 99.9th percentile", "total ops:", "partition count:", '"workload"',
    ),
    "tools.circllhist": (
        "circllhist",
        "h[", '":"a', '": "a', r"^(?:.*[^A-Za-z0-9+/=])?A[A-Za-z0-9+/]{7,}={0,2}[\"'\]},;\s]*$",
    ),
    "tools.criterion": (
        "criterion criterion-sample criterion-estimates criterion-csv criterion-text cargo-bench",
        '"sampling_mode"', '"confidence_interval"', "sample_measured_value", "time: ", "time:\t",
        " ... bench: ",
    ),
    "tools.cyclictest": (
        "cyclictest rtla cyclictest-verbose cyclictest-json",
        "# histogram", " act:", " interval:", '"cyclictest', " irq-", " thr-",
    ),
    "tools.datasketches": (
        "datasketches",
        "\x05\x01\x0f", "\x02\x01\x0f", "\x02\x02\x0f", "\x02\x01\x14", "\x01\x01\x14",
        r"^(?:BQEP|AgEP|AgIP|AgEU|AQEU)",
    ),
    "tools.ddsketch": (
        "ddsketch-json ddsketch",
        '"gamma"', "\n\t\t", "\n\x0b\t", "\n\x12\t", "\n\x14\t",
    ),
    "tools.fio": (
        "fio-json fio-terse fio fio-log fio-histograms",
        '"fio version"', ";fio-", "(groupid=", " clat (", "sync (", "clat percentiles (",
        r"^\d+, \d+, \d",
    ),
    "tools.flotilla": ("flotilla percentile-table", "|", "│", "║", "p99", "99%", "p95", "95%"),
    "tools.fortio": (
        "fortio fortio-text",
        '"durationhistogram"', " queries per second", "aggregated function time : count ",
        "all done ",
    ),
    "tools.gatling": (
        "gatling gatling-stats gatling-console",
        "run\t", "request\t", "\0", '"numberofrequests"', "---- global information -",
    ),
    "tools.ghz": (
        "ghz-json ghz-csv ghz",
        '"endreason"', '"latencydistribution"', "duration (ms),status,error", "requests/sec:",
    ),
    "tools.go_tpc": (
        "go-ycsb go-ycsb-json", " - takes(s): ", " - count: ", '"takes(s)"', "takes(s) |",
    ),
    "tools.gobench": ("go-bench go-bench-json", "ns/op", '"action":'),
    "tools.google_benchmark": (
        "google-benchmark google-benchmark-csv google-benchmark-text",
        '"real_time"', "name,iterations,real_time", " iterations",
    ),
    "tools.h2load": ("h2load-log h2load", " started, ", r"^\d{15,17}\t"),
    "tools.hdr_base64": ("hdr-base64", "hist", "dhis", "\x1c\ufffd\ufffd", "\x0cr\x12"),
    "tools.hyperfine": (
        "hyperfine-json hyperfine-csv hyperfine-markdown hyperfine",
        '"stddev"', "command,mean,stddev", "mean [", "time (",
    ),
    "tools.hyperfoil": (
        "hyperfoil hyperfoil-csv",
        "hyperfoil.io/run-schema", '"percentileresponsetime"', "phase,metric,start",
    ),
    "tools.jmeter": (
        "jmeter-csv jmeter-xml jmeter-statistics jmeter-summary",
        "timestamp", "<testresults", r"^\d{13},\d+,", "/s avg: ", '"pct1restime"',
    ),
    "tools.jmh": (
        "jmh-json jmh-csv", '"primarymetric"', '"jmhversion"', '"benchmark"',
    ),
    "tools.jmh_text": (
        "jmh",
        "# jmh version", " score ", " mean error", " avgt ", " thrpt ", " sample ", " ss ",
        'result "',
    ),
    "tools.k6": (
        "k6-summary k6-csv k6-json k6",
        '"metrics"', '"results"', "metric_name,", '"metric":', "_duration", " complete and ",
    ),
    "tools.llm": (
        (
            "vllm sglang serving-benchmark guidellm aiperf aiperf-json genai-perf "
            "inference-perf inference-perf-summary llmperf llmperf-summary"
        ),
        '"mean_ttft_ms"', '"num_prompts"', '"benchmarks"', '"random_range_ratio"', '"metadata"',
        '"request_latency"', '"time_to_first_token"', '"experiments"', '"end_time"', '"successes"',
        '"ttft_s"', '"results_ttft_s', " serving benchmark result ",
    ),
    "tools.locust": (
        "locust-csv locust-history locust-failures locust-json locust",
        "request count", "# requests", "occurrences", "traceback", '"num_none_requests"', "# reqs",
    ),
    "tools.log_processor": ("log-processor", "intervalpercentiles:", '"int_count"'),
    "tools.messaging": (
        (
            "nats-latency nats-latency-raw nats-bench nats-bench-csv bench "
            "nats-latency-histogram openmessaging"
        ),
        "hdr percentiles:", " msgs/sec", "#runid,clientid", r"^\d+\.\d{6}$", "1/(1-percentile)",
        '"workload"',
    ),
    "tools.named_results": ("named-results", '"unit'),
    "tools.mlperf": ("mlperf", "mlperf results summary"),
    "tools.nighthawk": (
        "nighthawk nighthawk-text",
        '"pstdev"', "nighthawk - a layer 7", "\n    statistics:",
    ),
    "tools.nosqlbench": (
        "nosqlbench nosqlbench-log nosqlbench-csv nosqlbench-histostats",
        "99.9% <= ", ", name=", "duration_unit", "tag,interval_start",
    ),
    "tools.oha": (
        "oha-json oha-csv oha",
        '"responsetimehistogram"', "request-start,dns", "success rate:",
    ),
    "tools.otel": ("otel otel-protobuf", 'metrics"', "\x12"),
    "tools.traces": (
        "otlp-traces otlp-traces-protobuf jaeger zipkin",
        "\x12", '"resourcespans"', '"resource_spans"', '"operationname"', '"localendpoint"',
        '"traceid"', '"scopespans"',
    ),
    "parquet": ("parquet", "par1"),
    "tools.perf_gauge": (
        "perf-gauge perf-gauge-prometheus",
        "request rate: ", "done gauging", "perf_gauge::", "latency_tm9", "error_latency",
    ),
    "tools.pgbench": (
        "pgbench-log pgbench-intervals pgbench",
        "transaction type:", "scaling factor:", r"^\d+ (\d|skipped|failed|serialization|deadlock)",
    ),
    "tools.ping": (
        "ping ioping ioping-json ioping-raw",
        "ping ", "pinging ", "min/avg/max", "icmp_seq=",
        ": request=", "ioping statistics ---", '"ignored"', '"mdev"', r"^\d{1,18} \d{1,18} ",
    ),
    "tools.prometheus": (
        "prometheus prometheus-json prometheus-protobuf prometheus-scrapes",
        "# type ", "_bucket{", '"resulttype"', r'^name\s*:\s*"', "\x18", '"timeseries"',
        '"errortype"', '"samplecount"', '"sample_count"',
    ),
    "tools.python_benchmarks": (
        "pyperf pytest-benchmark pyperf-text pytest-benchmark-text",
        '"machine_info"', '"benchmarks"', "mean +- std dev: ", "name (time in ",
    ),
    "tools.rally": ("rally", "percentile latency", "percentile service time"),
    "tools.mtr": ("mtr", "loss%"),
    "tools.redis_cli": (
        "redis-cli redis-cli-intrinsic",
        " samples)", " total runs (avg",
        r"^\d+ \d+ \d+\.\d\d \d+$",
    ),
    "tools.redis": (
        "memtier-json memtier redis-benchmark redis-benchmark-csv",
        '"run information"', "all stats", "aggregated average results",
        "requests completed in", "latency summary", "requests per second", "rps=", '","',
    ),
    "tools.siege": ("siege siege-json", "availability:", '"availability":'),
    "tools.sockperf": ("sockperf-csv sockperf", "sockperf: ", "packet, txtime"),
    "tools.sysbench": (
        "sysbench",
        "sysbench ", "latency histogram (values are", "threads fairness:",
    ),
    "tools.tdigest": ("t-digest", r"^\0\0\0[\1\2]", "^AAAAA[QTUVgjkl]", '"centroids"'),
    "tools.two_columns": (
        "time-latency", r"^\s*\d{1,18}[ \t]+\d{1,15}\s*$",
        r"^#?\s*(?:S?TIME|END|START|TS|s?time|end|start|ts)\b|^#?\s*(?:S?TIME|s?time)[nums(]",
    ),
    "tools.vegeta": (
        (
            "vegeta vegeta-csv vegeta-json vegeta-report-json vegeta-report vegeta-hist "
            "vegeta-hdrplot"
        ),
        "\x06result\x01",
        '"bytes_in":', '"status_codes":', "latencies", "bucket", "value(ms)", r"^\d{16,19},\d",
    ),
    "tools.wrk": ("wrk wrk2", "thread stats"),
    "tools.ycsb": (
        "ycsb ycsb-json ycsb-raw",
        "[overall], runtime(ms),", "[overall],runtime(ms),", "latency(us)", '"measurement"',
        r"^[A-Za-z][\w-]*,\d{12,14},",
    ),
    # Binary formats only: any table of numbers may be text of the others, see `generic_formats`.
    "raw": (
        "csv numbers jsonl logfmt json-samples parquet-samples feather npy npz",
        "par1", "arrow1", "fea1", "\ufffd\ufffd\ufffd\ufffd", "\ufffdnumpy", "pk\x03\x04",
    ),
    "percentile_lines": ("percentile-lines",),  # the last of all, see `last_resort`
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
    for module, (_, *marks) in itertools.islice(_FORMATS.items(), 1, len(_FORMATS) - 1):
        if everything or any(
            re.match(mark, first) if mark.startswith("^") else mark in text for mark in marks
        ):
            yield from _formats_in(module)
    yield from plugin_formats()


def generic_formats() -> tuple[Format, ...]:
    """Return the formats of raw samples, which take any table of numbers with low confidence."""
    return _formats_in("raw")


def last_resort() -> tuple[Format, ...]:
    """Return the format that is asked when no other knows an input."""
    return _formats_in("percentile_lines")


@cache
def builtin_formats() -> tuple[Format, ...]:
    """Return the formats of the package, in order."""
    return tuple(entry for module in _FORMATS for entry in _formats_in(module))


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
    """Return the format of that name, or None; only its own module is imported."""
    module = next((key for key, (names, *_) in _FORMATS.items() if name in names.split()), None)
    formats = plugin_formats() if module is None else _formats_in(module)
    return next((entry for entry in formats if entry.name == name), None)


def _formats_in(module: str) -> tuple[Format, ...]:
    formats: tuple[Format, ...] = importlib.import_module(f"latencykit.io.{module}").FORMATS
    return formats
