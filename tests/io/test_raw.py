"""Raw samples: columns and units by name, what is left out is reported, long tables are counted in bounded memory."""

from __future__ import annotations

import contextlib
import gc
import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.samples import Samples
from latencykit.errors import (
    CorruptInputError,
    InvalidArgumentError,
    LatencyKitError,
    UnknownFormatError,
)
from latencykit.io import rows as table_rows
from latencykit.io.raw import build_samples as gather
from latencykit.io.raw import cells as names
from latencykit.io.raw import cells as values
from latencykit.io.raw.objects import sniff_lines
from latencykit.io.reading import detect, read, read_source
from latencykit.io.source import Confidence, Head, ReadOptions, Source
from latencykit.io.writing import write_series as write

MS = 1_000_000


def only(found):
    (data,) = found.values()
    return data


# ---------------------------------------------------------------- names and units


@pytest.mark.parametrize("header", ["latency", "rt", "duration", "value", "x"])
def test_without_a_unit_one_clear_question(read_text, header):
    with pytest.raises(
        InvalidArgumentError,
        match=rf"x\.csv: column '{header}' states no unit; give it with unit='ns', 'us', 'ms' or 's'",
    ) as caught:
        read_text(f"{header}\n1\n2\n", "x.csv")
    assert "\n" not in str(caught.value)
    assert only(read_text(f"{header}\n1\n2\n", "x.csv", unit="us")).run.unit_from == "option"


@pytest.mark.parametrize(
    "name",
    [
        "p99",
        "p99_latency",
        "avg_latency_ms",
        "latency_mean",
        "max_latency",
        "95th_latency",
        "latency_std",
        "usec_per_call",
    ],
)
def test_statistics_are_not_samples(name):
    assert names.latency_columns([name])[0] == []


@pytest.mark.parametrize(
    "text",
    [
        "name,count,total_ms,avg_ms\na,100,250,2.5\nb,10,50,5\n",
        "name,calls,total_time_ms\na,100,250\nb,10,50\n",
        "endpoint,latency_ms,max,count\na,5,9,10\nb,6,9,12\n",
        "cmd:calls=191,usec=108,usec_per_call=0.57\ncmd:calls=6,usec=26,usec_per_call=4.33\n",
    ],
)
def test_sums_and_means_of_counted_requests_are_not_their_latencies(read_text, text):
    """But a histogram with its running sums is one."""
    running = read_text("latency_ms,count,cum_count\n1,5,5\n2,3,8\n", "y.csv")
    assert only(running).count == 8
    with pytest.raises(LatencyKitError, match=r"statistics|no reader knows"):
        read_text(text, "x.csv")


# ---------------------------------------------------------------- dialects


@contextmanager
def read_by(reader):
    """Have one reader read tables, or pandas where it cannot."""
    with pytest.MonkeyPatch.context() as patch:
        for other in {"numpy", "arrow"} - {reader}:
            patch.setattr(table_rows, f"_by_{other}", lambda *_: None)
        yield


@pytest.mark.parametrize(
    "text",
    [
        "start_s,latency_ms\n0.0,1.5\n0.5,2.25\n", "start_s\tlatency_ms\n0.0\t1.5\n0.5\t2.25\n", "start_s;latency_ms\n0,0;1,5\n0,5;2,25\n",
        "start_s|latency_ms\n0.0|1.5\n0.5|2.25\n", "start_s latency_ms\n0.0 1.5\n0.5    2.25\n", "# start_s latency_ms\n0.0 1.5\n0.5 2.25\n",
        "# a comment\n\nstart_s,latency_ms\n0.0,1.5\n# another\n0.5,2.25\n", 'sep=;\n"start_s";"latency_ms"\n"0,0";"1,5"\n"0,5";"2,25"\n',
        "\ufeffstart_s,latency_ms\r\n0.0,1.5\r\n0.5,2.25\r\n", ("start_s, latency_ms\n0.0, "
                                                               "1.5\n0.5, 2.25\n"), "start_s,latency_ms\n0.0,1.5\n0.5,2.25",
        "start_s,latency_ms\r0.0,1.5\r0.5,2.25\r", 'start_s,text,latency_ms\n0.0,"two\nlines",1.5\n0.5,,2.25\n',
    ],
)  # fmt: skip
@pytest.mark.parametrize("by", ["numpy", "arrow", "pandas"])
def test_one_table_in_every_dress(read_text, by, text):
    with read_by(by):
        data = only(read_text(text, "x.csv"))
    assert data.duration.tolist() == [1_500_000, 2_250_000]
    assert data.start.tolist() == [0, 500_000_000]


