"""Lines of text: access logs, percentiles of any program, and what printed numbers allow together."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import latencykit as lk
from latencykit.cli import cli
from latencykit.core.run import Run
from latencykit.errors import CorruptInputError, LatencyKitError
from latencykit.io.build import histogram_of_both, unique_name
from latencykit.io.percentile_lines import sniff
from latencykit.io.reading import detect
from latencykit.io.source import Confidence, Head, Source
from latencykit.io.text_reports import command_of
from tests.io.conftest import lost

# ---------------------------------------------------------------- access logs


def lines(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_years_that_nanoseconds_cannot_hold_are_reported_not_wrapped_around(tmp_path, year):
    log, lines = tmp_path / "access.log", tmp_path / "access.json"
    log.write_text(
        f'1.2.3.4 - - [10/Oct/{year}:13:55:36 -0700] "GET / HTTP/1.0" 200 2326 rt=0.120\n'
    )
    lines.write_text(
        f'{{"time_iso8601": "{year}-10-10T13:55:36+00:00", "status": 200, "request_time": 0.12}}\n'
    )
    for path in (log, lines):
        with pytest.raises(CorruptInputError, match="has no end that can be read"):
            lk.read(path)


SERVED = '10.0.0.1 - - [21/Nov/2026:01:16:36 +0100] "GET /a HTTP/1.1" 200 {size} "-" "Agent/1.0 (x; 9.999)" {tail}\n'
DICE = random.Random(4)
SERVES = [
    (DICE.lognormvariate(-2.5, 1.2), DICE.uniform(0, 1), int(DICE.lognormvariate(7, 1.5)))
    for _ in range(80)
]


def seconds(value):
    return f"{value:.3f}"


@pytest.mark.parametrize(
    ("tail", "unit"),
    [
        (lambda t, u, b: f"{seconds(u)} {seconds(t)}", "s"), (lambda t, u, b: f"{seconds(t)} "
                                                                              f"{seconds(u)}", "s"),
        (lambda t, u, b: f"{'-' if b % 3 else seconds(u)} {seconds(t)}", "s"), (lambda t, u, b: f'"{seconds(u)}, {seconds(u / 2)}" {seconds(t)}', "s"),
        (lambda t, u, b: f'{seconds(t)} "{seconds(u)}" "{seconds(u / 3)}" .', "s"), (lambda t, u, b: f"upstream_response_time={seconds(u)} request_time={seconds(t)}", "s"),
        (lambda t, u, b: f'urt="{seconds(u)}" rt="{seconds(t)}"', "s"), (lambda t, u, b: f"{b} {seconds(u)} {seconds(t)} 200", "s"),
        (lambda t, u, b: f"{int(t * 1e6)} {int(t)}", "us"), (lambda t, u, b: f"{int(t)} {int(t * 1e6)}", "us"), (lambda t, u, b: f"{int(t)}/{int(t * 1e6)}", "us"),
        (lambda t, u, b: f"{int(t * 1e3)} {int(t * 1e6)}", "us"), (lambda t, u, b: f"{int(t * 1e6)} {int(t * 1e3)}", "us"), (lambda t, u, b: f"ms={int(t * 1e3)}", "ms"),
        (lambda t, u, b: f"took_ms:{int(t * 1e3)}", "ms"), (lambda t, u, b: f"{int(t * 1e3)}ms", "ms"), (lambda t, u, b: f"{int(t * 1e6)}us", "us"),
        (lambda t, u, b: f"D={int(t * 1e6)} size={b}", "us"), (lambda t, u, b: f"T:{int(t)} D:{int(t * 1e6)}", "us"), (lambda t, u, b: f"duration={int(t * 1e6)}us", "us"),
        (lambda t, u, b: f"{300 + b % 40} {b + 250} {int(t * 1e6)}", "us"), (lambda t, u, b: f"{int(t * 1e6)}", "us"),
    ],
)  # fmt: skip
def test_the_time_of_the_request_among_other_numbers(read_text, tail, unit):
    rows = [SERVED.format(size=b, tail=tail(t, t * u, b)) for t, u, b in SERVES]
    found = read_text("".join(rows), "access.log")["access.log"]
    step = {"s": 1e6, "ms": 1e6, "us": 1e3}[unit]
    assert found.run.unit == unit
    assert np.abs(found.duration - np.array([t * 1e9 for t, _, _ in SERVES])).max() <= step


def test_milliseconds_without_a_label_are_doubted(read_text):
    rows = [SERVED.format(size=b, tail=int(t * 200)) for t, _, b in SERVES]
    found = read_text("".join(rows), "access.log")["access.log"]
    assert found.run.unit_from == "assumed"
    assert any("are they %{ms}T? (--unit ms)" in note for note in found.run.notes)
    assert found.run.unit_note in found.run.notes


@pytest.mark.parametrize(
    "tail",
    [
        lambda b: f"{300 + b % 40} {b + 250}",
        lambda b: f"bytes={b}",
        lambda b: f"{b + 180}",
        lambda b: "",
    ],
)
def test_bytes_are_not_latency(read_text, tail):
    rows = [SERVED.format(size=b, tail=tail(b)) for _, _, b in SERVES]
    with pytest.raises(CorruptInputError, match="no time of a request"):
        read_text("".join(rows), "access.log")


def test_the_longer_time_behind_msec_is_that_of_the_request(read_text):
    rows = [
        f"{1795220196 + k}.335 {seconds(t * u)} {seconds(t)} 200 GET /\n"
        for k, (t, u, _) in enumerate(SERVES)
    ]
    found = read_text("".join(rows), "access.log")["access.log"]
    assert np.abs(found.duration - np.array([t * 1e9 for t, _, _ in SERVES])).max() <= 1e6


# ---------------------------------------------------------------- percentiles of any program

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


def test_a_histogram_needs_a_count_and_three_percentiles(tmp_path) -> None:
    three = "p50=1ms p90=2ms p99=3ms\n"
    assert isinstance(read(three, tmp_path), lk.Summary)
    assert isinstance(read("requests: 500\n" + three, tmp_path), lk.Histogram)
    two = read("requests: 500\np50=1ms p99=3ms\n", tmp_path)
    assert (type(two), two.count) == (lk.Summary, 500)


def test_a_report_of_an_interval_does_not_stand_for_the_run(tmp_path) -> None:
    """Where one report has the requests of all others, it is the run's; otherwise all are kept."""
    path = tmp_path / "out.txt"
    lines = [f"requests: 100\np50: {k} ms\np90: 8 ms\np99: 9 ms\n" for k in (1, 2, 3)]
    path.write_text("".join(lines))
    assert [data.percentile(50) for data in lk.read_all(path).values()] == [MS, 2 * MS, 3 * MS]
    path.write_text("".join(lines) + "requests: 300\np50: 2 ms\np90: 8 ms\np99: 90 ms\n")
    (data,) = lk.read_all(path).values()
    assert (data.count + data.censored, data.percentile(99)) == (300, 90 * MS)


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
        "granted on March 16th 2009 and\nMarch 23th 2013)\n",
    ],
)  # fmt: skip
def test_what_is_not_a_distribution_is_left(text) -> None:
    assert sniff(Head("x.txt", text.encode())) == Confidence.NO


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
    assert sniff(Source(path).head) == Confidence.NO


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


