"""Apache DataSketches: the truth lies within each bucket, and what is exact is read exactly."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.errors import CorruptInputError

datasketches = pytest.importorskip("datasketches")
DICE = np.random.default_rng(3)
SKETCHES = {
    "KLL, doubles": lambda: datasketches.kll_doubles_sketch(200),
    "KLL, floats": lambda: datasketches.kll_floats_sketch(200),
    "KLL, fine": lambda: datasketches.kll_doubles_sketch(2000),
    "t-digest, doubles": lambda: datasketches.tdigest_double(100),
    "t-digest, floats": lambda: datasketches.tdigest_float(200),
}
WORLDS = {
    "lognormal": lambda n: np.exp(DICE.normal(-4, 1, n)),
    "Pareto": lambda n: 1e-3 * (1 + DICE.pareto(1.5, n)),
    "two modes": lambda n: (
        np.where(DICE.random(n) < 0.02, 1, 1e-3) * np.exp(DICE.normal(0, 0.1, n))
    ),
    "rounded": lambda n: np.round(np.exp(DICE.normal(-4, 1, n)), 3) + 1e-3,
}
sketches = pytest.mark.parametrize("kind", SKETCHES)


def sketch_of(kind: str, values: np.ndarray) -> bytes:
    sketch = SKETCHES[kind]()
    for value in values.tolist():
        sketch.update(value)
    return sketch.serialize()


@pytest.mark.slow
@sketches
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("number", [3, 150, 1000, 9000])
def test_every_percentile_lies_in_its_bucket(read_text, kind, world, number):
    values = WORLDS[world](number).astype(np.float32).astype(np.float64)
    (data,) = read_text(sketch_of(kind, values), "latency.bin").values()
    assert data.count == number
    assert data.max == pytest.approx(values.max() * 1e9)
    assert data.min == pytest.approx(values.min() * 1e9)
    table = data.percentiles([1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9])
    rank = np.ceil(np.round(table.index * number / 100, 6)).astype(int)
    truth = np.sort(values)[rank - 1] * 1e9
    assert (table["bucket_low"] <= truth * (1 + 1e-9)).all()
    assert (truth <= table["bucket_high"] * (1 + 1e-9)).all()


@sketches
@pytest.mark.parametrize("number", [1, 2, 40])
def test_few_values_are_exact(read_text, kind, number):
    values = DICE.lognormal(-4, 1, number).astype(np.float32).astype(np.float64)
    (data,) = read_text(sketch_of(kind, values), "latency.bin").values()
    middle = np.sort(values)[(number + 1) // 2 - 1]
    assert data.percentile(50) == pytest.approx(middle * 1e9, rel=1e-6)
    assert data.percentiles([50])["resolved"].all()


@sketches
def test_an_empty_sketch_says_so_and_a_cut_one_is_an_error(read_text, kind):
    with pytest.raises(CorruptInputError, match="contains no requests"):
        read_text(sketch_of(kind, np.zeros(0)), "latency.bin")
    whole = sketch_of(kind, WORLDS["lognormal"](500))
    for data in (whole[:-1], whole[:-8], whole + bytes(8), whole[:40], whole[:9]):
        with pytest.raises(CorruptInputError, match="intact"):
            read_text(data, "latency.bin")


def test_the_error_of_ranks_is_stated(read_text):
    (data,) = read_text(sketch_of("KLL, doubles", WORLDS["lognormal"](3000))).values()
    error = datasketches.kll_doubles_sketch.get_normalized_rank_error(200, False)
    assert any(f"{100 * error:.2g} %" in note for note in data.run.notes)
    assert data.percentile(99.9) == data.max  # nothing better is known
