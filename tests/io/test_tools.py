"""Single tools, in what no text of `tests/data/cases` shows: several files, many rows, bytes, memory."""

from __future__ import annotations

import base64
import json
import shutil
import tracemalloc

import numpy as np
import pytest

import latencykit as lk
from latencykit.core.histogram_log import HistogramLog, interval_series
from latencykit.errors import CorruptInputError, LatencyKitError, UnknownFormatError
from latencykit.io.text_reports import below, plain
from tests.conftest import DATA
from tests.io.test_cases import text_of

FORMATS = DATA / "formats"
SECOND = 1_000_000_000


NO_ROW = {
    "cyclictest-verbose": "Thread 0 Interval: 1000\n", "ioping-raw": "nothing\n",
    "go-ycsb": "nothing\n", "fio-histograms": "\n\n",
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), NO_ROW.items())
def test_a_named_format_without_a_row_is_a_corrupt_input(name, text, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text(text)
    said = "contains no latencies|no line of statistics|no row is complete"
    with pytest.raises(CorruptInputError, match=said):
        lk.read(path, format=name, lenient=True)


@pytest.mark.parametrize("direction", ["9", "-1"])
def test_a_direction_that_fio_does_not_know_is_refused(direction, tmp_path):
    path = tmp_path / "x_lat.1.log"
    path.write_text(f"1, 5, 0, 4096\n2, 5, {direction}, 4096\n")
    with pytest.raises(CorruptInputError, match="direction"):
        lk.read(path, format="fio-log")


# ---------------------------------------------------------------- several files


def test_bench_a_file_beside_it_tells_who_corrected(tmp_path):
    text = text_of("bench", "percentiles are those printed")
    for name in ("redis.txt", "uncorrected_redis.txt", "alone.txt"):
        (tmp_path / name).write_text(text)
    runs = [lk.read(tmp_path / name).run for name in ("redis.txt", "uncorrected_redis.txt")]
    assert [(run.corrected, run.loop) for run in runs] == [("tool", "paced"), ("none", "paced")]
    alone = lk.read(tmp_path / "alone.txt").run
    assert (alone.corrected, alone.loop) == ("unknown", "unknown")
    assert any("without a rate" in note for note in alone.notes)


def test_criterion_a_directory_gives_one_series_a_benchmark(tmp_path):
    with pytest.raises(UnknownFormatError):
        lk.read(tmp_path)
    for name, iterations, times in (
        ("fast", [10, 20], [23.1, 46.2]),
        ("plain", [1, 2], [2e6, 4e6]),
    ):
        folder = tmp_path / name / "new"
        folder.mkdir(parents=True)
        sample = {"sampling_mode": "Linear", "iters": iterations, "times": times}
        (folder / "sample.json").write_text(json.dumps(sample))
    (tmp_path / "fast/new/benchmark.json").write_text(json.dumps({"full_id": "group/fast"}))
    found = lk.read_all(tmp_path)
    assert {data.run.format for data in found.values()} == {"criterion"}
    assert set(found) == {"group/fast", "plain"}
    assert found["group/fast"].max == 2.31
    assert found["plain"].duration.tolist() == [2_000_000, 2_000_000]


def test_locust_failures_beside_it(tmp_path):
    shutil.copy(FORMATS / "locust-csv/throughput/out_stats.csv", tmp_path)
    failures = tmp_path / "out_failures.csv"
    failures.write_text(
        "Method,Name,Error,Occurrences,First Seen,Last Seen\nGET,/var,HTTPError('503'),3,a,b\n"
    )
    run = lk.read(tmp_path / "out_stats.csv", series="Aggregated").run
    assert "3 requests failed: GET /var HTTPError('503')" in run.notes
    with pytest.raises(UnknownFormatError, match=r"list of failures; .* NAME_stats\.csv beside"):
        lk.read(failures)


# ---------------------------------------------------------------- many rows


@pytest.mark.parametrize("halved", [0, 3])
def test_fio_a_histogram_log(read_text, halved):
    counts = np.zeros((2, 1856 >> halved), int)
    counts[0, 100 >> halved], counts[1, 1000 >> halved] = 5, 3
    rows = (", ".join(map(str, row)) for row in counts.tolist())
    lines = [f"{500 * k}, 1, 4096, {row}" for k, row in enumerate(rows, 1)]
    (log,) = read_text("\n".join(lines) + "\n500, 1, 40", "run_clat_hist.1.log").values()
    assert isinstance(log, HistogramLog)
    assert (log.starts.tolist(), log.lengths.tolist()) == ([0.0, 0.5], [0.5, 0.5])
    series = interval_series(log)
    assert series.count.tolist() == [5, 3]
    # bucket 1000 is group 14 (from 2**20), bucket 40 of 64: 1048576 + 40 * 16384
    assert series.max[1] == 2**20 + 40 * 2**14 + (2**14 << halved) - 1
    assert any("truncated" in note for note in log.run.notes)


def test_pgbench_a_corrupt_row_and_a_cut_end(read_text):
    good = "0 1 1063 0 1795220061 540640\n"
    with pytest.raises(CorruptInputError, match=r"out\.txt:201: "):
        read_text(good * 200 + "0 4 fast 0 1795220061 562572\n" + good)
    (found,) = read_text(good * 300 + "0 2 89").values()
    assert len(found) == 300
    assert any("truncated" in note for note in found.run.notes)


def test_vegeta_sends_that_stop_with_requests_in_flight_are_not_an_open_loop(read_text):
    def run(last: int) -> lk.Run:
        took = dict.fromkeys((*range(100), *range(500, 600)), 1_300_000) | {99: last}
        rows = (
            f"{1_795_219_387 * SECOND + k * 10_000_000},200,{one},0,3,,b2sK,,{k},GET,http://x/,Q\n"
            for k, one in took.items()
        )
        (data,) = read_text("".join(rows), "r.csv").values()
        return data.run

    held, pause = run(4 * SECOND), run(1_300_000)
    assert (held.corrected, held.loop, held.rate) == ("none", "paced", None)
    assert any("sends stopped for 4.01 s" in note for note in held.notes)
    assert pause.corrected == "schedule"


def test_a_trace_without_a_header_needs_a_clock(read_text):
    dice = np.random.default_rng(3)
    clock, took = np.cumsum(dice.integers(1, 999, 100)) + 10**9, dice.integers(1, 999, 100)
    rows = [f"{a} {b}\n" for a, b in zip(clock, took, strict=True)]
    (data,) = read_text("".join(rows)).values()
    assert data.duration.sum() == took.sum() * 1000
    assert data.run.unit_from == "assumed"
    (data,) = read_text("".join(rows), unit="ns").values()
    assert data.duration.sum() == took.sum()
    with pytest.raises(LatencyKitError):
        read_text("".join(reversed(rows)))


def test_thousands_of_go_packages_take_no_more_memory_than_their_text(read_text):
    text = "".join(f"pkg: a/p{n}\nBenchmarkX-8 100 5 ns/op\n" for n in range(1500))
    tracemalloc.start()
    try:
        series = read_text(text)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    finally:
        tracemalloc.stop()
    assert len(series) == 1500
    last = "a/p1498\nBenchmarkX-8 {} ns/op"
    with pytest.raises(CorruptInputError, match=r":2998: the result of"):
        read_text(text.replace(last.format("100 5"), last.format("1 -1")))


# ---------------------------------------------------------------- bytes, and text of a terminal


def test_encoded_histograms_one_after_the_other_hold_what_was_recorded(read_text):
    hdrh = pytest.importorskip("hdrh.histogram")
    parts = []
    for values in ((1000, 2000, 3000), range(5000, 9000, 7)):
        histogram = hdrh.HdrHistogram(1, 3_600_000_000, 3)
        for value in values:
            histogram.record_value(value)
        parts.append(base64.b64decode(histogram.encode()))
    one, two = read_text(b"".join(parts), "all.bin").values()
    assert (one.count, two.count) == (3, 572)
    truth, p = lk.Histogram.of(range(5000, 9000, 7)), [1, 50, 99, 100]
    assert two.percentile(p) == pytest.approx(truth.percentile(p))


def test_a_long_line_of_blanks_takes_no_more_than_its_length(read_text):
    text = text_of("k6", "text, 1") + " " * 60_000
    assert read_text(text)["http_req_duration"].count == 2518


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a\nb\n", "a\nb\n"),
        (
            "GET: rps=1\r          \rGET: rps=2\r          \r=== GET ===  \nnext\n",
            "=== GET ===  \nnext\n",
        ),
        ("10%\r20%\r\n", "20%\n"),
        ("\x1b[32m│\x1b[39m 5 ms \x1b]8;;http://x\x07link\x1b]8;;\x07\x1b[2K\n", "│ 5 ms link\n"),
        ("\r\r\n", "\n"),
    ],
)
def test_what_was_written_last_on_a_terminal_stands(given, shown):
    assert plain(given) == shown
    assert plain(given).count("\n") == given.count("\n")


def test_the_lines_below_a_heading():
    text = "Latency:\n a\n\nLatency: again\n b\n c\n"
    assert list(below(text, "Latency:")) == [(5, " b"), (6, " c")]
    assert list(below(text, "Nothing")) == []
