"""Many files as one log: the sums of one process, anyone who reads, in whatever order, in ranges or whole."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import latencykit as lk
from latencykit import distributed as cluster
from latencykit.core.samples import Samples
from latencykit.distributed import executors as engines
from latencykit.distributed.results import Slots, Totals, slots_of, totals_of
from latencykit.errors import (
    CorruptInputError,
    DataNotAvailableError,
    IncompatibleDataError,
    InvalidArgumentError,
)
from latencykit.io import files as places
from tests.cluster.conftest import rows_of, same
from tests.conftest import DATA

HGRM = next(DATA.rglob("*.hgrm"))
CTRLZ = DATA / "hlog/hdrhistogram-java-ctrlz-a/uncorrected.hlog"


def merged(paths: list[str]) -> lk.HistogramLog:
    return lk.merge([lk.read(path) for path in paths])


@pytest.mark.slow
def test_sums_equal_those_of_one_merged_log(logs):
    many, one = cluster.read_many(logs, jobs=1), merged(logs)
    assert same(many.histogram(), one.histogram())
    assert many.tags == one.tags == ("", "get", "put")
    assert (
        same(
            many.tagged("put").histogram(),
            one.tagged("put").histogram().with_run(duration=None, start=None),
        )
        is False
    )
    assert many.histograms()["put"].counts.tolist() == one.tagged("put").histogram().counts.tolist()
    assert rows_of(many.resample("2s")) == rows_of(one.resample("2s"))
    window = many.between(3, 16)
    assert same(window.histogram(), one.between(3, 16).histogram())
    assert rows_of(window.between(5).tagged("get").resample(4)) == rows_of(
        one.between(5, 16).tagged("get").resample(4)
    )


@pytest.mark.slow
def test_the_order_of_the_files_does_not_matter(logs):
    forward, backward = cluster.read_many(logs, jobs=1), cluster.read_many(logs[::-1], jobs=1)
    a, b = forward.histogram(), backward.histogram()
    assert (a.index.tolist(), a.counts.tolist(), a.run.duration) == (
        b.index.tolist(),
        b.counts.tolist(),
        b.run.duration,
    )
    assert rows_of(forward.resample(3)) == rows_of(backward.resample(3))


def test_answers_add_up_alike_in_any_grouping(logs):
    totals = [totals_of(lk.read(path)) for path in logs]
    flat = Totals.sum(totals)
    nested = Totals.sum(
        [Totals.sum(totals[:3]), Totals.sum([Totals.sum(totals[3:5]), *totals[5:]])]
    )
    assert same(flat.histogram, nested.histogram)
    slots = [slots_of(lk.read(path), 2.0, 1_700_000_000.0) for path in logs]
    nested_slots = Slots.sum([Slots.sum(slots[:5]), Slots.sum(slots[5:])])
    assert rows_of(Slots.sum(slots).log()) == rows_of(nested_slots.log())


@pytest.mark.slow
def test_a_large_log_is_read_in_ranges_of_lines(logs, monkeypatch):
    whole = cluster.read_many(logs, jobs=1)
    monkeypatch.setattr(places, "RANGE", 700)
    monkeypatch.setattr(engines, "split", lambda url, size: places.split(url, size, 700))
    ranges = cluster.read_many(logs, jobs=1)
    assert min(len(job.places) for job in ranges.jobs) > 5
    assert same(ranges.histogram(), whole.histogram())
    assert rows_of(ranges.between(2, 20).resample(2)) == rows_of(whole.between(2, 20).resample(2))


@pytest.mark.parametrize("step", [90, 333, 1000])
def test_every_line_belongs_to_one_range(logs, step):
    path = Path(logs[0])
    parts = places.split(str(path), path.stat().st_size, step)
    sources = [places.source_of(part) for part in parts]
    header = path.read_bytes()[: parts[0].header]
    assert header.splitlines()[-1].startswith(b'"')
    assert (
        header + b"".join(source.open().read()[len(header) :] for source in sources)
        == path.read_bytes()
    )


def test_a_log_that_sets_its_clock_anew_is_read_whole(make_log, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "split", lambda url, size: places.split(url, size, 700))
    one, two = (
        make_log(tmp_path / "a.hlog", 1),
        make_log(tmp_path / "b.hlog", 2, start=1_700_000_100.0),
    )
    both = tmp_path / "both.hlog"
    both.write_bytes(one.read_bytes() + two.read_bytes())
    many = cluster.read_many(str(both), jobs=1)
    assert len(many.jobs[0].places) > 10
    assert rows_of(many.resample(1)) == rows_of(lk.read(both).resample(1))


def test_what_is_compressed_or_small_or_knows_no_start_is_not_cut(logs, tmp_path):
    packed = tmp_path / "a.hlog.gz"
    packed.write_bytes(gzip.compress(Path(logs[0]).read_bytes() * 3))
    timeless = tmp_path / "timeless.hlog"
    timeless.write_bytes(
        b"".join(
            line for line in Path(logs[0]).read_bytes().splitlines(True) if b"Time:" not in line
        )
    )
    for path in (packed, timeless):
        assert len(places.split(str(path), path.stat().st_size, 100)) == 1
    assert len(places.split(logs[0], Path(logs[0]).stat().st_size)) == 1


def test_corruption_in_a_range_names_the_line_of_the_file(logs, tmp_path, monkeypatch):
    lines = Path(logs[0]).read_bytes().splitlines(True)
    number = len(lines) - 3
    lines[number - 1] = b"1.0,1.0,1.0,HISTrubbish\n"
    bad = tmp_path / "bad.hlog"
    bad.write_bytes(b"".join(lines))
    with pytest.raises(CorruptInputError) as alone:
        lk.read(bad)
    monkeypatch.setattr(engines, "split", lambda url, size: places.split(url, size, 700))
    with pytest.raises(CorruptInputError, match=f"bad.hlog:{number}: ") as ranged:
        cluster.read_many([logs[1], str(bad)], jobs=1).histogram()
    assert ranged.value.line == alone.value.line == number


def test_unreadable_files_are_named_and_left_out_when_that_is_allowed(logs, tmp_path):
    bad = tmp_path / "bad.hlog"
    bad.write_bytes(bytes(range(256)) * 10)
    gone = str(tmp_path / "gone.hlog")
    for path, words in ((str(bad), "bad.hlog"), (gone, "gone.hlog: cannot be read")):
        with pytest.raises(lk.LatencyKitError, match=words):
            cluster.read_many([logs[0], path, logs[1]], jobs=1).histogram()
    many = cluster.read_many([logs[0], str(bad), gone, logs[1]], jobs=1, lenient=True)
    assert same(many.histogram(), merged(logs[:2]).histogram())
    assert [report for report in many.reports if "left out" in report and "bad.hlog" in report]
    assert [report for report in many.reports if "left out" in report and "gone.hlog" in report]
    assert many.files()["error"].notna().tolist() == [False, True, True, False]
    with pytest.raises(InvalidArgumentError, match="none of them"):
        cluster.read_many(gone, jobs=1, lenient=True).histogram()


@pytest.mark.slow
def test_processes_give_the_same_as_one(logs, monkeypatch):
    monkeypatch.setattr(places, "_WORTH_PROCESSES", 0)
    assert same(
        cluster.read_many(logs, jobs=2).histogram(), cluster.read_many(logs, jobs=1).histogram()
    )


def test_threads_give_the_same_as_one(logs):
    assert same(
        cluster.read_many(logs, jobs=3).histogram(), cluster.read_many(logs, jobs=1).histogram()
    )


def intervals_of(data: lk.HistogramLog) -> int:
    return len(data)


def test_questions_of_ones_own(logs):
    assert list(cluster.read_many(logs[:2], jobs=1).each(intervals_of).values()) == [
        {"": 24},
        {"": 24},
    ]


def test_other_rungs_add_up_too_but_know_no_time():
    many = cluster.read_many([str(CTRLZ), str(CTRLZ)], jobs=1)
    assert many.histogram().count == 2 * 6852
    h, samples = lk.Histogram.of([1, 2]), Samples(start=[0, 10**9], duration=[5, 6])
    assert Totals.sum([totals_of(h), totals_of(samples)]).histogram.count == 4
    assert slots_of(samples, 1.0).log().histogram().count == 2
    with pytest.raises(InvalidArgumentError, match="has no times"):
        slots_of(h, 1.0)


def test_files_without_a_clock_are_not_laid_beside_those_with_one(logs, tmp_path):
    timeless = tmp_path / "timeless.hlog"
    timeless.write_bytes(
        b"".join(
            line for line in Path(logs[0]).read_bytes().splitlines(True) if b"Time:" not in line
        )
    )
    many = cluster.read_many([logs[0], str(timeless)], jobs=1)
    assert many.histogram().count == 2 * lk.read(logs[0]).histogram().count
    with pytest.raises(IncompatibleDataError, match="relative"):
        many.resample(1)
    together = cluster.read_many([logs[0], str(timeless)], jobs=1, align="relative").resample(1)
    assert together.histogram().count == many.histogram().count


def test_refusals(logs):
    for wrong in ("no-such-*.hlog", []):
        with pytest.raises(InvalidArgumentError):
            cluster.read_many(wrong)
    with pytest.raises(InvalidArgumentError, match="align"):
        cluster.read_many(logs, align="sideways")
    with pytest.raises(InvalidArgumentError, match="no file"):
        cluster.read_many(logs[:2], jobs=1).tagged("nope").histogram()
    with pytest.raises(InvalidArgumentError, match="longer than nothing"):
        cluster.read_many(logs[:2], jobs=1).resample(0)
    with pytest.raises(DataNotAvailableError, match="has no times"):
        cluster.read_many(str(HGRM), jobs=1).between(1).histogram()


def test_urls_are_read_through_fsspec(logs, monkeypatch):
    fsspec = pytest.importorskip("fsspec", reason="the extra `cluster` is not installed")
    memory = fsspec.filesystem("memory")
    for number, path in enumerate(logs[:3]):
        memory.pipe(f"/day/host-{number}.hlog", Path(path).read_bytes())
    many = cluster.read_many("memory://day/*.hlog", jobs=1)
    assert same(many.histogram(), merged(logs[:3]).histogram())
    assert rows_of(many.resample(3)) == rows_of(merged(logs[:3]).resample(3))
    with monkeypatch.context() as patched:
        patched.setattr(engines, "split", lambda url, size: places.split(url, size, 700))
        ranges = cluster.read_many("memory://day/*.hlog", jobs=1)
        assert min(len(job.places) for job in ranges.jobs) > 5
        assert same(ranges.histogram(), many.histogram())
        patched.setattr(places, "_from_anywhere", lambda *_: False)
        assert {
            len(job.places) for job in cluster.read_many("memory://day/*.hlog", jobs=1).jobs
        } == {1}
    with pytest.raises(CorruptInputError, match=r"memory://day/gone.hlog: nothing is there"):
        cluster.read_many("memory://day/gone.hlog", jobs=1).histogram()
    with pytest.raises(lk.LatencyKitError, match="nonsense"):
        cluster.read_many("nonsense://day/a.hlog", jobs=1).histogram()
