"""Lines of percentiles of any program: what is read, in which unit, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import latencykit as lk
from latencykit.cli import cli
from latencykit.errors import LatencyKitError
from latencykit.io.percentile_lines import FORMATS
from latencykit.io.reading import detect
from latencykit.io.source import Confidence, Head, Source
from tests.io.conftest import lost

MS = 1e6
TEXTS = {
    "plow": "Latency Percentile:\n  P50   P75   P99    max\n 1.2ms  2ms  3.86ms  4ms\nmean: 1.5ms\n",
    "colons": "p50: 1200 us\np99: 3860 us\nmax: 4 ms\nmean: 1.5ms\n",
    "slow_cooker": "50th: 1.2ms\n99th percentile: 3.86 ms\nMax latency: 4ms\naverage=1.5 ms",
    "drill": "Median time per request   1.2ms\n99.0'th percentile   3.86ms\nMax time per request 4ms\nAverage time per request 1.5ms",
    "bars": "50.00%  1.200ms\n99.00%  3.860ms\n  avg 1.5ms\nmax=4ms",
    "k6": "http_req: avg=1.5ms min=1ms med=1.2ms max=4ms p(90)=2ms p(99)=3.86ms",
    "cassowary": "Duration.....: Avg/mean=1.5ms  Median=1.2ms  p(99)=3.86ms  max=4ms",
    "artillery": "latency (ms):\n  min: ...... 1\n  max: ...... 4\n  mean: ...... 1.5\n  median: ..... 1.2\n  p99: ....... 3.86",
    "a log": "10:00:01 INFO p50: 1.2ms\n10:00:01 INFO p99: 3.86ms\n10:00:01 INFO max: 4ms mean: 1.5ms",
    "kafka": "100 records sent, 1.91 MB/sec, 0.6 ms avg latency, 3.0 ms max latency.\n"
    "1,000 records sent, 1.91 MB/sec, 1.5 ms avg latency, 4.00 ms max latency, 1.2 ms 50th, 2 ms 95th, 3.86 ms 99th.",
    "gatling": "> min response time  100us\n> max response time  4ms\n> mean response time  1.5ms\n"
    "> response time 50th percentile  1.2ms\n> response time 99th percentile  3.86ms\n",
    "a spread in the row": "Statistics  Min  Mean  StdDev  Max\n  Latency  1ms  1.5ms  3ms  4ms\n\nP50  P99\n1.2ms  3.86ms\n",
    "pct": "mean: 1.5 ms - med: 1.2 ms - 99pct: 3.86 ms - Max: 4 ms",
    "JSON": '{"p50_ms": 1.2, "p99_ms": "3.86", "mean": "1.5ms", "max": "4ms"}',
    "nested JSON": '{"a": 1, "http": {"latency_p50_ms": 1.2, "latency_p99_ms": 3.86, "latency_mean_ms": 1.5, "latency_max_ms": 4}}',
}


def read(text: str, folder: Path, **options):
    path = folder / "out.txt"
    path.write_text(text)
    return lk.read(path, **options)


@pytest.mark.parametrize("name", TEXTS)
def test_percentiles_are_read_as_printed(name, tmp_path) -> None:
    data = read(TEXTS[name], tmp_path)
    assert data.run.format == "percentile-lines"
    assert data.percentile([50, 99]).tolist() == pytest.approx([1.2 * MS, 3.86 * MS])
    assert (data.max, data.mean) == pytest.approx((4 * MS, 1.5 * MS))
    assert data.run.unit_from == "file"


def test_bare_numbers_are_plain_without_a_unit(tmp_path) -> None:
    text = "Requests: 4,000\n  50%      12\n  90%      800\n  99%      4029\n 100%      4100\n"
    assumed = read(text, tmp_path)
    assert (assumed.run.unit_from, assumed.run.unit) == ("assumed", "none")
    assert (assumed.unit, assumed.percentile(99)) == ("none", 4029)
    assert "plain numbers" in assumed.run.unit_note
    data = read(text, tmp_path, unit="ms")
    assert isinstance(data, lk.Histogram)
    assert (data.count, data.percentile(99), data.max) == (4000, 4029 * MS, 4100 * MS)
    assert data.run.unit_from == "option"
    bare = read("p50: 1 ms\np90: 20\np99: 300\n", tmp_path)
    assert bare.percentile([90, 99]).tolist() == [20 * MS, 300 * MS]


def test_a_histogram_needs_a_count_and_three_percentiles(tmp_path) -> None:
    three = "p50=1ms p90=2ms p99=3ms\n"
    assert isinstance(read(three, tmp_path), lk.Summary)
    assert isinstance(read("requests: 500\n" + three, tmp_path), lk.Histogram)
    two = read("requests: 500\np50=1ms p99=3ms\n", tmp_path)
    assert (type(two), two.count) == (lk.Summary, 500)


def test_the_count_may_stand_beside_the_statistics(tmp_path) -> None:
    text = (
        "500 records sent, 1.5 ms avg latency, 9 ms max latency, 1 ms 50th, 2 ms 95th, 8 ms 99th."
    )
    assert read(text, tmp_path).requests == 500
    assert read("p50=1ms p90=2ms p99=3ms count=500\n", tmp_path).count == 500 - 5


def test_an_object_of_percentiles_on_one_line_is_not_a_request(tmp_path) -> None:
    """Its length in seconds was read as a latency."""
    record = '{"Run": {"DurationSeconds": 323.5, "latency_ms": {"P50": 450.2, "P95": 1200.5, "Mean": 520.8}}}'
    data = read(record, tmp_path)
    assert (data.run.format, data.percentile(95), data.mean) == (
        "percentile-lines",
        1200.5 * MS,
        520.8 * MS,
    )
    assert read('{"latency_ms": 12.5}\n', tmp_path).run.format == "jsonl"


def test_digits_without_a_point_and_minutes(tmp_path) -> None:
    data = read("p50=1ms p999=3ms p9999=1m2.5s", tmp_path)
    assert dict(data.reported_percentiles) == {50: MS, 99.9: 3 * MS, 99.99: 62.5e9}


def test_several_distributions_are_several_series(tmp_path) -> None:
    text = (
        "http.request_rate: 200/sec\nvusers.session_length (ms):\n  p50: .... 9\n  p99: .... 10\n"
        "http.response_time (ms):\n  p50: .... 1\n  p99: .... 2\n"
    )
    (tmp_path / "out.txt").write_text(text)
    series = lk.read_all(tmp_path / "out.txt")
    assert {name: data.percentile(99) for name, data in series.items()} == {
        "http.response_time (ms)": 2 * MS, "vusers.session_length (ms)": 10 * MS,
    }  # fmt: skip
    assert next(iter(series)) == "http.response_time (ms)"  # the latencies come first


def test_lines_of_intervals_are_not_mixed_with_the_summary(tmp_path) -> None:
    text = "".join(f"after {k} s mean: {k} ms\n" for k in (1, 2, 3))
    text += "Summary:\nrequests: 900\np50: 5 ms\np90: 8 ms\np99: 9 ms\n"
    data = read(text, tmp_path)
    assert (data.count + data.censored, data.percentile(99)) == (900, 9 * MS)
    assert "mean" not in data.reported_stats


def test_a_report_of_an_interval_does_not_stand_for_the_run(tmp_path) -> None:
    """Where one report has the requests of all others, it is the run's; otherwise all are kept."""
    path = tmp_path / "out.txt"
    lines = [f"requests: 100\np50: {k} ms\np90: 8 ms\np99: 9 ms\n" for k in (1, 2, 3)]
    path.write_text("".join(lines))
    assert [data.percentile(50) for data in lk.read_all(path).values()] == [MS, 2 * MS, 3 * MS]
    path.write_text("".join(lines) + "requests: 300\np50: 2 ms\np90: 8 ms\np99: 90 ms\n")
    (data,) = lk.read_all(path).values()
    assert (data.count + data.censored, data.percentile(99)) == (300, 90 * MS)


