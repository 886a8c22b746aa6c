"""Frames in memory are read as files of them; what takes other things says what it takes."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import latencykit as lk
from latencykit.errors import InputError, InvalidArgumentError


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2026-01-31T12:00Z") + pd.to_timedelta(np.arange(300) * 10, "ms")
    return pd.DataFrame(
        {
            "start": start,
            "latency_ms": rng.lognormal(0, 1, 300).round(3),
            "endpoint": rng.choice(["/cart", "/pay"], 300),
        }
    )


def test_a_frame_is_what_its_csv_is(tmp_path):
    frame().to_csv(tmp_path / "calls.csv", index=False)
    read, of_file = lk.read(frame()), lk.read(tmp_path / "calls.csv")
    assert np.array_equal(read.duration, of_file.duration)
    assert np.array_equal(read.start, of_file.start)
    assert read.columns["endpoint"].tolist() == of_file.columns["endpoint"].tolist()
    assert (read.run.source, read.run.format) == ("DataFrame", "frame")
    assert len(read.where(endpoint="/cart")) + len(read.where(endpoint="/pay")) == 300


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_frames_of_other_packages(package):
    table = pytest.importorskip(package)
    other = (
        table.DataFrame(frame().to_dict("list"))
        if package == "polars"
        else table.Table.from_pandas(frame())
    )
    assert np.array_equal(lk.read(other).duration, lk.read(frame()).duration)


def test_a_series_takes_its_unit_from_its_name_or_the_argument():
    values = frame()["latency_ms"]
    named = lk.read(values).duration
    assert named.max() == pytest.approx(values.max() * 1e6)
    assert np.array_equal(lk.read(values.rename(None), unit="ms").duration, named)
    assert np.array_equal(lk.read(pd.to_timedelta(values, "ms")).duration, named)


def test_the_accessor_of_series_offers_what_samples_do():
    import_module("latencykit.pandas")
    values = frame()["latency_ms"]
    assert values.latency.percentile(99) == lk.read(values).percentile(99)
    assert values.rename("rtt").latency(unit="us").max == pytest.approx(values.max() * 1e3)
    assert pd.to_timedelta(values, "ms").latency.count == values.convert_dtypes().latency.count
    assert not hasattr(values.latency, "_repr_html_")
    with pytest.raises(InvalidArgumentError, match="states no unit"):
        _ = values.rename("rtt").latency.max
    for cells in (["a", "b"], [True, False], pd.to_datetime(["2026-01-31"])):
        with pytest.raises(AttributeError, match=r"can only use \.latency with numbers"):
            _ = pd.Series(cells).latency
    assert not hasattr(pd.Series(["a"]), "latency")


def test_charts_take_frames():
    ax = lk.plot.percentiles({"calls": frame(), "same": frame()["latency_ms"]})
    assert len(ax.lines) >= 2


def test_what_is_not_a_table():
    with pytest.raises(
        InvalidArgumentError, match="ndarray is not read: give a path, a data frame"
    ):
        lk.read(np.arange(3))
    with pytest.raises(InputError, match="DataFrame: the frame has no rows"):
        lk.read(frame()[:0])
    with pytest.raises(InputError, match="columns 1 and 2 are both named 'a'"):
        lk.read(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InvalidArgumentError, match="DataFrame"):
        lk.read(frame(), column="nothing")


def test_a_recorder_that_measured_nothing_warns():
    with (
        pytest.warns(UserWarning, match="measured nothing: 'with recorder.measure"),
        lk.Recorder(),
    ):
        pass