def test_a_list_without_its_maximum_does_not_name_one(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("requests: 2,400\np50: 1200 us\np90: 1.9 ms\np99: 3.86 ms\nmean: 80ms\n")
    said = CliRunner().invoke(cli, ["summary", str(path)]).output
    assert "the maximum is not reported" in said


def test_empty_objects_and_rows_longer_than_their_header_break_no_reader(tmp_path):
    empty, rows = tmp_path / "x.jsonl", tmp_path / "x.csv"
    empty.write_text("{}\n{}\n{}")
    with pytest.raises(LatencyKitError, match="the rows contain no values"):
        lk.read(empty)
    header = "command,mean,stddev,median,user,system,min,max"
    rows.write_text(f"{header}\nsleep 1,1.01,0.1,1.0,0.1,0.1,0.9,1.2,7,8\n")
    assert lk.read(rows, format="hyperfine-csv").mean == pytest.approx(1.01e9)


# ---------------------------------------------------------------- printed percentiles and coarse buckets together

DATA = Path(__file__).parents[1] / "data" / "formats"


@pytest.mark.parametrize("seed", range(5))
def test_it_never_flatters_and_gives_back_what_was_printed(seed):
    dice = np.random.default_rng(seed)
    values = np.sort(np.rint(dice.lognormal(14, 1.5, 997)))
    points = {
        p: float(values[int(np.ceil(p / 100 * values.size)) - 1])
        for p in (10, 25, 50, 75, 90, 95, 99, 99.9)
    }
    edges = np.linspace(values[0], values[-1], 11)
    counts = np.diff(np.searchsorted(values, edges, "right"), prepend=0)
    both = histogram_of_both(
        points, edges.tolist(), counts.tolist(), {"min": values[0], "max": values[-1]}, Run()
    )
    assert both.count == values.size
    assert both.percentile(list(points)).tolist() == list(points.values())
    shares = (np.arange(values.size) + 1) / values.size * 100
    assert (both.percentile(shares) >= values).all()
    assert (both.buckets.low(both.index) <= values[np.cumsum(both.counts) - both.counts]).all()
    assert all(both.count_above(edge) == (values > edge).sum() for edge in edges)


def test_a_percentile_that_names_the_last_rank_does_not_lower_the_maximum():
    both = histogram_of_both(
        {50.0: 2.0, 99.99: 80.0}, [1, 10, 100], [1, 98, 1], {"min": 1, "max": 90}, Run()
    )
    assert both.percentile([99.99, 100]).tolist() == [80.0, 90.0]
    assert both.buckets.high(both.index[-1]) == 90.0


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("$ wrk -t2 http://x/", "wrk -t2 http://x/"),
        ("root@host:/tmp# ./bin/wrk -t2 http://x/", "./bin/wrk -t2 http://x/"),
        ("+ wrk -t2 http://x/", "wrk -t2 http://x/"),
        ("wrk -t2 http://x/", "wrk -t2 http://x/"),
        ("I ran wrk -t2 for you", None),
        ("wrkx -t2", None),
    ],
)
def test_a_command_after_a_prompt(line, command):
    assert command_of(f"{line}\nRunning 10s test", "wrk") == command


