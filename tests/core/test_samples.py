"""Samples: what they take, there and back through pandas, and those of several files as one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import latencykit as lk
from latencykit.core.run import Run
from latencykit.core.samples import Samples
from latencykit.errors import InvalidArgumentError

# ---------------------------------------------------------------- arguments

MS = np.array([1, 2], "m8[ms]")


@pytest.mark.parametrize("unit", ["ns", "s"])
@pytest.mark.parametrize(
    "times",
    [MS, MS.astype("m8[us]"), pd.Series(MS, index=[7, 5]), pd.to_timedelta([1, 2], "ms")],
    ids=["m8[ms]", "m8[us]", "Series", "TimedeltaIndex"],
)
def test_timedeltas_have_their_own_unit(times, unit):
    assert lk.Samples(duration=times, unit=unit).duration.tolist() == [1_000_000, 2_000_000]


def test_datetimes_are_points_in_time():
    days = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    samples = lk.Samples(duration=MS, start=days)
    assert np.diff(samples.start).tolist() == [86_400 * 10**9]
    assert samples.start[0] == int(days[0].astype("M8[ns]").astype(np.int64))


@pytest.mark.parametrize(
    "values",
    [
        ["5ms", "6ms"], np.array([1, "a"], object), [1j, 2j], [True, False], [b"1", b"2"],
        np.ma.array([1, 1000], mask=[False, True]), np.array([1, "NaT"], "m8[ms]"),
        np.array(["2300-01-01", "2026-01-01"], "M8[D]"), [1, np.nan], [1, 1e300],
        [1, 10**12], pd.array([1, None], dtype="Int64"),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("role", ["duration", "start", "intended"])
def test_what_is_not_a_time_is_refused(role, values):
    columns = {"duration": [1, 2], role: values}
    with pytest.raises(lk.InvalidArgumentError) as caught:
        lk.Samples(**columns, unit="s")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [["a", "b"], [1, np.nan], [1, np.inf], [1, 2**70], [1, 1j]])
def test_connections_are_whole_numbers(values):
    with pytest.raises(lk.InvalidArgumentError, match="whole numbers"):
        lk.Samples(duration=[1, 2], connection=values)


# ---------------------------------------------------------------- pandas

START = 1_795_219_788_779_885_974  # needs all 61 bits: a float64 would be off by 100 ns


def whole() -> Samples:
    return Samples(
        start=[START, START + 10, START + 20], duration=[5, 0, 7],
        intended=[START - 1, START, START + 20],
        outcome=["ok", "timeout", "error"], connection=[0, 1, 0], tag=["get", "", "put"],
    )  # fmt: skip


def test_there_and_back_is_the_identity():
    plain = Samples(duration=[2], start=[1], unit="none")
    for samples in (whole(), Samples(duration=[3, 1]), plain, Samples(duration=[])):
        frame = samples.to_frame()
        again = Samples.from_frame(frame, unit=samples.unit, run=samples.run)
        assert again.run == samples.run
        for name in ("start", "duration", "intended", "outcome", "connection", "tag"):
            one, other = getattr(samples, name), getattr(again, name)
            assert (one is None) == (other is None)
            if one is not None:
                assert (one.dtype.kind, one.tolist()) == (other.dtype.kind, other.tolist())
    columns = ["start", "duration", "intended", "outcome", "connection", "tag"]
    assert list(whole().to_frame()) == columns
    assert whole().to_frame()["outcome"].tolist() == ["ok", "timeout", "error"]


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_datetimes_and_timedeltas_are_exact_whatever_the_unit_of_numbers(unit):
    naive = pd.to_datetime(np.array([START, START + 1]))
    utc = naive.tz_localize("UTC")
    for sent in (naive, utc, utc.tz_convert("Asia/Tokyo")):
        frame = pd.DataFrame({"sent": sent, "took": pd.to_timedelta([1_500_001, 2], unit="ns")})
        samples = Samples.from_frame(frame, duration="took", start="sent", unit=unit)
        assert samples.start.tolist() == [START, START + 1]
        assert samples.duration.tolist() == [1_500_001, 2]


def test_numbers_take_the_unit_and_whole_ones_stay_exact():
    frame = pd.DataFrame({"t": [1_795_219_788_779_885, 1_795_219_788_779_886], "ms": [0.0015, 2.0]})
    samples = Samples.from_frame(frame, duration="t", unit="us")
    assert samples.duration.tolist() == [1_795_219_788_779_885_000, 1_795_219_788_779_886_000]
    assert (samples.run.unit, Samples(duration=[1_000_000] * 5).mean) == ("us", 1_000_000)
    found = Samples.from_frame(frame, duration="ms", unit="ms")
    assert found.duration.tolist() == [1500, 2_000_000]
    nullable = frame.astype({"t": "Int64", "ms": "Float64"})
    found = Samples.from_frame(nullable, duration="ms", start="t", unit="us")
    assert found.start.tolist() == samples.duration.tolist()
    with pytest.raises(InvalidArgumentError, match="is their unit correct"):
        Samples.from_frame(frame, duration="t", unit="ms")
    found = Samples.from_frame(frame, duration="ms", unit="none", run=Run(tool="x", unit="none"))
    assert found.run.tool == "x"


def test_words_are_taken_as_they_come():
    frame = pd.DataFrame({"ms": [1, 2, 3], "who": list("aba"), "op": ["get", None, "put"]})
    frame["end"] = pd.Categorical(["ok", "error", "ok"])
    named = {"connection": "who", "tag": "op", "outcome": "end"}
    samples = Samples.from_frame(frame, duration="ms", unit="ms", **named)
    assert samples.connection.tolist() == [0, 1, 0]
    assert samples.tags == ("", "get", "put")
    assert samples.good.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("frame", "named", "said"),
    [
        ({"ms": [1.0, None]}, {"duration": "ms"}, "1 empty cells"),
        ({"ms": pd.to_timedelta(["1s", None])}, {"duration": "ms"}, "1 empty cells"),
        ({"ms": ["fast", "slow"]}, {"duration": "ms"}, "column 'ms': Unable to parse string"),
        (
            {"ms": [1, 2], "ok": [True, False]},
            {"duration": "ms", "outcome": "ok"},
            "contains booleans",
        ),
        ({"ms": [1, 2], "end": ["ok", "sad"]}, {"duration": "ms", "outcome": "end"}, "'sad'"),
        ({"ms": [1, 2]}, {"duration": "us"}, "no column 'us'; the columns are ms"),
        ({"ms": [1, 2]}, {}, "no column 'duration'"),
        ({"ms": [1, 2]}, {"duration": "ms", "status": "ms"}, "no 'status'"),
        ({"ms": [1, 2]}, {"duration": "ms", "unit": "min"}, "unit must be"),
        ({"ms": [1, -2]}, {"duration": "ms"}, "negative"),
        ({"ms": [1, 1e300]}, {"duration": "ms"}, "64 bits"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(frame, named, said):
    with pytest.raises(InvalidArgumentError, match=said):
        Samples.from_frame(pd.DataFrame(frame), **named)


@pytest.mark.parametrize(
    "columns", [{"start": [-(1 << 62), 1 << 62]}, {"start": [0, (1 << 63) - 1], "intended": [0, 0]}]
)
def test_times_further_apart_than_an_int64_holds_are_refused(columns):
    with pytest.raises(InvalidArgumentError, match="292 years"):
        Samples(duration=[1, 1], **columns)
    longest = Samples(duration=[1, 1], start=[0, (1 << 63) - 2])
    assert longest.elapsed == pytest.approx(9.22e9, rel=1e-3)


# ---------------------------------------------------------------- requests of several files, by the clock


def test_requests_stay_requests() -> None:
    rng = np.random.default_rng(1)
    whole = lk.Samples(
        start=np.sort(rng.uniform(1.7e18, 1.7e18 + 60e9, 3000)),
        duration=rng.exponential(1e6, 3000),
        connection=rng.integers(4, size=3000),
        endpoint=["/cart", "/pay", "/"] * 1000,
    )
    halves = [whole.select(np.arange(k, 3000, 2)) for k in (0, 1)]
    joined = lk.merge(halves)
    assert isinstance(joined, lk.Samples)
    assert np.array_equal(joined.start, whole.start)
    assert np.array_equal(joined.duration, whole.duration)
    assert joined.columns["endpoint"].tolist() == whole.columns["endpoint"].tolist()
    assert np.unique(joined.connection).size == 8  # other connections, in another file
    assert joined.evidence().doubts() == whole.evidence().doubts()


def test_one_incident_is_one_finding() -> None:
    """Two load generators that wait for one frozen server."""
    server = lk.simulate.Server("1ms", stalls=[lk.simulate.Stall(10, 4)], ideal=True)
    parts = [lk.simulate.paced_loop(server, rate=100, duration=30, connections=4) for _ in range(2)]
    found = lk.diagnose(lk.merge(parts))
    assert found.verdict == "omits"
    assert len(found.stalls) == 1
    assert found.stalls.missing.sum() == pytest.approx(2 * 4 * 100, rel=0.05)


def test_failures_and_dates() -> None:
    good = lk.Samples(start=[0, 10], duration=[1, 2], unit="ms")
    bad = lk.Samples(start=[5], duration=[3], unit="ms", outcome=["error"])
    both = lk.merge([good, bad])
    assert both.good.tolist() == [True, False, True]
    assert both.histogram().run.failed == 1
    assert len(bad.to_log("1ms")) == 4  # failures take time, too
    dated = lk.Samples(start=[1_700_000_000_000], duration=[3], unit="ms")
    assert isinstance(lk.merge([good, dated]), lk.Histogram)  # nothing tells when one began
    assert len(lk.merge([good, dated], align="relative")) == 3