CELLS = ("1", "-2.5", "+3", "4e2", "5.", ".5", "007", " 8", "9 ", "1_0", "0x1", "inf", "nan", "-", "", " ", "true", '"1.5"', '"1""5"',
         "12345678901234567890", "0.1234567890123456789", "x", "\xe9", "#", "5ms", "1,5")  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("text", ['"a, {}"', '"a,{}"', "a{}"])
def test_all_readers_read_the_same(tmp_path, cell, lenient, text):
    path, readings = tmp_path / "x.csv", []
    lines = "".join(
        f"{k},{cell if k % 5 == 4 else k / 8},{text.format(cell)},{cell}\n" for k in range(40)
    )
    path.write_text(f"start_s,latency_ms,name,status\n{lines}")
    for by in ("numpy", "arrow", "pandas"):
        with read_by(by):
            try:
                options = ReadOptions(lenient=lenient, columns=True)
                readings.append(read_source(Source(path), options))
            except LatencyKitError as error:
                readings.append(str(error))
    assert readings[0] == readings[1] == readings[2]


@pytest.mark.parametrize(
    "line",
    [
        '9,2,a,"open', '9,2,a"b,"open', '9,2,a"b,c\n9,2,a,"open', '9,2,"open,b', '"9,2,open,b', "9,2,a,b,more",
        "9,2", "", " ", "# 9,2,a,b", f"9,2,a,{'x' * 200_000}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("after", ["", "9,2,a,b\n", '9,2,a,"b"\n9,2,"a",b\n'])
def test_lines_unlike_the_others_are_for_pandas(tmp_path, line, after):
    path, readings = tmp_path / "x.csv", []
    path.write_text(f"start_s,latency_ms,name,tag\n9,2,name,tag\n{line}\n{after}")
    for by in ("arrow", "pandas"):
        with read_by(by):
            try:
                readings.append(read_source(Source(path), ReadOptions(columns=True)))
            except LatencyKitError as error:
                readings.append(str(error))
    assert readings[0] == readings[1]


def test_a_quoted_field_is_not_cut_between_pieces(read_text, monkeypatch):
    monkeypatch.setattr(table_rows.line_chunks, "__defaults__", (64,))
    rows = "".join(f'{k},"line one\nline, ""two"" {k}",{k}.5\n' for k in range(200))
    data = only(read_text(f"id,text,latency_ms\n{rows}", "x.csv"))
    assert data.duration.tolist() == [k * MS + 500_000 for k in range(200)]


# ---------------------------------------------------------------- what a row says


def test_starts_and_ends_say_the_same_as_their_differences(tmp_path, monkeypatch):
    monkeypatch.setattr(gather, "KEPT", 150)
    dice = np.random.default_rng(8)
    start = 10**18 + np.cumsum(dice.integers(1, 10**6, 2000))
    duration = dice.lognormal(14, 1, 2000).astype(np.int64)
    named = pd.DataFrame(
        {"start_ns": start, "duration_ns": duration, "op": dice.choice(["a", "b"], 2000)}
    )
    bare = named.drop(columns="duration_ns").assign(end_ns=start + duration)
    for kind in ("csv", "parquet"):
        for name, frame in (("named", named), ("bare", bare)):
            write_it = frame.to_csv if kind == "csv" else frame.to_parquet
            write_it(tmp_path / f"{name}.{kind}", index=False)
        wanted, found = (read(tmp_path / f"{name}.{kind}") for name in ("named", "bare"))
        assert found.start.tolist() == wanted.start.tolist()
        assert found.duration.tolist() == wanted.duration.tolist()
        assert found.tags == wanted.tags
        counted = read_source(Source(tmp_path / f"bare.{kind}"), ReadOptions(counted=True))
        assert counted["a"].counts.tolist() == wanted.by_tag()["a"].histogram().counts.tolist()


# ---------------------------------------------------------------- corruption


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("latency_ms,a\n1,2\n3,4,5\n6,7\n", 3), ("latency_ms,a\n1,2\nx,4\n6,7\n", 3), ("latency_ms,a\n1,2\n1e400,4\n6,7\n", 3),
        ("took,a\n5ms,2\n6 parsecs,4\n7ms,1\n", 3), ("latency_ms,start_s\n1,2\n\n\n3,yesterday\n6,7\n", 5),
    ],
)  # fmt: skip
def test_corruption_is_named_by_its_line(read_text, text, line):
    with pytest.raises(CorruptInputError, match=rf"x\.csv:{line}: ") as caught:
        read_text(text, "x.csv")
    assert "\n" not in str(caught.value)
    said: list[str] = []
    assert len(only(read_text(text, "x.csv", lenient=True, report=said.append))) == 2
    assert len(said) == 1
    assert f":{line}: " in said[0]