@pytest.mark.parametrize(
    ("folder", "old", "new"),
    [
        ("hey/ctrlz", "[200]\t5596", "[200]\t55x6"),
        ("oha/text", "[4] aborted", "[x] aborted"),
        ("vegeta-report/ctrlz", "200:6000", "200:6x00"),
        ("vegeta-report/ctrlz", "100.00%", "1x0.00%"),
        ("vegeta-report/ctrlz", "20s,", "2xs,"),
        ("wrk2/ctrlz", "#[Max     =     5996", "#[Max     =     59x6"),
        ("wrk2/ctrlz", "timeout 8", "timeout x"),
        ("ab/keepalive", "Failed requests:        0", "Failed requests:        x"),
        ("k6/ctrlz", "http_req_failed................: 0.00%", ""),
        ("k6/ctrlz", "dropped_iterations.............: 86", ""),
    ],
)
def test_what_failed_is_not_forgotten_where_its_line_is_corrupt(read_text, folder, old, new):
    path = next(one for one in (DATA / folder).iterdir() if one.name != "expect.json")
    text = path.read_text()
    assert old in text
    corrupt = "\n".join(
        re.sub(r"\d", "x", line)
        if folder.startswith("k6") and old in line
        else line.replace(old, new)
        for line in text.split("\n")
    )
    line = text[: text.index(old)].count("\n") + 1
    with pytest.raises(CorruptInputError, match=rf"out\.txt:{line}: "):
        read_text(corrupt)


def test_equal_names_are_numbered_in_order():
    taken: dict[str, None] = {}
    for _ in range(20_000):
        taken[unique_name("a", taken)] = None
    assert list(taken) == ["a", *(f"a ({number})" for number in range(2, 20_001))]
    assert unique_name("b", {"b": None, "b (3)": None}) == "b (2)"
