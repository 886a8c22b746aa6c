"""oha's JSON, CSV and text, and what tells that its latency correction was on."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

TEXT = """Summary:
  Success rate:	100.00%
  Total:	10004.1000 ms
  Slowest:	6.0000 ms
  Fastest:	1.0000 ms
  Average:	1.5000 ms
  Requests/sec:	9.9959

  Total data:	300 B
  Size/request:	3 B
  Size/sec:	29 B

Response time histogram:
  1.000 ms [1]  |
  1.500 ms [90] |■■■■■■■■■■
  2.000 ms [1]  |
  2.500 ms [1]  |
  3.000 ms [1]  |
  3.500 ms [1]  |
  4.000 ms [1]  |
  4.500 ms [1]  |
  5.000 ms [1]  |
  5.500 ms [1]  |
  6.000 ms [1]  |

Response time distribution:
  10.00% in 1.0500 ms
  50.00% in 1.2000 ms
  99.00% in 5.5000 ms
  99.90% in NaN ms


Details (average, fastest, slowest):
  DNS+dialup:	0.1000 ms, 0.1000 ms, 0.1000 ms

Status code distribution:
  [200] 100 responses

Error distribution:
  [4] aborted due to deadline
"""


def test_text(read_text):
    found = read_text("\x1b[1m" + TEXT.replace("Summary:", "Summary:\x1b[0m"))["out.txt"]
    assert (
        found.count,
        found.max,
        found.percentile(50),
        found.count_above(1.5e6),
        found.run.unfinished,
    ) == (
        100,
        6e6,
        1.2e6,
        9,
        4,
    )
    assert (found.run.format, found.run.duration, found.run.corrected) == (
        "oha",
        10.0041,
        "unknown",
    )
    assert (
        read_text("$ oha -q 9 --latency-correction http://x\n" + TEXT)["out.txt"].run.corrected
        == "schedule"
    )
    seconds = TEXT.replace(" ms", " secs").replace(".00% in", "% in")
    assert read_text(seconds)["out.txt"].percentile(99) == 5.5e9
    tens = TEXT.replace(" ms", " 10 sec")
    assert read_text(tens)["out.txt"].percentile(99) == 55e9
    with pytest.raises(CorruptInputError, match=r"out\.txt:28: "):
        read_text(TEXT.replace("50.00% in 1.2000", "50.00% in 1.?000"))