def test_corruption_far_into_a_file_is_named_by_its_line(read_text, monkeypatch):
    monkeypatch.setattr(table_rows.line_chunks, "__defaults__", (1 << 10,))
    rows = [f"{k},{k}.5" for k in range(3000)]
    rows[2500] = "2500,?"
    with pytest.raises(CorruptInputError, match=r"x\.csv:2502: .*2500,\?"):
        read_text("id,latency_ms\n" + "\n".join(rows) + "\n", "x.csv")


def test_rows_that_are_counted_are_not_kept(read_text, monkeypatch):
    monkeypatch.setattr(table_rows.line_chunks, "__defaults__", (1 << 10,))
    monkeypatch.setattr(gather, "KEPT", 100)
    text = "latency_ms,tag\n" + "".join(f"{k},{k % 2}\n" for k in range(3000))
    alive = []
    count = gather.counted

    def counted(samples):
        alive.append(sum(isinstance(thing, Samples) for thing in gc.get_objects()))
        return count(samples)

    monkeypatch.setattr(gather, "counted", counted)
    gc.collect()
    gc.disable()
    try:
        read_text(text, "x.csv", counted=True)
    finally:
        gc.enable()
    assert len(alive) > 20
    assert max(alive) == alive[0]


@pytest.mark.parametrize("bad", ["", "?", "late"])
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_threads_read_the_same(read_text, monkeypatch, name, bad):
    monkeypatch.setattr(table_rows.line_chunks, "__defaults__", (1 << 10,))
    rows = [(2**60 + 1001 * k, k % 7 if k < 700 else k / 8, f"/{k % 5}") for k in range(1500)]
    rows[600] = (rows[600][0], bad or 1, "new")
    if name == "x.csv":
        lines = ["start_ns,latency_ms,tag", *(f"{a},{b},{c}" for a, b, c in rows)]
    else:
        names = ("start_ns", "latency_ms", "tag")
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    readings = []
    for jobs in (1, 2, 5):
        try:
            readings.append(only(read_text("\n".join(lines) + "\n", name, jobs=jobs)))
        except CorruptInputError as error:
            readings.append(str(error))
    assert isinstance(readings[0], str) == bool(bad)
    assert readings[0] == readings[1] == readings[2]


# ---------------------------------------------------------------- containers


def test_every_container_gives_the_same(tmp_path):
    dice = np.random.default_rng(3)
    columns = {"start_ns": 10**18 + np.arange(500, dtype=np.int64) * 1000}
    columns |= {"latency_us": dice.integers(1, 10**6, 500), "ok": dice.random(500) < 0.9}
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_json(tmp_path / "a.json", orient="records")
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=64)
    frame.to_feather(tmp_path / "a.feather")
    np.save(tmp_path / "a.npy", frame.to_records(index=False))
    np.savez(tmp_path / "a.npz", **columns)
    (tmp_path / "b.json").write_text(
        json.dumps({name: column.tolist() for name, column in columns.items()})
    )
    found = {path.name: read(path) for path in sorted(tmp_path.iterdir())}
    assert len(found) == 8
    for name, samples in found.items():
        assert samples.start.tolist() == frame["start_ns"].tolist(), name
        assert samples.duration.tolist() == (frame["latency_us"] * 1000).tolist(), name
        assert samples.good.tolist() == frame["ok"].tolist(), name


