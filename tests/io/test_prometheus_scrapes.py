"""Scrapes of a server over time: a directory of exposition files, and a range query by its URL."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

import latencykit as lk
from tests.conftest import DATA

SCRAPES = DATA / "formats/prometheus-scrapes/python-client/scrapes"
HEAD = "# TYPE rpc_seconds histogram\n"


def scrape(counts, bounds=(0.01, 0.1, 1.0), labels=""):
    """One exposition with the counts per bucket, one more than bounds: above the last."""
    cumulative = np.cumsum(counts).tolist()
    own = f"{labels}," if labels else ""
    rows = [
        f'rpc_seconds_bucket{{{own}le="{edge}"}} {count}'
        for edge, count in zip(
            [*bounds, "+Inf"], [*cumulative[: len(bounds)], cumulative[-1]], strict=True
        )
    ]
    shown = f"{{{labels}}}" if labels else ""
    return "\n".join([*rows, f"rpc_seconds_count{shown} {cumulative[-1]}", ""])


def folder(tmp_path, texts, step=15):
    for k, text in enumerate(texts):
        if text is not None:
            (tmp_path / f"scrape-{1_767_268_800 + step * k}.prom").write_text(HEAD + text)
    return tmp_path


def counts_of(log):
    return [one.histogram().count for one in log]


def test_intervals_are_what_was_counted_between_two_scrapes(tmp_path):
    texts = [scrape(counts) for counts in ([5, 0, 0], [7, 1, 0], [7, 1, 4])]
    log = lk.read(folder(tmp_path, texts))
    assert isinstance(log, lk.HistogramLog)
    assert (counts_of(log), log.start) == ([3, 4], 1_767_268_800.0)
    assert log.lengths.tolist() == [15, 15]
    assert log.histogram().max == 1e9


def test_values_above_the_last_bound_stay_in_their_interval(tmp_path):
    texts = [scrape(counts, (0.01, 0.1)) for counts in ([5, 0, 0], [7, 1, 2], [7, 1, 6])]
    log = lk.read(folder(tmp_path, texts))
    assert [(one.count, one.censored) for one in log] == [(3, 2), (0, 4)]
    assert log.histogram().censored_at == 1e8


def test_two_scrapes_in_files_of_their_own_subtract(read_text):
    texts = (HEAD + scrape(counts, (0.01, 0.1)) for counts in ([10, 80, 10], [15, 175, 11]))
    before, after = (next(iter(read_text(text).values())) for text in texts)
    between = after - before
    assert (between.count, between.censored) == (100, 1)


def native(deltas, threshold=2.0**-128):
    """One native histogram as protobuf's text; its buckets end at 1/32, 1/16, 1/8."""
    listed = "\n".join(f"positive_delta: {delta}" for delta in deltas)
    return (
        'name: "rpc_seconds" type: HISTOGRAM metric { label { name: "op" value: "x" } histogram {\n'
        f"sample_count: {sum(np.cumsum(deltas))} sample_sum: 1 schema: 0\n"
        f"zero_threshold: {threshold} zero_count: 0\n"
        f"positive_span {{ offset: -5 length: {len(deltas)} }}\n{listed} }} }}\n"
    )


def test_protobuf_scrapes_are_a_log(tmp_path):
    for k, deltas in enumerate(([2], [5], [5, -1])):
        (tmp_path / f"scrape-{1_767_268_800 + 15 * k}.txt").write_text(native(deltas))
    log = lk.read(tmp_path)
    assert isinstance(log, lk.HistogramLog)
    assert ([one.count for one in log], log.lengths.tolist()) == ([3, 4], [15, 15])
    assert log.histogram().max == 62.5e6
    for k, path in enumerate(sorted(tmp_path.iterdir())):
        path.write_text(
            'name: "rpc_seconds" type: HISTOGRAM metric { histogram { sample_count: '
            f"{k}\nbucket {{ cumulative_count: 0 upper_bound: 0.5 }} }} }}\n"
        )
    counted = lk.read(tmp_path).histogram()
    assert (counted.count, counted.censored, counted.censored_at) == (0, 2, 5e8)


