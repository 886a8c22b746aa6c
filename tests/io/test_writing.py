"""Writing: what comes back, from what to what, and what cannot be joined."""

from __future__ import annotations

import csv
import dataclasses
import json
from datetime import UTC, datetime

import numpy as np
import pytest

import latencykit as lk
from latencykit.io.writing import write_series as write
from latencykit.units import NANOSECONDS
from tests.conftest import DATA
from tests.io.test_contract import cases

SLOW = np.arange(1000) % 100 == 7
SAMPLES = lk.Samples(
    start=1_700_000_000_000_000_000 + np.arange(1000, dtype=np.int64) * 10**7,
    duration=np.where(SLOW, 5 * 10**7, 10**6),
    outcome=np.where(np.arange(1000) % 100 == 5, "error", "ok"),
    connection=np.arange(1000) % 4,
    tag=np.where(np.arange(1000) % 2, "get", "set"),
)
LOG = SAMPLES.to_log("1s")
DATA_TYPES = {
    "samples": SAMPLES,
    "log": LOG,
    "histogram": LOG.histogram(),
    "edges": lk.Histogram.from_percentiles([50, 99], [1e6, 5e7], 990),
    "summary": LOG.histogram().summary(),
}
REFUSED = {
    ("edges", ".hlog"): "only HDR buckets fit into an .hlog",
    ("edges", ".hgrm"): "an .hgrm needs a full HDR histogram",
    ("summary", ".hlog"): "a summary has no buckets to write into an .hlog",
    ("summary", ".hgrm"): "a summary has no buckets to write into an .hgrm",
    ("summary", ".parquet"): "logs and histograms fit",
}


def counted(data) -> tuple[int, float]:
    held = data.histogram() if hasattr(data, "histogram") else data
    return getattr(held, "requests", held.count), round(
        held.percentile(99) if isinstance(held, lk.Histogram) else held.reported_percentiles[99.0]
    )


