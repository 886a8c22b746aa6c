"""h2load: the log, and the closing text of old and new versions."""

from __future__ import annotations

from latencykit.core.samples import OUTCOMES

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
