"""DDSketch: the truth lies within each bucket, whichever port wrote the message."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from latencykit.errors import CorruptInputError

ddsketch = pytest.importorskip("ddsketch")
VALUES = np.random.default_rng(5).lognormal(-4, 1, 2000)


def message(**changes: object) -> str:
    """The message that ``DDSketchProto.to_proto`` makes, as protobuf prints it."""
    sketch = ddsketch.DDSketch(0.01)
    for value in VALUES.tolist():
        sketch.add(value)
    store, mapping = sketch._store, sketch._mapping
    return json.dumps(
        {
            "mapping": {"gamma": mapping.gamma, "indexOffset": mapping._offset},
            "positiveValues": {
                "contiguousBinCounts": list(store.bins), "contiguousBinIndexOffset": store.offset,
            },
            "negativeValues": {}, "zeroCount": 0.0,
        } | changes
    )  # fmt: skip


def of_java() -> str:
    gamma = 1.01 / 0.99
    index, counts = np.unique(np.floor(np.log(VALUES) / math.log(gamma)), return_counts=True)
    bins = {str(int(k)): float(n) for k, n in zip(index, counts, strict=True)}
    return message(positiveValues={"binCounts": bins}, mapping={"gamma": gamma})


@pytest.mark.parametrize("write", [message, of_java])
def test_every_percentile_lies_in_its_bucket(read_text, write):
    (data,) = read_text(write()).values()
    assert data.count == VALUES.size
    table = data.percentiles([1, 25, 50, 90, 99, 99.9])
    ranks = np.ceil(np.round(np.array(table.index) / 100 * VALUES.size, 6)).astype(int)
    truth = np.sort(VALUES)[ranks - 1] * 1e9
    assert (table["bucket_low"] <= truth).all()
    assert (truth <= table["bucket_high"]).all()
    assert table["resolved"].all()


# The logarithm that each mapping interpolates, of the significand s in [1, 2), and its least slope.
LOGARITHMS = {
    "LINEAR": (lambda s: s - 1, 1.0),
    "QUADRATIC": (lambda s: (5 - s) * (s - 1) / 3, 3 / 4),
    "CUBIC": (lambda s: ((6 / 35 * (s - 1) - 3 / 5) * (s - 1) + 10 / 7) * (s - 1), 7 / 10),
}


def interpolated(form: str, accuracy: float, *, of_java: bool, offset: float) -> str:
    """What a port writes of VALUES: Java and Go state gamma of the interpolated scale, and floor."""
    logarithm, slope = LOGARITHMS[form]
    exact = math.log((1 + accuracy) / (1 - accuracy))
    mantissa, exponent = np.frexp(VALUES)
    position = (exponent - 1 + logarithm(2 * mantissa)) * slope / exact
    gamma = 2 ** (exact / slope) if of_java else math.exp(exact)
    index = np.floor(position + offset) if of_java else np.ceil(position) + offset
    number, counts = np.unique(index, return_counts=True)
    bins = {str(int(k)): float(n) for k, n in zip(number, counts, strict=True)}
    mapping = {"gamma": gamma, "indexOffset": offset, "interpolation": form}
    return message(positiveValues={"binCounts": bins}, mapping=mapping)


@pytest.mark.parametrize("accuracy", [0.01, 0.02, 0.005, 0.1])
@pytest.mark.parametrize(
    ("form", "of_java", "offset"),
    [("LINEAR", True, 34.6), ("LINEAR", False, 0), ("QUADRATIC", True, 0), ("CUBIC", True, 0),
     ("CUBIC", False, 3)],
)  # fmt: skip
def test_interpolated_mappings_of_either_port(read_text, form, of_java, offset, accuracy):
    (data,) = read_text(interpolated(form, accuracy, of_java=of_java, offset=offset)).values()
    table = data.percentiles(np.arange(0.05, 100, 0.05))
    truth = np.sort(VALUES)[np.ceil(np.round(table.index * VALUES.size / 100, 6)).astype(int) - 1]
    assert (table["bucket_low"] <= truth * 1e9 * (1 + 1e-9)).all()
    assert (truth * 1e9 <= table["bucket_high"] * (1 + 1e-9)).all()
    width = (1 + accuracy) / (1 - accuracy) * (1 + 1e-6)
    assert (table["bucket_high"] / table["bucket_low"] <= width).all()


def test_an_empty_sketch_says_so(read_text):
    empty = b"\n\x09\x09" + np.array([1.02]).tobytes()
    with pytest.raises(CorruptInputError, match="contains no requests"):
        read_text(empty, "sketch.pb")
    with pytest.raises(CorruptInputError, match="truncated"):
        read_text(empty + b"\x12\xff\xff\xff\xff\x07", "sketch.pb")
