"""Many small logs are read as one; what is odd about any of them is found as by reading it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from latencykit.distributed.executors import joined
from latencykit.distributed.results import TotalsReader
from latencykit.io.reading import Selection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from latencykit.io.parts import PartResult

LOGS = 6


@pytest.fixture
def alike(make_log, tmp_path) -> list[Path]:
    """Logs that differ in their moments and counts."""
    return [
        make_log(tmp_path / f"{k}.hlog", k, 4, start=1_700_000_000.0 + 7.3 * k) for k in range(LOGS)
    ]


def both_ways(paths: list[Path], **chosen: object) -> tuple[PartResult, PartResult, int]:
    """The sum as it is read, and of files read one by one; and the number of results of the first."""
    reader, places = TotalsReader(Selection(**chosen)), [*map(str, paths)]
    some = list(reader.several(places))
    return joined(some), joined(list(map(reader, places))), len(some)


def assert_same(result: PartResult, alone: PartResult) -> None:
    assert str(result.error) == str(alone.error)
    assert result.reports == alone.reports
    assert len(result.series) == len(alone.series)
    for (name, total), (name_alone, total_alone) in zip(result.series, alone.series, strict=True):
        assert (name, total.run) == (name_alone, total_alone.run)
        assert total.intervals == total_alone.intervals
        assert (total.first, total.last) == (total_alone.first, total_alone.last)
        assert total.histogram == total_alone.histogram


@pytest.mark.parametrize("chosen", [{}, {"lenient": True}, {"measure": "service"}])
def test_logs_that_are_alike_have_one_sum(alike, chosen):
    result, alone, results = both_ways(alike, **chosen)
    assert results == 1
    assert_same(result, alone)


@pytest.mark.parametrize(
    "chosen", [{"begin": "1s"}, {"series": ("1.hlog",)}, {"tags": ("get",)}, {"unit": "s"}]
)
def test_what_is_chosen_of_each_log_is_read_of_each(alike, chosen):
    result, alone, _ = both_ways(alike, **chosen)
    assert_same(result, alone)


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


APART: dict[str, Callable[[bytes], bytes]] = {
    "another comment": lambda data: b"#[Logged with jHiccup version 2.0.10]\n" + data,
    "carriage returns": lambda data: data.replace(b"\n", b"\r\n"),
    "no moment": lambda data: b"".join(line for line in lines(data) if b"Time:" not in line),
    "not a moment": lambda data: data.replace(b"StartTime: 1", b"StartTime: x"),
    "tags": lambda data: data.replace(b"\n0.", b"\nTag=get,0."),
    "cut": lambda data: data[:-30],
    "ends": lambda data: data.replace(b"Interval_Length", b"EndTimestamp"),
    "a table": lambda _: b"1\n2\n3\n" * 20,
    "empty": lambda _: b"",
    "no interval": lambda data: data[: data.index(b"\n0.") + 1],
}
"""Known from the header, or the end: the others are read together all the same."""


@pytest.mark.parametrize("name", APART)
def test_a_log_apart_is_read_by_itself(alike, name):
    alike[2].write_bytes(APART[name](alike[2].read_bytes()))
    result, alone, results = both_ways(alike)
    assert results == 2
    assert_same(result, alone)


ODD: dict[str, Callable[[bytes], bytes]] = {
    "corrupt": lambda data: data[:-90] + b"AAAA" + data[-86:],
    "not base64": lambda data: data[:-90] + b"!" + data[-89:],
    "back": lambda data: b"".join([*lines(data)[:-2], lines(data)[-1], lines(data)[-2]]),
    "a comment": lambda data: data + b"#[a comment]\n",
    "two clocks": lambda data: data + data,
    "no number": lambda data: data.replace(b"\n0.7", b"\nx0.7"),
}
"""Known from a look at the intervals: none is believed before each is read by itself."""


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("chosen", [{}, {"lenient": True}])
def test_one_odd_log_has_all_read_by_themselves(alike, name, chosen):
    alike[2].write_bytes(ODD[name](alike[2].read_bytes()))
    result, alone, results = both_ways(alike, **chosen)
    assert results == LOGS
    assert_same(result, alone)


def test_the_first_error_is_that_of_the_first_file(alike):
    alike[1].write_bytes(ODD["corrupt"](alike[1].read_bytes()))
    alike[3].write_bytes(APART["not a moment"](alike[3].read_bytes()))
    result, alone, _ = both_ways(alike)
    assert "1.hlog" in str(result.error)
    assert_same(result, alone)
