"""Arguments of samples: units that arrays state themselves, and what is not a time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import latencykit as lk

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
