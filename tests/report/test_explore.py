"""The linked view in a notebook: Vega-Lite v5 that works its numbers out by itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.buckets import HdrBuckets
from latencykit.errors import DataNotAvailableError
from latencykit.views.explore import _ENTRIES, _MIME

FAMILIAR = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "max": 100}


def texts(node):
    """The labels that were drawn: text → the value behind it."""
    if isinstance(node, dict):
        found = (
            {node["text"].rsplit(" ", 2)[0]: float(node["description"])}
            if {"text", "description"} <= set(node)
            else {}
        )
        for part in node.values():
            found |= texts(part)
        return found
    return (
        {name: value for part in node for name, value in texts(part).items()}
        if isinstance(node, list)
        else {}
    )


def drawn(explorer, span=None):
    convert = pytest.importorskip("vl_convert", reason="vl-convert-python works specifications out")
    spec = json.loads(json.dumps(explorer.spec))
    if span is not None:
        next(one for one in spec["params"] if one["name"] == "span")["value"] = {"x": span}
    return texts(convert.vegalite_to_scenegraph(spec, vl_version="5.20"))


def test_a_span_of_the_timeline_gives_the_numbers_of_that_span(raw):
    explorer = lk.explore(raw)
    for span in (None, [11.9, 12.6], [0, 6.5]):
        part = raw if span is None else raw.between(*span)
        histogram = part.histogram()
        values = np.minimum(
            histogram.rebucket(HdrBuckets(2)).percentile(list(FAMILIAR.values())), histogram.max
        )
        assert drawn(explorer, span) == dict(zip(FAMILIAR, values.tolist(), strict=True))


def test_a_notebook_is_handed_vega_lite_5_and_text(raw):
    bundle = lk.explore({"raw": raw, "b": raw})._repr_mimebundle_()
    assert set(bundle) == {_MIME, "text/plain"}
    assert "/v5." in bundle[_MIME]["$schema"]
    assert "url" not in json.dumps(bundle[_MIME]["vconcat"])
    assert {one["name"] for one in bundle[_MIME]["params"]} == {"span", "picked"}
    json.dumps(bundle, allow_nan=False)


def test_large_logs_take_fewer_slots_and_digits():
    rng = np.random.default_rng(1)
    samples = lk.Samples(
        start=np.arange(400_000) * 10**6, duration=rng.lognormal(12, 3, 400_000).astype(np.int64)
    )
    spec = lk.explore(samples).spec
    counts = spec["vconcat"][1]["data"]["values"]
    assert sum(len(row["value"]) for row in counts) <= _ENTRIES
    assert sum(sum(row["count"]) for row in counts) == 400_000
    assert max(row["top"] for row in counts) == samples.histogram().max


def test_a_source_without_time_says_so(raw):
    with pytest.raises(DataNotAvailableError, match="has no times"):
        lk.explore(raw.histogram())
