"""NoSQLBench: logs and summaries of Dropwizard timers, and histostats."""

from __future__ import annotations

from tests.conftest import DATA

HISTOSTATS = (DATA / "formats/nosqlbench-histostats/documented/histostats.csv").read_text()


def test_histostats(read_text):
    found = read_text(HISTOSTATS, "stats.log")
    assert list(found) == ["read"]
    h = found["read"]
    assert (h.count, h.max, h.min) == (400, 2000, 1)
    assert h.percentile(50) <= 31
    assert h.percentile(99.9) == 2000
    assert any("distribution" in note for note in h.run.notes)
