"""Several JSON documents in one file: each is read as a run, and a cut one is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError

DATA = Path(__file__).parents[1] / "data" / "formats"
KINDS = {
    "google-benchmark": "repetitions/out.json",
    "artillery": "two-endpoints/out.json",
    "hyperfoil": "*/all.json",
    "fortio": "*/*.json",
    "hyperfine-json": "*/*.json",
    "jmh-json": "*/*.json",
}


def sample(kind: str) -> str:
    found = sorted(DATA.glob(f"{kind}/{KINDS[kind]}"))
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
    for expect in DATA.glob(f"{kind}/*/expect.json"):
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
    one = (DATA / "sysbench/cpu-histogram/stdout.txt").read_text()
    banner = one[: one.index("Initializing")]
    (name,) = read_text(f"{banner}\n{one}", "x.txt")
    assert "run" not in name


def test_what_stands_above_a_report_is_about_it(read_text):
    """A prompt with its command, or settings: not those of the run before."""
    one = (DATA / "sockperf/ping-pong/stdout.txt").read_text()
    text = "".join(f"$ sockperf ping-pong --mps={rate}\n{one}\n" for rate in (5, 50, 500))
    assert [data.run.rate for data in read_text(text).values()] == [5, 50, 500]


def test_reports_on_one_line_among_others_are_runs_too(read_text):
    """Each line is a part of the file, in which there may be parts."""
    one = (DATA / "bombardier-json/paced/out.json").read_text().strip()
    found = read_text(f"{one}\n{one}{one}\n{one}\n", "x.json")
    assert list(found) == [f"run {number}" for number in range(1, 5)]
