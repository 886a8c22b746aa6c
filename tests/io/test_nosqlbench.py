"""NoSQLBench: logs and summaries of Dropwizard timers, and histostats."""

from __future__ import annotations

HISTOSTATS = """#logging stats for session scenario-1479089852022
#[Histogram log format version 1.0]
#[StartTime: 1479089852.046 (seconds since epoch), Sun Nov 13 20:17:32 CST 2016]
#Tag,Interval_Start,Interval_Length,count,min,p25,p50,p75,p90,p95,p98,p99,p999,p9999,max
Tag=read,0.457,0.5,100,16,31,31,40,50,60,70,80,90,90,90
Tag=write,0.48,0.5,0,0,0,0,0,0,0,0,0,0,0,0
Tag=read,0.957,0.5,300,1,1,2,3,4,5,6,1000,2000,2000,2000
"""


def test_histostats(read_text):
    found = read_text(HISTOSTATS, "stats.log")
    assert list(found) == ["read"]
    h = found["read"]
    assert (h.count, h.max, h.min) == (400, 2000, 1)
    assert h.percentile(50) <= 31
    assert h.percentile(99.9) == 2000
    assert any("distribution" in note for note in h.run.notes)