def test_the_length_of_a_run_is_not_its_maximum(tmp_path) -> None:
    data = read("Max time (s):  20\n 50%  2 ms\n 99%  9 ms\n 100%  10 ms\n", tmp_path)
    assert data.max == 10 * MS
    for limit in ("Max time (s):  20", "Max requests:  5000"):
        data = read(f"{limit}\n 50%  2 ms\n 99%  9 ms\n", tmp_path)
        assert ("max" in data.stats, data.count) == (False, None)


@pytest.mark.parametrize(
    "text",
    [
        "", "p99: 3ms", "CPU 99% 12s", "p99: 1ms\np50: 2ms", "99% of 100 requests",
        "Our p50: 12 ms is fine, but the p99: 80 ms is not what customers expect.\n",
        "The p50 of 12 ms became 10 ms.\nIts p99 of 80 ms became 70 ms.\n",
        "Latency Percentile:\n  P50     P75    P90   P95\n",
        "a.py   100   12    88%   13-20\nb.py   200    2    99%   27-28\n",
        "a.py   100   12    88%   13\nb.py   200    2    99%   27\n",
        " 50% 12 MB\n 99% 24 MB\n",
        "Filesystem Size Used Avail Use% Mounted on\n/dev/a 252G 19G 73G 21% /\n/dev/b 9G 1G 8G 99% /b\n",
        "throughput rps p50: 200 p99: 300\n",
        "Retrying in 50% 3 times\nRetrying in 99% 5 times\n",
        "name,p50,p99\nget,1ms,2ms\nput,1ms,3ms\n",
        '{"p50": "fast", "p99": "slow"}', '{"quality": {"p50": 3}}', "[1, 2, 3]",
        "min: 1\nmax: 5\nmean: 2\n",
    ],
)  # fmt: skip
def test_what_is_not_a_distribution_is_left(text) -> None:
    (one,) = FORMATS
    assert one.sniff(Head("x.txt", text.encode())) == Confidence.NO


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "path",
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml")),
        *sorted((ROOT / "notebooks").glob("*.md")),
        *sorted((ROOT / "tests" / "snapshots").glob("*.txt")),
    ],
    ids=lambda path: path.name,
)  # fmt: skip
def test_prose_is_left(path) -> None:
    (one,) = FORMATS
    assert one.sniff(Source(path).head) == Confidence.NO


