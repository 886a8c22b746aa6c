"""hey's text and CSV, from boom's spelling to replies that failed."""

from __future__ import annotations

from pathlib import Path

import latencykit as lk
from latencykit.io.source import Confidence, Head
from latencykit.io.tools.hey import sniff_text
from tests.io.test_cases import text_of

TEXT = text_of("hey", "percentiles as printed and buckets between")


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
