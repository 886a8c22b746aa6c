"""Data frames, and tables as Parquet."""

from __future__ import annotations

import math
import re
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import latencykit as lk
from latencykit.errors import InputError, InvalidArgumentError
from latencykit.io import parquet
from latencykit.io.parquet import write_parquet
from tests.conftest import DATA, LOGS
from tests.distributed.conftest import rows_of


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2026-01-31T12:00Z") + pd.to_timedelta(np.arange(300) * 10, "ms")
    took, endpoint = rng.lognormal(0, 1, 300).round(3), rng.choice(["/cart", "/pay"], 300)
    return pd.DataFrame({"start": start, "latency_ms": took, "endpoint": endpoint})


def test_a_frame_is_what_its_csv_is(tmp_path):
    frame().to_csv(tmp_path / "calls.csv", index=False)
    read, of_file = lk.read(frame()), lk.read(tmp_path / "calls.csv")
    assert np.array_equal(read.duration, of_file.duration)
    assert np.array_equal(read.start, of_file.start)
    assert lk.read(frame().set_index("start"), column=2).start.tolist() == read.start.tolist()
    assert read.columns["endpoint"].tolist() == of_file.columns["endpoint"].tolist()
    assert (read.run.source, read.run.format) == ("DataFrame", "frame")
    assert len(read.where(endpoint="/cart")) + len(read.where(endpoint="/pay")) == 300


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_frames_of_other_packages(package):
    table, own = pytest.importorskip(package), frame()
    polars = package == "polars"
    other = table.DataFrame(own.to_dict("list")) if polars else table.Table.from_pandas(own)
    assert np.array_equal(lk.read(other).duration, lk.read(frame()).duration)


def test_a_series_takes_its_unit_from_its_name_or_the_argument():
    values = frame()["latency_ms"]
    named = lk.read(values).duration
    assert named.max() == pytest.approx(values.max() * 1e6)
    assert np.array_equal(lk.read(values.rename(None), unit="ms").duration, named)
    assert np.array_equal(lk.read(pd.to_timedelta(values, "ms")).duration, named)


def test_every_question_takes_the_unit_of_bare_numbers():
    values = frame()["latency_ms"]
    asked = [
        (lk.diagnose, ()),
        (lk.fan_out, (10,)),
        (lk.sequential, (3,)),
        (lk.correct, ("1ms",)),
        (lk.SLO.parse("99=5ms").check, ()),
    ]
    for ask, more in asked:
        assert repr(ask(values.rename(None), *more, unit="ms")) == repr(ask(values, *more))
        with pytest.raises(InvalidArgumentError, match="unit='ms' is for a path or a frame"):
            ask(lk.read(values), *more, unit="ms")


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
    with pytest.warns(UserWarning, match="measured nothing: 'with recorder.measure"), lk.Recorder():
        pass


# ---------------------------------------------------------------- Parquet

pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")

JAVA = DATA / "hlog/hdrhistogram-java-ctrlz-a"
TAGGED = DATA / "hlog/hdrhistogram-java-tags-basetime/log.hlog"


@pytest.fixture
def day(tmp_path):
    """A folder of two logs and a histogram of another layout, as Parquet."""
    folder = tmp_path / "day"
    folder.mkdir()
    logs = [
        lk.read(JAVA / "uncorrected.hlog"),
        lk.read(TAGGED),
        lk.Histogram.of(np.arange(1, 10**7, 997), digits=2),
    ]
    for number, data in enumerate(logs):
        write_parquet({"": data}, folder / f"{number}.parquet")
    return folder


