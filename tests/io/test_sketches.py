"""Sketches that other libraries write: the truth lies within each bucket, whichever port wrote them.

DDSketch, Dunning's t-digest, Apache DataSketches and OpenHistogram.
"""

from __future__ import annotations

import base64
import json
import math
import struct

import numpy as np
import pytest

from latencykit.errors import CorruptInputError

PERCENTILES = [1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9]
WORLDS = {
    "lognormal": lambda rng, n: np.exp(rng.normal(-4, 1, n)),
    "Pareto": lambda rng, n: 1e-3 * (1 + rng.pareto(1.5, n)),
    "two modes": lambda rng, n: (
        np.where(rng.random(n) < 0.02, 1, 1e-3) * np.exp(rng.normal(0, 0.1, n))
    ),
    "rounded": lambda rng, n: np.round(np.exp(rng.normal(-4, 1, n)), 3) + 1e-3,
}
VALUES = WORLDS["lognormal"](np.random.default_rng(5), 5000)


def assert_holds(data, values, percentiles=PERCENTILES, near=1e-9):
    """Each percentile of the values (seconds) lies in its bucket; return the buckets' widths."""
    assert data.count == values.size
    table = data.percentiles(percentiles)
    rank = np.ceil(np.round(np.array(table.index) * values.size / 100, 6)).astype(int)
    truth = np.sort(values)[rank - 1] * 1e9
    assert (table["bucket_low"] <= truth * (1 + near)).all()
    assert (truth <= table["bucket_high"] * (1 + near)).all()
    return table["bucket_high"] / table["bucket_low"]


# ---------------------------------------------------------------- OpenHistogram


