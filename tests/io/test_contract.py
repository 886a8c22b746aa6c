"""What every reader owes: it knows its own outputs and no others, its numbers are right, and corruption has one voice.

A fixture is a folder ``tests/data/formats/<format>/<case>/`` with the sample and ``expect.json``.
"""

from __future__ import annotations

import functools
import gzip
import inspect
import itertools
import json
import math
import random
import re
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from latencykit._arrays import equal
from latencykit.errors import CorruptInputError, LatencyKitError
from latencykit.io.reading import detect, read_source
from latencykit.io.registry import builtin_formats, rounds, table
from latencykit.io.source import Confidence, Head, ReadOptions, Source, level_name
from tests.conftest import python

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[1] / "data" / "formats"


@dataclass(frozen=True)
class Case:
    """One fixture."""

    folder: Path

    @cached_property
    def expect(self) -> dict[str, Any]:
        return json.loads((self.folder / "expect.json").read_text())

    @property
    def path(self) -> Path:
        return self.folder / self.expect["file"]

    @property
    def format(self) -> str:
        return self.expect["format"]

    @property
    def options(self) -> dict[str, Any]:
        return self.expect.get("options", {})

    def read(self, path: Path | None = None, **options: Any) -> dict[str, Any]:
        return read_source(
            Source(path or self.path), ReadOptions(**(self.options | options)), self.format
        )

    @cached_property
    def data(self) -> bytes:
        """The sample's bytes, decompressed; those of its largest file where it is a directory."""
        return Source(self.inner(self.path)).bytes()

    @staticmethod
    def inner(path: Path) -> Path:
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        # of equal ones the same on every system
        return max(files, key=lambda one: (one.stat().st_size, one))

    @property
    def binary(self) -> bool:
        return b"\0" in self.data

    @cached_property
    def document(self) -> bool:
        """Whether it is one JSON document, of which no part makes sense alone."""
        try:
            json.loads(self.data)
        except ValueError:
            return False
        return True

    def corrupt(self, folder: Path, content: bytes) -> Path:
        """A copy of the sample, under its own name, with other content."""
        copy = folder / self.path.name.removesuffix(".gz")
        if self.path.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.path, copy)
        self.inner(copy).write_bytes(content) if copy.is_dir() else copy.write_bytes(content)
        return copy


CASES = [Case(one.parent) for one in sorted(DATA.glob("*/*/expect.json"))]
NAMES = [f"{one.folder.parent.name}/{one.folder.name}" for one in CASES]

# One record per line, nothing else between them: each corrupt line is an error, each cut one at the
# end a note.
ROWS = frozenset({
    "ab-gnuplot", "csv", "fio-histograms", "fio-log", "ghz-csv", "h2load-log", "hey-csv", "hlog",
    "jmeter-csv", "jsonl", "k6-csv",
    "k6-json", "nats-latency-raw", "numbers", "oha-csv", "pgbench-intervals", "pgbench-log",
    "sockperf-csv", "vegeta-csv",
    "vegeta-json",
})  # fmt: skip
# Tables of few numbers per line, taken whole: a cut last line may be an error, for what it lacks
# cannot be known.
TABLES = frozenset({
    "ab-csv", "bench", "criterion-csv", "fio-terse", "hgrm", "hyperfine-csv", "ioping-raw",
    "jmeter-xml", "jmh-csv",
    "nats-latency-histogram", "vegeta-hdrplot", "vegeta-hist",
})  # fmt: skip


