"""Scrapes: classic histograms, summaries, OpenMetrics, noise, corruption, differences."""

from __future__ import annotations

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


def test_two_scrapes_subtract(read_text):
    name = 'rpc_seconds{op="a "q" {x}",code="200"}'
    before, after = read_text(scrape())[name], read_text(scrape(15, 190, 201))[name]
    between = after - before
    assert (between.count, between.censored) == (100, 1)