def percentile_of_rows(series, p: float) -> float:
    """The lowest upper edge that the share of all values lies at or below, over whole buckets of any layout."""
    parts = [data.histogram() for data in series]
    high = np.concatenate([part.buckets.high(part.index) for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(high, kind="stable")
    return float(
        high[order][np.searchsorted(np.cumsum(counts[order]), math.ceil(p / 100 * counts.sum()))]
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_logs_come_back_as_they_were(path, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP", 1000)  # several row groups
    log = lk.read(path)
    write_parquet({"": log}, tmp_path / "x.parquet")
    back = lk.read(tmp_path / "x.parquet")
    assert rows_of(back) == rows_of(log)
    if len(log) > 2:
        middle = float(log.starts[len(log) // 2])
        assert rows_of(back.between(middle)) == rows_of(log.between(middle))


def test_several_series_and_slots_come_back(tmp_path):
    log = lk.read(TAGGED)
    series = {"slots": log.resample("2s"), "raw": log}
    series |= {"all": log.histogram(), "none": lk.Histogram.of([])}
    write_parquet(series, tmp_path / "x.parquet")
    back = lk.read_all(tmp_path / "x.parquet", series=["slots", "all", "none"])
    assert back["all"].counts.tolist() == log.histogram().counts.tolist()
    assert back["none"].count == 0
    assert rows_of(lk.read(tmp_path / "x.parquet", series="slots")) == rows_of(log.resample("2s"))


def test_a_corrupt_row_group_is_reported_when_it_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    write_parquet({"": lk.read(JAVA / "uncorrected.hlog")}, path)
    data = bytearray(path.read_bytes())
    data[100:400] = bytes(300)
    path.write_bytes(data)
    with pytest.raises(lk.LatencyKitError, match=r"x.parquet: the Parquet file is corrupt"):
        lk.read(path).histogram()


def documented(language: str) -> str:
    """The example of the module's documentation, as it stands there."""
    text = parquet.__doc__ or ""
    if language == "sql":
        found = re.search(r"    WITH merged.*?;\n", text, re.DOTALL)
    else:
        found = re.search(r"    rows = pl.*?\[0\]\n", text, re.DOTALL)
    assert found is not None
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("p", [50, 99, 99.9, 100])
@pytest.mark.needs_tool
def test_the_documented_sql_gives_what_latencykit_gives(day, p):
    duckdb = pytest.importorskip(
        "duckdb", reason="DuckDB is not installed; the extra `dev` brings it"
    )
    query = (
        documented("sql")
        .replace("day/*.parquet", f"{day}/*.parquet")
        .replace("0.999", repr(p / 100))
    )
    series = [lk.read(path) for path in sorted(day.iterdir())]
    assert duckdb.sql(query).fetchall()[0][0] == percentile_of_rows(series, p)


@pytest.mark.slow
@pytest.mark.needs_tool
def test_merged_counts_of_one_layout_are_those_of_a_merge(day):
    duckdb = pytest.importorskip(
        "duckdb", reason="DuckDB is not installed; the extra `dev` brings it"
    )
    files = f"['{day}/0.parquet', '{day}/1.parquet']"
    whole = lk.merge(
        [lk.read(day / "0.parquet").histogram(), lk.read(day / "1.parquet").histogram()]
    )
    rows = duckdb.sql(
        f"SELECT low, high, sum(count)::BIGINT FROM read_parquet({files}) GROUP BY ALL ORDER BY "
        "high"
    ).fetchall()
    low, high = whole.buckets.low(whole.index).tolist(), whole.buckets.high(whole.index).tolist()
    assert rows == list(zip(low, high, whole.counts.tolist(), strict=True))
    for p in (50.0, 90.0, 99.0, 99.9, 100.0):
        query = documented("sql").replace("'day/*.parquet'", files).replace("0.999", repr(p / 100))
        assert duckdb.sql(query).fetchall()[0][0] == whole.percentile(p)


@pytest.mark.needs_tool
def test_one_percentile_a_slot_and_tag(day):
    duckdb = pytest.importorskip(
        "duckdb", reason="DuckDB is not installed; the extra `dev` brings it"
    )
    query = f"""
        WITH merged AS (
            SELECT floor(start / 5) AS slot, tag, high, sum(count)::BIGINT AS n
            FROM read_parquet('{day}/1.parquet') GROUP BY ALL
        ), ranked AS (
            SELECT *, sum(n) OVER (PARTITION BY slot, tag ORDER BY high) AS upto, sum(n) OVER (PARTITION BY slot, tag) AS total
            FROM merged
        )
        SELECT min(high) FROM ranked WHERE upto >= ceil(0.99 * total) GROUP BY slot, tag ORDER BY slot, tag
    """
    slots = lk.read(TAGGED).resample("5s").by_interval([99])
    expected = (
        slots.assign(slot=(slots["start"] / 5).astype(int))
        .sort_values(["slot", "tag"])["p99"]
        .tolist()
    )
    assert [row[0] for row in duckdb.sql(query).fetchall()] == expected


@pytest.mark.slow
@pytest.mark.needs_tool
def test_the_documented_polars_query_gives_the_same(day):
    pl = pytest.importorskip("polars", reason="Polars is not installed; the extra `dev` brings it")
    lines = documented("polars").replace("day/*.parquet", f"{day}/*.parquet").splitlines()
    known = {"pl": pl, "math": math}
    exec("\n".join(line.strip() for line in lines[:-1]), known)
    series = [lk.read(path) for path in sorted(day.iterdir())]
    assert eval(lines[-1].strip(), known) == percentile_of_rows(series, 99.9)
