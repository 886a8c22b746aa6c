"""bpftrace and bcc: edges, powers, units, several reports."""

from __future__ import annotations

from tests.conftest import DATA

MAP = (DATA / "formats/bpftrace/two-maps/bpftrace.txt").read_text()


def test_powers_of_1024_and_an_open_end(read_text):
    found = read_text(MAP)
    h = found["@usecs"]
    assert h.buckets.low(h.index).tolist() == [0, 1_000, 512_000, 1_024_000]
    assert h.buckets.high(h.index).tolist() == [999, 1_999, 1_023_999, 2_047_999]
    assert (h.count, h.censored, h.censored_at) == (443, 3, 2_048_000)
    other = found["@ns[dd, 12]"]
    assert (other.count, other.max, other.run.unit) == (20, 99, "ns")
    assert any("negative" in note for note in other.run.notes)
