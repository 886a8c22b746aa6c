"""sysbench: histogram, plain text, and the open loop of --rate."""

from __future__ import annotations

import pytest

from latencykit.core.histogram import Histogram

TEXT = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 2
{rate}
{histogram}
SQL statistics:
    ignored errors:                      3      (0.30 per sec.)

General statistics:
    total time:                          4.0000s
    total number of events:              10

Latency (ms):
         min:                                    0.40
         avg:                                    0.93
         max:                                   22.00
         95th percentile:                       21.89
         sum:                                    9.30
"""
ROWS = """Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.402 |*************************                4
       0.409 |******************************           5
      21.886 |******                                   1
"""


def test_buckets_lie_around_the_printed_middle(read_text):
    found = read_text(TEXT.format(rate="", histogram=ROWS))["out.txt"]
    assert isinstance(found, Histogram)
    assert (found.count, found.max, found.mean, found.run.failed) == (10, 22e6, 930_000, 3)
    lows, highs = found.buckets.low([0, 1, 2]), found.buckets.high([0, 1, 2])
    assert highs[0] == pytest.approx(lows[1])
    assert (lows < [402e3, 409.4e3, 21.886e6]).all()
    assert (highs > [402e3, 409e3, 21.886e6]).all()
    assert found.percentile(95) == 21.89e6
    assert (found.run.loop, found.run.corrected) == ("closed", "none")
