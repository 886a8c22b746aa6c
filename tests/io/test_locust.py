"""Locust: its tables as CSV, JSON and text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError
from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
STATS = (DATA / "locust-csv/throughput/out_stats.csv").read_text()
HISTORY = (DATA / "locust-history/full/out_stats_history.csv").read_text()
TEXT = (DATA / "locust/console/stderr.txt").read_text()


def test_the_aggregate_first(read_text):
    found = read_text(STATS, "x_stats.csv")
    assert list(found) == ["Aggregated", "GET /", "GET /var"]
    whole = found["Aggregated"]
    assert (whole.count, whole.run.failed, whole.run.aggregate, found["GET /"].run.aggregate) == (
        721,
        3,
        True,
        False,
    )
    assert (whole.percentile(50), whole.percentile(98), round(whole.max)) == (5e6, 8e6, 42_591_165)
    assert whole.percentile(99.9) == whole.max, "rounded up to 43 ms, but the maximum is known"
    assert found["GET /var"].percentile(99.9) == found["GET /var"].max, "rounded down to 12 ms"
    assert (whole.run.loop, whole.run.achieved) == ("closed", pytest.approx(80.36, abs=0.01))


def test_failures_beside_it(tmp_path):
    shutil.copy(DATA / "locust-csv/throughput/out_stats.csv", tmp_path)
    (tmp_path / "out_failures.csv").write_text(
        "Method,Name,Error,Occurrences,First Seen,Last Seen\nGET,/var,HTTPError('503'),3,a,b\n"
    )
    run = read_source(Source(tmp_path / "out_stats.csv"), ReadOptions())["Aggregated"].run
    assert "3 requests failed: GET /var HTTPError('503')" in run.notes
    with pytest.raises(CorruptInputError, match=r"without latencies; expected NAME_stats\.csv"):
        read_source(Source(tmp_path / "out_failures.csv"), ReadOptions())


def test_older_headings_and_no_requests(read_text):
    text = (
        '"Type","Name","# requests","# failures","Median response time","Average response '
        'time","Min response time",'
        '"Max response time","Average Content Size","Requests/s","Requests '
        'Failed/s","50%","95%","99%","100%"\n'
        '"GET","/a, b","100","0","5","6","1","40","3","10.0","0.0","5","9","30","40"\n'
        '"GET","/never","0","0","0","0","0","0","0","0.0","0.0","N/A","N/A","N/A","N/A"\n'
        '"None","Aggregated","100","0","5","6","1","40","3","10.0","0.0","5","9","30","40"\n'
    )
    found = read_text(text, "x_stats.csv")
    assert list(found) == ["Aggregated", "GET /a, b"]
    assert (
        found["GET /a, b"].count,
        found["GET /a, b"].percentile(99),
        found["GET /a, b"].run.duration,
    ) == (100, 30e6, 10)


def test_corruption(read_text):
    with pytest.raises(CorruptInputError, match=r"x_stats\.csv:3: "):
        read_text(STATS.replace("\nGET,/var,184", "\nGET,/var,1x4"), "x_stats.csv")
    found = read_text(STATS.rstrip()[:-60], "x_stats.csv")
    assert list(found) == ["GET /", "GET /var"]
    assert any("truncated" in note for note in found["GET /"].run.notes)


def test_only_failures(read_text):
    text = (
        STATS.replace(",540,0,", ",540,540,")
        .replace(",184,3,", ",184,184,")
        .replace(",724,3,", ",724,724,")
    )
    assert lost(read_text(text, "x_stats.csv")) == "724 failed"
    found = read_text(STATS.replace(",540,0,", ",540,540,"), "x_stats.csv")
    assert list(found) == ["Aggregated", "GET /", "GET /var"]
    broken = found["GET /"]
    assert (broken.count, broken.run.failed, broken.percentile(50)) == (0, 540, 5e6)


def test_text_of_two_runs_with_an_entry_that_failed(read_text):
    table = """\
 Name        # reqs      # fails  |     Avg     Min     Max  Median  |   req/s failures/s
-----------------------------------------------------------------------------------------
 GET /a          40     0(0.00%)  |      20       9      90      18  |    4.00    0.00
 PUT /b          10   {}  |      30      20      70      28  |    1.00    1.00
-----------------------------------------------------------------------------------------
 Aggregated      50   {}  |      22       9      90      19  |    5.00    1.00

Response time percentiles (approximated)
 Type     Name        50%    66%    95%   100% # reqs
--------|-----------|------|------|------|------|-----
 PUT      /b           28     31     66     70     10
