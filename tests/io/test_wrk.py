"""wrk and wrk2: what they print, whatever stands around it."""

from __future__ import annotations

import re

import pytest

WRK = """Running 20s test @ http://127.0.0.1:18080/
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   692.81ms    1.51s    6.00s    85.42%
    Req/Sec     3.19k   304.43     3.56k    97.16%
  Latency Distribution
     50%    1.26ms
     75%    1.50ms
     90%    3.40s
     99%    5.74s
  44838 requests in 20.02s, 5.09MB read
Requests/sec:   2239.33
Transfer/sec:    260.23KB
"""
WRK2 = """Running 28s test @ http://127.0.0.1:18080/
  1 threads and 4 connections
  Thread calibration: mean lat.: 1.984ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.15s     1.81s    6.00s    80.58%
    Req/Sec   425.56    689.03     4.00k    95.12%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    2.38ms
 99.000%    5.84s
100.000%    6.00s

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       1.110     0.000000            1         1.00
       2.375     0.500000         3600         2.00
    5857.279     0.990625         7124       106.67
    6000.639     0.999756         7190      4096.00
    6000.639     1.000000         7190          inf
#[Mean    =     1150.052, StdDeviation   =     1808.748]
#[Max     =     5996.544, Total count    =         7190]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  11198 requests in 28.00s, 1.27MB read
Requests/sec:    399.92
Transfer/sec:     46.48KB
"""


@pytest.mark.parametrize("text", [WRK, WRK2])
def test_a_copy_without_leading_blanks(read_text, text):
    flat = re.sub(r"(?m)^ +| +(?= )", "", text)
    (found,), (whole,) = read_text(flat).values(), read_text(text).values()
    assert found == whole
