"""hey's text and CSV, from boom's spelling to replies that failed."""

from __future__ import annotations

from pathlib import Path

import latencykit as lk
from latencykit.io.source import Confidence, Head
from latencykit.io.tools.hey import sniff_text

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


def test_oha_s_report_is_not_hey_s():
    assert sniff_text(Head("x", TEXT.encode())) == Confidence.CERTAIN
    oha = TEXT.replace("Summary:\n", "Summary:\n  Success rate:\t100.00%\n").replace(
        "Latency dist", "Response time dist"
    )
    assert sniff_text(Head("x", oha.encode())) == Confidence.NO


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
