"""The registry of formats: which module reads which, in the order in which they are asked.

A module has a tuple ``FORMATS`` of `latencykit.io.source.Format`. To add a built-in format, name its module here and put a
sample under ``tests/data/formats``. A third party adds one by an entry point in the group ``latencykit.formats`` that
refers to such a tuple (or to one format), and tests it with `latencykit.testing.FormatContract`.
"""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latencykit.io.source import Format

__all__ = ["all_formats", "builtin_formats", "named_format", "plugin_formats"]

ENTRY_POINTS = "latencykit.formats"

# Module below latencykit.io: its formats. A format that is named is looked up here, so that only its module is imported.
_FORMATS = {
    "hlog": "hlog",
    "hgrm": "hgrm",
    "tools.hey": "hey hey-csv",
    "native_json": "json",
    "tools.ab": "ab ab-gnuplot ab-csv",
    "tools.access_log": "access-json access-log",
    "tools.autocannon": "autocannon-json autocannon",
    "tools.bench": "bench nats-latency-histogram",
    "tools.bombardier": "bombardier-json bombardier",
    "tools.bpf": "bpftrace bpftrace-json bcc",
    "tools.cassandra_stress": "cassandra-stress",
    "tools.criterion": "criterion criterion-sample criterion-estimates criterion-csv criterion-text",
    "tools.cyclictest": "cyclictest cyclictest-verbose cyclictest-json",
    "tools.fio": "fio-json fio-terse fio fio-log fio-histograms",
    "tools.flotilla": "flotilla percentile-table",
    "tools.fortio": "fortio fortio-text",
    "tools.gatling": "gatling gatling-stats",
    "tools.ghz": "ghz-json ghz-csv ghz",
    "tools.gobench": "go-bench go-bench-json",
    "tools.h2load": "h2load-log h2load",
    "tools.hyperfine": "hyperfine-json hyperfine-csv hyperfine-markdown hyperfine",
    "tools.hyperfoil": "hyperfoil hyperfoil-csv",
    "tools.ioping": "ioping ioping-json ioping-raw",
    "tools.jmeter": "jmeter-csv jmeter-xml",
    "tools.jmh": "jmh-json jmh-csv",
    "tools.k6": "k6-summary k6-csv k6-json k6",
    "tools.latte": "latte",
    "tools.llm": "vllm guidellm",
    "tools.locust": "locust-csv locust-history locust-failures locust-json locust",
    "tools.memtier": "memtier-json memtier",
    "tools.nats": "nats-latency nats-latency-raw nats-bench nats-bench-csv",
    "tools.nosqlbench": "nosqlbench nosqlbench-log nosqlbench-csv nosqlbench-histostats",
    "tools.oha": "oha-json oha-csv oha",
    "tools.openmessaging": "openmessaging",
    "tools.otel": "otel",
    "parquet": "parquet",
    "tools.perf_gauge": "perf-gauge perf-gauge-prometheus",
    "tools.pgbench": "pgbench-log pgbench-intervals pgbench",
    "tools.ping": "ping",
    "tools.prometheus": "prometheus prometheus-json",
    "tools.pyperf": "pyperf",
    "tools.pytest_benchmark": "pytest-benchmark",
    "tools.redis_benchmark": "redis-benchmark redis-benchmark-csv",
    "tools.scylla_bench": "scylla-bench",
    "tools.siege": "siege siege-json",
    "tools.sockperf": "sockperf-csv sockperf",
    "tools.sysbench": "sysbench",
    "tools.vegeta": "vegeta-csv vegeta-json vegeta-report-json vegeta-report vegeta-hist vegeta-hdrplot",
    "tools.wrk": "wrk",
    "tools.wrk2": "wrk2",
    "tools.ycsb": "ycsb ycsb-json ycsb-raw",
    "raw": "csv numbers jsonl json-samples parquet-samples feather npy npz",
}


@cache
def builtin_formats() -> tuple[Format, ...]:
    """Return the formats of the package, in order."""
    return tuple(one for module in _FORMATS for one in _formats_in(module))


@cache
def plugin_formats() -> tuple[Format, ...]:
    """Return the formats that installed packages add; one that cannot be imported is a warning."""
    from importlib.metadata import entry_points

    formats: list[Format] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:  # noqa: BLE001 - another package's code may raise anything; ours goes on without it
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
    module = next((module for module, names in _FORMATS.items() if name in names.split()), None)
    formats = plugin_formats() if module is None else _formats_in(module)
    return next((one for one in formats if one.name == name), None)


def _formats_in(module: str) -> tuple[Format, ...]:
    formats: tuple[Format, ...] = importlib.import_module(f"latencykit.io.{module}").FORMATS
    return formats
