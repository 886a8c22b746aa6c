"""Encoded histograms in text and JSON: each is found whole, named, and has its unit."""

from __future__ import annotations

import base64
import json
import textwrap

import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError

hdrh = pytest.importorskip("hdrh.histogram")


def encoded(*values: int) -> str:
    histogram = hdrh.HdrHistogram(1, 3_600_000_000, 3)
    for value in values:
        histogram.record_value(value)
    return histogram.encode().decode()


ONE, TWO = encoded(1000, 2000, 3000), encoded(*range(5000, 9000, 7))
WRAPPED = "\n".join(textwrap.wrap(TWO, 76))
EMPTY = encoded()
SIZES = {ONE[-12:]: 3, TWO[60:72]: 572}  # parts that no line break cuts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (ONE, ["out.txt"]),
        (f"{ONE}\n{TWO}\n", ["histogram 1", "histogram 2"]),
        (ONE + TWO, ["histogram 1", "histogram 2"]),
        (f"{WRAPPED}\n\n{ONE}\nEND\n", ["histogram 1", "histogram 2"]),
        (f"12:00:01,5 INFO read: {ONE}\n12:00:02 INFO write={TWO};\n", ["read", "write"]),
        (json.dumps({"a": {"hist": ONE}, "b": [{"hist": TWO}]}), ["a.hist", "b.hist"]),
        (json.dumps([{"name": "get", "h": ONE}, {"name": "put", "h": TWO}]), ["get.h", "put.h"]),
        (json.dumps([ONE, TWO]), ["histogram 1", "histogram 2"]),
        (f'{{"h": "{ONE}"}}\n{{"h": "{TWO}"}}\n', ["h", "h (2)"]),
        (json.dumps({"h": ONE}).replace("/", "\\/"), ["h"]),
        (json.dumps({"h": WRAPPED}), ["h"]),
        (f"2026 INFO {json.dumps({'latency': ONE})}", ["latency"]),
        (f"HISTOGRAM_OF_ALL_REQUESTS_SERVED {ONE}", ["HISTOGRAM_OF_ALL_REQUESTS_SERVED"]),
    ],
)
def test_every_payload_is_found_and_named(read_text, text, names):
    series = read_text(text)
    assert list(series) == names
    sizes = sorted((text.find(key) % (1 << 40), size) for key, size in SIZES.items())
    counts = [data.count for data in series.values()]
    assert counts == [size for _, size in sizes][: len(counts)]
    assert all(data.run.unit_from == "assumed" for data in series.values())


@pytest.mark.parametrize(
    ("record", "factor"),
    [
        ({"latency_us": ONE}, 1e3),
        ({"latency": {"unit": "ms", "hdr": ONE}}, 1e6),
        ({"Histogram (ns)": ONE}, 1),
        ({"durationSeconds": {"hdr": ONE}}, 1e9),
    ],
)
def test_the_unit_is_that_of_the_key(read_text, record, factor):
    (data,) = read_text(json.dumps(record)).values()
    assert data.run.unit_from == "file"
    assert data.max == pytest.approx(3000 * factor, rel=1e-3)


def test_a_bare_one_takes_the_unit_of_the_option(read_text):
    (data,) = read_text(ONE, unit="us").values()
    assert data.percentile(50) == pytest.approx(2e6, rel=1e-3)


def test_bytes_one_after_the_other(read_text):
    series = read_text(base64.b64decode(ONE) + base64.b64decode(TWO), "all.bin")
    assert [data.count for data in series.values()] == [3, 572]


def test_an_empty_histogram_is_left_out_and_said(read_text):
    (data,) = read_text(f"a: {ONE}\nb: {EMPTY}\n").values()
    assert "1 empty histogram left out" in data.run.notes


def test_a_corrupt_one_is_named_by_its_line(read_text):
    text = f"{ONE}\n\n{TWO[:40]}!{TWO[41:]}\n{ONE[:-9]}\n"
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: .*--lenient skips it"):
        read_text(text)
    said: list[str] = []
    (data,) = read_text(text, lenient=True, report=said.append).values()
    assert data.count == 3
    assert [f"out.txt:{line}:" in one for line, one in zip((3, 4), said, strict=True)] == [True] * 2


def test_what_is_read_is_what_was_recorded(read_text):
    (data,) = read_text(TWO).values()
    truth = lk.Histogram.of(range(5000, 9000, 7))
    assert data.percentile([1, 50, 99, 100]) == pytest.approx(truth.percentile([1, 50, 99, 100]))