def test_words_of_arrow_are_texts_however_they_are_kept(tmp_path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    binary = pa.array([b"/a", None, b"caf\xe9", b"", b"/a"], pa.binary())
    escaped = pa.array(["/a", "caf\\xe9", ""])
    kept = [binary, binary.cast(pa.large_binary()), binary.dictionary_encode()]
    kept.append(pa.DictionaryArray.from_arrays([0, None, 1, 2, 0], escaped))
    for k, words in enumerate(kept):
        table = pa.table({"latency_ms": range(5), "tag": words})
        feather.write_feather(table, tmp_path / f"{k}.feather")
        assert read(tmp_path / f"{k}.feather").tag.tolist() == ["/a", "", "caf\\xe9", "", "/a"]


def test_the_index_of_a_frame_is_not_a_column(tmp_path):
    frame = pd.DataFrame({"latency_ms": [1.5, 2], "start": [0.0, 1], "tag": ["a", "b"]})
    for index in (["start"], ["start", "tag"]):
        frame.set_index(index).to_parquet(tmp_path / "x.parquet")
        assert only(read_source(Source(tmp_path / "x.parquet"), ReadOptions())).start is None


def test_an_arrow_file_whose_texts_end_elsewhere_is_corrupt(tmp_path):
    path = tmp_path / "a.feather"
    names = ["read"] * 50 + ["write"] * 50
    frame = pd.DataFrame({"latency_us": range(1, 101), "op": names})
    frame.to_feather(path, compression="uncompressed")
    ends = np.cumsum([len(name) for name in names]).astype("<i8")  # of pandas' texts
    before, wrong = ends[:50].tobytes(), ends[:50].copy()
    if path.read_bytes().count(before) != 1:  # of older ones
        ends = ends.astype("<i4")
        before, wrong = ends[:50].tobytes(), ends[:50].copy()
    assert path.read_bytes().count(before) == 1
    wrong[20] = 1 << 30
    path.write_bytes(path.read_bytes().replace(before, wrong.tobytes()))
    with pytest.raises(CorruptInputError, match="the Arrow file is corrupt"):
        read(path)


def test_our_own_csv_comes_back(tmp_path):
    samples = Samples(
        start=[10**18, 10**18 + 5], duration=[7, 9], intended=[10**18 - 1, 10**18 + 5],
        outcome=["ok", "timeout"], connection=[3, 4], tag=["a", "b"],
    )  # fmt: skip
    write({"run": samples}, tmp_path / "x.csv")
    again = read(tmp_path / "x.csv")
    for name in ("start", "duration", "intended", "outcome", "connection", "tag"):
        assert getattr(again, name).tolist() == getattr(samples, name).tolist()
    write({"one": samples, "two": samples.tagged("b")}, tmp_path / "y.csv")
    found = read_source(Source(tmp_path / "y.csv"), ReadOptions())
    assert {name: len(one) for name, one in found.items()} == {"one": 2, "two": 1}


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, 1], object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", latency_ms=np.array([{}, 1], object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(LatencyKitError, match=r"not an array of numbers|not arrays of numbers"):
            read(tmp_path / name)


# ---------------------------------------------------------------- long tables


@pytest.mark.slow
@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("measure", [None, "service", "response"])
def test_counted_tables_say_the_same_as_kept_ones(tmp_path, monkeypatch, tagged, measure):
    monkeypatch.setattr(gather, "KEPT", 150)
    monkeypatch.setattr(table_rows.line_chunks, "__defaults__", (1 << 12,))
    dice = np.random.default_rng(7)
    start = 10**18 + np.arange(2000) * 1_000_000
    frame = pd.DataFrame({
        "start_ns": start, "latency_ns": dice.lognormal(14, 1, 2000).astype(int),
        "intended_ns": start - 500_000,
        "status": dice.choice([200, 500, 504], 2000, p=[0.9, 0.05, 0.05]),
    })  # fmt: skip
    if tagged:
        frame["op"] = dice.choice(["get", "put"], 2000)
    frame.to_csv(tmp_path / "x.csv", index=False)
    kept = read(tmp_path / "x.csv", measure=measure)
    options = ReadOptions(counted=True, measure=measure)
    counted = read_source(Source(tmp_path / "x.csv"), options)
    whole = {tag or "x.csv": part.histogram() for tag, part in kept.by_tag().items()}
    assert set(counted) == set(whole)
    for name, mine in counted.items():
        other = whole[name]
        assert isinstance(mine, Histogram)
        for fact in ("count", "min", "max", "censored", "censored_at"):
            assert getattr(mine, fact) == getattr(other, fact)
        for fact in ("failed", "timeouts", "measure", "tags"):
            assert getattr(mine.run, fact) == getattr(other.run, fact)
        assert mine.index.tolist() == other.index.tolist()
        assert mine.counts.tolist() == other.counts.tolist()
        assert any("counted as they were read" in note for note in mine.run.notes)
    if not tagged:
        assert counted["x.csv"].run.duration == pytest.approx(kept.elapsed)
        assert counted["x.csv"].run.start == pytest.approx(kept.run.start)


