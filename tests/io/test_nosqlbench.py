"""NoSQLBench: logs and summaries of Dropwizard timers, and histostats."""

from __future__ import annotations

import pytest

from latencykit.errors import DataNotAvailableError

LOG = (
    "2020-05-30 14:10:06,400 INFO [main] x - type=GAUGE, name=a.cycles.config.cyclerate, "
    "value=5000.0\n"
    "2020-05-30 14:10:06,468 INFO [main] i.n.e.c.ScenarioResult [Slf4jReporter.java:374] "
    "type=TIMER, "
    "name=a.result, count=100000, min=233.48, max=358596.607, mean=3732.5, "
    "stddev=10254.85, median=1874.815, p75=3648.767, p95=10115.071, p98=15855.615, "
    "p99=23916.543, p999=111292.415, mean_rate=4024.02, m1=3514.0, m5=3307.4, m15=3268.7, "
    "rate_unit=events/second, "
    "duration_unit=microseconds\n"
    "2020-05-30 14:10:06,469 INFO [main] x - type=TIMER, name=a.never, count=0, min=0.0, max=0.0, "
    "duration_unit=microseconds\n"
)
HISTOSTATS = """#logging stats for session scenario-1479089852022
#[Histogram log format version 1.0]
#[StartTime: 1479089852.046 (seconds since epoch), Sun Nov 13 20:17:32 CST 2016]
#Tag,Interval_Start,Interval_Length,count,min,p25,p50,p75,p90,p95,p98,p99,p999,p9999,max
Tag=read,0.457,0.5,100,16,31,31,40,50,60,70,80,90,90,90
Tag=write,0.48,0.5,0,0,0,0,0,0,0,0,0,0,0,0
Tag=read,0.957,0.5,300,1,1,2,3,4,5,6,1000,2000,2000,2000
"""


def test_log(read_text):
    found = read_text(LOG, "scenario.log")
    assert list(found) == ["a.result"]
    s = found["a.result"]
    assert (s.count, s.mean, s.max, s.percentile(99.9), s.run.achieved) == (
        100_000,
        3_732_500,
        358_596_607,
        111_292_415,
        4024.02,
    )
    with pytest.raises(DataNotAvailableError, match="--log-histograms keeps the full distribution"):
        s.percentile(99.99)


def test_histostats(read_text):
    found = read_text(HISTOSTATS, "stats.log")
    assert list(found) == ["read"]
    h = found["read"]
    assert (h.count, h.max, h.min) == (400, 2000, 1)
    assert h.percentile(50) <= 31
    assert h.percentile(99.9) == 2000
    assert any("distribution" in note for note in h.run.notes)
