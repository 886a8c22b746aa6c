"""Several documents in one file, halves of characters, and what the head of a file is enough to refuse."""

from __future__ import annotations

import gzip
import json
import os
import sys

import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError
from latencykit.io.json_text import without_halves
from tests.conftest import DATA

FORMATS = DATA / "formats"
KINDS = {
    "google-benchmark": "repetitions/out.json",
    "artillery": "two-endpoints/out.json",
    "hyperfoil": "*/all.json",
    "fortio": "*/*.json",
    "hyperfine-json": "*/*.json",
    "jmh-json": "*/*.json",
}


def sample(kind: str) -> str:
    found = sorted(FORMATS.glob(f"{kind}/{KINDS[kind]}"))
    return next(one for one in found if one.name != "expect.json").read_text()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("between", ["\n", "", "\n\n \n"])
def test_each_is_a_run_with_its_numbers(read_text, kind, between):
    one = sample(kind).strip()
    alone = read_text(one, "one.json")
    both = read_text(one + between + one + "\n", "two.json")
    assert len(both) == 2 * len(alone)
    runs = ["run 1"] * len(alone) + ["run 2"] * len(alone)
    assert all(
        name == run or name.startswith(f"{run} ") for name, run in zip(both, runs, strict=True)
    )
    for copy, data in zip(both.values(), [*alone.values()] * 2, strict=True):
        assert copy.to_frame().equals(data.to_frame())


@pytest.mark.parametrize("kind", ["google-benchmark", "artillery"])
def test_a_cut_one_is_an_error_and_not_left_out_in_silence(read_text, kind):
    one = sample(kind).strip()
    with pytest.raises(CorruptInputError):
        read_text(f"{one}\n{one[: len(one) // 2]}")


REPORTS = (
    "sysbench", "sockperf", "memtier", "pgbench", "cyclictest", "ycsb", "cassandra-stress",
    "scylla-bench", "nats-latency",
)  # fmt: skip


@pytest.mark.parametrize("kind", REPORTS)
def test_reports_one_after_the_other_are_runs(read_text, kind):
    for expect in FORMATS.glob(f"{kind}/*/expect.json"):
        one = (expect.parent / json.loads(expect.read_text())["file"]).read_text()
        alone, both = read_text(one, "one.txt"), read_text(f"{one}\n{one}", "two.txt")
        for number in (1, 2):
            for name, data in alone.items():
                label = name if name and name != "one.txt" else ""
                copy = both[f"run {number} {label}".rstrip()]
                assert copy.to_frame().equals(data.to_frame())
        assert len(both) == 2 * len(alone)


def test_a_banner_without_results_belongs_to_the_next_run(read_text):
    """As where sysbench prepares its tables first."""
    one = (FORMATS / "sysbench/cpu-histogram/stdout.txt").read_text()
    banner = one[: one.index("Initializing")]
    (name,) = read_text(f"{banner}\n{one}", "x.txt")
    assert "run" not in name


def test_what_stands_above_a_report_is_about_it(read_text):
    """A prompt with its command, or settings: not those of the run before."""
    one = (FORMATS / "sockperf/ping-pong/stdout.txt").read_text()
    text = "".join(f"$ sockperf ping-pong --mps={rate}\n{one}\n" for rate in (5, 50, 500))
    assert [data.run.rate for data in read_text(text).values()] == [5, 50, 500]


def test_reports_on_one_line_among_others_are_runs_too(read_text):
    """Each line is a part of the file, in which there may be parts."""
    one = (FORMATS / "bombardier-json/paced/out.json").read_text().strip()
    found = read_text(f"{one}\n{one}{one}\n{one}\n", "x.json")
    assert list(found) == [f"run {number}" for number in range(1, 5)]


# ---------------------------------------------------------------- JSON

HEADS = {
    "a.jsonl": b'{"start": 1, "latency": 2}\n' * 9_000,
    "a.csv": b"start,latency\n" + b"1,2\n" * 40_000,
    "a.txt": b"17\n" * 60_000,
}


@pytest.mark.skipif(sys.platform == "emscripten", reason="files have no holes in a page")
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("how", ["large", "compressed"])
@pytest.mark.parametrize("wrong", [{}, {"unit": "ms", "column": "other"}], ids=["unit", "column"])
def test_what_the_head_shows_is_refused_before_the_rest_is_read(tmp_path, name, how, wrong):
    path = tmp_path / name
    if how == "large":
        path.write_bytes(HEADS[name])
        os.truncate(path, 1 << 40)  # a hole: to read it would take an hour
    else:  # and the stream breaks after the head
        path.write_bytes(gzip.compress(HEADS[name] + os.urandom(1 << 20))[: -(1 << 19)])
    if not wrong and name == "a.txt":
        return  # bare numbers need no unit
    with pytest.raises(lk.InvalidArgumentError, match="no column 'other'" if wrong else "no unit"):
        lk.read(path, **wrong)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\uD83D\uDE00"', "\U0001f600"),
        (r'"\ud83d"', "\ufffd"),
        (r'"\ude00"', "\ufffd"),
        (r'"\ud83dx\ude00"', "\ufffdx\ufffd"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
    ],
)
def test_half_a_character_is_replaced_and_nothing_else(text, meant):
    assert json.loads(without_halves(text)) == meant
    assert len(without_halves(text)) == len(text)


def test_rows_with_half_a_character_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(f'{{"latency_ms": {k}, "op": "a\\ud800{k % 2}"}}\n' for k in range(1, 9))
    )
    found = lk.read_all(path)
    assert sum(len(series) for series in found.values()) == 8
    assert all("\ufffd" in name for name in found)


@pytest.mark.parametrize("value", [[], {}, "x", [1], {"a": 1}, True, None, "digits"])
@pytest.mark.parametrize(
    "name",
    ["oha-json/ctrlz-corrected/out.json", "fio-json/*/*.json", "k6-summary/ctrlz/summary.json"],
)
def test_json_of_another_shape_names_the_file_and_asks_for_it(name, value, tmp_path):
    (path,) = sorted((DATA / "formats").glob(name))[:1] or pytest.fail(name)
    record = json.loads(path.read_text()[path.read_text().index("{") :])
    copy = tmp_path / "out.json"
    for key in list(record)[:12]:
        text = json.dumps(record | {key: "@"}).replace(
            '"@"', "9" * 5000 if value == "digits" else json.dumps(value)
        )
        copy.write_text(text)
        try:
            lk.read_all(copy)
        except lk.LatencyKitError as error:
            said = error
        else:
            continue
        assert str(copy) in str(said)
        assert "bug in the reader" not in str(said)
