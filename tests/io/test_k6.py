"""k6's summaries in their shapes, and its points."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError, DataNotAvailableError, InvalidArgumentError
from tests.io.conftest import lost

TREND = {"avg": 5.5, "min": 1.1, "med": 1.5, "max": 60.2, "p(90)": 2.5, "p(95)": 4.4}
METRICS = {
    "http_req_duration": ("trend", "time", TREND),
    "http_req_duration{expected_response:true}": ("trend", "time", {**TREND, "max": 50.0}),
    "iteration_duration": ("trend", "time", {**TREND, "avg": 39.5}),
    "queue_length": ("trend", "default", {**TREND, "p(99.9)": 7.0}),
    "http_reqs": ("counter", "default", {"count": 1000, "rate": 100.0}),
    "iterations": ("counter", "default", {"count": 1000, "rate": 100.0}),
    "http_req_failed": ("rate", "default", {"passes": 40, "fails": 960, "rate": 0.04}),
    "vus_max": ("gauge", "default", {"value": 4, "min": 4, "max": 4}),
}


def legacy() -> dict:
    return {
        "root_group": {},
        "metrics": {
            name: {**values, "thresholds": {"p(95)<5": False}}
            for name, (_, _, values) in METRICS.items()
        },
    }


def handled() -> dict:
    metrics = {
        name: {"type": kind, "contains": what, "values": values}
        for name, (kind, what, values) in METRICS.items()
    }
    return {
        "state": {"testRunDurationMs": 10000.0},
        "options": {"summaryTimeUnit": "s"},
        "metrics": metrics,
    }


def listed() -> dict:
    def values(kind: str, given: dict) -> dict:
        if kind == "rate":
            return {"matches": given["passes"], "total": 1000, "rate": 0.04}
        return {key: value for key, value in given.items() if key != "rate"}

    metrics = [
        {"name": n, "type": kind, "contains": what, "values": values(kind, v)}
        for n, (kind, what, v) in METRICS.items()
    ]
    return {
        "version": "1.0.0",
        "config": {"duration": 10.0, "execution": "local"},
        "results": {"checks": {}, "metrics": metrics},
    }


@pytest.mark.parametrize("shape", [legacy, handled, listed])
def test_summary_in_each_shape(read_text, shape):
    found = read_text(json.dumps(shape()), "summary.json")
    assert list(found) == ["http_req_duration"]
    data = found["http_req_duration"]
    assert (data.count, data.run.failed, data.min, data.max, data.mean) == (
        960,
        40,
        1.1e6,
        60.2e6,
        5.5e6,
    )
    assert data.percentile([50, 90, 95]).tolist() == [1.5e6, 2.5e6, 4.4e6]
    run = data.run
    assert (run.loop, run.corrected, run.connections, run.duration, run.achieved) == (
        "closed",
        "none",
        4,
        10.0,
        100.0,
    )
    assert any("40 failed requests" in note for note in run.notes)


def test_other_series_by_name(read_text):
    found = read_text(json.dumps(handled()), "s.json", series=("queue_length",))
    assert next(iter(found)) == "http_req_duration"
    good, queue = found["http_req_duration{expected_response:true}"], found["queue_length"]
    assert (good.count, good.run.failed, good.max) == (960, 40, 50e6)
    assert queue.count is None
    assert any("does not say that this is a time" in note for note in queue.run.notes)
    with pytest.raises(DataNotAvailableError, match="distribution"):
        queue.percentile(99)


def test_dropped_iterations_are_an_open_loop_that_ran_out(read_text):
    record = handled()
    record["metrics"]["dropped_iterations"] = {
        "type": "counter",
        "contains": "default",
        "values": {"count": 43, "rate": 4.3},
    }
    run = read_text(json.dumps(record), "s.json")["http_req_duration"].run
    assert (run.loop, run.corrected, run.dropped) == ("open", "unknown", 43)
    idle = handled()
    idle["metrics"]["vus_max"]["values"]["max"] = 50
    assert read_text(json.dumps(idle), "s.json")["http_req_duration"].run.loop == "unknown"


def test_a_count_that_is_asked_for_and_no_http(read_text):
    record = handled()
    for name in [name for name in record["metrics"] if name.startswith("http")]:
        del record["metrics"][name]
    found = read_text(json.dumps(record), "s.json")
    assert {name: data.count for name, data in found.items()} == {"iteration_duration": 1000}
    del record["metrics"]["iteration_duration"], record["metrics"]["queue_length"]
    with pytest.raises(CorruptInputError, match="no trend of times"):
        read_text(json.dumps(record), "s.json")


TEXT = """
     scenarios: (100.00%) 1 scenario, 50 max VUs, 35s max duration (incl. graceful stop):
              * s: 150.00 iterations/s for 20s (maxVUs: 20-1500, gracefulStop: 15s)

