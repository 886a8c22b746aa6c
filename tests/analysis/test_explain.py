"""`explain`: planted causes are found, worlds without any stay quiet, shares add up."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk
from latencykit import simulate
from latencykit.analysis.explain import restates_latency
from latencykit.views.series import series_record
from tests.benchmarks.truth_explain import NULL, PLANTED, judged

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., tuple[int, str, str]]
SEEDS = range(2)


# ---------------------------------------------------------------- truth


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_planted_causes_are_found_and_nothing_else(name: str) -> None:
    count = sum((judged(name, seed) for seed in SEEDS), Counter[str]())
    assert count["found"] >= 0.8 * count["causes"]
    assert not count["wrong"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NULL)
def test_worlds_without_a_cause_have_no_finding(name: str) -> None:
    assert not sum((judged(name, seed) for seed in SEEDS), Counter[str]())["any"]


# ---------------------------------------------------------------- laws


def small(n: int = 6000, seed: int = 3) -> lk.Samples:
    rng = np.random.default_rng(seed)
    host = rng.choice(["a", "b", "c"], n)
    took = rng.lognormal(0, 0.5, n) * np.where((host == "b") & (rng.random(n) < 0.05), 20, 1)
    start = np.sort(rng.uniform(0, 600, n)) * 1e9
    endpoint = [f"/users/{k}" for k in rng.integers(0, 3000, n)]
    size, status = rng.lognormal(5, 1, n), rng.choice([200, 304], n)
    rare = [f"u{k}" for k in rng.zipf(1.5, n).clip(max=10_000)]
    columns = {"host": host, "endpoint": endpoint, "size": size, "status": status, "rare": rare}
    return lk.Samples(start=start, duration=took * 1e6, **columns)


def test_shares_add_up_to_one_exactly_in_any_order() -> None:
    table = lk.explain(small()).attributes
    for column in ("share", "share_above"):
        for _, cells in table.groupby("attribute")[column]:
            assert sum(cells) == 1.0
            assert sum(reversed(cells.tolist())) == 1.0


def test_a_cause_is_the_same_in_any_order_of_rows_and_columns() -> None:
    samples = small()
    turned = samples.select(np.random.default_rng(1).permutation(len(samples)))
    one, two = lk.explain(samples), lk.explain(turned)
    assert one.suspects["value"].tolist() == two.suspects["value"].tolist() == ["b"]
    assert (one.threshold, one.latency.max) == (two.threshold, samples.duration.max())
    alike = samples.with_columns({"release": samples.columns["host"] == "b"})  # only there
    assert "host=b (the same requests as release=true) goes" in lk.explain(alike).findings[0]


def test_what_a_cause_explains_is_the_threshold_without_it() -> None:
    samples = small()
    found = lk.explain(samples)
    rest = np.sort(samples.where(host=["a", "c"]).duration)
    without = rest[int(np.ceil(0.99 * rest.size)) - 1]
    assert found.threshold * (1 - found.suspects["explains"][0]) == pytest.approx(without, rel=0.05)


def test_paths_are_grouped_and_numbers_are_cut_at_quantiles() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 4000, 6000)
    paths = [f"/a/{k}" if k % 2 else f"/b/{k}?q=1" for k in numbers]
    s = small().with_columns({"path": paths})
    table = lk.explain(s).attributes
    values = table.groupby("attribute")["value"].apply(set)
    assert values["path"] == {"/a/{id}", "/b/{id}"}
    assert "endpoint" not in values  # one group of paths only
    assert len(values["size"]) == 6
    assert any(value.startswith("≥") for value in values["size"])
    assert "others" in values["rare"]


OUTCOMES = {
    "status": lambda took: np.where(took > 5000, 504, 200),
    "http_response_code": lambda took: np.where(took > 5000, "504 Gateway Timeout", "200 OK"),
    "timed_out": lambda took: took > 5000,
    "errorMessage": lambda took: [None if one <= 5000 else "read timed out" for one in took],
    "breach": lambda took: np.where(took > 1000, "y", "n"),
    "apdex": lambda took: np.where(took > 1000, "bad", np.where(took > 5, "fair", "good")),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_is_named_as_such_and_its_cause_is_found(name: str) -> None:
    rng = np.random.default_rng(len(name))
    n = 30_000
    host = rng.choice(["a", "b", "c"], n)
    sick = (host == "b") & (rng.random(n) < 0.06)
    took = rng.lognormal(1.5, 0.5, n) + np.where(sick, rng.exponential(4000, n), 0)
    took = np.minimum(took, 5000 + rng.random(n))
    s = lk.Samples(start=np.sort(rng.uniform(0, 600, n)) * 1e9, duration=took * 1e6, host=host)
    found = lk.explain(s.with_columns({name: OUTCOMES[name](took)}))
    assert found.suspects[["attribute", "value"]].to_numpy().tolist() == [["host", "b"]]
    table = found.attributes
    assert set(table["attribute"][table["outcome"]]) == {name}
    assert table["explains"][table["outcome"]].isna().all()
    assert any(f"{name}=" in text and "is an outcome of slow" in text for text in found.findings)


def test_what_only_looks_like_an_outcome_may_be_a_cause() -> None:
    """A status of customers, the state of a cache, and an endpoint that is slow without exception."""
    rng = np.random.default_rng(1)
    n = 30_000
    mine = rng.random(n) < 0.03
    took = rng.lognormal(1.5, 0.5, n) * np.where(mine, 100, 1)
    s = lk.Samples(start=np.sort(rng.uniform(0, 600, n)) * 1e9, duration=took * 1e6)
    for name, values in (
        ("status", ("gold", "silver")), ("cache_status", ("MISS", "HIT")),
        ("endpoint", ("/report", "/")), ("error_budget_policy", ("strict", "none")),
    ):  # fmt: skip
        found = lk.explain(s.with_columns({name: np.where(mine, *values)}))
        assert found.suspects[["attribute", "value"]].to_numpy().tolist() == [[name, values[0]]]


def test_columns_without_use_are_named_and_left_out() -> None:
    s = small()
    number = np.arange(len(s))
    left = {"id": [f"r{k}" for k in number], "number": number, "took_ms": s.duration / 1e6}
    left |= {"constant": ["x"] * len(s), "moment": number.astype("M8[s]")}
    found = lk.explain(s.with_columns(left))
    assert not left.keys() & set(found.attributes["attribute"])
    for name in left.keys() - {"constant"}:
        assert any(repr(name) in text for text in found.notes)


def test_a_gauge_that_drifts_has_no_part_in_the_tail() -> None:
    """Its mix changes all the time, and so does the latency; neither has to do with the other."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        start = np.sort(rng.uniform(0, 1800, 20_000))
        place = start.astype(int)
        took = rng.lognormal(0, 0.5, start.size) * np.where(start > 855, 1.6, 1)
        walk = np.cumsum(rng.normal(size=1800))[place]
        s = lk.Samples(start=start * 1e9, duration=took * 1e6, memory=walk, minute=place // 60)
        for found in (lk.explain(s), lk.explain(s, between=(855, 1800))):
            assert not len(found.suspects)


def test_a_host_in_a_url_is_not_an_identifier() -> None:
    n = 400
    rng = np.random.default_rng(1)
    url = [f"http://127.0.0.1:8080/a/{k}" if k % 2 else "https://10.0.0.7/b" for k in range(n)]
    s = lk.Samples(start=np.arange(n) * 1e9, duration=rng.lognormal(0, 1, n) * 1e6, url=url)
    found = lk.explain(s).attributes
    assert set(found["value"]) == {"http://127.0.0.1:8080/a/{id}", "https://10.0.0.7/b"}


def test_few_blocks_are_too_little_evidence() -> None:
    rng = np.random.default_rng(2)
    start = np.sort(rng.uniform(0, 600, 20_000))
    host = rng.choice(["a", "b", "c", "d"], start.size)
    took = rng.lognormal(0, 0.1, start.size)
    for begin in (100.0, 300.0):
        hit = (host == "c") & (start > begin) & (start < begin + 12)
        took[hit] += 1e3 * (begin + 12 - start[hit])
    s = lk.Samples(start=start * 1e9, duration=took * 1e6, host=host)
    assert not len(lk.explain(s, above="500ms").suspects)


def test_without_times_the_order_of_rows_is_taken() -> None:
    s = small()
    found = lk.explain(lk.Samples(duration=s.duration).with_columns(s.columns))
    assert found.suspects["value"].tolist() == ["b"]
    assert any("no times" in text for text in found.notes)


def stalled_run(stall: float = 6.0) -> lk.Samples:
    """Requests of three hosts over 300 s, one a little slower, and a stall at 200 s."""
    rng, n = np.random.default_rng(3), 20_000
    sent, host = np.arange(n) * 0.015, rng.choice(list("xyz"), n)
    took = rng.lognormal(0, 0.4, n) * np.where(host == "y", 1.3, 1.0)
    took += np.where(sent > 200, np.maximum(200 + stall - sent, 0) * 1000, 0.0)
    return lk.Samples(start=sent * 1e3, duration=took, unit="ms", host=host)


def test_a_host_is_found_below_the_percentiles_that_a_stall_rules() -> None:
    explanation = lk.explain(stalled_run())
    assert explanation.suspects[["attribute", "value"]].values.tolist() == [["host", "y"]]
    assert explanation.above in ("p95", "p90")
    assert not len(lk.explain(stalled_run(), above="p99").suspects)


@pytest.mark.parametrize(("over", "stall"), [("requests", 6), ("intervals", 6), ("requests", 24)])
def test_a_summary_names_the_incident_as_explain_does(over: str, stall: float) -> None:
    run = stalled_run(stall) if over == "requests" else stalled_run().to_log("1s")
    record = series_record("run", run)
    assert record["findings"][0] == lk.explain(run).findings[0]
    incident = record["incident"]
    assert incident is not None
    outside = run.offsets if over == "requests" else run.starts
    assert incident["end"] - incident["start"] < stall + 0.02 * float(outside.max())
    rest = {row["percentile"]: row["value"] for row in record["percentiles"]}
    assert (incident["without"]["99.9"] or 0) < 0.5 * (rest[99.9] or 0)
    assert series_record("quiet", small())["incident"] is None


def test_one_stall_behind_a_median_is_named_with_the_median_without_it() -> None:
    rng, n = np.random.default_rng(3), 20_000
    sent, took = np.sort(rng.random(n) * 10), rng.lognormal(np.log(150e-6), 0.3, n)
    hit = (sent > 3) & (sent < 9) & (rng.random(n) < 0.9)
    took = np.where(hit, 9 - sent, took)
    log = lk.Samples(start=sent, duration=took, unit="s").to_log("100ms")
    record = series_record("run", log)
    causes = {row["percentile"]: row["cause"] for row in record["percentiles"]}
    assert (causes[50.0], causes[99.999]) == ("one slow period", "few requests")
    assert re.search(r"p50 (is )?1[45]\d µs instead of \d+ ms", record["findings"][0])


def test_values_that_are_slow_in_turn_are_named_as_such() -> None:
    for world, said in (("stalls of random hosts", True), ("stalls that hit all", False)):
        samples = NULL[world](np.random.default_rng(7)).samples()
        first = lk.explain(samples, above="300ms").findings[0]
        assert first.startswith("slow requests mostly come from one shard at a time: of 1") is said


def test_a_span_is_explained_against_the_rest() -> None:
    rng, n = np.random.default_rng(5), 20_000
    sent, host = np.arange(n) * 0.03, rng.choice(list("xyz"), n)
    slow = (host == "z") & (sent > 200) & (sent < 400)
    took = rng.lognormal(0, 0.4, n) * np.where(slow & (rng.random(n) < 0.2), 8, 1)
    s = lk.Samples(start=sent * 1e3, duration=took, unit="ms", host=host)
    explanation = lk.explain(s, between=(250, 300))
    rest = s.select((s.offsets < 250) | (s.offsets >= 300))
    assert explanation.threshold == pytest.approx(rest.percentile(99), rel=1e-3)
    assert explanation.suspects[["attribute", "value"]].values.tolist() == [["host", "z"]]
    said = r"the span has 1,66\d requests, p50 .* the p99 of the others"
    assert re.match(said, explanation.findings[0])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"above": "1h"}, "no request is slower"),
        ({"above": "1ns"}, "every request is slower"),
        ({"above": "p100"}, "between 0 and 100"),
        ({"by": "hots"}, "no column 'hots'"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_line(arguments: dict[str, str], text: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=text):
        lk.explain(small(), **arguments)


def test_a_histogram_names_the_output_that_has_requests() -> None:
    h = lk.Histogram.of([1.0, 2.0, 3.0]).with_run(format="hey", source="hey.txt")
    with pytest.raises(lk.DataNotAvailableError, match="-o csv"):
        lk.explain(h)


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_columns_of_a_table_are_read_when_they_are_used(tmp_path: Path, suffix: str) -> None:
    frame = small().to_frame().rename(columns={"start": "start_ns", "duration": "latency_ns"})
    path = tmp_path / f"calls.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    s = lk.read(path)
    assert isinstance(s, lk.Samples)
    half = s.between(0, 300)
    assert "Columns(" in repr(s.columns)
    for name, cells in small().columns.items():
        expected = pytest.approx(cells.tolist()) if name == "size" else cells.tolist()
        assert s.columns[name].tolist() == expected
    assert half.columns["host"].tolist() == s.between(0, 300).columns["host"].tolist()
    assert len(half.columns["host"]) == len(half)
    again = pickle.loads(pickle.dumps(lk.read(path)))
    assert again == s
    assert s.where(host="b", status=200) == again.where(status=200, host="b")


def test_columns_survive_selections_and_logs() -> None:
    s = lk.Samples(
        start=[0, 1, 2, 3], duration=[4, 5, 6, 7], unit="s", tag=["x", "x", "y", "y"],
        host=["a", None, "b", "b"], code=[1, 2, 2, 3],
    )  # fmt: skip
    assert s.tagged("y").columns["host"].tolist() == ["b", "b"]
    assert s.select(np.array([3, 0])).columns["code"].tolist() == [3, 1]
    assert s.to_frame()["host"].tolist()[2:] == ["b", "b"]
    assert lk.Samples.from_frame(s.to_frame()).with_run(unit="s") == s
    assert s.where(host=None).duration.tolist() == [5 * 10**9]
    assert s.where(tag="x", code=[1, 2]).columns["code"].tolist() == [1, 2]
    with pytest.raises(lk.InvalidArgumentError, match="values are b, a"):
        s.where(host="z")
    with pytest.raises(lk.InvalidArgumentError, match="4 rows"):
        s.with_columns({"short": [1]})


LINE = (
    '10.0.0.{k} - - [21/Nov/2026:00:16:{second:02} +0000] "GET /users/{k}?x=1 HTTP/1.1" 200 {size} '
    '"-" "curl/8" rt=0.{ms:03} urt=0.{ms:03} up=u{up}\n'
)


def test_an_access_log_has_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    lines = (
        LINE.format(k=k % 200, second=k % 60, size=k, ms=k % 900 + 1, up=k % 3) for k in range(300)
    )
    path.write_text("".join(lines))
    s = lk.read(path)
    assert isinstance(s, lk.Samples)
    first = {name: cells[7] for name, cells in s.columns.items()}
    assert first == {
        "client": "10.0.0.7", "method": "GET", "endpoint": "/users/7", "size": 7, "referer": None,
        "user_agent": "curl/8", "urt": 0.008, "up": "u1", "status": 200,
    }  # fmt: skip


# ---------------------------------------------------------------- command


def table(tmp_path: Path) -> Path:
    path = tmp_path / "calls.csv"
    frame = small().to_frame().rename(columns={"start": "start_ns", "duration": "latency_ns"})
    frame.to_csv(path, index=False)
    return path


def test_the_command_prints_what_python_finds(tmp_path: Path, run: Run) -> None:
    path = table(tmp_path)
    text = run("explain", path, "--by", "host,size", "--format", "json")[1]
    (series,) = json.loads(text)["series"]
    assert series["above"] == "p99"
    assert [row["value"] for row in series["attributes"] if row["significant"]] == ["b"]
    assert {row["attribute"] for row in series["attributes"]} == {"host", "size"}
    assert any("host=b goes with slow requests" in text for text in series["findings"])
    columns = "series,attribute,value,share,share_above,lift,low"
    assert run("explain", path, "--format", "csv")[1].startswith(columns)
    picture = tmp_path / "why.svg"
    assert "* b" in run("explain", path, "-o", picture)[1]
    assert "upper bars: requests above" in picture.read_text()
    assert "| attribute" in run("explain", path, "--format", "markdown")[1]


def test_the_command_prints_events_that_no_shift_can_test(tmp_path: Path, run: Run) -> None:
    events = tmp_path / "deploys.csv"
    events.write_text("time,label\n2026-01-31T12:00:00Z,deploy\n")
    for style in ("table", "markdown"):
        code, text, err = run("explain", table(tmp_path), "--events", events, "--format", style)
        assert code == 0, err
        (row,) = (line for line in text.splitlines() if "deploys.csv" in line and " 0.0 " in line)
        assert "nan" not in row.lower()
        assert "None" not in row


def test_what_was_not_found_is_stated() -> None:
    rng = np.random.default_rng(7)
    start, took = np.arange(600) * 50, rng.lognormal(1, 0.5, 600)
    hosts = lk.Samples(start=start, duration=took, unit="ms", host=rng.choice([*"abcd"], 600))
    explanation = lk.explain(hosts)
    assert not len(explanation.suspects)
    (text,) = [text for text in explanation.findings if "not excluded" in text]
    top = explanation.attributes.sort_values("high").iloc[-1]
    assert f"host={top['value']} (lift up to {top['high']:.3g})" in text
    for quiet in (lk.Samples(start=start, duration=took, unit="ms"), hosts.to_log("1s")):
        (text,) = lk.explain(quiet).findings
        assert "not excluded: what further columns would show" in text


def test_one_connection_is_a_cause_and_a_stall_of_all_is_not() -> None:
    rng = np.random.default_rng(12)
    start, users = np.sort(rng.random(20_000)) * 4e11, rng.integers(0, 10, 20_000)
    took = rng.lognormal(0, 0.3, start.size) * 1e6
    for slow, cause in (
        ((users == 7) & (rng.random(start.size) < 0.15), [["connection", "7"]]),
        ((start % 1e11) < 2e9, []),
    ):
        run = lk.Samples(start=start, duration=np.where(slow, 50 * took, took), connection=users)
        assert lk.explain(run).suspects[["attribute", "value"]].to_numpy().tolist() == cause


LATENCIES = np.random.default_rng(1).lognormal(14, 0.5, 4000).astype(np.int64)
ABOVE = np.greater(LATENCIES, np.quantile(LATENCIES, 0.95))
ANY = np.random.default_rng(2).random(4000)


@pytest.mark.parametrize(
    ("values", "marked", "expected"),
    [
        (LATENCIES, ABOVE, True),
        (LATENCIES, ABOVE ^ (ABOVE & (ANY < 0.02)), True),
        (LATENCIES, ABOVE ^ (ABOVE & (ANY < 0.3)), False),
        (LATENCIES, ABOVE ^ (~ABOVE & (ANY < 0.004)), True),
        (LATENCIES, ABOVE ^ (~ABOVE & (ANY < 0.015)), False),
        (LATENCIES, ~ABOVE, False),
        (LATENCIES, ABOVE | True, False),
        (LATENCIES, ANY < 0.05, False),
        # Nothing is near the limit: it has a cause.
        (np.where(ABOVE, 10, 1) * LATENCIES, ABOVE, False),
        (np.where(ANY < 0.05, 3, 1) * LATENCIES, ANY < 0.05, False),
    ],
)
def test_a_column_restates_latency_where_a_limit_cuts_through_a_crowd(
    values: np.ndarray, marked: np.ndarray, expected: bool
) -> None:
    assert restates_latency(values, marked) is expected


@pytest.mark.parametrize(("stalls", "text"), [
    ([], "no stall, period or other pattern over time stands out"),
    ([(20, 10)], "a stall of 10 s shows, but no period or other pattern over time stands out"),
    ([(20, 8), (40, 5)], "2 stalls of up to 8 s show, but no period"),
])  # fmt: skip
def test_a_stall_that_shows_is_not_denied(stalls: list[tuple[float, float]], text: str) -> None:
    """One request waited for it, of a hundred that are slower than p99."""
    server = simulate.Server("1ms", stalls=[simulate.Stall(*one) for one in stalls])
    log = simulate.paced_loop(server, 100, "60s", connections=1).to_log("1s")
    (found, *_) = lk.explain(log).findings
    assert found.startswith(text), found
