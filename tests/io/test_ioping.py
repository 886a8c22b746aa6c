"""ioping: marks, quiet output, raw statistics."""

from __future__ import annotations

import pytest

from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError

TEXT = """4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=1 time=245.6 us (warmup)
4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=2 time=276.5 us
4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=3 time=3.07 ms (slow)

--- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---
2 requests completed in 3.35 ms, 8 KiB read, 597 iops, 2.3 MiB/s
generated 3 requests in 2.90 s, 12 KiB, 1 iops, 4.1 KiB/s
min/avg/max/mdev = 276.5 us / 1.67 ms / 3.07 ms / 1.4 ms
"""
RAW = "99 10970974 9024 36961688 40267 110818 358610 29756 100 12516420\n"


def test_warm_up_is_left_out_and_slow_ones_are_kept(read_text):
    found = read_text(TEXT)["out.txt"]
    assert found.duration.tolist() == [276_500, 3_070_000]
    assert found.run.loop == "paced"


def test_quiet(read_text):
    found = read_text(TEXT[TEXT.index("---") :])["out.txt"]
    assert isinstance(found, Summary)
    assert (found.count, found.max, found.min) == (2, 3.07e6, 276_500)


def test_raw_statistics_of_two_periods(read_text):
    found = read_text(RAW + RAW.replace("358610", "400000"))["out.txt"]
    assert (found.count, found.min, found.max) == (198, 40267, 400000)
    assert found.mean == pytest.approx(10970974 / 99)


def test_json_stamps_are_ends(read_text):
    record = (
        '[{"timestamp": 100.5, "target": {}, "io": {"request": 1, "operation": "read", "size": '
        "4096, "
        '"time": 500000, "ignored": false}}]'
    )
    found = read_text(record)["out.txt"]
    assert found.start.tolist() == [100_499_500_000]
    with pytest.raises(CorruptInputError, match=r"io\.time"):
        read_text(record.replace("500000", '"fast"'))
