"""Every format that can be read: one file a tool, and the ordered registry.

To add one: write a module with a tuple ``FORMATS``, name it here, and lay a sample under ``tests/data/formats``. The
modules are imported when the registry is first asked for: a log that says what it is does not wait for forty others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from latencykit.formats.reading import formats
from latencykit.rooms import make_callable

if TYPE_CHECKING:
    from latencykit.formats.base import Format

    FORMATS: tuple[Format, ...]

__all__ = ["FORMATS"]

_MODULES = (
    "hlog",
    "hgrm",
    "hey",
    "json_native",
    "ab",
    "access_json",
    "access_log",
    "autocannon",
    "bench",
    "bombardier",
    "bpf",
    "cassandra_stress",
    "criterion",
    "cyclictest",
    "fio",
    "fio_logs",
    "flotilla",
    "fortio",
    "fortio_text",
    "gatling",
    "ghz",
    "gobench",
    "h2load",
    "hyperfine",
    "hyperfoil",
    "ioping",
    "jmeter",
    "jmh",
    "k6",
    "k6_points",
    "k6_text",
    "latte",
    "llm",
    "locust",
    "memtier",
    "nats",
    "nosqlbench",
    "oha",
    "openmessaging",
    "otel",
    "parquet",
    "perf_gauge",
    "pgbench",
    "ping",
    "prometheus",
    "prometheus_range",
    "pyperf",
    "pytest_benchmark",
    "redis_benchmark",
    "scylla_bench",
    "siege",
    "sockperf",
    "sysbench",
    "vegeta",
    "vegeta_report",
    "wrk",
    "wrk2",
    "ycsb",
    "raw",
)


def __getattr__(name: str) -> Any:
    if name != "FORMATS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = [importlib.import_module(f"{__name__}.{module}") for module in _MODULES]
    found = globals()["FORMATS"] = tuple(one for module in modules for one in module.FORMATS)
    return found


make_callable(__name__, formats)