def test_every_other_format_comes_first(data) -> None:
    """Whatever another reader knows is that reader's, even where percentiles are printed so."""
    for path in sorted((data / "formats").glob("*/*/*.txt")):
        if path.parent.parent.name != "percentile-lines" and path.stat().st_size < 1 << 16:
            try:
                name = detect(Source(path)).name
            except LatencyKitError:
                continue
            assert name != "percentile-lines", path


@pytest.mark.parametrize(
    "text",
    [
        '{"service": "cart", "latency_ms": {"p50": 1.2, "p99": 3.86, "max": 4}}',
        '{"latencyMs": {"percentiles": {"50": 1.2, "99": 3.86}}}',
        '{"http": {"latency (us)": {"p50": 1200, "p99": 3860}}}',
        '{"latency_s": {"p50": 0.0012, "p99": 3.86e-3}}',
        '{"latency": {"unit": "ms", "p50": 1.2, "p99": 3.86}}',
        '{"unit": "ms", "latency": {"p50": 1.2, "p99_us": 3860}}',
    ],
)
def test_the_unit_above_numbers_in_json_is_theirs(text, tmp_path) -> None:
    data = read(text, tmp_path)
    assert data.run.unit_from == "file"
    assert data.percentiles([50, 99]).value.tolist() == pytest.approx([1.2 * MS, 3.86 * MS])


@pytest.mark.parametrize(
    "text", ['{"requests_s": {"p50": 1.2, "p99": 3.86}}', '{"items": {"p50": 1.2, "p99": 3.86}}']
)
def test_other_words_above_numbers_in_json_set_no_unit(text, tmp_path) -> None:
    assert read(text, tmp_path).run.unit_from == "assumed"


@pytest.mark.parametrize(
    ("said", "good", "failed"),
    [
        ("Requests: 1,000\nErrors: 37 (3.7%)\n", 963, 37),
        ("Total Req....: 1000\nFailed Req...: 3\n", 997, 3),
        ("Successful requests   8\nFailed requests   2\n", 8, 2),
        ("Completed requests: 500\nTotal errors: 10\n", 490, 10),
        ("Count  969\n  2xx  776\n  4xx  190\n  5xx  3\n", 776, 193),
        ("requests 100 replies 90\nMax requests: 5000\nErrors: total 10 timeouts 10\n", 90, 10),
    ],
)
def test_errors_beside_the_count_are_failures_of_the_run(said, good, failed, tmp_path) -> None:
    rows = "p50: 1 ms\np90: 2 ms\np99: 3 ms\n"
    for text in (said + rows, rows + said):
        data = read(text, tmp_path)
        assert (data.requests, data.run.failed) == (good, failed), text
    line = read("stats count=1000 errors=2 p50=1ms p90=2ms p99=3ms\n", tmp_path)
    assert (line.requests, line.run.failed) == (998, 2)


