"""The catalogue of bad inputs, row by row: what each does over the library and the command line.

``REFUSED`` holds lines that are errors by default and skipped under lenient, ``WHOLE`` files that
are refused whole, ``TAKEN`` oddities that are read; ``ELSEWHERE`` names the tests of the rows that
are about something else.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import lzma
import re
import struct
import zlib
from pathlib import Path

import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError
from tests.cli.test_hostile import payload

HERE = Path(__file__).parents[1]
ONE = payload(b"\2")
RAW = base64.b64decode(ONE)
TOP = (1 << 63) - 1
END = b"\x02"


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def envelope(stream: bytes, length: int | None = None, cookie: int = 0x1C849314) -> str:
    return text(struct.pack(">Ii", cookie, len(stream) if length is None else length) + stream)


def words(body: bytes, cookie: int = 0x1C849321, **fields: int) -> str:
    """A V1 payload of words of two bytes, not compressed."""
    usual = {"size": len(body), "offset": 0, "digits": 3, "low": 1, "high": 3_600_000_000_000}
    return text(struct.pack(">Iiiiqqd", cookie, *(usual | fields).values(), 1.0) + body)


def line(one: str = ONE, stamp: str = "1.0", length: str = "1.0", tag: str = "") -> str:
    return f"{tag}{stamp},{length},1.0,{one}\n"


REFUSED: dict[str, str] = {
    "7 NUL bytes": line(stamp="1\0.0"),
    "15 a blank in base64": line(ONE[:20] + " " + ONE[20:]),
    "15 foreign characters": line(ONE[:20] + "*" + ONE[21:]),
    "16 padding": line(ONE[:-1]),
    "17 no payload": line(""),
    "17 a short payload": line("AAAA"),
    "18 outer length too long": line(envelope(RAW[8:], len(RAW))),
    "18 outer length too short": line(envelope(RAW[8:], 5)),
    "18 outer length negative": line(envelope(RAW[8:], -1)),
    "19 unknown cookie": line(envelope(RAW[8:], cookie=0x1C849999)),
    "22 compressed data corrupt": line(envelope(RAW[8:12] + b"\xff" + RAW[13:])),
    "22 compressed data cut": line(envelope(RAW[8:-6])),
    "23 bytes behind it": line(envelope(RAW[8:] + b"more")),
    "24 bomb": line(payload(bytes(17 << 20))),
    "25 header cut": line(envelope(zlib.compress(b"\x1c\x84\x93\x13 short"))),
    "26 counts announced that are not there": line(payload(END, size=TOP >> 32)),
    "26 counts of a negative length": line(payload(END, size=-1)),
    "27 number cut": line(payload(b"\x80")),
    "28 a number too large": line(payload(b"\xff" * 9 + END)),
    "29 empty buckets past the end": line(payload(b"\xff\xff\xff\xff\x0f")),
    "30 most empty buckets of all": line(payload(b"\xff" * 9)),
    "31 more counts than buckets": line(payload(END * 3000, high=2)),
    "32 half a word": line(words(b"\0\1\0")),
    "33 a negative word": line(words(b"\xff\xff")),
    "34 counts beyond 2^63": line(payload((b"\xfe" + b"\xff" * 8) * 2)),
    "35 digits": line(payload(END, digits=6)),
    "35 digits negative": line(payload(END, digits=-1)),
    "36 lowest zero": line(payload(END, low=0)),
    "36 lowest too large": line(payload(END, low=TOP, high=TOP)),
    "36 highest too small": line(payload(END, low=10, high=19)),
    "38 ratio not a number": line(payload(END, ratio=float("nan"))),
    "38 ratio infinite": line(payload(END, ratio=float("inf"))),
    "38 ratio zero": line(payload(END, ratio=0.0)),
    "38 ratio negative": line(payload(END, ratio=-1.0)),
    "42 stamp not a number": line(stamp="nan"),
    "42 stamp infinite": line(stamp="inf"),
    "42 stamp empty": line(stamp=""),
    "42 stamp of dots": line(stamp=".."),
    "43 decimal commas": line().replace(".", ","),
    "47 negative length": line(length="-1.0"),
    "48 start not a number": "#[StartTime: soon]\n",
    "48 base infinite": "#[BaseTime: inf]\n",
    "49 tag without a comma": "Tag=a" + line(),
    "49 tag of a thousand letters": line(tag="Tag=" + "a" * 1000 + ","),
    "54 a row of percentiles": "     1.000     0.500000000000            1           2.00\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED)
def test_a_bad_line_is_refused_with_its_place_and_skipped_on_request(bad, run, tmp_path):
    path = tmp_path / "a.hlog"
    path.write_text(line(stamp="0.0") + bad + line(stamp="2.0"))
    with pytest.raises(CorruptInputError) as caught:
        lk.read(path, unit="ns")
    assert caught.value.line == 2
    assert str(caught.value).isprintable()
    log = lk.read(path, unit="ns", lenient=True)
    assert log.histogram().count == 2
    assert "1 corrupt line was skipped" in log.run.notes
    status, out, err = run("-q", "summary", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "a.hlog:2: " in err
    status, out, err = run("summary", "--lenient", "--unit", "ns", path)
    assert status == 0
    assert "a.hlog:2: " in err


LINES = line(stamp="0.0") + line(stamp="1.0")
WHOLE: dict[str, tuple[bytes, str]] = {
    "1 empty": (b"", "the file is empty"),
    "1 blank": (b"\n\n", "the file is empty"),
    "4 UTF-16": (LINES.encode("utf-16"), "UTF-16"),
    "4 UTF-16 without a mark": (LINES.encode("utf-16-le"), "UTF-16"),
    "12 bomb of one line": (
        gzip.compress(b"#[Histogram log format version 1.3]\n" + b"1" * (65 << 20), 1),
        "--limit unpacked",
    ),
    "12 bomb of lines": (
        gzip.compress(b"#[Histogram log format version 1.3]\n" + b"\n" * (2 << 20), 1),
        "--limit others",
    ),
    "54 a lone row of percentiles": (b"1.0 0.5 1 2.00\n", "name one with --column"),
    "64 a pickle": (
        b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.",
        "this is a Python pickle; pickles can run code and are never loaded",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("data", "says"), WHOLE.values(), ids=WHOLE)
def test_a_bad_file_is_refused_in_a_line(data, says, run, tmp_path):
    path = tmp_path / "strange.dat"
    path.write_bytes(data)
    with pytest.raises(lk.LatencyKitError, match=re.escape(says)):
        lk.read(path)
    status, out, err = run("-q", "summary", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert "strange.dat" in err


def squeezed(plain: bytes, cookie: int) -> str:
    return envelope(zlib.compress(plain), cookie=cookie)


V1 = words(b"\0\1")
DOUBLE = text(struct.pack(">Iiq", 0x0C72124F, 3, 1 << 20) + RAW)
TAKEN: dict[str, bytes] = {
    "3 mark": b"\xef\xbb\xbf" + LINES.encode(),
    "3 mark in the middle": (line(stamp="0.0") + "\ufeff" + line()).encode(),
    "5 CRLF": LINES.replace("\n", "\r\n").encode(),
    "5 CR": LINES.replace("\n", "\r").encode(),
    "5 mixed": (line(stamp="0.0").replace("\n", "\r\n") + line()).encode(),
    "6 foreign bytes": b"# \xff\xfe\n"
    + line(stamp="0.0").encode()
    + b"Tag=\xe4,"
    + line().encode(),
    "8 no last line break": LINES.rstrip("\n").encode(),
    "9 last line cut": (LINES + line(stamp="2.0")[:30]).encode(),
    "11 gzip": gzip.compress(LINES.encode()),
    "11 xz": lzma.compress(LINES.encode()),
    "11 bzip2": bz2.compress(LINES.encode()),
    "20 V1": (line(V1, "0.0") + line(squeezed(base64.b64decode(V1), 0x1C849302))).encode(),
    "21 double": (line(DOUBLE, "0.0") + line(DOUBLE)).encode(),
    "28 longer than it need be": (line(payload(b"\x82\x00"), "0.0") + line()).encode(),
    "37 the largest histogram": (line(payload(END, digits=5, high=TOP), "0.0") + line()).encode(),
    "39 normalizing offset": (line(payload(END, offset=700), "0.0") + line()).encode(),
    "40 mixed digits": (line(payload(END, digits=1), "0.0") + line()).encode(),
    "42 exponent and sign": (line(stamp="-1e-3") + line(stamp="1e0")).encode(),
    "44 backwards": (line(stamp="1.0") + line(stamp="0.0")).encode(),
    "45 twice the same": (line() + line()).encode(),
    "46 gap": (line(stamp="0.0") + line(stamp="9.0")).encode(),
    "47 no length": (line(stamp="0.0", length="0.0") + line()).encode(),
    "48 start twice": ("#[StartTime: 5.0]\n" + line() + "#[StartTime: 9.0]\n" + line()).encode(),
    "49 empty tag": (line(tag="Tag=,", stamp="0.0") + line()).encode(),
    "49 strange tag": (
        line(tag="Tag==\u202e\U0001f600 'x',", stamp="0.0") + line(tag='Tag=a "b" ,')
    ).encode(),
    "50 tag like a path": (line(tag="Tag=../../x,", stamp="0.0") + line(tag="Tag=CON,")).encode(),
}


@pytest.mark.parametrize("data", TAKEN.values(), ids=TAKEN)
def test_an_oddity_is_read(data, run, tmp_path):
    path = tmp_path / "odd.hlog"
    path.write_bytes(data)
    for lenient in (False, True):
        assert lk.read(path, unit="ns", lenient=lenient).histogram().count == 2
    status, out, err = run("summary", "--unit", "ns", "--format", "json", path)
    assert status == 0, err
    assert not {"\x1b", "\u202e"} & set(out + err)


# Where the other rows have their tests: file, name.
ELSEWHERE: dict[int, tuple[str, str]] = {
    2: ("io/test_hlog.py", "test_a_log_of_headers_alone_has_no_intervals"),
    10: ("io/test_hlog.py", "test_a_log_that_is_gone_between_its_scan_and_its_decoding"),
    13: ("io/test_reading.py", "test_missing_files_and_directories_give_one_line"),
    14: ("cli/test_environment.py", "test_names_that_are_not_text_keep_their_bytes"),
    41: ("io/test_hlog.py", "test_the_unit_and_where_it_comes_from"),
    51: ("cli/test_outputs.py", "test_no_picture_and_no_page_obeys_a_name"),
    52: ("untrusted/test_names.py", "test_no_name_is_a_command"),
    53: ("cli/test_hostile.py", "test_nothing_foreign_reaches_the_terminal_as_a_command"),
    55: ("data/cases/raw.txt", "a lone column of any spelling is read in its unit"),
    56: ("cli/test_hostile.py", "test_no_wrong_value_in_our_own_json_breaks_anything"),
    57: ("data/cases/raw.txt", "what is left out is reported"),
    58: ("plot/test_timeline.py", "test_zeros_have_a_row_of_their_own_labelled_0"),
    59: ("plot/test_percentiles.py", "test_one_value_is_a_chart"),
    60: ("io/test_consistent.py", "test_a_latency_longer_than_its_run_is_remarked_on"),
    61: ("analysis/test_correct.py", "test_a_long_stall_at_a_short_interval_is_counted_not_listed"),
    62: ("analysis/test_correct.py", "test_correcting_twice_is_refused"),
    63: ("cli/test_judging_commands.py", "test_nonsense_is_refused_in_a_line"),
    65: ("io/test_bad_inputs.py", "test_no_yaml_and_no_pickle_is_ever_loaded"),
    66: ("views/test_page.py", "test_it_reaches_for_nothing"),
    67: ("views/test_page.py", "test_nothing_foreign_becomes_markup"),
    68: ("cli/test_outputs.py", "test_a_full_disk_is_one_line_and_leaves_nothing"),
    69: ("cli/test_environment.py", "test_it_works_in_any_environment"),
    70: ("cli/test_hostile.py", "test_a_reader_that_went_away_is_not_a_verdict"),
}


def test_every_row_of_the_catalogue_has_its_test():
    here = {int(name.split()[0]) for table in (REFUSED, WHOLE, TAKEN) for name in table}
    assert here | set(ELSEWHERE) == set(range(1, 71))
    for file, name in ELSEWHERE.values():
        kind = "case {}" if file.startswith("data/") else "def {}("
        assert kind.format(name) in (HERE / file).read_text(), (file, name)


def test_no_yaml_and_no_pickle_is_ever_loaded():
    package = "".join(path.read_text() for path in Path(lk.__file__).parent.rglob("*.py"))
    assert not re.search(
        r"\bimport (?:yaml|joblib|dill|cloudpickle)\b|pickle\.loads?\(|allow_pickle=True|read_pickle",
        package,
    )
