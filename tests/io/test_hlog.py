"""Interval logs: numbers equal the reference's, times are right, corruption is named."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import interval_series, interval_tags
from latencykit.errors import CorruptInputError
from latencykit.io.hgrm import hgrm_lines
from latencykit.io.hlog import write_hlog
from tests.conftest import DATA, LOGS, golden_of

HEAD = (
    "#[Histogram log format version 1.3]\n"
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
)
CTRLZ = DATA / "hlog/hdrhistogram-java-ctrlz-a/uncorrected.hlog"
TAGGED = DATA / "hlog/hdrhistogram-java-tags-basetime/log.hlog"
JHICCUP = DATA / "hlog/jhiccup-gc-serial/hiccup.hlog"
RUST = "rust"


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def ident(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("log", LOGS, ids=ident)
def test_sums_equal_the_reference(log):
    golden = golden_of(log)
    read = lk.read(log, unit="none")
    by_tag = golden.get("aggregate_by_tag") or {"get": golden}
    for tag, want in by_tag.items():
        part = read.tagged(tag) if read.tags else read
        h = part.histogram()
        # The reference ranges the sum of DoubleHistograms anew: it may lie one bucket off.
        close = pytest.approx if want.get("type") == "double" else (lambda value, **_: value)
        assert h.count == want["count"]
        assert h.min == close(want["min"], rel=1e-3)
        assert h.max == close(want["max"], rel=1e-3)
        assert h.mean == (
            pytest.approx(want["mean"], rel=1e-15 if "type" not in want else 1e-3)
            if want.get("type") != "int"
            else want["mean"]
        )
        if "stddev" in want:
            assert h.std == close(want["stddev"], rel=1e-3)
        for p, value in want["percentiles"].items():
            assert h.percentile(float(p)) == close(value, rel=1e-3), p


@pytest.mark.parametrize("log", [log for log in LOGS if RUST not in log.parent.name], ids=ident)
def test_every_interval_equals_the_reference(log):
    golden = json.loads(log.with_suffix(".golden.json").read_text())
    read = lk.read(log, unit="none")
    wanted = [float(p) for p in golden["intervals"][0]["percentiles"]]
    series = interval_series(read, wanted)
    tags = interval_tags(read)
    held = sorted(range(len(read)), key=lambda row: (tags[row], series.start[row]))
    reference = sorted(golden["intervals"], key=lambda row: (row["tag"] or "", row["start_ms"]))
    assert len(held) == len(reference)
    for row, want in zip(held, reference, strict=True):
        assert series.count[row] == want["count"]
        if not want["count"]:
            continue
        # A DoubleHistogram's maximum reaches to the next bucket there; its p100 does not.
        assert series.max[row] == (
            want["percentiles"]["100.0"] if want["type"] == "double" else want["max"]
        )
        assert series.min[row] == want["min"]
        alone = read._view(np.array([row])).histogram()
        assert alone.mean == want["mean"]
        assert alone.std == pytest.approx(want["stddev"], rel=1e-15)
        assert series.values[row].tolist() == list(want["percentiles"].values())
        assert abs((read.start + series.start[row]) * 1000 - want["start_ms"]) <= 1.001


def test_like_gives_the_sum_that_the_reference_prints():
    golden = json.loads(JHICCUP.with_suffix(".golden.json").read_text())["aggregate_by_tag"][""]
    h = lk.read(JHICCUP).histogram(like=HdrBuckets(3, 1))
    assert {p: h.percentile(float(p)) for p in golden["percentiles"]} == golden["percentiles"]
    assert (h.max, h.mean) == (golden["max"], golden["mean"])


@pytest.mark.parametrize("csv", [False, True])
@pytest.mark.parametrize(
    "log",
    [log for log in LOGS if log.with_suffix(".proc.hgrm").exists() and "double" not in str(log)],
    ids=ident,
)
def test_hgrm_rows_are_the_references_to_the_byte(log, csv):
    golden = log.with_suffix(".proc-csv.hgrm" if csv else ".proc.hgrm")
    rows = [
        line
        for line in golden.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    read = lk.read(log)
    if len(rows) < 3:
        pytest.skip("the reference wrote no rows: the log has tagged lines only")
    mine = hgrm_lines((read.tagged("") if "" in read.tags else read).histogram(), 1e6, csv=csv)
    assert [line for line in mine if line.strip() and not line.startswith("#")] == rows


def test_hgrm_footer_equals_the_references():
    log = DATA / "hlog/hdrhistogram-java-plain-2digits/log.hlog"
    footer = [
        line
        for line in log.with_suffix(".proc.hgrm").read_text().splitlines()
        if line.startswith(("#[M", "#[B"))
    ]
    assert hgrm_lines(lk.read(log).histogram(), 1e6)[-3:] == footer


@pytest.mark.parametrize("log", LOGS, ids=ident)
def test_written_and_read_back_is_the_same(log, tmp_path):
    read = lk.read(log)
    write_hlog(read, tmp_path / "copy.hlog")
    copy = lk.read(tmp_path / "copy.hlog")
    assert len(copy) == len(read)
    assert copy.tags == read.tags
    assert copy.run.unit_from == read.run.unit_from  # a guess must not become a fact
    assert copy.starts == pytest.approx(read.starts, abs=0.0011)
    ours, theirs = interval_series(copy, [50, 99]), interval_series(read, [50, 99])
    assert ours.count.tolist() == theirs.count.tolist()
    assert ours.values == pytest.approx(theirs.values, nan_ok=True)


# ---------------------------------------------------------------- tags, times, units


def interval(stamp: str, length: str = "1.000", payload: bytes | None = None) -> bytes:
    body = payload or lines_of(CTRLZ)[5].split(b",")[3].strip()
    return f"{stamp},{length},1.000,".encode() + body + b"\n"


@pytest.mark.parametrize(
    ("head", "stamps", "start", "offsets"),
    [
        (
            "#[StartTime: 1441812279.474 (seconds since epoch)]\n",
            ("0.127", "1.134"),
            1441812279.474,
            (0.127, 1.134),
        ),
        (
            "#[StartTime: 1441812279.474]\n",
            ("1441812279.500", "1441812280.5"),
            1441812279.474,
            (0.026, 1.026),
        ),
        (
            "#[StartTime: 1441812279.474]\n#[BaseTime: 1441812279.474]\n",
            ("0.5", "1.5"),
            1441812279.474,
            (0.5, 1.5),
        ),
        ("#[Basetime: 1441812279]\n", ("2.0", "3.0"), 1441812281.0, (0.0, 1.0)),
        ("", ("1441812279.500", "1441812280.5"), 1441812279.5, (0.0, 1.0)),
        ("", ("5.0", "6.0"), None, (0.0, 1.0)),
        ("#[StartTime: 44.000]\n", ("44.5", "45.5"), None, (0.5, 1.5)),
        ("#[StartTime: 1441812279.474]\n", ("-0.001", "1.0"), 1441812279.474, (-0.001, 1.0)),
    ],
)
def test_start_and_base_times(tmp_path, head, stamps, start, offsets):
    path = tmp_path / "x.hlog"
    path.write_bytes((head + HEAD).encode() + b"".join(interval(stamp) for stamp in stamps))
    log = lk.read(path)
    assert log.start == (None if start is None else pytest.approx(start))
    assert log.starts == pytest.approx(offsets, abs=1e-6)


def test_end_times_in_the_second_column_become_lengths(tmp_path):
    path = tmp_path / "c.hlog"
    legend = HEAD.replace("Interval_Length", "EndTimestamp")
    rows = b"".join(interval(f"{k}.0", f"{k + 1}.0") for k in range(3))
    path.write_bytes(b"#[StartTime: 1441812279.0]\n" + legend.encode() + rows)
    log = lk.read(path)
    assert log.lengths.tolist() == [1.0, 1.0, 1.0]
    assert any("end times" in note for note in log.run.notes)


def test_unsorted_lines_are_sorted_and_said_so(tmp_path):
    path = tmp_path / "x.hlog"
    path.write_bytes(HEAD.encode() + interval("7.0") + interval("5.0") + interval("6.0"))
    log = lk.read(path)
    assert (log.starts.tolist(), log.histogram().count) == (
        [-2.0, -1.0, 0.0],
        3 * lk.read(path).between(0, 1).histogram().count,
    )
    assert any("sorted" in note for note in log.run.notes)


@pytest.mark.parametrize(
    ("comment", "option", "unit", "origin"),
    [
        ("", None, "ns", "assumed"),
        ("", "us", "us", "option"),
        (
            "#UNITS: StartTimestamp = seconds; values in the histogram = microseconds\n",
            None,
            "us",
            "file",
        ),
        ("#[Logging for: READ]\n", None, "us", "file"),
        ("#[Logged with jHiccup version 2.0.11]\n", None, "ns", "file"),
    ],
)
def test_the_unit_and_where_it_comes_from(tmp_path, comment, option, unit, origin):
    path = tmp_path / "x.hlog"
    path.write_bytes(comment.encode() + HEAD.encode() + interval("0.0"))
    log = lk.read(path, unit=option)
    assert (log.unit, log.run.unit_from) == (unit, origin)


# ---------------------------------------------------------------- odd and corrupt input


ODDITIES = {
    "bom and no header": lambda data: (
        b"\xef\xbb\xbf" + b"".join(line for line in data.splitlines(True) if line[:1] not in b'#"')
    ),
    "blank lines": lambda data: data + b"\n\n",
    "blanks": lambda data: data.replace(b",1.004,", b", 1.004 ,"),
}


@pytest.mark.parametrize("name", ODDITIES)
def test_harmless_oddities_change_nothing(tmp_path, name):
    """Further ones are in the catalogue of `test_bad_inputs`."""
    path = tmp_path / "odd.hlog"
    path.write_bytes(ODDITIES[name](CTRLZ.read_bytes()))
    assert lk.read(path).histogram().count == 6852


CORRUPTIONS = {
    "bad base64": lambda line: line[:-20] + b"!!!!\n",
    "cut payload": lambda line: line[: len(line) // 2] + b"\n",
    "glued": lambda line: line.rstrip() + line,
    "nan stamp": lambda line: b"nan," + line.split(b",", 1)[1],
    "infinite length": lambda line: (
        line.split(b",")[0] + b",inf," + b",".join(line.split(b",")[2:])
    ),
    "decimal commas": lambda line: line.replace(b".", b",", 3),
    "underscore": lambda line: b"1_0.0," + line.split(b",", 1)[1],
    "nul bytes": lambda line: line[:9] + b"\0\0" + line[11:],
    "text": lambda _: b"out of memory\n",
    "tag without comma": lambda line: b"Tag=x" + line,
    "no payload": lambda line: b",".join(line.split(b",")[:3]) + b",\n",
    "unknown cookie": lambda line: b",".join(line.split(b",")[:3]) + b",AAAAAAAAAAAAAAAAAAAAAAAA\n",
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corruption_is_named_with_its_line_and_lenient_reads_the_rest(tmp_path, name):
    lines = lines_of(CTRLZ)
    at = 9
    lines[at] = CORRUPTIONS[name](lines[at])
    path = tmp_path / "broken.hlog"
    path.write_bytes(b"".join(lines))
    with pytest.raises(CorruptInputError) as caught:
        lk.read(path)
    assert caught.value.line == at + 1
    assert f"broken.hlog:{at + 1}: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "4 intervals before it were read" in str(caught.value)
    log = lk.read(path, lenient=True)
    assert len(log) == 20
    assert "1 corrupt line was skipped" in log.run.notes


@pytest.mark.parametrize("cut", [10, 100, 200])
def test_a_line_cut_at_the_very_end_is_a_note(tmp_path, cut):
    path = tmp_path / "growing.hlog"
    path.write_bytes(CTRLZ.read_bytes()[:-cut])
    log = lk.read(path)
    whole = [line for line in lines_of(path)[:-1] if b",HIST" in line]
    assert len(log) == len(whole)
    assert any("incomplete" in note for note in log.run.notes)


def test_a_log_of_headers_alone_has_no_intervals(tmp_path):
    path = tmp_path / "head.hlog"
    path.write_text(HEAD)
    log = lk.read(path)
    assert (len(log), log.histogram().count) == (0, 0)
    assert "the log holds no interval" in log.run.notes


def test_two_logs_end_to_end_keep_their_own_clocks(tmp_path):
    path = tmp_path / "both.hlog"
    one = b"#[StartTime: 1441812279.000]\n" + HEAD.encode() + interval("0.5")
    two = b"#[StartTime: 1441812379.000]\n" + HEAD.encode() + interval("0.5")
    path.write_bytes(one + two)
    assert lk.read(path).starts.tolist() == [0.5, 100.5]


def test_a_large_log_is_decoded_when_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    monkeypatch.setattr("latencykit.io.hlog.CHUNK", 1)
    lines = lines_of(CTRLZ)
    path = tmp_path / "large.hlog"
    path.write_bytes(b"".join(lines))
    assert lk.read(path).histogram().count == 6852
    assert (
        interval_series(lk.read(path).between(2, 4)).count.tolist()
        == interval_series(lk.read(CTRLZ).between(2, 4)).count.tolist()
    )
    lines[9] = CORRUPTIONS["bad base64"](lines[9])
    path.write_bytes(b"".join(lines))
    log = lk.read(path)
    with pytest.raises(CorruptInputError, match=r"large\.hlog:10: "):
        log.histogram()


def facts(path: Path, *, lenient: bool = False) -> tuple[object, ...]:
    """All that reading a log gives: its numbers, or its error."""
    try:
        log = lk.read(path, unit="none", lenient=lenient)
        series = interval_series(log, [50, 99])
    except CorruptInputError as error:
        return (str(error),)
    arrays = (log.starts, log.lengths, series.count, series.max, series.values)
    # for NaN is not NaN
    return (*(repr(array.tolist()) for array in arrays), interval_tags(log), log.run.notes)


@pytest.mark.slow
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("corruption", ["none", *CORRUPTIONS])
def test_lines_taken_together_mean_what_they_mean_one_by_one(
    tmp_path, monkeypatch, corruption, large, lenient
):
    tagged = [line for line in lines_of(TAGGED) if not line.startswith((b"#", b'"'))]
    lines = lines_of(JHICCUP) + tagged
    if corruption != "none":
        lines[20] = CORRUPTIONS[corruption](lines[20])
    path = tmp_path / "log.hlog"
    path.write_bytes(b"".join(lines))
    if large:
        monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    together = facts(path, lenient=lenient)
    monkeypatch.setattr("latencykit.io.hlog.AHEAD", 1000)
    assert facts(path, lenient=lenient) == together
    monkeypatch.setattr("latencykit.io.hlog.columns_of", lambda *_: None)
    assert facts(path, lenient=lenient) == together


# ---------------------------------------------------------------- cut, removed or added to after the scan

HLOG = Path(__file__).parents[2] / "data/jhiccup-v2.hlog"


def vanish(path: Path) -> None:
    os.truncate(path, 0)


def disappear(path: Path) -> None:
    path.unlink()


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def log(request, tmp_path, monkeypatch):
    """A log that keeps nothing in memory, and where it lies."""
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    monkeypatch.setattr("latencykit.io.hlog.CHUNK", 1)
    path = tmp_path / "growing.hlog"
    filler = b"#" + bytes(range(65, 91)) * 4 + b"\n"  # a small file is in memory
    text = HLOG.read_bytes() + filler * 1000
    path.write_bytes(gzip.compress(text) if request.param else text)
    return lk.read(path, unit="ns"), path


@pytest.mark.parametrize("change", [vanish, disappear])
def test_a_log_that_is_gone_between_its_scan_and_its_decoding(change, log):
    read, path = log
    change(path)
    with pytest.raises(CorruptInputError) as caught:
        read.histogram()
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_log_that_grows_is_what_it_was(log):
    read, path = log
    count = lk.read(path, unit="ns").histogram().count
    more = b"Tag=new,1,2,3,HISTF" * 1000
    with path.open("ab") as end:
        end.write(gzip.compress(more) if path.read_bytes()[:1] == b"\x1f" else more)
    assert read.histogram().count == count