def serialised(bins: list[tuple[int, int, int]]) -> str:
    """As hist_serialize_b64 of libcircllhist writes bins (value, exponent, count)."""
    data = len(bins).to_bytes(2, "big")
    for value, exponent, count in bins:
        width = max((count.bit_length() + 7) // 8, 1)
        data += bytes([value & 0xFF, exponent & 0xFF, width - 1]) + count.to_bytes(width, "little")
    return base64.b64encode(data).decode()


def bins_of(values: np.ndarray) -> list[tuple[int, int, int]]:
    exponent = np.floor(np.log10(values)).astype(int)
    value = np.floor(values / 10.0 ** (exponent - 1) * (1 + 1e-12)).astype(int)
    pairs, counts = np.unique(np.stack((exponent, value), 1), axis=0, return_counts=True)
    return [(int(v), int(e), int(n)) for (e, v), n in zip(pairs, counts, strict=True)]


def test_every_bin_of_an_openhistogram_is_read_whatever_the_text_around_it(read_text):
    one, two = serialised(bins_of(VALUES)), serialised(bins_of(VALUES[:10]))
    (alone,) = read_text(one).values()
    assert (assert_holds(alone, VALUES, np.arange(0.5, 100, 0.5)) <= 1.1 + 1e-9).all()
    assert list(read_text(f"api.latency {one}\ndb {two}\n")) == ["api.latency", "db"]
    text = json.dumps({"first page": {"_type": "h", "_value": one}, "cart": two})
    assert {k: d.count for k, d in read_text(text).items()} == {"first page": 5000, "cart": 10}
    bins = [f"H[{v / 10:.1f}e{e:+03d}]={n}" for v, e, n in bins_of(VALUES)]
    for text in ("\r\n".join(bins), json.dumps({"shop": {"_type": "h", "_value": bins}}, indent=1)):
        (data,) = read_text(text).values()
        assert np.array_equal(data.counts, alone.counts)
        assert data.percentile(99) == pytest.approx(alone.percentile(99))


# ---------------------------------------------------------------- DDSketch


def message(values: np.ndarray = VALUES, **changes: object) -> str:
    """The message that ``DDSketchProto.to_proto`` makes, as protobuf prints it."""
    sketch = pytest.importorskip("ddsketch").DDSketch(0.01)
    for value in values.tolist():
        sketch.add(value)
    store, mapping = sketch._store, sketch._mapping
    counts = {"contiguousBinCounts": list(store.bins), "contiguousBinIndexOffset": store.offset}
    scale = {"gamma": mapping.gamma, "indexOffset": mapping._offset}
    whole = {"mapping": scale, "positiveValues": counts, "negativeValues": {}, "zeroCount": 0.0}
    return json.dumps(whole | changes)


def in_bins(index: np.ndarray, **mapping: object) -> str:
    number, counts = np.unique(index, return_counts=True)
    bins = {str(int(k)): float(n) for k, n in zip(number, counts, strict=True)}
    return message(VALUES[:1], positiveValues={"binCounts": bins}, mapping=mapping)


def of_java() -> str:
    gamma = 1.01 / 0.99
    return in_bins(np.floor(np.log(VALUES) / math.log(gamma)), gamma=gamma)


@pytest.mark.parametrize("write", [message, of_java])
def test_ddsketch(read_text, write):
    (data,) = read_text(write()).values()
    width = assert_holds(data, VALUES)  # which end belongs to a bin depends on the port
    assert (width <= (1.01 / 0.99) ** 2 * (1 + 1e-6)).all()
    assert data.percentiles(PERCENTILES)["resolved"].all()


# The logarithm that each mapping interpolates, of the significand s in [1, 2), and its least slope.
LOGARITHMS = {
    "LINEAR": (lambda s: s - 1, 1.0),
    "QUADRATIC": (lambda s: (5 - s) * (s - 1) / 3, 3 / 4),
    "CUBIC": (lambda s: ((6 / 35 * (s - 1) - 3 / 5) * (s - 1) + 10 / 7) * (s - 1), 7 / 10),
}


@pytest.mark.parametrize("accuracy", [0.01, 0.02, 0.005, 0.1])
@pytest.mark.parametrize(
    ("form", "of_java", "offset"),
    [("LINEAR", True, 34.6), ("LINEAR", False, 0), ("QUADRATIC", True, 0), ("CUBIC", True, 0),
     ("CUBIC", False, 3)],
)  # fmt: skip
def test_interpolated_mappings_of_either_port_of_ddsketch(
    read_text, form, of_java, offset, accuracy
):
    """Java and Go state gamma of the interpolated scale, and floor."""
    logarithm, slope = LOGARITHMS[form]
    exact = math.log((1 + accuracy) / (1 - accuracy))
    mantissa, exponent = np.frexp(VALUES)
    position = (exponent - 1 + logarithm(2 * mantissa)) * slope / exact
    gamma = 2 ** (exact / slope) if of_java else math.exp(exact)
    index = np.floor(position + offset) if of_java else np.ceil(position) + offset
    text = in_bins(index, gamma=gamma, indexOffset=offset, interpolation=form)
    (data,) = read_text(text).values()
    width = assert_holds(data, VALUES, np.arange(0.05, 100, 0.05))
    assert (width <= (1 + accuracy) / (1 - accuracy) * (1 + 1e-6)).all()


def test_an_empty_ddsketch_says_so(read_text):
    empty = b"\n\x09\x09" + np.array([1.02]).tobytes()
    for tail, said in ((b"", "contains no requests"), (b"\x12\xff\xff\xff\xff\x07", "truncated")):
        with pytest.raises(CorruptInputError, match=said):
            read_text(empty + tail, "sketch.pb")


# ---------------------------------------------------------------- Apache DataSketches

SKETCHES = {
    "KLL, doubles": ("kll_doubles_sketch", 200),
    "KLL, floats": ("kll_floats_sketch", 200),
    "KLL, fine": ("kll_doubles_sketch", 2000),
    "t-digest, doubles": ("tdigest_double", 100),
    "t-digest, floats": ("tdigest_float", 200),
}
sketches = pytest.mark.parametrize("kind", SKETCHES)


def sketch_of(kind: str, values: np.ndarray) -> bytes:
    name, size = SKETCHES[kind]
    sketch = getattr(pytest.importorskip("datasketches"), name)(size)
    for value in values.tolist():
        sketch.update(value)
    return sketch.serialize()


def drawn(world: str, number: int) -> np.ndarray:
    """Values that single precision holds."""
    values = WORLDS[world](np.random.default_rng(number), number)
    return values.astype(np.float32).astype(np.float64)


@pytest.mark.slow
@sketches
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("number", [3, 150, 1000, 9000])
def test_datasketches(read_text, kind, world, number):
    values = drawn(world, number)
    (data,) = read_text(sketch_of(kind, values), "latency.bin").values()
    assert_holds(data, values)
    assert (data.min, data.max) == pytest.approx((values.min() * 1e9, values.max() * 1e9))


@sketches
@pytest.mark.parametrize("number", [1, 2, 40])
def test_few_values_of_datasketches_are_exact(read_text, kind, number):
    values = drawn("lognormal", number)
    (data,) = read_text(sketch_of(kind, values), "latency.bin").values()
    middle = np.sort(values)[(number + 1) // 2 - 1]
    assert data.percentile(50) == pytest.approx(middle * 1e9, rel=1e-6)
    assert data.percentiles([50])["resolved"].all()


@sketches
def test_an_empty_sketch_says_so_and_a_cut_one_is_an_error(read_text, kind):
    with pytest.raises(CorruptInputError, match="contains no requests"):
        read_text(sketch_of(kind, np.zeros(0)), "latency.bin")
    whole = sketch_of(kind, drawn("lognormal", 500))
    for data in (whole[:-1], whole[:-8], whole + bytes(8), whole[:40], whole[:9]):
        with pytest.raises(CorruptInputError, match="intact"):
            read_text(data, "latency.bin")


def test_the_error_of_ranks_is_stated(read_text):
    kll = pytest.importorskip("datasketches").kll_doubles_sketch
    (data,) = read_text(sketch_of("KLL, doubles", drawn("lognormal", 3000))).values()
    error = kll.get_normalized_rank_error(200, False)
    assert any(f"{100 * error:.2g} %" in note for note in data.run.notes)
    assert data.percentile(99.9) == data.max  # nothing better is known


# ---------------------------------------------------------------- Dunning's t-digest


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def digest(values: np.ndarray) -> tuple[float, float, list[float], list[int]]:
    """Minimum, maximum, means and weights, by another implementation."""
    sketch = pytest.importorskip("datasketches").tdigest_double(100)
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


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("world", "number"), [("lognormal", 3000), ("two modes", 3000), ("lognormal", 12)]
)
def test_t_digests(read_text, write, world, number):
    values = WORLDS[world](np.random.default_rng(4), number)
    (data,) = read_text(write(*digest(values)), "latency.bin").values()
    assert_holds(data, values, [5, 25, 50, 75, 90, 99], near=1e-5)  # single precision
    assert data.max == pytest.approx(values.max() * 1e9)


@pytest.mark.parametrize("write", WRITERS[:4])
def test_empty_or_corrupt_t_digests(read_text, write):
    with pytest.raises(CorruptInputError, match="contains no requests"):
        read_text(write(np.inf, -np.inf, [], []), "latency.bin")
    data = write(*digest(drawn("lognormal", 400)))
    with pytest.raises(CorruptInputError, match="corrupt"):
        read_text(base64.b64encode(data[:-3]) + b"\n", "druid.txt")
    good = base64.b64encode(data) + b"\n"
    with pytest.raises(CorruptInputError, match=":2: the sketch is corrupt"):
        read_text(good + good[:50] + "é".encode() + good[50:], "druid.txt")
