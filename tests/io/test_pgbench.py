"""pgbench: schedules, skipped and failed transactions, samples, intervals."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError


def test_corruption_and_a_cut_end(read_text):
    good = "0 1 1063 0 1795220061 540640\n"
    with pytest.raises(CorruptInputError, match=r"out\.txt:201: "):
        read_text(good * 200 + "0 4 fast 0 1795220061 562572\n" + good)
    found = read_text(good * 300 + "0 2 89")["out.txt"]
    assert len(found) == 300
    assert any("truncated" in note for note in found.run.notes)
