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


def test_zeros_and_negative_values(read_text):
    text = message(zeroCount=7, negativeValues={"binCounts": {"3": 2}})
    (data,) = read_text(text, unit="ms").values()
    assert (data.count, data.min) == (VALUES.size + 7, 0)
    assert "2 negative values left out" in data.run.notes


@pytest.mark.parametrize(
    "changes",
    [
        {"mapping": {"gamma": 0.5}},
        {"mapping": {"gamma": 1.02, "interpolation": "CUBIC"}},
        {"positiveValues": {"binCounts": {"1": 0.5}}},
        {"positiveValues": {"binCounts": {"1": -1}}},
        {"positiveValues": {"binCounts": {"99999999": 1}}},
        {"positiveValues": {}},
    ],
)
def test_what_is_no_sketch_of_latencies_is_an_error(read_text, changes):
    with pytest.raises(CorruptInputError):
        read_text(message(**changes))