def cases(*names: str, **wanted: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Each format, or some, or those with some properties: a test for all samples of one format."""
    formats: dict[str, list[tuple[str, Case]]] = {}
    for case, name in zip(CASES, NAMES, strict=True):
        if (not names or case.format in names) and all(
            getattr(case, key) == value for key, value in wanted.items()
        ):
            formats.setdefault(case.format, []).append((name, case))

    def of_samples(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def of_format(samples: list[tuple[str, Case]], **fixtures: Any) -> None:
            folder = fixtures.get("tmp_path")
            for name, case in samples:
                if folder:
                    fixtures["tmp_path"] = folder / case.folder.name
                    fixtures["tmp_path"].mkdir()
                try:
                    test(case=case, **fixtures)
                except BaseException as error:
                    error.add_note(f"sample: {name}")
                    raise

        asked = inspect.signature(test).parameters.values()
        renamed = [one.replace(name="samples") if one.name == "case" else one for one in asked]
        of_format.__signature__ = inspect.Signature(renamed)
        named = [pytest.param(one, id=name) for name, one in formats.items()]
        return pytest.mark.parametrize("samples", named)(of_format)

    return of_samples


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call returns, or the text of our error; any other error fails the test."""
    try:
        return function(*arguments, **options)
    except LatencyKitError as error:
        return str(error)


# ---------------------------------------------------------------- the registry


def test_names_are_unique_and_every_format_has_a_fixture():
    names = [one.name for one in builtin_formats()]
    assert names == list(table())
    assert all(one.title and one.example for one in builtin_formats())
    folders = {case.folder.parent.name for case in CASES}
    assert folders <= set(names), "a fixture of no format"
    assert set(names) <= folders, "a format without a fixture"


# ---------------------------------------------------------------- sniffing


@pytest.mark.slow
@cases()
def test_it_is_recognised_by_its_own_format_alone_and_its_marks_lose_no_candidate(case):
    """Whatever the recognisers of all formats know, mutated too, is among the few that are asked."""
    assert case.folder.parent.name == case.format
    head, dice = Source(case.path).head, random.Random(case.folder.name)
    scores = {one.name: one.sniff(head) for one in builtin_formats()}
    best = max(scores.values())
    assert best > Confidence.NO
    assert [name for name, score in scores.items() if score == best] == [case.format]
    asked = {candidate.name for some in rounds(head) for candidate in some}
    assert not [name for name in scores if scores[name] is not Confidence.NO and name not in asked]
    if not head.is_dir:
        n = dice.choice((2, 10))
        end = dice.randrange(1, len(head.data) + 1) if n > 7 else None
        mutated = bytearray(head.data[:end])
        for _ in range(2 * n):
            mutated[dice.randrange(len(mutated))] = dice.choice(b'\x1b\r\n 0A,{"')
        other = replace(head, name=dice.choice(["x", "x.raw", "x.hlog"]), data=bytes(mutated))
        asked = {candidate.name for some in rounds(other) for candidate in some}
        left = [one for one in builtin_formats() if one.name not in asked]
        assert not [one.name for one in left if one.sniff(other) is not Confidence.NO]


@pytest.mark.slow
def test_only_the_modules_of_candidates_are_imported():
    code = (
        "import sys, latencykit as lk; lk.read({!r}); "
        "print(*(name for name in sys.modules if name.startswith('latencykit.io.tools.')))"
    )
    path = str(DATA / "wrk/ctrlz/stdout.txt")
    assert len((out := python("-c", code.format(path)).stdout).split()) <= 4, out


@pytest.mark.slow
@pytest.mark.parametrize("suffixes", [[""], [".txt", ".json", ".csv", ".log"]])
def test_no_sample_of_any_format_is_known_by_its_name_only(suffixes):
    """Without a suffix, and with another's: each suffix is offered a quarter of all samples."""
    mistaken = {}
    for case, label, suffix in zip(CASES, NAMES, itertools.cycle(suffixes)):
        head = replace(Source(case.path).head, name=f"x{suffix}")
        asked = [] if head.is_dir else itertools.chain(*rounds(head))
        scores = {one.name: one.sniff(head) for one in asked}
        best = [one for one, score in scores.items() if score == max(scores.values())]
        if best not in ([], [case.format]):
            mistaken[label] = best
    # bare numbers, of which the name alone tells the unit
    assert mistaken == {"nats-latency-raw/paced": ["numbers"]}


@pytest.mark.slow
@cases(document=False, binary=False)
def test_line_ends_marks_colours_and_compression_do_not_hide_it(case, tmp_path):
    if case.path.is_dir():
        return
    text = case.data.replace(b"\r\n", b"\n")
    copy = tmp_path / case.path.name.removesuffix(".gz")
    coloured = b"\x1b[31m" + text.replace(b"\n", b"\x1b[0m\n\x1b[31m", 1)
    whole = read_source(Source(case.path), ReadOptions(**case.options))
    for changed in (b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"), coloured):
        copy.write_bytes(changed)
        found = read_source(Source(copy), ReadOptions(**case.options))
        assert {data.run.format for data in found.values()} == {case.format}
        assert found == whole or case.format == "bench"  # of which a file beside it says more
    packed = tmp_path / (copy.name + ".gz")
    packed.write_bytes(gzip.compress(case.data))
    assert detect(Source(packed)).name == case.format


def hostile() -> dict[str, bytes]:
    dice, size = random.Random(5), 1 << 14
    return {
        "nothing": b"",
        "blanks": b" \n\n\t \r\n",
        "zeros": bytes(4096),
        "every byte": bytes(range(256)) * 16,
        "random": dice.randbytes(size),
        "random text": bytes(dice.choices(b'0123456789.,;:|{}[]"=%\t\n #abcdefgHIST', k=size)),
        "UTF-16": "start_ns,latency_ns\n1,2\n".encode("utf-16-le"),
        "UTF-16 big end": "start_ns,latency_ns\n1,2\n".encode("utf-16-be"),
        "one long line": b"1" * size,
        "a nest": b"[" * size,
        "a nest of keys": b'{"a":' * 3000,
        "surrogates": b"latency_ms\n\xed\xa0\x80,\xff\xfe\n",
        "a lone quote": b'"latency_ms,a\n1,2\n3,4\n',
        "only separators": b",,,,\n,,,,\n",
        "escapes": b"\x1b[31mlatency\x1b[0m 5 ms\n",
        "ELF": b"\x7fELF\x02\x01\x01" + dice.randbytes(500),
        "zip": b"PK\x03\x04" + dice.randbytes(500),
        "png": b"\x89PNG\r\n\x1a\n" + dice.randbytes(500),
        "parquet without an end": b"PAR1" + dice.randbytes(500),
        "npy without a header": b"\x93NUMPY\x01\x00",
        "arrow without an end": b"ARROW1\0\0" + dice.randbytes(50),
        "python": b"import os\n\nprint('latency 5 ms')\n",
        "a letter": b"Dear reader,\n\nthe latency was 5 ms yesterday.\n\nYours\n",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", [pytest.param(content, id=name) for name, content in hostile().items()]
)
def test_sniffing_never_raises_and_reading_fails_with_one_voice(content, tmp_path):
    names = ("x.txt", "x.csv", "x.json", "x.hlog", "x", "results.jsonl", "stdout.txt")
    first = len(content)  # each format is asked with one name, of each content with another
    for number, one in enumerate(builtin_formats(), first):
        assert one.sniff(Head(names[number % len(names)], content)) in Confidence
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    with pytest.raises(LatencyKitError, match=re.escape(str(path))):
        read_source(Source(path), ReadOptions())
    for one in builtin_formats():
        outcome = attempt(read_source, Source(path), ReadOptions(), one.name)
        assert not isinstance(outcome, str) or not re.search(r"\n|bug in the reader", outcome)


# ---------------------------------------------------------------- numbers


def close(value: float, wanted: float, tolerance: float) -> bool:
    return abs(value - wanted) <= tolerance * abs(wanted) + 1e-6 or (
        math.isnan(value) and math.isnan(wanted)
    )


@cases()
def test_what_is_detected_has_the_times_that_the_named_reader_finds(case):
    """The time before a line is left out as a prefix only where the request has another one."""
    if not case.options:
        named, found = case.read(), read_source(Source(case.path), ReadOptions())
        for one, other in zip(named.values(), found.values(), strict=True):
            for name in ("start", "duration", "starts", "lengths"):
                assert equal(getattr(one, name, None), getattr(other, name, None)), name


@cases()
def test_its_numbers_are_those_of_the_tool(case):
    found = case.read()
    for data in found.values():
        assert_its_run_is_filled(data, case.format)
    assert list(found) == list(case.expect["series"])
    for name, wanted in case.expect["series"].items():
        data, near = found[name], wanted.get("tolerance", 0.05)
        assert level_name(data) == wanted["rung"]
        counted = data.histogram() if level_name(data) in ("samples", "log") else data
        assert counted.count == wanted["count"]
        assert counted.run.failed == wanted.get("failed", 0)
        assert any(wanted.get("note", "") in note for note in data.run.notes or [""])
        if wanted.get("max") is not None:
            assert close(counted.max, wanted["max"], near)
        for p, value in wanted.get("percentiles", {}).items():
            assert close(counted.percentile(float(p)), value, near), (
                f"p{p}: {counted.percentile(float(p))} != {value}"
            )


def assert_its_run_is_filled(data: Any, name: str) -> None:
    run = data.run
    assert run.format == name
    assert run.source
    assert run.unit in ("ns", "us", "ms", "s", "none")
    assert run.unit_from in ("file", "format", "option", "assumed")
    assert data.unit in ("ns", "none") or level_name(data) in ("log", "histogram")
    assert all(note and "\n" not in note for note in run.notes)


# ---------------------------------------------------------------- corruption


def rows_of(case: Case) -> list[int]:
    """Positions of the lines that hold numbers."""
    return [k for k, line in enumerate(case.data.split(b"\n")) if re.search(rb"\d", line)]


def without_numbers(line: bytes) -> bytes:
    return re.sub(rb"\d", b"x", line)


def with_line(case: Case, position: int, line: bytes) -> bytes:
    lines = case.data.split(b"\n")
    lines[position] = line
    return b"\n".join(lines)


def counts(found: dict[str, Any]) -> int:
    own = [data for data in found.values() if not data.run.aggregate]
    return sum(
        (data if level_name(data) == "summary" else data.histogram()).count or 0 for data in own
    )


@pytest.mark.slow
@cases(*ROWS)
def test_a_corrupt_row_is_named_and_lenient_leaves_it_out(case, tmp_path):
    numbers = rows_of(case)
    position = numbers[max(len(numbers) // 2, 1)]
    copy = case.corrupt(
        tmp_path, with_line(case, position, without_numbers(case.data.split(b"\n")[position]))
    )
    with pytest.raises(
        CorruptInputError, match=rf"^{re.escape(str(copy))}:{position + 1}: "
    ) as caught:
        case.read(copy)
    assert "\n" not in str(caught.value)
    said: list[str] = []
    whole, left = counts(case.read()), counts(case.read(copy, lenient=True, report=said.append))
    assert left < whole
    assert len([one for one in said if f":{position + 1}: " in one]) == 1


@cases(*TABLES)
def test_a_corrupt_line_of_a_table_is_an_error(case, tmp_path):
    numbers = rows_of(case)
    position = numbers[max(len(numbers) // 2, 1)]
    copy = case.corrupt(
        tmp_path, with_line(case, position, without_numbers(case.data.split(b"\n")[position]))
    )
    # a line that does not begin with a version is not a terse line: fio prints others, too
    if case.format == "fio-terse":
        assert counts(case.read(copy)) < counts(case.read())
        return
    with pytest.raises(CorruptInputError, match=rf"^{re.escape(str(copy))}:\d+: "):
        case.read(copy)


@cases(document=True)
def test_a_document_that_is_cut_or_corrupt_inside_is_an_error(case, tmp_path):
    if case.format in ROWS:  # a single row is a document, too
        return
    whole = case.data.rstrip()
    numbers = list(re.finditer(rb'"\s*:\s*(?=\d)|[\[,]\s*(?=[\d.]+\s*[,\]])', whole))
    at = numbers[len(numbers) // 2].end() if numbers else whole.index(b":")
    for content in (whole[: len(whole) // 2], whole[:-2], whole[:at] + b"@" + whole[at:]):
        copy = case.corrupt(tmp_path, content)
        with pytest.raises(LatencyKitError, match=re.escape(str(copy))) as caught:
            case.read(copy)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
@cases(document=False, binary=False)
def test_without_its_numbers_nothing_is_read(case, tmp_path):
    copy = case.corrupt(tmp_path, without_numbers(case.data))
    with pytest.raises(LatencyKitError, match=re.escape(str(copy))):
        case.read(copy)


@pytest.mark.slow
@cases(*ROWS)
def test_a_record_cut_at_the_very_end_is_a_note(case, tmp_path):
    whole = b"\n".join(case.data.split(b"\n")[: rows_of(case)[-1] + 1])
    last = whole.rfind(b"\n") + 1
    before = case.read()
    copy = case.corrupt(tmp_path, whole[: last + max((len(whole) - last) // 3, 1)])
    found = case.read(copy)
    assert counts(found) <= counts(before)
    notes = {note for data in found.values() for note in data.run.notes}
    assert any("last line" in note for note in notes)
    unended = case.corrupt(tmp_path, whole)
    assert counts(case.read(unended)) == counts(before)