def test_too_many_tags_are_not_operations(read_text):
    rows = "".join(f"{k},op {k % 300}\n" for k in range(1, 3000))
    s = only(read_text(f"latency_ms,name\n{rows}", "x.csv"))
    assert s.tag is None
    assert any("different values" in note for note in s.run.notes)


# ---------------------------------------------------------------- recognising


@pytest.mark.parametrize(
    ("text", "name", "format_"),
    [
        ("1\n2\n3.5\n", "x", "numbers"), ("5ms\n1.5s\n", "x.txt", "numbers"), ("latency_ms\n1\n", "x.txt", "csv"), ("1 2\n3 4\n", "x.dat", "csv"),
        ('{"latency_ms":1}\n', "x", "jsonl"), ('{"latency_ms":1}\n{"latency_ms":2}\n', "x.json", "jsonl"), ("[1,2]", "x", "json-samples"),
        ('[\n {"latency_ms":1}]', "x", "json-samples"), ('{"results": [{"latency_ms":1}]}', "x", "json-samples"), ('{\n"rt_ms": [1, 2]\n}', "x", "json-samples"),
        ('{"total_time": 1.5, "latencies": [1, 2]}', "x", "json-samples"), ('{"run": {"rps": 4, "latencies": [1, 2]}}', "x", "json-samples"),
    ],
)  # fmt: skip
def test_raw_shapes_are_distinguished(tmp_path, text, name, format_):
    path = tmp_path / name
    path.write_text(text)
    assert detect(Source(path)).name == format_


def test_keys_with_points_are_found_within_objects(read_text):
    rows = [
        {"took_ms": k, "attributes": {"service.name": f"s{k}", "job": {"ok": True}}} for k in (1, 2)
    ]
    (data,) = read_text(json.dumps({"spans": rows}), "x.json").values()
    assert data.columns["attributes.service.name"].tolist() == ["s1", "s2"]
    assert data.good.all()


def test_a_configuration_is_not_a_request():
    text = b'{"workload": {"rps": 25, "duration_s": 60}, "slo": {"p95_latency_ms": 500}}\n'
    assert sniff_lines(Head("x.json", text)) == Confidence.NO


def test_latencies_within_a_report_are_its_samples(read_text):
    text = '{"setup": {"top": 10}, "results": {"total_time": 1.5, "precisions": [1, 1], "latencies": [0.5, 0.25]}}'
    (data,) = read_text(text, "x.json", unit="s").values()
    assert data.values.tolist() == [500_000_000, 250_000_000]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.txt"])
def test_monstrous_and_foreign_cells_are_refused_with_one_voice(read_text, name):
    rows = {"x.csv": "a,latency_ms\n1,2\n", "x.jsonl": '{"latency_ms": 1}\n', "x.txt": "5ms\n6ms\n"}
    long, good = 300_000, rows[name]
    for cell in (b"9" * long, b"x" * long, b"caf\xe9", bytes(range(1, 9)), b"5" * 5000 + b" ms"):
        with pytest.raises(LatencyKitError, match=r"x\.\w+") as caught:
            read_text(good.encode() * 3000 + cell + b"\n" + good.encode(), name)
        assert "\n" not in str(caught.value)
        assert "cannot be read as" not in str(caught.value)


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_a_date_that_nanoseconds_cannot_hold_is_an_error_not_another_date(year):
    times = values.times_of(
        pd.Series(["1970-01-01T00:00:01Z", f"{year}-01-01T00:00:00Z"], dtype=object), "moment", "ns"
    )
    assert (times.ns.tolist(), times.corrupt.tolist()) == ([10**9, 0], [False, True])
    dates = pd.to_datetime(pd.Series(["2026-01-01", f"{year}-01-01"]), errors="coerce")
    frame = pd.DataFrame({"start": dates, "ms": [1, 2]})
    # as a date, or where this pandas has none for it, as an empty cell
    with pytest.raises(InvalidArgumentError):
        Samples.from_frame(frame, start="start", duration="ms", unit="ms")


# ---------------------------------------------------------------- lines of key=value


@pytest.mark.parametrize("run", ["op=a samples=12", "op=a conns=2", "size=3", "p99=3ms op=a"])
def test_pairs_about_runs_are_not_requests(read_text, run):
    text = f"{run} took=8s\n{run} took=2s\n"
    with contextlib.suppress(UnknownFormatError):
        assert all(not isinstance(data, Samples) for data in read_text(text).values())
