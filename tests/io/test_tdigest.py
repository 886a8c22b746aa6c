"""Dunning's t-digest in four encodings and as JSON: the truth lies within each bucket."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np
import pytest

from latencykit.errors import CorruptInputError

datasketches = pytest.importorskip("datasketches")


def varint(number: int) -> bytes:
    return (varint(number >> 7) and bytes([number & 127 | 128]) + varint(number >> 7)) if (
        number > 127
    ) else bytes([number])  # fmt: skip


def digest(values: np.ndarray) -> tuple[float, float, list[float], list[int]]:
    """Minimum, maximum, means and weights, by another implementation."""
    sketch = datasketches.tdigest_double(100)
    for value in values.tolist():
        sketch.update(value)
    sketch.compress()
    data = sketch.serialize()
    number = int.from_bytes(data[8:12], "little")
    kept = np.frombuffer(data, [("mean", "<f8"), ("weight", "<u8")], number, 32)
    return values.min(), values.max(), kept["mean"].tolist(), kept["weight"].tolist()


def merging(least, most, means, weights):
    head = struct.pack(">idddi", 1, least, most, 100.0, len(means))
    pairs = zip(weights, means, strict=True)
    return head + b"".join(struct.pack(">dd", *pair) for pair in pairs)


def merging_small(least, most, means, weights):
    head = struct.pack(">iddfhhh", 2, least, most, 100.0, 210, 500, len(means))
    pairs = zip(weights, means, strict=True)
    return head + b"".join(struct.pack(">ff", *pair) for pair in pairs)


def avl(least, most, means, weights):
    n = len(means)
    head = struct.pack(">idddi", 1, least, most, 100.0, n)
    return head + struct.pack(f">{n}d", *means) + struct.pack(f">{n}i", *weights)


def avl_small(least, most, means, weights):
    n = len(means)
    head = struct.pack(">idddi", 2, least, most, 100.0, n)
    steps = np.diff(means, prepend=0.0)
    return head + struct.pack(f">{n}f", *steps) + b"".join(map(varint, weights))


def elastic(least, most, means, weights):
    field = {"min": least, "max": most, "sum": 1.0, "centroids": means, "counts": weights}
    return json.dumps({"hits": {"hits": [{"_source": {"latency": field}}]}}).encode()


def rust(least, most, means, weights):
    listed = [{"mean": m, "weight": float(w)} for m, w in zip(means, weights, strict=True)]
    return json.dumps({"centroids": listed, "max_size": 100, "max": most, "min": least}).encode()


def python(least, most, means, weights):
    listed = [{"c": float(w), "m": m} for m, w in zip(means, weights, strict=True)]
    return json.dumps({"n": sum(weights), "delta": 0.01, "K": 25, "centroids": listed}).encode()


WRITERS = (merging, merging_small, avl, avl_small, elastic, rust, python)
WORLDS = {
    "lognormal": lambda rng: np.exp(rng.normal(-4, 1, 3000)),
    "two modes": lambda rng: (
        np.where(rng.random(3000) < 0.02, 1, 1e-3) * np.exp(rng.normal(0, 0.1, 3000))
    ),
    "few": lambda rng: np.exp(rng.normal(-4, 1, 12)),
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("world", WORLDS)
def test_every_percentile_lies_in_its_bucket(read_text, write, world):
    values = WORLDS[world](np.random.default_rng(4))
    (data,) = read_text(write(*digest(values)), "latency.bin").values()
    assert data.count == values.size
    assert data.max == pytest.approx(values.max() * 1e9)
    table = data.percentiles([5, 25, 50, 75, 90, 99])
    rank = np.ceil(np.round(table.index * values.size / 100, 6)).astype(int)
    truth = np.sort(values)[rank - 1] * 1e9
    near = 1e-5  # single precision
    assert (table["bucket_low"] <= truth * (1 + near)).all()
    assert (truth <= table["bucket_high"] * (1 + near)).all()


@pytest.mark.parametrize("write", WRITERS[:4])
def test_empty_or_corrupt(read_text, write):
    with pytest.raises(CorruptInputError, match="contains no requests"):
        read_text(write(np.inf, -np.inf, [], []), "latency.bin")
    data = bytearray(write(*digest(np.random.default_rng(2).lognormal(-4, 1, 400))))
    line = base64.b64encode(bytes(data[:-3])) + b"\n"
    with pytest.raises(CorruptInputError, match="corrupt"):
        read_text(line, "druid.txt")
    good = base64.b64encode(bytes(data)) + b"\n"
    with pytest.raises(CorruptInputError, match=":2: the sketch is corrupt"):
        read_text(good + good[:50] + "é".encode() + good[50:], "druid.txt")
