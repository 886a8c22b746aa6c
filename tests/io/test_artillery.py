"""Artillery: what it prints, of both versions, and pieces of its JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "artillery-text/v2/out.txt").read_text()
ONE = """\
All virtual users finished
Summary report @ 16:23:00(-0700) 2020-02-26
  Scenarios launched:  150
  Scenarios completed: 100
  Requests completed:  100
  RPS sent: 24.75
  {}:
    min: 17
    max: 439
    median: 254.5
    p95: 358
    p99: 390.2
  Scenario counts:
    0: 150 (100%)
  Codes:
    200: 90
    404: 10
  Errors:
    ECONNREFUSED: 20
    ETIMEDOUT: 30
"""


def test_the_summary_of_version_2(read_text):
    found = read_text(TEXT)["http.response_time"]
    assert (found.count, found.run.failed, found.run.timeouts) == (190, 4, 6)
    assert (found.min, found.max, found.mean, found.run.aggregate) == (2e6, 85e6, 7.4e6, True)
    assert any("10 answers of status 4xx" in note for note in found.run.notes)
    quoted = "Output:\n" + "".join(f"# {line}\n" for line in TEXT.split("\n"))
    assert read_text(quoted)["http.response_time"] == found


@pytest.mark.parametrize("title", ["Request latency", "Response time (msec)"])
def test_the_summary_of_version_1(read_text, title):
    found = read_text(ONE.format(title) + "\nmemory: 512 MB\n")["latency"]
    assert (found.count, found.run.failed, found.run.timeouts) == (100, 20, 30)
    assert found.percentile([50, 95, 99]).tolist() == [254.5e6, 358e6, 390.2e6]
    assert any("10 answers of status 4xx" in note for note in found.run.notes)
    flat = "\n".join(map(str.strip, ONE.format(title).split("\n")))
    assert read_text(flat)["latency"] == found