@pytest.mark.parametrize(
    "text",
    [
        "Total: requests 100 replies 0\nConnection time [ms]: min 0.0 avg 0.0 max 0.0 median 0.0\n",
        "requests: 100\nerrors: 100\np50: 1 ms\np99: 3 ms\n",
        '{"totalRequests": 100, "totalErrors": 100, "percentiles": {"50": 6, "99": 9}}',
    ],
)
def test_a_report_without_a_good_request_has_no_latencies(text, tmp_path) -> None:
    """Zeros, or the times of failures alone, would meet any limit."""
    data = read(text + "Errors: total 100 client-timo 100\n" * ("replies" in text), tmp_path)
    assert lost({"": data}) == "100 failed"
    slo = lk.SLO.parse("99=1,max=1" if data.unit == "none" else "99=1s,max=1s")
    assert [row.outcome for row in slo.check(data)] == ["missed", "missed"]


def test_blocks_have_the_names_and_counts_nearest_to_them(tmp_path) -> None:
    path = tmp_path / "out.txt"
    block = "        {0}th: 5   (9 samples)\n        90.0th: 7   (8 samples)\n      * 99.0th: 8   (2 samples)\n"
    path.write_text(
        "2026-05-01 10:00:00 ./bench -r 30\n"
        "Wakeup Latencies percentiles (usec) runtime 10 (s) (820 total samples)\n"
        + block.format("50.0")
        + "Request Latencies percentiles (usec) runtime 10 (s) (830 total samples)\n"
        + block.format("50.0")
        + "RPS percentiles (requests) runtime 10 (s) (3 total samples)\n"
        + block.format("20.0")
    )
    found = {name: data.requests for name, data in lk.read_all(path).items()}
    assert found == {"Wakeup Latencies percentiles": 820, "Request Latencies percentiles": 830}
    path.write_text(
        "total requests: 99\n\nwrites:\ncount: 40\np50: 1 ms\np90: 2 ms\np99: 3 ms\n"
        "\nreads:\ncount: 50\np50: 1 ms\np90: 2 ms\np99: 4 ms\n"
    )
    assert {name: data.requests for name, data in lk.read_all(path).items()} == {
        "writes": 40, "reads": 50,
    }  # fmt: skip


def test_sections_tell_equal_labels_apart(tmp_path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(
        "== Sequential ==\n Latencies - P50: 2ms, P99: 3ms\n"
        "== Concurrent (8 threads) ==\n Latencies - P50: 4ms, P99: 9ms\n"
    )
    assert list(lk.read_all(path)) == ["Sequential Latencies", "Concurrent Latencies"]


def test_counts_beside_an_object_of_percentiles_are_its(tmp_path) -> None:
    path = tmp_path / "out.json"
    path.write_text(
        '{"results": ['
        '{"name": "a", "latency": {"p50_ms": 1, "p90_ms": 2, "p99_ms": 3}, "requests": 100, "errors": 3},'
        '{"name": "b", "latency": {"p50_ms": 1, "p90_ms": 2, "p99_ms": 4}, "requests": 200, "errors": 0}]}'
    )
    found = lk.read_all(path)
    assert {name: (data.requests, data.run.failed) for name, data in found.items()} == {
        "a.latency": (97, 3), "b.latency": (200, 0),
    }  # fmt: skip
    path.write_text(
        '{"requests": 9, "a": {"p50_ms": 1, "p99_ms": 2}, "b": {"p50_ms": 1, "p99_ms": 3}}'
    )
    assert all(data.count is None for data in lk.read_all(path).values())


def test_a_list_without_its_maximum_does_not_name_one(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("requests: 2,400\np50: 1200 us\np90: 1.9 ms\np99: 3.86 ms\nmean: 80ms\n")
    said = CliRunner().invoke(cli, ["summary", str(path)]).output
    assert "the maximum is not reported" in said


def test_empty_objects_and_rows_longer_than_their_header_break_no_reader(tmp_path):
    empty, rows = tmp_path / "x.jsonl", tmp_path / "x.csv"
    empty.write_text("{}\n{}\n{}")
    with pytest.raises(LatencyKitError, match="no column is named as a latency"):
        lk.read(empty)
    header = "command,mean,stddev,median,user,system,min,max"
    rows.write_text(f"{header}\nsleep 1,1.01,0.1,1.0,0.1,0.1,0.9,1.2,7,8\n")
    assert lk.read(rows, format="hyperfine-csv").mean == pytest.approx(1.01e9)
