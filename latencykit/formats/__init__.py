"""Every format that can be read: one file a tool, and the ordered registry.

To add one: write a module with a tuple ``FORMATS``, name it here, and lay a sample under ``tests/data/formats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.formats import (
    access_json,
    access_log,
    criterion,
    cyclictest,
    fio,
    fio_logs,
    gobench,
    hgrm,
    hlog,
    hyperfine,
    ioping,
    jmeter,
    jmh,
    json_native,
    memtier,
    otel,
    parquet,
    pgbench,
    ping,
    prometheus,
    prometheus_range,
    pyperf,
    pytest_benchmark,
    siege,
    sockperf,
    sysbench,
)
from latencykit.formats.reading import formats
from latencykit.rooms import make_callable

if TYPE_CHECKING:
    from latencykit.formats.base import Format

FORMATS: tuple[Format, ...] = (
    *hlog.FORMATS,
    *hgrm.FORMATS,
    *json_native.FORMATS,
    *access_json.FORMATS,
    *access_log.FORMATS,
    *criterion.FORMATS,
    *cyclictest.FORMATS,
    *fio.FORMATS,
    *fio_logs.FORMATS,
    *gobench.FORMATS,
    *hyperfine.FORMATS,
    *ioping.FORMATS,
    *jmeter.FORMATS,
    *jmh.FORMATS,
    *memtier.FORMATS,
    *otel.FORMATS,
    *parquet.FORMATS,
    *pgbench.FORMATS,
    *ping.FORMATS,
    *prometheus.FORMATS,
    *prometheus_range.FORMATS,
    *pyperf.FORMATS,
    *pytest_benchmark.FORMATS,
    *siege.FORMATS,
    *sockperf.FORMATS,
    *sysbench.FORMATS,
)

__all__ = ["FORMATS"]

make_callable(__name__, formats)