@pytest.mark.parametrize("suffix", [".hlog", ".hgrm", ".json", ".parquet"])
@pytest.mark.parametrize("name", DATA_TYPES)
def test_every_data_type_comes_back_from_every_format_or_is_refused(tmp_path, name, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
    path, data = tmp_path / f"a{suffix}", DATA_TYPES[name]
    if (name, suffix) in REFUSED:
        with pytest.raises(lk.LatencyKitError, match=REFUSED[name, suffix]):
            write({"x": data}, path)
        return
    write({"x": data}, path)
    found = lk.read_all([path]).values()
    merged = lk.merge(list(found)) if len(found) > 1 else next(iter(found))
    count, tail = counted(merged)
    assert (count, tail) == (990, pytest.approx(counted(data)[1], rel=1e-3))


@pytest.mark.parametrize(
    ("name", "header", "rows"),
    [
        ("samples", "series,start_ns,duration_ns,outcome,connection,tag", 1000),
        ("log", "series,start_s,length_s,tag,index,low_ns,high_ns,count,failures_known", None),
        ("histogram", "series,low_ns,high_ns,count,failures_known", 2),
        ("edges", "series,low_ns,high_ns,count", None),
        ("summary", "series,statistic,value_ns,failures_known", None),
    ],
)
def test_tables_hold_every_row_and_every_count(tmp_path, name, header, rows):
    path = tmp_path / "a.csv"
    write({"x": DATA_TYPES[name]}, path)
    with path.open(newline="") as stream:
        table = list(csv.DictReader(stream))
    assert path.read_text().splitlines()[0] == header
    assert rows is None or len(table) == rows
    if "count" in table[0]:
        assert sum(int(row["count"]) for row in table) == 990


def test_samples_come_back_from_csv_with_outcomes_and_tags(tmp_path):
    path = tmp_path / "a.csv"
    write({"x": SAMPLES}, path)
    found = lk.read_all([path])
    assert set(found) == {"get", "set"}
    assert sum(one.histogram().count for one in found.values()) == 990
    assert sum(int((~one.good).sum()) for one in found.values()) == 10


def test_a_table_of_statistics_is_not_read_as_requests(tmp_path):
    path, summary = tmp_path / "a.csv", DATA_TYPES["summary"]
    write({"x": summary}, path)
    again = lk.read(path, series="x")
    assert dict(again.reported_percentiles) == pytest.approx(
        {p: v for p, v in summary.reported_percentiles.items() if p < 100}
    )
    assert {name: again.stats[name] for name in summary.stats} == pytest.approx(dict(summary.stats))
    path.write_text("time_s,p50_ms,p99_ms\n1,2,3\n2,2,4\n")
    assert all(isinstance(one, lk.Summary) for one in lk.read_all(path).values())


@pytest.mark.slow
def test_a_part_by_the_clock(run, tmp_path):
    path = tmp_path / "a.hlog"
    write({"x": LOG}, path)
    moment = datetime.fromtimestamp(1_700_000_000 + 4.5, UTC)
    for text in (moment.isoformat(), moment.replace(tzinfo=None).isoformat(), "4.5"):
        status, out, err = run("summary", path, "--from", text, "--format", "csv")
        assert (status, len(out.splitlines())) == (0, 4)  # heading, total, two tags
        assert "--from/--to kept" in err
    assert "is not a time; write seconds" in run("summary", path, "--from", "noon")[2]
    write({"x": LOG.histogram()}, tmp_path / "a.hgrm")
    assert "has no times" in run("summary", tmp_path / "a.hgrm", "--from", "1")[2]
    (tmp_path / "a.csv").write_text("start_s,latency_ms,outcome\n0,8,ok\n2,10,ok\n3,9,timeout\n")
    assert "maximum is still in it" in run("summary", tmp_path / "a.csv", "--from", "2")[2]
    for copy in (path, tmp_path / "a.hgrm"):  # the timeout is not lost
        assert run("convert", tmp_path / "a.csv", copy)[0] == 0
        assert "≥ 9 ms" in run("summary", copy)[1]
    (tmp_path / "b.csv").write_text("start_s,latency_ms,outcome\n0,9,timeout\n")
    assert run("convert", tmp_path / "b.csv", tmp_path / "b.hgrm")[0] == 0
    assert "(≥ 9 ms)" in run("summary", tmp_path / "b.hgrm")[1]
    (tmp_path / "b.csv").write_text("start_s,latency_ms,outcome\n0,9,ok\n2,20,timeout\n")
    (tmp_path / "c.csv").write_text("start_s,latency_ms\n0,9\n2,20\n")
    parts = [tmp_path / f"{name}.csv" for name in "abc"]  # the shortest timeout is that of all
    assert run("merge", *parts, "-o", path)[0] == 0
    assert lk.read(path).histogram().censored_at == 9e6
    _, out, err = run("check", path, "--to", "1", "--slo", "p90=1s,mean=1s")
    assert "of the whole log, 2 requests failed" in err
    assert "p90: 2 requests of the whole log failed: how many of this part is unknown" in out
    (tmp_path / "b.hlog").write_text(path.read_text() * 2)  # two logs laid end to end
    assert lk.read(tmp_path / "b.hlog").run.timeouts == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        lk.read(path).start = 5


def test_raw_and_corrected_side_by_side(run, tmp_path):
    path = tmp_path / "a.hlog"
    write({"x": LOG}, path)
    out = tmp_path / "a.svg"
    assert run("-q", "chart", path, "--expected-interval", "1ms", "-o", out)[0] == 0
    assert out.read_bytes().startswith(b"<?xml")


def test_csv_has_its_header_though_the_first_log_is_empty(tmp_path):
    path = tmp_path / "out.csv"
    write({"empty": LOG.between(100, 200), "log": LOG}, path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert {row["series"] for row in rows} == {"log"}
    assert sum(int(row["count"]) for row in rows) == LOG.histogram().count


# ---------------------------------------------------------------- from anything to anything


@pytest.fixture
def requests(tmp_path):
    path = tmp_path / "requests.csv"
    values = np.random.default_rng(4).lognormal(2, 0.5, 1200).tolist()
    rows = [f"{5 * k},{value:.3f},{'/a' if k % 3 else '/b'}" for k, value in enumerate(values)]
    path.write_text("\n".join(["start_ms,latency_ms,endpoint", *rows, ""]))
    return path


def series(run, path):
    found = json.loads(run("summary", path, "--format", "json")[1])["series"]
    return {one["name"]: one for one in found}


def test_requests_become_a_tagged_log_that_is_read_without_a_warning(run, requests, tmp_path):
    log = tmp_path / "requests.hlog"
    assert run("convert", requests, log)[0] == 0
    before, after = series(run, requests), series(run, log)
    assert list(after) == ["total", "/a", "/b"]
    for name, record in after.items():
        assert record["count"] == before[name]["count"]
        assert record["max"] == pytest.approx(before[name]["max"], rel=2e-3)
        assert record["unit_from"] == "file"
        assert not [note for note in record["notes"] if "StartTime" in note]


def test_requests_keep_all_their_columns_in_parquet(run, requests, tmp_path):
    pytest.importorskip("pyarrow")
    table = tmp_path / "requests.parquet"
    assert run("convert", requests, table)[0] == 0
    assert series(run, table).keys() == series(run, requests).keys()
    before, after = lk.read_all(requests), lk.read_all(table)
    assert list(after) == list(before)
    for name, one in before.items():
        assert after[name].to_frame().equals(one.to_frame())


def test_the_tool_and_the_loop_are_kept(run, tmp_path):
    source = DATA / "formats/hey-csv"
    path = next(source.glob("*/*.csv"))
    log = tmp_path / "hey.hlog"
    assert run("convert", path, log)[0] == 0
    before, after = lk.read(path).run, lk.read(log).run
    assert (after.tool, after.loop) == (before.tool, before.loop)


def test_requests_and_logs_are_merged(run, requests, tmp_path):
    log, both = tmp_path / "requests.hlog", tmp_path / "both.hlog"
    run("convert", requests, log)
    assert run("merge", requests, log, "-o", both)[0] == 0
    assert {name: one["count"] for name, one in series(run, both).items()} == {
        "total": 2400, "/a": 1600, "/b": 800
    }  # fmt: skip


def test_what_cannot_be_joined_is_named(run, requests, tmp_path):
    for path, reason in (
        (next((DATA / "formats/ab-csv").glob("*/*.csv")), "a summary has no buckets"),
        (next((DATA / "formats/wrk").glob("*/stdout.txt")), "only HDR buckets"),
    ):
        status, _, err = run("-q", "merge", requests, path, "-o", tmp_path / "x.hlog")
        assert (status, path.name in err, reason in err) == (2, True, True)
        assert not (tmp_path / "x.hlog").exists()
        assert "merge takes logs, requests and HDR histograms" in err
        assert "write .csv" not in err  # not of a merge


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_requests_are_merged_as_requests(run, requests, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    both = tmp_path / f"both{suffix}"
    status, out, err = run("merge", requests, requests, "-o", both)
    assert (status, "2,400 values" in out + err) == (0, True)
    merged = lk.read(both, series=None if suffix == ".json" else "total")
    assert isinstance(merged, lk.Samples)
    assert merged.count == 2400
    assert set(merged.tags) == {"/a", "/b"}


def test_requests_stored_in_different_units_are_merged(run, requests, tmp_path):
    seconds, both = tmp_path / "seconds.csv", tmp_path / "both.json"
    seconds.write_text("start_s,latency_s\n0.1,0.25\n0.2,0.5\n")
    assert run("merge", requests, seconds, "-o", both)[0] == 0
    merged = lk.read(both)
    assert (merged.count, merged.max) == (1202, 500e6)


def test_histograms_are_merged_into_one(run, tmp_path):
    path, both = DATA / "formats/redis-benchmark/clipped/stdout.txt", tmp_path / "both.json"
    counted = run.json("merge", path, path, "-o", both)["count"]
    merged, one = lk.read(both), lk.read(path)
    assert isinstance(merged, lk.Histogram)
    assert (merged.count, counted) == (2 * one.count, 2 * one.requests)
    assert merged.max == one.max


# ---------------------------------------------------------------- every sample, there and back

TARGETS = (".hlog", ".hgrm", ".csv", ".json", ".parquet")
PERCENTILES = (50, 90, 99, 99.9)
BUCKET = {".hlog": 2e-3, ".hgrm": 2e-3}  # width of a bucket of the target
REBUILT = ("rebuilt from percentile rows", "of the whole log, ")  # an .hgrm, a part of an .hlog


def written(series, path):
    """The series that a file of this kind takes, written; empty where it takes none."""
    taken = dict([next(iter(series.items()))]) if path.suffix == ".hgrm" else series
    try:
        write(taken, path)
    except lk.LatencyKitError:
        return {}
    return taken


def values(data, unit):
    """Percentiles in another unit of time, where the data has them."""
    scale = 1.0 if data.unit == unit else NANOSECONDS[data.unit] / NANOSECONDS[unit]
    for p in PERCENTILES:
        try:
            yield p, data.percentile(p) * scale
        except lk.DataNotAvailableError:
            continue


def _failures(data):
    return isinstance(data, lk.Samples) and data.outcome is not None and data.outcome.any()


def agree(before, after, suffix):
    """Facts that differ, and percentiles that differ by more than a bucket of the target."""
    facts = [
        f"{name}: {one} is {other}"
        for name in ("tool", "loop", "corrected")
        if (one := getattr(before.run, name)) != (other := getattr(after.run, name))
        and {one, other} != {"none", "unknown"}
    ]
    assumed = [data.run.unit_from == "assumed" for data in (before, after)]
    if before.count != after.count or assumed[0] != assumed[1]:
        facts.append(f"count, unit: {before.count}, {assumed} is {after.count}")
    known, seen = dict(values(before, before.unit)), dict(values(after, before.unit))
    if isinstance(before, lk.Histogram) and suffix in (".csv", ".hlog"):
        reported = () if before.reported_percentiles is None else before.reported_percentiles[0]
        known = {} if suffix == ".csv" or reported else known  # only buckets are written
    if suffix == ".hgrm" or (suffix == ".hlog" and _failures(before)):
        known = {}  # rows to the third decimal place of a millisecond; good requests alone
    tolerance = BUCKET.get(suffix, 1e-9)
    facts += [
        f"p{p}: {value} is {seen.get(p)}"
        for p, value in known.items()
        if seen.get(p) != pytest.approx(value, rel=tolerance)
    ]
    expected = (*before.run.notes, before.run.unit_note, after.run.unit_note)
    return facts + [
        note for note in after.run.notes if note not in expected and not note.startswith(REBUILT)
    ]


@pytest.mark.slow
@cases()
def test_a_sample_is_the_same_after_each_conversion(case, tmp_path):
    pytest.importorskip("pyarrow")
    series = {
        name: data
        for name, data in lk.read_all(case.path, **case.options).items()
        if not data.run.aggregate
    }
    for suffix in TARGETS:
        path = tmp_path / f"sample{suffix}"
        before = written(series, path)
        after = dict(lk.read_all(path)) if before else {}
        if len(before) == 1:  # by tags or endpoints it is a total and its parts
            parts = [data for data in after.values() if not data.run.aggregate]
            after = dict.fromkeys(before, lk.merge(parts) if len(parts) > 1 else parts[0])
        after = {name: after[name] for name in after if name in before}
        assert after.keys() == before.keys(), suffix
        for name, data in before.items():
            assert agree(data, after[name], suffix) == [], (suffix, name)
