"""Sources and `read`: compression, standard input, encodings, names, options and what is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit._limits import limits
from latencykit.core.histogram import Histogram
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import (
    CorruptInputError,
    DataNotAvailableError,
    InputTooLargeError,
    InvalidArgumentError,
    LatencyKitError,
    MissingPackageError,
    ReaderError,
    UnknownFormatError,
)
from latencykit.io import reading
from latencykit.io.source import Confidence, Format, Head, ReadOptions, Source

NOISE = np.random.default_rng(1).integers(0, 256, 400_000, np.uint8).tobytes()
PLAIN = b"the first line\nthe second\n" * 4000


def zst(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)


PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": zst}


def fake(
    name: str, confidence: Confidence = Confidence.CERTAIN, series=None, sniff=None, read=None
) -> Format:
    """A format that recognises texts with its name, and returns what it is given."""
    given = {"": Histogram.of([1, 2, 3])} if series is None else series
    return Format(
        name, name, "histogram", (".txt",),
        sniff or (lambda head: confidence if name in head.text else Confidence.NO),
        read or (lambda source, options: given),
    )  # fmt: skip


def raising(cause: BaseException):
    """A sniffer or a reader that breaks."""

    def broken(*_):
        raise cause

    return broken


def _in_place_of_all(monkeypatch, formats):
    monkeypatch.setattr(reading.registry, "all_formats", lambda: formats)
    monkeypatch.setattr(reading.registry, "rounds", lambda head: (formats, (), ()))
    monkeypatch.setattr(reading.registry, "named_format", {one.name: one for one in formats}.get)


@pytest.fixture
def only(monkeypatch):
    """Put these formats in the place of all others."""
    return lambda *formats: _in_place_of_all(monkeypatch, formats)


@pytest.fixture
def file(tmp_path):
    def make(content: bytes | str, name: str = "in.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture
def stdin(monkeypatch):
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


# ---------------------------------------------------------------- compression


@pytest.mark.parametrize("kind", PACKERS)
def test_compression_is_detected_by_magic_not_by_name(file, kind):
    source = Source(file(PACKERS[kind](PLAIN), "run.txt"))
    assert source.bytes() == PLAIN
    assert source.head.data == PLAIN[: 64 * 1024]
    assert source.compressed
    assert not source.cut
    assert Source(file(PACKERS[kind](PLAIN), f"run.txt.{kind}")).name == "run.txt"
    assert Source(file(PLAIN, f"odd.txt.{kind}")).bytes() == PLAIN
    two = PACKERS[kind](b"a\n") + PACKERS[kind](b"b\n")
    assert Source(file(two)).bytes() == b"a\nb\n"


@pytest.mark.parametrize("kind", PACKERS)
def test_a_stream_cut_at_its_end_keeps_what_was_decoded(file, kind):
    packed = PACKERS[kind](NOISE)
    source = Source(file(packed[: len(packed) // 2]))
    kept = source.bytes()
    assert source.cut
    assert NOISE.startswith(kept)
    assert len(kept) > 1000 or kind == "bz2"  # bzip2's blocks are 900 kB


@pytest.mark.parametrize("kind", PACKERS)
def test_a_stream_corrupt_inside_is_an_error_with_the_path(file, kind):
    packed = bytearray(PACKERS[kind](NOISE))
    packed[60:200] = b"\xff" * 140
    path = file(bytes(packed))
    with pytest.raises(CorruptInputError, match=f"^{path}: the compressed stream is corrupt"):
        Source(path).bytes()


def test_a_cut_stream_is_noted(file, only):
    packed = gzip.compress(b"alpha" + os.urandom(200_000))
    only(fake("alpha", read=lambda source, _: {"": Histogram.of([len(source.bytes())])}))
    found = lk.read(file(packed[:-20_000]))
    assert "the compressed file is truncated at its end" in found.run.notes


def test_zst_without_its_package(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingPackageError, match="zstandard"):
        Source(file(b"\x28\xb5\x2f\xfd....")).bytes()


def test_gzip_without_isal(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "isal", None)
    assert Source(file(gzip.compress(PLAIN))).bytes() == PLAIN


def test_sources_open_again_and_again(file):
    source = Source(file(gzip.compress(PLAIN)))
    with source.open() as stream:
        assert stream.read(5) == PLAIN[:5]
        stream.seek(4)
        assert stream.read(5) == PLAIN[4:9]
    assert source.bytes() == source.bytes() == PLAIN


def test_a_bomb_stops_at_the_limit(file):
    source = Source(file(gzip.compress(bytes(10_000_000))))
    with (
        limits(whole="1MiB"),
        pytest.raises(
            InputTooLargeError, match=r"in\.txt: more than 1,048,576 bytes unpacked.*--limit whole"
        ),
    ):
        source.bytes()


# ---------------------------------------------------------------- standard input, directories, what
# is not there


def test_standard_input_is_spooled_and_opens_again(stdin, only):
    stdin(gzip.compress(b"alpha\n"))
    source = Source("-")
    assert (source.name, source.bytes(), source.bytes()) == ("stdin", b"alpha\n", b"alpha\n")
    assert source.head.data == b"alpha\n"
    assert not source.is_dir
    only(fake("alpha"))
    stdin(b"alpha\n")
    assert list(lk.read_all("-")) == ["stdin"]
    stdin(b"")
    with pytest.raises(CorruptInputError, match="-: the file is empty"):
        lk.read("-")


def test_a_directory_goes_to_the_formats_that_are_one(tmp_path, only):
    def sniff(head: Head) -> Confidence:
        marked = head.is_dir and (head.path / "mark").exists()
        return Confidence.CERTAIN if marked else Confidence.NO

    only(fake("folder", sniff=sniff))
    (tmp_path / "out").mkdir()
    with pytest.raises(UnknownFormatError, match="out: no reader knows this"):
        lk.read(tmp_path / "out")
    (tmp_path / "out" / "mark").touch()
    assert list(lk.read_all(tmp_path / "out")) == ["out"]


@pytest.mark.parametrize(
    "name",
    ["ab", "fio", "fortio-text", "h2load", "hey", "k6", "sysbench", "vegeta-report", "wrk", "wrk2"],
)
def test_a_quoted_report_reads_like_the_report(name, tmp_path):
    """Indented as in Markdown, in a reply, a comment, a container's output or a CI server's log."""
    (original, *_) = sorted((Path(__file__).parents[1] / "data" / "formats" / name).rglob("*.txt"))
    lines, quoted = original.read_text().splitlines(), tmp_path / original.name
    expected = lk.read_all(original)
    for quote in (
        "    ", "> ", "# ", "load-1  | ", "2026-05-01T10:00:%02d.1234567Z ",
        "[2026-05-01 10:00:%02d] ", "May 01 10:00:%02d host bench[12]: ", "[INFO] ",
    ):  # fmt: skip
        text = (quote % (k % 60) if "%" in quote else quote for k in range(len(lines)))
        quoted.write_text(
            "\n".join(f"{a}{b}".rstrip() for a, b in zip(text, lines, strict=True)) + "\n"
        )
        assert lk.read_all(quoted) == expected, quote


def test_missing_files_and_directories_give_one_line(tmp_path, monkeypatch):
    for kind in (CorruptInputError, FileNotFoundError, lk.InputError):
        with pytest.raises(kind, match=r"none\.csv: cannot be read: No such file"):
            lk.read(tmp_path / "none.csv")
    with pytest.raises(CorruptInputError, match="this is a directory; expected a file"):
        Source(tmp_path).bytes()
    monkeypatch.chdir(tmp_path)
    assert Source(".").name == tmp_path.name


# ---------------------------------------------------------------- encodings


def test_marks_and_line_ends_are_taken_off(file):
    source = Source(file(b"\xef\xbb\xbfone\r\ntwo\r\n"))
    assert source.text() == "one\ntwo\n"
    assert source.head.text == "one\ntwo\n"
    assert source.head.lines == ["one", "two"]


def test_foreign_bytes_stay_in_the_text(file):
    text = Source(file(b"caf\xe9\n")).text()
    assert text.encode("utf-8", "surrogateescape") == b"caf\xe9\n"


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_text_that_powershell_wrote_is_read(file, mark):
    """Its ``>`` writes UTF-16, of any size, with a mark."""
    rows = "start_ns,latency_ns\r\n" + "1,2\r\n" * 20_000
    path = file(mark + rows.encode("utf-16-le" if mark == b"\xff\xfe" else "utf-16-be"))
    data = lk.read(path)
    assert (data.run.format, len(data)) == ("csv", 20_000)
    assert not any("truncated" in note for note in data.run.notes)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_named(file, encoding):
    path = file("start_ns,latency_ns\n1,2\n".encode(encoding))
    with pytest.raises(LatencyKitError, match="the text is UTF-16 or UTF-32; expected UTF-8"):
        lk.read(path)


def test_the_head_leaves_a_cut_line_out(file):
    whole = Source(file(b"one\ntwo")).head
    assert whole.whole
    assert whole.lines == ["one", "two"]
    head = Source(file(b"0123456789\n" * 10_000)).head
    assert not head.whole
    assert set(head.lines) == {"0123456789"}


# ---------------------------------------------------------------- which format


@pytest.mark.parametrize("content", [b"", b"\n \t\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_an_empty_file_says_so(file, content):
    with pytest.raises(CorruptInputError, match=r"in\.txt: the file is empty"):
        lk.read(file(content))


def test_the_surest_wins_and_equals_are_listed(file, only):
    one, two = fake("alpha", Confidence.LIKELY), fake("beta", Confidence.CERTAIN)
    only(one, two, fake("gamma", Confidence.LIKELY))
    assert reading.detect(Source(file("alpha beta"))).name == "beta"
    assert reading.detect(Source(file("alpha"))).name == "alpha"
    with pytest.raises(
        UnknownFormatError, match="could be any of alpha, gamma; choose one with --format-in"
    ):
        reading.detect(Source(file("alpha gamma")))
    assert reading.detect(Source(file("alpha gamma")), "gamma").name == "gamma"


def test_unknown_inputs_and_unknown_names(file):
    with pytest.raises(
        UnknownFormatError,
        match=r"in\.txt: no reader knows this input \(it begins 'a \\x1b\[2Jb'\)",
    ):
        lk.read(file("a \x1b[2Jb\n"))
    with pytest.raises(
        InvalidArgumentError, match=r"'nosuch' is not a format; the formats are .*hlog"
    ):
        lk.read(file("x"), format="nosuch")


BROKEN = [
    *(KeyError("key"), RuntimeError(), AssertionError("a\nb"), ZeroDivisionError("x")),
    *(RecursionError(), StopIteration()),
]


@pytest.mark.parametrize("cause", BROKEN, ids=lambda cause: type(cause).__name__)
def test_a_reader_that_breaks_is_reported_as_a_bug_of_that_reader(file, only, run, cause):
    only(fake("alpha", read=raising(cause)))
    path = file("alpha")
    words = rf"^{path}: the reader alpha broke .*{type(cause).__name__}.*send us the file$"
    with pytest.raises(ReaderError, match=words) as caught:
        lk.read(path)
    assert caught.value.__cause__ is cause
    status, out, err = run("summary", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "cause", [MemoryError(), KeyboardInterrupt(), OSError(5, "Input/output error")], ids=repr
)
def test_what_is_not_a_bug_of_a_reader_passes(file, only, cause):
    path = file("alpha")
    for one in (fake("alpha", read=raising(cause)), fake("beta", sniff=raising(cause))):
        only(one)
        with pytest.raises(type(cause)) as caught:
            lk.read(path)
        assert caught.value is cause


@pytest.mark.parametrize(
    "cause", [*BROKEN, LatencyKitError("x")], ids=lambda cause: type(cause).__name__
)
def test_detection_survives_any_sniffer(file, only, cause):
    path = file("alpha")
    bad, good = fake("bad", sniff=raising(cause)), fake("alpha", Confidence.LIKELY)
    only(bad, good)
    assert lk.read(path).count == 3
    only(bad)
    if isinstance(cause, LatencyKitError):
        with pytest.raises(UnknownFormatError):
            lk.read(path)
        return
    with pytest.raises(
        ReaderError, match=rf"^{path}: the reader bad broke over this file .*send us the file$"
    ) as caught:
        lk.read(path)
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "1" * 6000, "nan", "1.2.3"])
def test_text_that_is_not_a_number_is_the_inputs_fault(file, only, text):
    only(fake("alpha", read=lambda *_: int(text)))
    with pytest.raises(CorruptInputError, match="cannot be read as a number"):
        lk.read(file("alpha"))
    only(fake("alpha", read=raising(InvalidArgumentError("'x ms' is not a valid duration"))))
    path = file("alpha")
    with pytest.raises(CorruptInputError, match=f"^{path}: 'x ms' is not a valid duration"):
        lk.read(path)


@pytest.mark.parametrize("series", [{}, {"": Summary()}])
def test_an_output_without_latencies_is_an_error(file, only, series):
    only(fake("alpha", series=series))
    with pytest.raises(CorruptInputError, match=r"contains no latencies"):
        lk.read(file("alpha"))


# ---------------------------------------------------------------- names, series, tags, measures,
# units


def samples(**facts) -> Samples:
    return Samples(start=[0, 100, 200], duration=[10, 20, 30], intended=[0, 50, 100], **facts)


def test_equal_names_get_as_much_of_the_path_in_front_as_distinguishes_them(tmp_path, only):
    two = {"GET": Histogram.of([1]), "SET": Histogram.of([2])}
    only(fake("alpha", series=two), fake("beta"))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text("alpha")
        (tmp_path / folder / "y.txt").write_text("beta")
    found = lk.read_all([tmp_path / "a" / "x.txt", tmp_path / "a" / "y.txt"])
    assert list(found) == ["GET", "SET", "y.txt"]
    both = lk.read_all([tmp_path / f / name for f in "ab" for name in ("x.txt", "y.txt")])
    assert list(both) == [
        f"{folder}/{name}" for folder in "ab" for name in ("x.txt:GET", "x.txt:SET", "y.txt")
    ]
    assert list(lk.read_all([tmp_path / "a" / "y.txt"] * 2)) == ["y.txt", "y.txt (2)"]


def test_several_series_and_none_named(file, only):
    only(fake("alpha", series={"GET": Histogram.of([1]), "SET": Histogram.of([2])}))
    path = file("alpha")
    with pytest.raises(
        InvalidArgumentError, match=r"in\.txt: has several series: GET, SET; name one with series="
    ):
        lk.read(path)
    assert lk.read(path, series="SET").max == 2
    with pytest.raises(
        InvalidArgumentError, match="has no series 'DEL'; there are 'GET' and 'SET'"
    ):
        lk.read(path, series="DEL")
    assert list(lk.read_all(path, series="GET")) == ["GET"]
    assert list(lk.read_all(path, series=["SET", "GET"])) == ["GET", "SET"]
    with pytest.raises(InvalidArgumentError, match="an empty list selects nothing"):
        lk.read_all(path, series=[])
    with pytest.raises(InvalidArgumentError, match="none of the files has"):
        lk.read_all(path, series="DEL")


def test_tags_of_samples(file, only):
    only(fake("alpha", series={"": samples(tag=["get", "put", "get"])}))
    path = file("alpha")
    assert len(lk.read(path)) == 3
    assert len(lk.read(path, tag="get")) == len(lk.read(path, series="get")) == 2
    assert {name: len(one) for name, one in lk.read_all(iter([path])).items()} == {
        "get": 2,
        "put": 1,
    }
    assert list(lk.read_all(path, tag="put")) == ["put"]
    with pytest.raises(InvalidArgumentError, match="no row is tagged 'del'; the tags are get, put"):
        lk.read(path, tag="del")
    with pytest.raises(InvalidArgumentError, match="none of the files has"):
        lk.read_all(path, tag="del")
    only(fake("alpha"))
    with pytest.raises(InvalidArgumentError, match=r"in\.txt: a histogram has no tags"):
        lk.read(file("alpha"), tag="get")


def test_measures(file, only):
    from latencykit.core.run import Run

    only(fake("alpha", series={"": samples(run=Run(measure="response"))}), fake("beta"))
    path = file("alpha")
    assert lk.read(path).values.tolist() == [10, 70, 130]
    assert lk.read(path, measure="service").values.tolist() == [10, 20, 30]
    assert lk.read(path, measure="response").values.tolist() == [10, 70, 130]
    with pytest.raises(
        InvalidArgumentError, match="measure must be 'response' or 'service', not 'wait'"
    ):
        lk.read(path, measure="wait")
    assert lk.read(file("beta"), measure="service").count == 3  # of unknown measure: the user knows
    only(fake("beta", series={"": Histogram.of([1], run=Run(measure="service"))}))
    with pytest.raises(DataNotAvailableError, match="has service times only"):
        lk.read(file("beta"), measure="response")
    only(fake("beta", series={"": Samples(duration=[1, 2])}))
    with pytest.raises(DataNotAvailableError, match="do not state when each request was due"):
        lk.read(file("beta"), measure="response")


def test_units(file, only):
    assert ReadOptions().resolve_unit("ms") == ("ms", "format")
    assert ReadOptions(unit="us").resolve_unit("ms") == ("us", "option")
    with pytest.raises(
        InvalidArgumentError, match="unit must be one of ns, us, ms, s, none; not 'min'"
    ):
        lk.read(file("alpha"), unit="min")
    only(fake("alpha"))
    with pytest.raises(
        InvalidArgumentError, match=r"in\.txt: alpha states its unit itself; leave unit="
    ):
        lk.read(file("alpha"), unit="us")


def test_the_table_of_formats():
    table = lk.formats()
    assert {"hlog", "hgrm", "json"} <= set(table.index)
    assert table.loc["hlog", "writes"]
    columns = ["title", "suffixes", "data_type", "unit", "reads", "writes", "example"]
    assert list(table.columns) == columns
