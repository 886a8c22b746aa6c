"""Tables of percentiles: Flotilla's, and others with bars."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError, DataNotAvailableError
from tests.io.conftest import lost

FLOTILLA = """Running benchmark
+----------+----------------+-------+-----+-----+-----+------+------+---------+------+---------+
| CONSUMER |      NODE      | ERROR | MIN | Q1  | Q2  |  Q3  | MAX  |  MEAN   | IQR  | STD DEV |
+----------+----------------+-------+-----+-----+-----+------+------+---------+------+---------+
| 1        | localhost:9000 | false | 0   | 415 | 873 | 1319 | 1795 | 877.406 | 904  | 519.711 |
| 2        | 10.0.0.2:9000  | true  | 0   | 0   | 0   | 0    | 0    | 0.000   | 0    | 0.000   |
+----------+----------------+-------+-----+-----+-----+------+------+---------+------+---------+
"""


@pytest.mark.parametrize("text", [FLOTILLA, FLOTILLA.title(), FLOTILLA.replace("\n", "\r\n")])
def test_quartiles_of_each_consumer(read_text, text):
    found = read_text(text)
    assert [name.lower() for name in found] == ["consumer 1 (localhost:9000)"]
    s = next(iter(found.values()))
    assert (s.percentile(25), s.percentile(50), s.percentile(75)) == (415e6, 873e6, 1319e6)
    assert (s.min, s.max, s.mean, s.std) == (0, 1795e6, 877.406e6, 519.711e6)
    assert any("1 further consumer failed" in note for note in s.run.notes)
    with pytest.raises(DataNotAvailableError, match="full distribution"):
        s.percentile(99)


def test_only_failed_consumers(read_text):
    with pytest.raises(CorruptInputError, match="contains no latencies"):
        read_text(FLOTILLA.replace("false", "true "))


def test_a_table_in_markdown(read_text):
    found = read_text(
        "text\n\n| op | n | p50 (ms) | p99.9 (ms) | max (ms) |\n|---|---|---|---|---|\n| get | "
        "1,000 | 0.5 | 7 | 9 |\n"
    )
    assert (found["get"].count, found["get"].percentile(99.9), found["get"].max) == (1000, 7e6, 9e6)


def test_units_in_the_cells(read_text):
    found = read_text(
        "│ name │ Median │ 99% │ Max │\n│ a │ 120µs │ 1.5ms │ 2s │\n│ a │ 130µs │ - │ 2s │\n"
    )
    assert list(found) == ["a", "a (2)"]
    assert (found["a"].percentile(50), found["a"].percentile(99), found["a"].max) == (
        120e3,
        1.5e6,
        2e9,
    )


def test_no_unit_is_asked_for(read_text):
    text = "| name | p50 | p99 |\n|---|---|---|\n| a | 1 | 2 |\n"
    with pytest.raises(CorruptInputError, match=r"out\.txt:1: .*--unit"):
        read_text(text)
    assert read_text(text, unit="us")["a"].percentile(99) == 2000


def test_corruption_is_named(read_text):
    with pytest.raises(CorruptInputError, match=r"out\.txt:5: 'x73'"):
        read_text(FLOTILLA.replace("873", "x73"))


def test_p999_in_a_heading_is_the_percentile_99_9(read_text):
    text = "| op | p50 (ms) | p999 (ms) |\n|---|---|---|\n| get | 1.5 | 20 |\n| put | 2 | 30 |\n"
    found = read_text(text, "table.md")
    assert {name: data.reported_percentiles for name, data in found.items()} == {
        "get": {50.0: 1.5e6, 99.9: 20e6}, "put": {50.0: 2e6, 99.9: 30e6},
    }  # fmt: skip


AGGREGATE = """\
Label,# Samples,Average,Median,90% Line,95% Line,99% Line,Min,Maximum,Error %,Throughput
"GET /a, b",1200,45,40,80,95,150,3,310,0.250%,20.01
TOTAL,1500,65,50,160,175,210,3,910,0.467%,25.01
"""


def test_a_table_as_csv(read_text):
    found = read_text(AGGREGATE, "aggregate.csv")
    assert list(found) == ["GET /a, b", "TOTAL"]
    total = found["TOTAL"]
    assert (total.requests, total.mean, total.min, total.max) == (1500, 65e6, 3e6, 910e6)
    assert total.percentile([50, 90, 99]).tolist() == [50e6, 160e6, 210e6]
    assert (total.run.tool, total.run.unit_from) == ("JMeter", "format")
    other = read_text("op;p50 (us);p99 (us);rps\nget;1,500;9;120\nput;2;3;40\n", "x.csv")
    assert (list(other), other["put"].percentile(99)) == (["get", "put"], 3000)


def test_rows_by_time_are_refused(read_text):
    with pytest.raises(CorruptInputError, match="the rows are statistics"):
        read_text("Time,p50,p99\n2026-05-01 10:00:00,12.3 ms,45.6 ms\n", "x.csv")


def test_a_table_without_bars_at_its_edges_keeps_its_first_column(read_text):
    found = read_text("op | p50 (ms) | p90 (ms) | p99 (ms)\nget | 1 | 2 | 3\nput | 4 | 5 | 6\n")
    assert list(found) == ["get", "put"]


def test_a_row_per_statistic_is_turned(read_text):
    found = read_text(
        "| Metric | Old | New |\n|---|---|---|\n| Throughput | 9 req/s | 12 req/s |\n"
        "| Average latency | 3 ms | 2 ms |\n| p50 | 2 ms | 1 ms |\n| P99 | 1.2 s | 9 ms |\n"
    )
    assert {name: (one.percentile(99), one.mean) for name, one in found.items()} == {
        "Old": (1.2e9, 3e6), "New": (9e6, 2e6),
    }  # fmt: skip


def test_headings_may_name_several_latencies(read_text):
    found = read_text(
        "| size | n | TTFT p50 (ms) | TTFT p99 (ms) | E2E p50 (s) | E2E Max (s) | speed |\n"
        "|---|---|---|---|---|---|---|\n| 16 | 80 | 5 | 9 | 1 | 2 | 3.1x |\n| 32 | 90 | 6 | 8 | 3 | 4 | 2x |\n"
    )
    assert list(found) == ["16 TTFT", "16 E2E", "32 TTFT", "32 E2E"]
    assert (found["32 E2E"].percentile(50), found["32 E2E"].max, found["32 E2E"].count) == (
        3e9,
        4e9,
        90,
    )


@pytest.mark.parametrize(
    "text",
    [
        "Metric,avg,max,p99,p50\nTTFT (us),30,90,80,20\nOutput Length,261,298,296,257\n",
        "  LLM\n┏━━━━┳━━━━┓\n┃ Statistic ┃ avg ┃ max ┃ p99 ┃ p50 ┃\n┡━━━━╇━━━━┩\n│ TTFT (us) │ 30 │ 90 │ 80 │ 20 │\n│ tokens │ 331 │ 414 │ 412 │ 330 │\n└────┴────┘\n",
    ],
)
def test_the_unit_may_stand_in_the_rows_name(read_text, text):
    ((name, found),) = read_text(text).items()
    assert (name, found.percentile(99), found.mean) == ("TTFT", 80e3, 30e3)


def test_errors_beside_the_count_are_failures(read_text):
    text = "| op | requests | errors | p50 (ms) | p90 (ms) | p99 (ms) |\n|-|-|-|-|-|-|\n| a | 1,000 | 3 | 1 | 2 | 3 |\n"
    found = read_text(text + "| b | 50 | 50 | 1 | 2 | 3 |\n")
    assert (found["a"].requests, found["a"].run.failed) == (997, 3)
    assert (found["b"].count, found["b"].run.failed, found["b"].reported_percentiles) == (0, 50, {})
    assert (
        lost(read_text(text.partition("| a")[0] + "| b | 50 | 50 | 1 | 2 | 3 |\n")) == "50 failed"
    )
