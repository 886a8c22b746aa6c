"""A corrupt payload among others: an empty interval where it is let pass, else its line is named."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit import read
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import interval_series
from latencykit.errors import CorruptInputError
from latencykit.hdr.payload import Payload, Payloads, open_payload
from latencykit.hdr.write import encode
from latencykit.io.hlog import HlogWriter, blocks_of_payloads


def test_a_corrupt_row_counts_as_empty_where_it_is_let_pass():
    good = open_payload(encode(HdrBuckets(2), np.array([3, 9]), np.array([1, 2])))
    opened = Payloads.of([good, Payload(good.layout, b"\x80"), good])
    refused: list[int] = []
    (block,) = blocks_of_payloads(
        np.array([4, 5, 6]), opened, lambda row, reason: refused.append(row)
    )
    assert refused == [5]
    assert block.rows.tolist() == [4, 5, 6]
    assert block.folded()[0].tolist() == [3, 0, 3]


def test_a_corrupt_line_is_named_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    path = tmp_path / "a.hlog"
    with path.open("wb") as stream:
        writer = HlogWriter(stream, 1e9)
        writer.header()
        for k in range(30):
            writer.interval(k, 1, HdrBuckets(3), np.array([k, 90]), np.array([1, 2]))
    lines = path.read_bytes().split(b"\n")
    lines[-5] = lines[-5][:-9] + b"AAAA" + lines[-5][-5:]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(CorruptInputError, match=rf"a\.hlog:{len(lines) - 4}: "):
        interval_series(read(path), [50])
