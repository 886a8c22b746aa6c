"""Many files as one log, and many small ones as one sum."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import latencykit as lk
from latencykit.distributed.executors import joined
from latencykit.distributed.results import BinnedLog, Totals, TotalsReader, totals_of
from latencykit.io import files as places
from latencykit.io.reading import Selection
from tests.conftest import DATA, RAW
from tests.distributed.conftest import bins_of, rows_of, same, total_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from latencykit.io.parts import PartResult


HGRM = next(DATA.rglob("*.hgrm"))


def merged(paths: list[str]) -> lk.HistogramLog:
    return lk.merge([lk.read(path) for path in paths])


@pytest.mark.slow
def test_sums_equal_those_of_one_merged_log(logs):
    one = merged(logs)
    assert same(total_of(logs), one.histogram())
    having = [path for path in logs if "put" in lk.read(path).tags]  # elsewhere it is an error
    put = total_of(having, tags=("put",))
    assert put.counts.tolist() == one.tagged("put").histogram().counts.tolist()
    bins = bins_of(logs, 2.0)
    assert bins.tags == one.tags == ("", "get", "put")
    assert rows_of(bins) == rows_of(one.resample("2s"))


@pytest.mark.slow
def test_the_order_of_the_files_does_not_matter(logs):
    a, b = total_of(logs), total_of(logs[::-1])
    for one, two in ((a.index, b.index), (a.counts, b.counts)):
        assert one.tolist() == two.tolist()
    assert a.run.duration == b.run.duration
    assert rows_of(bins_of(logs, 3.0)) == rows_of(bins_of(logs[::-1], 3.0))


def test_answers_add_up_alike_in_any_grouping(logs):
    totals = [totals_of(lk.read(path)) for path in logs]
    flat = Totals.sum(totals)
    late = Totals.sum([Totals.sum(totals[3:5]), *totals[5:]])
    nested = Totals.sum([Totals.sum(totals[:3]), late])
    assert same(flat.histogram, nested.histogram)
    bins = [BinnedLog.of(lk.read(path), 2.0, 1_700_000_000.0) for path in logs]
    nested_bins = BinnedLog.sum([BinnedLog.sum(bins[:5]), BinnedLog.sum(bins[5:])])
    assert rows_of(BinnedLog.sum(bins).log) == rows_of(nested_bins.log)


def test_unreadable_files_are_named_and_left_out_when_that_is_allowed(logs, tmp_path, capsys):
    bad = tmp_path / "bad.hlog"
    bad.write_bytes(bytes(range(256)) * 10)
    gone = str(tmp_path / "gone.hlog")
    for path, words in ((str(bad), "bad.hlog"), (gone, "gone.hlog: cannot be read")):
        with pytest.raises(lk.LatencyKitError, match=words):
            total_of([logs[0], path, logs[1]])
    capsys.readouterr()
    left = total_of([logs[0], str(bad), gone, logs[1]], lenient=True)
    assert same(left, merged(logs[:2]).histogram())
    reports = capsys.readouterr().err.splitlines()
    for name in ("bad.hlog", "gone.hlog"):
        assert [report for report in reports if "left out" in report and name in report]
    with pytest.raises(lk.InvalidArgumentError, match="none of the files"):
        total_of([gone], lenient=True)


@pytest.mark.slow
def test_processes_give_the_same_as_one(logs, monkeypatch):
    monkeypatch.setattr(places, "_WORTH_PROCESSES", 0)
    assert same(total_of(logs, jobs=2), total_of(logs))


def test_other_data_types_add_up_too_but_know_no_time():
    assert total_of([RAW, RAW]).count == 2 * 6852
    h, samples = lk.Histogram.of([1, 2]), lk.Samples(start=[0, 10**9], duration=[5, 6])
    assert Totals.sum([totals_of(h), totals_of(samples)]).histogram.count == 4
    assert BinnedLog.of(samples, 1.0).log.histogram().count == 2
    with pytest.raises(lk.InvalidArgumentError, match="has no times"):
        BinnedLog.of(h, 1.0)


def test_files_without_a_clock_are_not_laid_beside_those_with_one(logs, timeless):
    both = [logs[0], str(timeless)]
    total = total_of(both)
    assert total.count == 2 * lk.read(logs[0]).histogram().count
    with pytest.raises(lk.IncompatibleDataError, match="relative"):
        bins_of(both, 1.0)
    assert bins_of(both, 1.0, "relative").histogram().count == total.count


def test_refusals(logs):
    with pytest.raises(lk.InvalidArgumentError):
        total_of("no-such-*.hlog")
    with pytest.raises(lk.InvalidArgumentError, match="no line has the tag 'nope'"):
        total_of(logs[:2], tags=("nope",))
    with pytest.raises(lk.DataNotAvailableError, match="has no times"):
        bins_of([HGRM], 1.0)


def test_urls_are_read_through_fsspec(logs):
    fsspec = pytest.importorskip("fsspec", reason="the extra `cluster` is not installed")
    memory = fsspec.filesystem("memory")
    for number, path in enumerate(logs[:3]):
        memory.pipe(f"/day/host-{number}.hlog", Path(path).read_bytes())
    day = "memory://day/*.hlog"
    assert same(total_of(day), merged(logs[:3]).histogram())
    assert rows_of(bins_of(day, 3.0)) == rows_of(merged(logs[:3]).resample(3))
    with pytest.raises(lk.CorruptInputError, match=r"memory://day/gone.hlog: nothing is there"):
        total_of("memory://day/gone.hlog")
    with pytest.raises(lk.LatencyKitError, match="nonsense"):
        total_of("nonsense://day/a.hlog")


# ---------------------------------------------------------------- small logs

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
