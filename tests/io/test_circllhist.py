"""OpenHistogram: every bin is read, whatever the text around it."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

VALUES = np.random.default_rng(4).lognormal(-4, 2, 5000)


def serialised(bins: list[tuple[int, int, int]]) -> str:
    """As hist_serialize_b64 of libcircllhist writes bins (value, exponent, count)."""
    data = len(bins).to_bytes(2, "big")
    for value, exponent, count in bins:
        width = max((count.bit_length() + 7) // 8, 1)
        data += bytes([value & 0xFF, exponent & 0xFF, width - 1]) + count.to_bytes(width, "little")
    return base64.b64encode(data).decode()


def bins_of(values: np.ndarray, weight: int = 1) -> list[tuple[int, int, int]]:
    exponent = np.floor(np.log10(values)).astype(int)
    value = np.floor(values / 10.0 ** (exponent - 1) * (1 + 1e-12)).astype(int)
    pairs, counts = np.unique(np.stack((exponent, value), 1), axis=0, return_counts=True)
    return [(int(v), int(e), int(n) * weight) for (e, v), n in zip(pairs, counts, strict=True)]


def test_every_percentile_lies_in_its_bin(read_text):
    (data,) = read_text(serialised(bins_of(VALUES))).values()
    table = data.percentiles(np.arange(0.5, 100, 0.5))
    truth = np.sort(VALUES)[np.ceil(np.round(table.index * 50, 6)).astype(int) - 1] * 1e9
    assert data.count == VALUES.size
    assert (table["bucket_low"] <= truth * (1 + 1e-9)).all()
    assert (truth <= table["bucket_high"] * (1 + 1e-9)).all()
    assert (table["bucket_high"] / table["bucket_low"] <= 1.1 + 1e-9).all()


def test_names_in_text_and_json(read_text):
    one, two = serialised(bins_of(VALUES)), serialised(bins_of(VALUES[:10]))
    assert list(read_text(f"api.latency {one}\ndb {two}\n")) == ["api.latency", "db"]
    text = json.dumps({"first page": {"_type": "h", "_value": one}, "cart": two})
    assert {k: d.count for k, d in read_text(text).items()} == {"first page": 5000, "cart": 10}
    bins = [f"H[{v / 10:.1f}e{e:+03d}]={n}" for v, e, n in bins_of(VALUES)]
    for text in ("\r\n".join(bins), json.dumps({"shop": {"_type": "h", "_value": bins}}, indent=1)):
        (data,) = read_text(text).values()
        (same,) = read_text(one).values()
        assert np.array_equal(data.counts, same.counts)
        assert data.percentile(99) == pytest.approx(same.percentile(99))
