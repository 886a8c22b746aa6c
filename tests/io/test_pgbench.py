"""pgbench: schedules, skipped and failed transactions, samples, intervals."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

PACED = "0 1 1063 0 1795220061 540640 203\n1 1 skipped 0 1795220061 551460 6300\n2 1 892 0 1795220061 562572 81\n"
PLAIN = (
    "0 1 1063 0 1795220061 540640\n0 2 failed 0 1795220061 551460\n0 3 892 0 1795220061 562572\n"
)


def test_the_time_counts_from_the_schedule(read_text):
    found = read_text(PACED)["out.txt"]
    end = 1795220061_540640_000
    assert found.intended[0] == end - 1_063_000
    assert found.start[0] == end - 1_063_000 + 203_000
    assert found.histogram().max == 1_063_000
    assert found.measured("service").histogram().max == 860_000
    assert found.histogram().run.dropped == 1
    assert (found.run.loop, found.run.corrected) == ("open", "schedule")


def test_failures_without_a_schedule(read_text):
    found = read_text(PLAIN)["out.txt"]
    h = found.histogram()
    assert (h.count, h.run.failed, h.max) == (2, 1, 1_063_000)
    assert found.intended is None
    assert found.start[0] == 1795220061_540640_000 - 1_063_000


def test_a_seventh_column_of_retries_is_not_lag(read_text):
    text = "".join(f"0 {k} 1000 0 1795220061 {540640 + k} {int(k == 3)}\n" for k in range(1, 9))
    assert read_text(text)["out.txt"].intended is None


def test_several_scripts(read_text):
    found = read_text(PLAIN.replace("0 3 892 0", "0 3 892 1"))
    assert list(found) == ["all", "script 0", "script 1"]


def test_gaps_in_the_numbers_mean_a_sample(read_text):
    text = "".join(f"0 {5 * k} 1000 0 1795220061 {540640 + k}\n" for k in range(1, 50))
    assert any("about 20%" in note for note in read_text(text)["out.txt"].run.notes)


def test_corruption_and_a_cut_end(read_text):
    good = "0 1 1063 0 1795220061 540640\n"
    with pytest.raises(CorruptInputError, match=r"out\.txt:201: "):
        read_text(good * 200 + "0 4 fast 0 1795220061 562572\n" + good)
    found = read_text(good * 300 + "0 2 89")["out.txt"]
    assert len(found) == 300
    assert any("truncated" in note for note in found.run.notes)


def test_intervals(read_text):
    text = (
        "1650260552 5178 26171317 177284491527 1136 44462 2647617 7321113867 0 9866 64 7564 28340 "
        "4148 2\n" * 2
    )
    found = read_text(text)["out.txt"]
    assert (found.count, found.min, found.max) == (2 * 5178, 1_136_000, 44_462_000)
    assert found.mean == pytest.approx(26171317 / 5178 * 1000, abs=1e-3)
    assert (found.run.dropped, found.run.failed, found.run.loop) == (128, 8300, "open")


def test_report(read_text):
    text = (
        "pgbench (15.18 (Debian 15.18-0+deb12u1))\ntransaction type: <builtin: select "
        "only>\nnumber of clients: 4\n"
        "number of transactions actually processed: 1561/1561\nnumber of transactions skipped: 7 "
        "(0.4%)\n"
        "latency average = 0.418 ms\nlatency stddev = 1.116 ms\nrate limit schedule lag: avg "
        "0.144 (max 28.710) ms\ntps = 195.4\n"
    )
    found = read_text(text)["out.txt"]
    assert (found.mean, found.std, found.count, found.run.dropped, found.run.loop) == (
        418_000,
        1_116_000,
        1561,
        7,
        "open",
    )
