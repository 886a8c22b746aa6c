"""Scrapes: classic histograms, summaries, OpenMetrics, noise, corruption, differences."""

from __future__ import annotations

import math

import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError

SCRAPE = """# HELP rpc_seconds time
# TYPE rpc_seconds histogram
rpc_seconds_bucket{{op="a \\"q\\" {{x}}",code="200",le="0.0007199999999999999"}} {a}
rpc_seconds_bucket{{op="a \\"q\\" {{x}}",code="200",le="0.001"}} {b}
rpc_seconds_bucket{{op="a \\"q\\" {{x}}",code="200",le="+Inf"}} {c}
rpc_seconds_sum{{op="a \\"q\\" {{x}}",code="200"}} 0.5
rpc_seconds_count{{op="a \\"q\\" {{x}}",code="200"}} {c}
rpc_seconds_bucket{{code="500",le="0.0007199999999999999"}} 7
rpc_seconds_bucket{{code="500",le="0.001"}} 7
rpc_seconds_bucket{{code="500",le="+Inf"}} 7
rpc_seconds_count{{code="500"}} 7
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{{quantile="0.5"}} 1e-05
go_gc_duration_seconds_count 9
# TYPE up gauge
up 1
some_count 12
"""


def scrape(a=10, b=90, c=100):
    return SCRAPE.format(a=a, b=b, c=c)


def test_buckets_overflow_and_failures(read_text):
    found = read_text(scrape())
    assert list(found) == [
        "rpc_seconds",
        'rpc_seconds{op="a "q" {x}",code="200"}',
        'rpc_seconds{code="500"}',
    ]
    h = found['rpc_seconds{op="a "q" {x}",code="200"}']
    assert (h.count, h.censored, h.censored_at) == (90, 10, 1e6)
    assert h.percentile(5) == 720_000  # the noise of the edge is gone
    assert h.percentile(99) == 1e6
    assert h.mean == 5e6
    total = found["rpc_seconds"]
    assert (total.count, total.run.failed, total.run.aggregate, total.run.unit) == (
        90,
        7,
        True,
        "s",
    )


def test_the_dashboards_number_is_named(read_text):
    h = read_text(scrape(0, 100, 100))['rpc_seconds{op="a "q" {x}",code="200"}']
    assert any("p50 860 µs" in note for note in h.run.notes)


def test_two_scrapes_subtract(read_text):
    name = 'rpc_seconds{op="a "q" {x}",code="200"}'
    before, after = read_text(scrape())[name], read_text(scrape(15, 190, 201))[name]
    between = after - before
    assert (between.count, between.censored) == (100, 1)


def test_shrinking_buckets_are_an_error(read_text):
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: .*shrink"):
        read_text(scrape(95, 90, 100))


def test_bad_samples(read_text):
    text = scrape() + "what is this\nup 1\n"
    with pytest.raises(CorruptInputError, match=r"out\.txt:18: not a valid sample"):
        read_text(text)
    assert len(read_text(text, lenient=True)) == 3
    assert len(read_text(scrape() + "rpc_sec")) == 3


def test_the_runtime_stands_back_unless_alone(read_text):
    text = "".join(line for line in scrape().splitlines(keepends=True) if "rpc" not in line)
    assert list(read_text(text)) == ["go_gc_duration_seconds"]


def test_openmetrics_units_and_summaries(read_text):
    text = """# TYPE job_latency summary
# UNIT job_latency milliseconds
job_latency{quantile="0.5"} 2.0 1795220091.5
job_latency{quantile="0.99"} 9.0
job_latency{quantile="0.999"} NaN
job_latency_count 1000.0
job_latency_sum 3000.0
job_latency_created 1.7e9
# TYPE plain_seconds summary
plain_seconds_count 10
plain_seconds_sum 1
# TYPE size_bytes histogram
size_bytes_bucket{le="1.0"} 1
size_bytes_bucket{le="+Inf"} 1
# EOF
"""
    found = read_text(text)
    assert list(found) == ["job_latency", "plain_seconds"]
    assert isinstance(found["plain_seconds"], Summary)
    assert found["plain_seconds"].mean == 1e8
    one = found["job_latency"]
    assert isinstance(one, Summary)  # two quantiles do not make a distribution
    assert (one.percentile(99), one.mean, one.run.unit) == (9e6, 3e6, "ms")


def test_an_unknown_unit_is_assumed_and_can_be_given(read_text):
    text = '# TYPE latency histogram\nlatency_bucket{le="10"} 4\nlatency_bucket{le="+Inf"} 4\nlatency_count 4\nlatency_sum 8\n'
    assumed = read_text(text)["latency"]
    assert (assumed.max, assumed.run.unit_from) == (10e9, "assumed")
    given = read_text(text, unit="us")["latency"]
    assert (given.max, given.mean, given.run.unit_from) == (10_000, 2_000, "option")
    assert isinstance(given, Histogram)
    assert math.isinf(given.censored_at)
