"""hey's text and CSV, from boom's spelling to replies that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError
from latencykit.io.source import Confidence, Head
from latencykit.io.tools.hey import sniff_text
from tests.io.conftest import lost

TEXT = """
Summary:
  Total:	20.0021 secs
  Slowest:	6.0048 secs
  Fastest:	0.0013 secs
  Average:	0.0061 secs
  Requests/sec:	279.7700

  Total data:	16788 bytes
  Size/request:	3 bytes

Response time histogram:
  0.001 [1]	|
  0.602 [5591]	|■■■■■■■■■■
  1.202 [0]	|
  1.802 [0]	|
  2.403 [0]	|
  3.003 [0]	|
  3.603 [0]	|
  4.204 [0]	|
  4.804 [0]	|
  5.404 [0]	|
  6.005 [4]	|


Latency distribution:
  10%% in 0.0015 secs
  25%% in 0.0016 secs
  50%% in 0.0017 secs
  75%% in 0.0018 secs
  90%% in 0.0020 secs
  95%% in 0.0022 secs
  99%% in 0.0063 secs

Details (average, fastest, slowest):
  DNS+dialup:	0.0000 secs, 0.0000 secs, 0.0003 secs
  resp read:	0.0000 secs, 0.0000 secs, 0.0045 secs

Status code distribution:
  [200]	5596 responses



""".replace("  \n", "\n")
CSV = """response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset
0.0021,0.0002,0.0000,0.0002,0.0016,0.0001,200,0.0356
0.0027,0.0010,0.0000,0.0001,0.0015,0.0000,200,0.0350
0.0000,0.0001,0.0000,0.0000,0.0015,0.0000,503,0.0360
"""


def test_percentiles_as_printed_and_buckets_between(read_text):
    found = read_text(TEXT)["out.txt"]
    assert (found.count, found.min, found.max, found.mean) == (5596, 1.3e6, 6004.8e6, 6.1e6)
    assert found.percentile([10, 50, 99, 100]).tolist() == [1.5e6, 1.7e6, 6.3e6, 6004.8e6]
    assert found.count_above(601.65e6) == 4
    run = found.run
    assert (run.tool, run.loop, run.corrected, run.duration, run.achieved) == (
        "hey",
        "closed",
        "none",
        20.0021,
        279.77,
    )


def test_the_single_percent_sign_of_older_versions(read_text):
    older = read_text(TEXT.replace("%%", "%").replace(" secs\n", " secs.\n").replace("■", "∎"))[
        "out.txt"
    ]
    assert older.percentile(99) == 6.3e6


def test_failures_are_counted_apart_as_far_as_the_report_goes(read_text):
    failing = TEXT.replace(
        "  [200]	5596 responses\n",
        "  [200]	5500 responses\n  [503]	96 responses\n\nError distribution:\n"
        '  [7]	Get "http://x/": context deadline exceeded (Client.Timeout exceeded while awaiting '
        "headers)\n"
        '  [2]	Get "http://x/": dial tcp: connect: connection refused\n',
    )
    found = read_text(failing)["out.txt"]
    assert (found.count, found.run.failed, found.run.timeouts) == (5500, 98, 7)
    assert (found.censored, found.censored_at, found.percentile(99)) == (7, 20e9, 6.3e6)
    assert any("96 failed requests" in note for note in found.run.notes)
    called = read_text("$ hey -c 4 -q 100 -t 30 http://x/\n" + failing)["out.txt"]
    assert (called.censored_at, called.run.loop, called.run.rate, called.run.connections) == (
        30e9,
        "paced",
        400.0,
        4,
    )


def test_only_errors(read_text):
    head = "Summary:\n  Total:\t0.1 secs\n  Slowest:\t0.0000 secs\n  Fastest:\t0.0000 secs\n  Average:\tNaN secs\n"
    text = head + (
        "  Requests/sec:\t2000.0\n\nResponse time histogram:\n\n\nLatency "
        "distribution:\n\nDetails (average, fastest, slowest):\n"
        "  DNS+dialup:\tNaN secs, 0.0000 secs, 0.0000 secs\n\nStatus code distribution:\n\nError "
        "distribution:\n"
        '  [200]\tGet "http://x/": connect: connection refused\n'
    )
    assert lost(read_text(text)) == "200 failed"


def test_more_than_it_keeps(read_text):
    found = read_text(TEXT.replace("[200]	5596", "[200]	9596"))["out.txt"]
    assert any("the first 5,596 of 9,596" in note for note in found.run.notes)
    assert "mean" not in found.reported_stats


def test_several_reports_and_a_cut_one(read_text):
    assert list(read_text(TEXT + TEXT)) == ["run 1", "run 2"]
    cut = read_text(TEXT[: TEXT.index("  95%%") + 6])["out.txt"]
    assert (cut.percentile(90), cut.count) == (2e6, 5596)
    assert any("truncated" in note for note in cut.run.notes)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("25%% in 0.0016", "25%% in 0.x", 28), ("0.602 [5591]", "0.602 [55#1]", 14)],
)
def test_corruption_is_named(read_text, old, new, line):
    with pytest.raises(CorruptInputError, match=rf"out\.txt:{line}: "):
        read_text(TEXT.replace(old, new))


def test_oha_s_report_is_not_hey_s():
    assert sniff_text(Head("x", TEXT.encode())) == Confidence.CERTAIN
    oha = TEXT.replace("Summary:\n", "Summary:\n  Success rate:\t100.00%\n").replace(
        "Latency dist", "Response time dist"
    )
    assert sniff_text(Head("x", oha.encode())) == Confidence.NO


def test_csv(read_text):
    found = read_text(CSV, "out.csv")["out.csv"]
    assert found.duration.tolist() == [2_100_000, 2_700_000, 0]
    assert found.start.tolist() == [35_600_000, 35_000_000, 36_000_000]
    assert (found.histogram().count, found.histogram().run.failed) == (2, 1)


def test_csv_of_six_columns(read_text):
    old = "\n".join(",".join(line.split(",")[:6]) for line in CSV.splitlines()) + "\n"
    found = read_text(old, "out.csv")["out.csv"]
    assert (len(found), found.start, found.outcome) == (3, None, None)


def test_a_limit_that_the_run_cannot_have_reached_is_not_assumed():
    # hey -t 1; the run took 2 s
    path = Path(__file__).parents[1] / "data" / "formats" / "hey" / "timeouts" / "stdout.txt"
    found = lk.read(path)
    assert (found.run.timeouts, found.censored, found.censored_at) == (4, 4, found.max)


def test_etcds_benchmark_prints_no_statuses(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text(
        "Summary:\n  Total:\t2.0 secs.\n  Slowest:\t0.04 secs.\n  Fastest:\t0.01 secs.\n"
        "  Average:\t0.02 secs.\n  Stddev:\t0.01 secs.\n  Requests/sec:\t50.0\n\n"
        "Response time histogram:\n  0.01 [1]\t|\n  0.04 [99]\t|∎\n\n"
        "Latency distribution:\n  50% in 0.02 secs.\n  99% in 0.03 secs.\n"
    )
    run = lk.read(path).run
    assert run.tool == "etcd benchmark"
    assert not any("truncated" in note for note in run.notes)