def test_a_reset_counts_from_zero_and_is_noted(tmp_path):
    texts = [scrape(counts) for counts in ([5, 0, 0], [9, 0, 0], [2, 0, 0], [3, 0, 0])]
    log = lk.read(folder(tmp_path, texts))
    assert counts_of(log) == [4, 2, 1]
    assert "reset 1 time" in " ".join(log.run.notes)


def test_a_missing_scrape_is_one_long_interval(tmp_path):
    texts = [scrape([k, 0, 0]) for k in range(6)]
    texts[3] = None
    log = lk.read(folder(tmp_path, texts))
    assert counts_of(log) == [1, 1, 2, 1]
    assert log.lengths.tolist() == [15, 15, 30, 15]
    assert "1 scrape is missing" in " ".join(log.run.notes)


def test_bounds_that_differ_leave_those_that_all_have(tmp_path):
    fine = scrape([1, 2, 3, 4], (0.01, 0.05, 0.1, 1.0))
    log = lk.read(folder(tmp_path, [scrape([0, 1, 0]), fine]))
    assert counts_of(log) == [9]
    assert sorted(log.histogram().to_frame()["count"].tolist()) == [1, 4, 4]


def test_labels_are_series_and_new_ones_begin_at_zero(tmp_path):
    first = scrape([1, 0, 0], labels='path="/"')
    second = scrape([3, 0, 0], labels='path="/"') + scrape([0, 6, 0], labels='path="/new"')
    series = lk.read_all(folder(tmp_path, [first, second]))
    totals = {name: data.histogram().count for name, data in series.items()}
    assert totals == {
        "rpc_seconds": 8, 'rpc_seconds{path="/"}': 2, 'rpc_seconds{path="/new"}': 6
    }  # fmt: skip


@pytest.mark.parametrize(
    "names",
    [
        ["a-20260101-120000.txt", "a-20260101-120015.txt"],
        ["2026-01-01T12:00:00Z", "2026-01-01T12:00:15Z"],
        ["1767268800000.txt", "1767268815000.txt"],
        ["first", "second"],  # the files' own times
    ],
)
def test_times_are_in_the_names_or_of_the_files(tmp_path, names):
    for k, name in enumerate(names):
        (tmp_path / name).write_text(HEAD + scrape([k + 1, 0, 0]))
        os.utime(tmp_path / name, (1_767_268_800 + 15 * k,) * 2)
    (tmp_path / "README").write_text("not a scrape\n")
    log = lk.read(tmp_path)
    assert (log.start, log.lengths.tolist()) == (1_767_268_800.0, [15])


def test_two_scrapes_of_one_moment_are_refused(tmp_path):
    for name in ("a-1767268800", "b-1767268800"):
        (tmp_path / name).write_text(HEAD + scrape([1, 0, 0]))
    with pytest.raises(lk.LatencyKitError, match="two scrapes are of the same time"):
        lk.read(tmp_path)


def test_a_client_that_restarted(tmp_path):
    series = lk.read_all(SCRAPES)
    assert series["http_request_duration_seconds"].histogram().count == 6600
    cart = series['http_request_duration_seconds{path="/cart"}']
    slowest = np.array([one.histogram().max for one in cart])
    assert (
        int(np.argmax(slowest)) == 15
    )  # of 21: a scrape and the moment of the restart are missing


def test_a_range_query_is_read_by_its_url(tmp_path):
    def rows(le, values):
        metric = {"__name__": "rpc_seconds_bucket", "le": le}
        pairs = [[1_767_268_800 + 15 * k, str(v)] for k, v in enumerate(values)]
        return {"metric": metric, "values": pairs}

    result = [rows("0.1", [1, 3, 6]), rows("1", [1, 4, 9]), rows("+Inf", [1, 4, 9])]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def do_HEAD(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/api/v1/query_range"
        log = lk.read(f"{url}?query=sum+by(le)(rpc_seconds_bucket)&start=0&end=1&step=15")
        server.shutdown()
    assert counts_of(log) == [3, 5]
