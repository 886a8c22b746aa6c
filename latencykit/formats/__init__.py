"""Every format that can be read: one file a tool, and the ordered registry.

To add one: write a module with a tuple ``FORMATS``, name it here, and lay a sample under ``tests/data/formats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.formats import (
    access_json,
    access_log,
    bench,
    bpf,
    cassandra_stress,
    criterion,
    cyclictest,
    fio,
    fio_logs,
    flotilla,
    gatling,
    gobench,
    hey,
    hgrm,
    hlog,
    hyperfine,
    hyperfoil,
    ioping,
    jmeter,
    jmh,
    json_native,
    k6,
    k6_points,
    k6_text,
    latte,
    llm,
    memtier,
    openmessaging,
    otel,
    parquet,
    pgbench,
    ping,
    prometheus,
    prometheus_range,
    pyperf,
    pytest_benchmark,
    raw,
    redis_benchmark,
    scylla_bench,
    siege,
    sockperf,
    sysbench,
    vegeta,
    vegeta_report,
    wrk,
    wrk2,
    ycsb,
)
from latencykit.formats.reading import formats
from latencykit.rooms import make_callable

if TYPE_CHECKING:
    from latencykit.formats.base import Format

FORMATS: tuple[Format, ...] = (
    *hlog.FORMATS,
    *hgrm.FORMATS,
    *hey.FORMATS,
    *json_native.FORMATS,
    *access_json.FORMATS,
    *access_log.FORMATS,
    *bench.FORMATS,
    *bpf.FORMATS,
    *cassandra_stress.FORMATS,
    *criterion.FORMATS,
    *cyclictest.FORMATS,
    *fio.FORMATS,
    *fio_logs.FORMATS,
    *flotilla.FORMATS,
    *gatling.FORMATS,
    *gobench.FORMATS,
    *hyperfine.FORMATS,
    *hyperfoil.FORMATS,
    *ioping.FORMATS,
    *jmeter.FORMATS,
    *jmh.FORMATS,
    *k6.FORMATS,
    *k6_points.FORMATS,
    *k6_text.FORMATS,
    *latte.FORMATS,
    *llm.FORMATS,
    *memtier.FORMATS,
    *openmessaging.FORMATS,
    *otel.FORMATS,
    *parquet.FORMATS,
    *pgbench.FORMATS,
    *ping.FORMATS,
    *prometheus.FORMATS,
    *prometheus_range.FORMATS,
    *pyperf.FORMATS,
    *pytest_benchmark.FORMATS,
    *redis_benchmark.FORMATS,
    *scylla_bench.FORMATS,
    *siege.FORMATS,
    *sockperf.FORMATS,
    *sysbench.FORMATS,
    *vegeta.FORMATS,
    *vegeta_report.FORMATS,
    *wrk.FORMATS,
    *wrk2.FORMATS,
    *ycsb.FORMATS,
    *raw.FORMATS,
)

__all__ = ["FORMATS"]

make_callable(__name__, formats)