```
"""
    good, bad = table.format("0(0.00%)", "0(0.00%)"), table.format("10(100.00%)", "10(20.00%)")
    found = read_text(f"# one\n```\n{good}\n# two\n```\n{bad}")
    assert [(one.count, one.run.failed) for one in found.values()] == [
        (50, 0), (40, 0), (10, 0), (40, 10), (40, 0), (0, 10),
    ]  # fmt: skip
    every = table.format("10(100.00%)", "50(100.00%)").replace(
        " 40     0(0.00%)", " 40    40(100.00%)"
    )
    assert lost(read_text(every)) == "50 failed"
    assert [one.count for one in read_text(f"{every}\n{good}").values()] == [0, 50, 40, 10]
    broken = found["run 2 PUT /b"]
    assert broken.percentile([50, 95]).tolist() == [28e6, 70e6]


def test_a_history_of_entries_gives_totals_only(read_text):
    found = read_text(HISTORY, "x_stats_history.csv")
    whole = found["Aggregated"]
    assert (whole.count, whole.percentile(50), round(whole.max), whole.run.connections) == (
        721,
        5e6,
        42_591_165,
        4,
    )
    assert (whole.run.start, whole.run.duration) == (1_795_220_306, 9)
    assert any("last 10 s" in note and "distribution" in note for note in whole.run.notes)


def test_a_history_of_the_aggregate_has_percentiles_of_the_run(read_text):
    lines = [line for line in HISTORY.splitlines() if "GET" not in line]
    h = read_text("\n".join(lines) + "\n", "x_stats_history.csv")["Aggregated"]
    assert (h.count, h.percentile(98), h.run.aggregate) == (721, 7e6, False)


def entry(name, times, failures=0):
    total = sum(times.values())
    return {
        "name": name, "method": "GET", "start_time": 100.0, "last_request_timestamp": 110.0,
        "num_requests": total,
        "num_none_requests": 0, "num_failures": failures,
        "total_response_time": sum(float(k) * n for k, n in times.items()),
        "max_response_time": max(map(float, times)), "min_response_time": min(map(float, times)),
        "response_times": times,
    }  # fmt: skip


def test_json_holds_counts(read_text):
    text = "[2026] INFO/locust.main: noise\n" + json.dumps(
        [entry("/a", {"5": 90, "1200": 10}), entry("/b", {"7": 100}, 2)]
    )
    found = read_text(text)
    assert list(found) == ["Aggregated", "GET /a", "GET /b"]
    a, whole = found["GET /a"], found["Aggregated"]
    assert (a.count, a.percentile(90), a.percentile(91), a.max, a.mean) == (
        100,
        5e6,
        1.2e9,
        1.2e9,
        124.5e6,
    )
    assert (
        whole.count,
        whole.percentile(50),
        whole.mean,
        whole.run.failed,
        whole.run.achieved,
    ) == (200, 7e6, 65.75e6, 2, 20)
    assert (a.run.start, a.run.duration, a.run.achieved) == (100, 10, 10)


def test_the_console(read_text):
    h = read_text("$ locust\n" + TEXT + "\x1b[0m")["Aggregated"]
    assert (h.count, h.run.failed, h.percentile(95), h.max, h.mean) == (769, 3, 7e6, 42e6, 5e6)
    text = TEXT.replace(" Aggregated  ", "GET /x      ")
    assert list(read_text(text)) == ["GET /x"]


def test_the_tables_of_version_1_below_its_log(read_text):
    text = """\
[2021-03-06 23:52:18,485] host/INFO/locust.main: Shutting down (exit code 0), bye.
 Name                    # reqs      # fails  |     Avg     Min     Max  Median  |   req/s failures/s
-----------------------------------------------------------------------------------------------------
 GET /                       41     0(0.00%)  |    3394     849   11247    2900  |    0.69    0.00
-----------------------------------------------------------------------------------------------------
 Aggregated                  41     0(0.00%)  |    3394     849   11247    2900  |    0.69    0.00

Response time percentiles (approximated)
 Type     Name                  50%    66%    90%    99%   100% # reqs
--------|----------------|---------|------|------|------|------|------|
 GET      /                    2900   3300   6600  11000  11000     41
--------|----------------|---------|------|------|------|------|------|
 None     Aggregated           2900   3300   6600  11000  11000     41
"""
    found = read_text(text)
    assert list(found) == ["Aggregated", "GET /"]
    for data in found.values():
        assert (data.count, data.max) == (41, 11247e6)
        assert data.percentile([50, 90]).tolist() == [2900e6, 6600e6]


def test_the_separate_percentiles_of_versions_before_1_0(read_text):
    text = (
        '"Name","# requests","50%","66%","75%","80%","90%","95%","98%","99%","100%"\n'
        '"GET /",100,12,14,16,18,25,40,70,100,120\n"GET /never",0,"N/A","N/A","N/A","N/A","N/A",'
        '"N/A","N/A","N/A","N/A"\n"Total",100,12,14,16,18,25,40,70,100,120\n'
    )
    series = read_text(text, "run_distribution.csv")
    assert (series["GET /"].count, series["GET /"].max) == (100, 120e6)
    assert series["GET /"].percentile(95) == 40e6
    assert series["Total"].run.aggregate
