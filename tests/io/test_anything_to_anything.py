"""Requests become tagged logs; logs, requests and histograms are merged; what was written raises no warning."""

from __future__ import annotations

import json

import numpy as np
import pytest

import latencykit as lk
from tests.conftest import DATA


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
    path, both = next((DATA / "formats/wrk").glob("*/stdout.txt")), tmp_path / "both.json"
    assert run("merge", path, path, "-o", both)[0] == 0
    merged, one = lk.read(both), lk.read(path)
    assert isinstance(merged, lk.Histogram)
    assert merged.count == 2 * one.count
    assert merged.max == one.max
