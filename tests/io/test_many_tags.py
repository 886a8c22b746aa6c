"""Logs of many tags: their tags are read together, and each is what it is by itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import latencykit as lk
from latencykit.analysis.fan_out import fan_out
from latencykit.cli import cli
from latencykit.core import blocks
from latencykit.errors import CorruptInputError
from latencykit.io.hlog import HlogPart
from latencykit.views.series import series_record
from latencykit.views.tables import MOST_ROWS

TAGS = 26


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Tags of two layouts that take turns, the last of them much longer than the others."""
    rng = np.random.default_rng(1)
    logs = []
    for digits in (2, 3):
        count = TAGS * 60
        tags = rng.integers(0, TAGS + 5, count).clip(0, TAGS - 1)
        samples = lk.Samples(
            start=np.sort(rng.uniform(0, 30e9, count)),
            duration=np.exp(rng.normal(14, 1, count)).astype(np.int64),
            tag=np.array([f"/item/{k}" for k in range(TAGS)])[tags],
        )
        logs.append(samples.to_log("1s", digits=digits))
    found = tmp_path_factory.mktemp("tags") / "many.hlog"
    lk.write(lk.merge(logs), found)
    return found


@pytest.fixture(params=[1 << 25, 20_000, 1_000])
def size(request, monkeypatch):
    """Bytes that are held: of all tags, of some, and less than the longest takes."""
    monkeypatch.setattr(blocks, "_TAG_BYTES", request.param)
    return request.param


def test_each_tag_is_what_it_is_by_itself(path, size):
    log = lk.read(path, unit="ns").to_unit("ms" if size == 20_000 else "ns")
    parts = log.by_tag()
    assert len(parts) == TAGS
    for tag, part in parts.items():
        alone = log.tagged(tag)
        assert part == alone
        assert part.histogram() == alone.histogram()
        assert part.between(5, 20).histogram() == alone.between(5, 20).histogram()
        assert part.run == alone.run
    assert lk.merge(list(parts.values())).histogram() == log.histogram()


def test_they_are_read_together(path, monkeypatch):
    read = []
    blocks_of = HlogPart.blocks
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    monkeypatch.setattr(
        HlogPart, "blocks", lambda part, rows: read.append(rows.size) or blocks_of(part, rows)
    )
    log = lk.read(path, unit="ns")
    for part in log.by_tag().values():
        assert part.histogram().count
        assert part.evidence().rows([50, 99])
    assert sum(read) <= 2 * len(log)
    assert 1 <= len(read) <= 2


def test_they_travel_and_come_in_any_order(path):
    log = lk.read(path, unit="ns")
    parts = pickle.loads(pickle.dumps(log.by_tag()))
    for tag in reversed(parts):
        assert parts[tag].percentile(99) == log.tagged(tag).percentile(99)


def test_samples_of_each_tag_are_what_they_are_by_themselves():
    rng = np.random.default_rng(2)
    samples = lk.Samples(
        start=rng.integers(0, 10**9, 500),
        duration=rng.integers(1, 10**6, 500),
        tag=np.array(["", "get", "set"])[rng.integers(0, 3, 500)],
        host=rng.integers(0, 4, 500).astype(str),
    )
    parts = samples.by_tag()
    assert list(parts) == ["", "get", "set"]
    for tag, part in parts.items():
        alone = samples.tagged(tag)
        assert part.to_frame().equals(alone.to_frame())
        assert (part.run, part.epoch) == (alone.run, alone.epoch)
        assert np.array_equal(part.offsets, alone.offsets)
    assert list(lk.Samples(duration=[1, 2]).by_tag()) == [""]


def test_a_table_shows_what_json_has(path):
    for name, part in lk.read(path, unit="ns").by_tag().items():
        full, brief = (series_record(name, part.with_run(), brief=brief) for brief in (False, True))
        shown = {"value", "bucket_low", "bucket_high", "resolved", "supported"}
        for one, other in zip(full["percentiles"], brief["percentiles"], strict=True):
            assert {key: one[key] for key in shown} == {key: other[key] for key in shown}
        assert brief["trimmed_means"] == {"tm99": full["trimmed_means"]["tm99"]}
        for key in ("count", "max", "mean", "highest_supported_percentile", "findings"):
            assert full[key] == brief[key]


