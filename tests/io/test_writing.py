"""What every data type becomes in every format that is written, and that it comes back with what it held, or is refused."""

from __future__ import annotations

import csv
from datetime import UTC, datetime

import numpy as np
import pytest

import latencykit as lk
from latencykit.io.writing import write_series as write

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
        ("log", "series,start_s,length_s,tag,index,low_ns,high_ns,count", None),
        ("histogram", "series,low_ns,high_ns,count", 2),
        ("edges", "series,low_ns,high_ns,count", None),
        ("summary", "series,statistic,value_ns", None),
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
    with pytest.raises(
        lk.LatencyKitError, match=r"a\.csv:1: the rows are statistics; expected one row per request"
    ):
        lk.read(path)


@pytest.mark.slow
def test_a_part_by_the_clock(run, tmp_path):
    path = tmp_path / "a.hlog"
    write({"x": LOG}, path)
    moment = datetime.fromtimestamp(1_700_000_000 + 4.5, UTC)
    for text in (moment.isoformat(), moment.replace(tzinfo=None).isoformat(), "4.5"):
        status, out, err = run("summary", path, "--from", text, "--format", "csv")
        assert (status, len(out.splitlines())) == (0, 4)  # heading, total, two tags
        assert "--from/--to left" in err
    assert "is not a time; write seconds" in run("summary", path, "--from", "noon")[2]
    write({"x": LOG.histogram()}, tmp_path / "a.hgrm")
    assert "has no times" in run("summary", tmp_path / "a.hgrm", "--from", "1")[2]


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
