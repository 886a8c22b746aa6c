"""h2load: the log, and the closing text of old and new versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencykit.core.samples import OUTCOMES
from latencykit.errors import CorruptInputError
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "h2load/timing/stdout.txt").read_text()
LOG = "1795220600626684\t200\t1408\n1795220600626697\t503\t1447\n1795220600626690\t-1\t5\n1795220600626706\t304\t0\n"


def test_log(read_text):
    s = read_text(LOG, "log.tsv")["log.tsv"]
    assert s.start[0] == 1_795_220_600_626_684_000
    assert s.duration.tolist() == [1_408_000, 1_447_000, 5000, 0]
    assert [OUTCOMES[code] for code in s.outcome] == ["ok", "error", "error", "ok"]
    assert (s.histogram().count, s.histogram().min, s.histogram().run.failed, s.run.loop) == (
        2,
        0,
        2,
        "closed",
    )


def test_log_that_is_cut_or_corrupt(read_text):
    s = read_text(LOG + "179522060062", "log.tsv")["log.tsv"]
    assert len(s) == 4
    assert any("truncated" in note for note in s.run.notes)
    many = LOG * 20
    with pytest.raises(CorruptInputError, match=r"log\.tsv:77: "):
        read_text(many[: len(LOG) * 19] + "1795220600626684\t200\tx\n" + LOG, "log.tsv")


def test_text(read_text):
    s = read_text(TEXT)["out.txt"]
    assert (s.count, s.min, s.max, s.mean, s.std) == (1200, 1.19e6, 5.46e6, 1.64e6, 558_000)
    assert (s.run.connections, s.run.duration, s.run.achieved, s.run.unfinished) == (4, 6, 200, 4)
    assert any("full distribution" in note for note in s.run.notes)


def test_newer_text_has_percentiles(read_text):
    text = TEXT[: TEXT.index("                     min")] + (
        "                     min         max       median         p95         p99        mean    "
        "     sd        +/- sd\n"
        "request     :     1.19ms      5.46ms      1.60ms      2.10ms      4.00ms      1.64ms     "
        "  558us    95.83%\n"
        "connect     :        8us        48us        30us        40us        47us        32us     "
        "   17us    75.00%\n"
    )
    h = read_text(text)["out.txt"]
    assert (h.count, h.percentile(50), h.percentile(95), h.percentile(99), h.max) == (
        1200,
        1.6e6,
        2.1e6,
        4e6,
        5.46e6,
    )


def test_failures(read_text):
    totals = "1204 started, 1200 done, 1200 succeeded, 0 failed, 0 errored, 0 timeout"
    assert totals in TEXT
    run = read_text(
        TEXT.replace(
            totals, "1204 started, 1200 done, 1190 succeeded, 10 failed, 2 errored, 3 timeout"
        )
    )["out.txt"].run
    assert (run.failed, run.timeouts, run.unfinished) == (7, 3, 4)
    assert (
        lost(
            read_text(
                TEXT.replace(
                    totals, "0 started, 0 done, 0 succeeded, 10 failed, 10 errored, 2 timeout"
                )
            )
        )
        == "8 failed, 2 timed out"
    )


def test_corruption(read_text):
    with pytest.raises(CorruptInputError, match="a latency that cannot be read"):
        read_text(TEXT.replace("5.46ms", "5.4xms"))


def test_several_runs_in_one_file(read_text):
    found = read_text(TEXT + TEXT)
    assert list(found) == ["run 1", "run 2"]
    assert found["run 2"].count == read_text(TEXT)["out.txt"].count


def test_before_version_1_6_no_timeouts_are_counted(read_text):
    text = (
        "starting benchmark...\n"
        "finished in 1.05s, 9523.81 req/s, 1.2MB/s\n"
        "requests: 10000 total, 10000 started, 10000 done, 9990 succeeded, 10 failed, 0 errored\n"
        "                     min         max         mean         sd        +/- sd\n"
        "time for request:      101us     25.30ms      9.87ms      3.40ms    70.10%\n"
    )
    (data,) = read_text(text).values()
    assert (data.max, data.run.failed, data.run.timeouts) == (25.3e6, 10, 0)


def test_runs_without_their_first_lines_or_blanks(read_text):
    bare = TEXT[TEXT.index("finished in") :]
    found = read_text(f"### one\n{bare}\n### two\n{bare.replace('                 ', '')}")
    whole = read_text(TEXT)["out.txt"]
    assert list(found) == ["run 1", "run 2"]
    assert all((one.count, one.stats) == (whole.count, whole.stats) for one in found.values())
