"""ApacheBench's text, rows and percentiles."""

from __future__ import annotations

import pytest

from latencykit.errors import DataNotAvailableError

TEXT = """This is ApacheBench, Version 2.3 <$Revision: 1913912 $>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/

Benchmarking 127.0.0.1 (be patient).....done


Server Software:
Server Hostname:        127.0.0.1
Server Port:            18080

Document Path:          /
Document Length:        3 bytes

Concurrency Level:      4
Time taken for tests:   8.000 seconds
Complete requests:      25605
Failed requests:        0
Total transferred:      3661515 bytes
Requests per second:    3200.62 [#/sec] (mean)
Time per request:       1.250 [ms] (mean)
Time per request:       0.312 [ms] (mean, across all concurrent requests)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.0      0       1
Processing:     1    1   0.2      1      10
Waiting:        1    1   0.2      1       9
Total:          1    1   0.2      1      10

Percentage of the requests served within a certain time (ms)
  50%      1
  66%      1
  90%      1
  99%      2
 100%     10 (longest request)
"""


def test_fewer_tables(read_text):
    shorter = TEXT[: TEXT.index("\nPercentage")]
    found = read_text(shorter)["out.txt"]
    assert (found.count, found.max, found.mean) == (25605, 10e6, 1.25e6)
    with pytest.raises(DataNotAvailableError, match="distribution"):
        found.percentile(99)
    simple = TEXT.replace("mean[+/-sd] median   max", "avg   max").replace(
        "1    1   0.2      1      10\n\nP", "1    1    10\n\nP"
    )
    assert read_text(simple)["out.txt"].max == 10e6
    none = read_text(TEXT[: TEXT.index("\nConnection")])["out.txt"]
    assert (none.mean, none.count) == (1.25e6, 25605)


@pytest.mark.parametrize("end", ["```\n", "</pre>\n<h3>Next</h3>\n", "----------\nNext run\n"])
def test_what_follows_the_table_without_a_blank_line(read_text, end):
    found = read_text(TEXT.rstrip() + "\n" + end)["out.txt"]
    assert found.percentile(99) == read_text(TEXT)["out.txt"].percentile(99)
    inside = TEXT.rstrip().replace("(longest request)", "(last request)</pre>")
    assert read_text(inside + "\n")["out.txt"].max == found.max