running (01.0s), 0002/0020 VUs, 147 complete and 0 interrupted iterations

  █ TOTAL RESULTS

    HTTP
    http_req_duration..............: avg=5.73ms min=114µs  med=1.42ms max=1m6.02s p(90)=2.72s p(95)=4.45s
      { expected_response:true }...: avg=5.55ms min=114µs  med=1.42ms max=6.02s   p(90)=2.7s  p(95)=4.4s
    http_req_failed................: 1.57%  40 out of 2558
    http_reqs......................: 2558   127.869485/s

    EXECUTION
    dropped_iterations.............: 443    22.144715/s
    iteration_duration.............: avg=5.95ms min=1.18ms med=1.59ms max=6.02s p(90)=2.72s p(95)=4.45s
    iterations.....................: 2558   127.869485/s
    queue_length...................: avg=3 min=1 med=2 max=9 p(90)=4 p(95)=5
    vus_max........................: 459    min=20        max=459

  █ SCENARIO: s

    http_req_duration..............: avg=9.73ms min=114µs  med=9.42ms max=1m6.02s p(90)=2.72s p(95)=4.45s

running (20.0s), 0000/0459 VUs, 2558 complete and 3 interrupted iterations
"""


def test_text(read_text):
    found = read_text(TEXT)["http_req_duration"]
    assert (found.count, found.run.failed, found.run.dropped, found.run.unfinished) == (
        2518,
        40,
        443,
        3,
    )
    assert (found.min, found.max, found.percentile(90)) == (114e3, 66.02e9, 2.72e9)
    assert (found.run.loop, found.run.corrected, found.run.rate, found.run.connections) == (
        "open",
        "unknown",
        150.0,
        459,
    )
    looping = TEXT.replace(
        "150.00 iterations/s for 20s (maxVUs: 20-1500", "4 looping VUs for 20s ("
    )
    assert read_text(looping)["http_req_duration"].run.loop == "closed"
    good = read_text(TEXT, series=("x",))["http_req_duration{expected_response:true}"]
    assert (good.count, good.max) == (2518, 6.02e9)


def test_older_text_corrupt_text_and_no_summary(read_text):
    row = "     http_req_duration..............: avg=132ms min=1.1ms med=1.4ms max=6s p(90)=2s p(95)=4s\n"
    rest = "     http_req_failed................: 1.25% ✓ 2 ✗ 158\n     http_reqs......................: 160 8.1/s\n"
    found = read_text("     ✓ status is 200\n" + row + rest)["http_req_duration"]
    assert (found.count, found.run.failed) == (158, 2)
    with pytest.raises(CorruptInputError, match=r"out\.txt:10: http_req_duration: max=1m6"):
        read_text(
            TEXT.replace(
                "max=1m6.02s p(90)=2.72s p(95)=4.45s\n      {", "max=1m6.?2s p(90)=2.72s\n      {"
            )
        )
    with pytest.raises(CorruptInputError, match="no trend of times"):
        read_text(TEXT[: TEXT.index("  █ TOTAL")])


HEADER = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,status\n"


def csv_rows(stamp: str = "1795219533") -> str:
    rows = [
        f"http_reqs,{stamp},1.0,,,,true,,GET,http://x/,200",
        f"http_req_duration,{stamp},1.5,,,,true,,GET,http://x/,200",
        f"http_req_duration,{stamp},60000,,request timeout,1050,false,,GET,http://x/,0",
        f"http_req_duration,{stamp},2.5,,,1503,false,,GET,http://x/,503",
        f"http_req_waiting,{stamp},1.25,,,,true,,GET,http://x/,200",
        f"iteration_duration,{stamp},1.6,,,,,,,,",
        f"dropped_iterations,{stamp},7,,,,,,,,",
        f"vus_max,{stamp},4,,,,,,,,",
    ]
    return HEADER + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    "stamp", ["1795219533", "1795219533000", "1795219533000000000", "2026-11-21T00:05:33Z"]
)
def test_points_csv(read_text, stamp):
    found = read_text(csv_rows(stamp), "points.csv")
    assert list(found) == ["http_req_duration"]
    data = found["http_req_duration"]
    assert data.duration.tolist() == [1_500_000, 60_000_000_000, 2_500_000]
    assert (data.start + data.duration).tolist() == [1_795_219_533_000_000_000] * 3
    assert (data.outcome.tolist(), data.run.dropped) == ([0, 2, 1], 7)


def point(name: str, value: float, old: bool = False, **tags: str) -> str:
    data = {"time": "2026-11-21T00:05:33.26293326+00:00", "value": value, "tags": tags or None}
    record = (
        {"type": "Point", "data": data, "metric": name}
        if old
        else {"metric": name, "type": "Point", "data": data}
    )
    return json.dumps(record, separators=(",", ":"))


@pytest.mark.parametrize("old", [False, True])
def test_points_json(read_text, old):
    define = json.dumps(
        {
            "type": "Metric",
            "data": {"name": "http_req_duration", "type": "trend"},
            "metric": "http_req_duration",
        }
    )
    rows = [
        define, point("http_req_duration", 1.5, old, status="200", expected_response="true", url="http://x/{id}"),
        point("http_reqs", 1, old),
        point("http_req_duration", 2.5, old, status="404", error_code="1404"),
        point("http_req_duration", 9.5, old, status="404", expected_response="true"),
        point("http_req_waiting", 0.5, old),
        point("dropped_iterations", 3, old),
    ]  # fmt: skip
    text = "\n".join(rows) + "\n"
    data = read_text(text, "points.json")["http_req_duration"]
    assert (data.duration.tolist(), data.outcome.tolist()) == (
        [1_500_000, 2_500_000, 9_500_000],
        [0, 1, 0],
    )
    assert (data.start + data.duration).tolist() == [1_795_219_533_262_933_260] * 3
    assert data.run.dropped == 3
    waiting = read_text(text, "points.json", series=("http_req_waiting",))
    assert {name: len(one) for name, one in waiting.items()} == {"http_req_waiting": 1}
    with pytest.raises(InvalidArgumentError, match="no points of 'nothing'"):
        read_text(text, "points.json", series=("nothing",))
    assert len(read_text(text[:-30], "points.json")["http_req_duration"]) == 3
    corrupt = text.replace('"value":2.5', '"value":2.x')
    with pytest.raises(CorruptInputError, match=r"points\.json:4: "):
        read_text(corrupt, "points.json")
    assert len(read_text(corrupt, "points.json", lenient=True)["http_req_duration"]) == 2
    worse = text.replace('"value":0.5', '"value":[]')
    with pytest.raises(CorruptInputError, match=r"points\.json:6: "):
        read_text(worse, "points.json")


def test_a_long_line_of_blanks_takes_no_more_than_its_length(read_text):
    assert read_text(TEXT + " " * 60_000)["http_req_duration"].count == 2518


def test_percentiles_of_the_machine_readable_summary(read_text):
    values = {"avg": 8.76, "max": 27.8, "med": 7.77, "min": 1.27, "p90": 15.41, "p95": 15.94}
    metrics = [
        {"contains": "time", "name": "http_req_duration", "type": "trend", "values": values},
        {
            "contains": "default",
            "name": "http_reqs",
            "type": "counter",
            "values": {"count": 50, "rate": 108.1},
        },
    ]
    found = read_text(
        json.dumps({"results": {"metrics": metrics}, "config": {"duration": 0.46}}), "out.json"
    )["http_req_duration"]
    assert (found.count, found.percentile(90), found.percentile(95)) == (50, 15.41e6, 15.94e6)


def test_json_below_the_banner(read_text):
    trend = {
        "type": "trend",
        "contains": "time",
        "values": {"avg": 2.0, "min": 1.0, "med": 2.0, "max": 3.0, "p(99)": 2.9},
    }
    counter = {"type": "counter", "contains": "default", "values": {"count": 50, "rate": 10.0}}
    banner = "     execution: local\n        script: hs.js\n\n     scenarios: (100.00%) 1 scenario, 1 max VUs\n\n"
    progress = "\nrunning (00m00.3s), 0/1 VUs, 50 complete and 0 interrupted iterations\n"
    record = {
        "root_group": {"name": ""},
        "metrics": {"http_req_duration": trend, "http_reqs": counter},
    }
    found = read_text(banner + json.dumps(record, indent=2) + progress)["http_req_duration"]
    assert (found.count, found.percentile(99), found.run.format) == (50, 2.9e6, "k6-summary")


def test_requests_that_had_no_reply_have_no_latency(read_text):
    trend = {"avg": 0, "min": 0, "med": 0, "max": 0, "p(90)": 0}
    record = {"metrics": {"http_req_duration": trend, "http_reqs": {"count": 20, "rate": 9.0},
                          "http_req_failed": {"passes": 20, "fails": 0, "value": 1}}}  # fmt: skip
    assert lost(read_text(json.dumps(record), "out.json")) == "20 failed"


def test_a_summary_that_somebody_has_shortened(read_text):
    record = '{"state": {"testRunDurationMs": 60000}, "metrics": {"http_req_duration": {"values": {"avg": 123.4, "p(95)": 450.0}}}}'
    assert read_text(record, "summary.json")["http_req_duration"].percentile(95) == 450e6


def test_what_the_edge_of_a_terminal_has_cut_is_unknown(read_text):
    row = "med=1.42ms max=1m6.02s p(90)=2.72s p(95)=4.45s"
    assert row in TEXT
    for cut in ("p(95)=21.44m", "p(95)=4.4", "p(95)=1m", "p(95)=", "p(9"):
        text = TEXT.replace(row, row.replace("p(95)=4.45s", cut))
        found = read_text(text)["http_req_duration"]
        assert (found.max, found.reported_percentiles[0]) == (66.02e9, (50.0, 90.0, 100.0)), cut


def test_text_of_several_runs(read_text):
    run = (
        "     data_received..................: 274 MB  3.9 MB/s\n"
        "     http_req_duration..............: avg={}ms min=1ms med=2ms max=9ms p(90)=4ms\n"
        "     http_req_failed................: 0.00%   ✓ 0 ✗ {}\n"
        "     http_reqs......................: {}  10.0/s\n"
        "     iteration_duration.............: avg=3ms min=1ms med=2ms max=9ms p(90)=4ms\n"
        "     iterations.....................: 40  1.0/s\n"
    )
    found = read_text(f"### one\n{run.format(3, 40, 40)}### two\n{run.format(2.5, 60, 60)}")
    assert [(name, one.count, one.mean) for name, one in found.items()] == [
        ("run 1 http_req_duration", 40, 3e6),
        ("run 2 http_req_duration", 60, 2.5e6),
    ]
    new = read_text(f"  execution: local\n{TEXT}\n  execution: local\n{TEXT}")
    assert [one.run.rate for one in new.values()] == [150.0, 150.0]


def test_few_requests_of_which_some_failed_keep_their_mean(read_text):
    text = (
        "     http_req_duration..............: avg=139.17ms min=130.49ms med=139.17ms "
        "max=147.84ms p(90)=146.1ms p(95)=146.97ms\n"
        "     http_req_failed................: 50.00% ✓ 1        ✗ 1\n"
        "     http_reqs......................: 2      1.771779/s\n"
    )
    found = read_text(text)["http_req_duration"]
    assert (found.count, found.run.failed, found.stats["mean"]) == (1, 1, 139.17e6)
    assert not any("left out" in note for note in found.run.notes)


def test_the_first_versions(read_text):
    text = (
        "    http_req_duration: avg=5.26ms, max=31.48ms, med=4.3ms, min=2.25ms, p90=7.69ms, "
        "p95=12.84ms\n    http_reqs: 17538\n    runs: 17538\n"
    )
    found = read_text(text)["http_req_duration"]
    assert (found.count, found.percentile([50, 90, 95]).tolist()) == (
        17538,
        [4.3e6, 7.69e6, 12.84e6],
    )