def test_percentiles_of_users_are_the_same_one_by_one_and_together(path):
    log = lk.read(path, unit="ns")
    asked = [1.0, 50.0, 99.0, 99.9, 100.0]
    for independent in (False, True):
        for answer in fan_out(log, [1, 7, 100], independent=independent):
            rows = answer.rows(asked)
            assert rows == [answer.rows([p])[0] for p in asked]
            assert [row.supported for row in rows] == [answer.supported(p) for p in asked]
            if not independent:
                assert [row.value for row in rows] == answer.percentile(asked).tolist()


def test_logs_of_unlike_tags_keep_them_when_merged(path):
    log = lk.read(path, unit="ns")
    both = lk.merge([log, log.tagged("/item/3").with_tag("other")])
    assert both.tagged("other").histogram() == log.tagged("/item/3").histogram().with_run(
        tags=("other",)
    )


def test_a_table_asks_only_the_series_that_it_shows(path, monkeypatch):
    """Its rows are those of a table for which all are asked."""
    names = []
    monkeypatch.setattr(
        "latencykit.views.series.series_record",
        lambda name, *args, **kw: names.append(name) or series_record(name, *args, **kw),
    )
    few, every = (
        CliRunner().invoke(cli, ["summary", str(path), "--unit", "ns", *more])
        for more in ([], ["--notes"])
    )
    assert few.exit_code == every.exit_code == 0
    assert len(names) == MOST_ROWS + TAGS + 1
    rows = few.stdout.splitlines()[:MOST_ROWS]
    assert rows == every.stdout.splitlines()[:MOST_ROWS]
    assert "more series: --format csv has all" in few.stdout


def test_a_corrupt_line_of_a_series_that_is_not_shown_is_an_error(path, tmp_path, monkeypatch):
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(k for k, line in enumerate(lines) if line.startswith(b"Tag=/item/25,"))
    lines[last] = lines[last][:-40] + b"!" + lines[last][-39:]
    bad = tmp_path / "bad.hlog"
    bad.write_bytes(b"".join(lines))
    for command in ("summary", "fanout", "diagnose"):
        done = CliRunner().invoke(cli, [command, str(bad), "--unit", "ns"])
        assert isinstance(done.exception, CorruptInputError)
        assert f"bad.hlog:{last + 1}: " in str(done.exception)


@pytest.mark.parametrize("seed", range(6))
def test_tags_of_a_table_are_those_of_an_array(seed, tmp_path):
    """Tags that a reader has numbered give what a search for them in the rows gives."""
    rng = np.random.default_rng(seed)
    names = np.array(["pay", "", "get", "Äpfel", "a b", "10", "9"])
    tag = names[rng.integers(0, rng.integers(2, len(names) + 1), 400)]
    status = np.where(rng.random(400) < 0.2, 503, 200)
    start, took = np.sort(rng.integers(0, 60 * 10**9, 400)), rng.integers(1, 10**8, 400)
    path = tmp_path / "rows.csv"
    rows = zip(start, took, tag, status, strict=True)
    lines = [f"{a},{b},{c},{d}\n" for a, b, c, d in rows]
    path.write_text("start_ns,latency_ns,operation,status\n" + "".join(lines), encoding="utf-8")
    read = lk.read(path)
    own = lk.Samples(start=read.start, duration=took, tag=read.tag, outcome=read.outcome)
    chosen = rng.random(400) < 0.3
    for some, others in ((read, own), (read.select(chosen), own.select(chosen))):
        assert some.tags == others.tags
        assert list(some.by_tag()) == list(others.by_tag())
        for one, other in zip(some.by_tag().values(), others.by_tag().values(), strict=True):
            assert one.tags == other.tags
            assert np.array_equal(one.duration, other.duration)
            assert np.array_equal(one.tag, other.tag)
        assert (
            some.evidence().events([50, 90]).tolist() == others.evidence().events([50, 90]).tolist()
        )
        assert len(some.where(tag="pay")) == len(others.where(tag="pay"))
    again = pickle.loads(pickle.dumps(read.select(chosen)))
    assert again.tags == own.select(chosen).tags


def test_a_text_diagnoses_no_more_series_than_a_page_shows(path, monkeypatch):
    asked, diagnose = [], lk.diagnose
    monkeypatch.setattr(
        "latencykit.analysis.omission.diagnose",
        lambda data, **known: asked.append(data) or diagnose(data, **known),
    )
    words = ["diagnose", str(path), "--unit", "ns", "--limit", "series=5"]
    for more, number in ([], 5), (["--fail"], TAGS + 1), (["--format", "csv"], TAGS + 1):
        asked.clear()
        done = CliRunner().invoke(cli, [*words, *more])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert len(asked) == number
        assert ("more series: --notes or --series NAME" in done.stdout) == ("csv" not in more)
