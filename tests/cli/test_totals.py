"""A file of requests with parts shows its total first, in every command alike."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import latencykit as lk
from tests.conftest import DATA
from tests.views.conftest import model_of

TAGGED = DATA / "formats/hlog/tags/log.hlog"
ENDPOINTS = ["/cart", "/s2", "/s10"]


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    """Requests with an endpoint and a host each."""
    path = tmp_path_factory.mktemp("totals") / "requests.csv"
    values = np.random.default_rng(4).lognormal(2, 0.5, 3000)
    rows = [
        f"{5 * k},{value:.3f},{ENDPOINTS[k % 3]},h{k % 2}"
        for k, value in enumerate(values.tolist())
    ]
    path.write_text("\n".join(["start_ms,latency_ms,endpoint,host", *rows, ""]))
    return path


def names(run, *words):
    return [one["name"] for one in run.json(*words).get("series", ())]


@pytest.mark.parametrize("command", ["summary", "diagnose", "fanout", "compare"])
def test_total_then_parts_in_natural_order(run, requests, command):
    sides = 1 + (command == "compare")
    assert names(run, command, *[requests] * sides) == ["total", *ENDPOINTS]
    assert names(run, command, *[requests] * sides, "--by", "host") == ["total", "h0", "h1"]
    merged = ["all"] if sides == 1 else []  # one comparison has no list of them
    assert names(run, command, *[requests] * sides, "--merge") == merged
    assert names(run, command, *[TAGGED] * sides) == ["total", "get", "set"]


def test_the_total_is_all_of_it_once(run, requests):
    total, *parts = run.json("summary", requests)["series"]
    assert total["aggregate"]
    assert total["count"] == sum(part["count"] for part in parts) == 3000
    merged = run.json("summary", requests, "--merge")["series"][0]
    assert merged["count"] == 3000
    assert merged["max"] == total["max"] == max(part["max"] for part in parts)


def test_a_series_may_be_named_by_its_tag(run, requests):
    for option in ("--series", "--tag"):
        assert names(run, "summary", requests, option, "/s2") == ["/s2"]
        (row,) = run.json("check", requests, "--slo", "99=1s", option, "/s2")["rows"]
        assert row["series"] == "/s2"
    assert names(run, "summary", requests, "--series", "total", "--series", "/s10") == [
        "total",
        "/s10",
    ]
    assert "did you mean '/s2'" in run.refused("summary", requests, "--series", "/s3")


def test_charts_of_one_series_draw_the_total_and_say_so(run, tmp_path):
    out = tmp_path / "x.svg"
    assert run("chart", TAGGED, "--kind", "heatmap", "-o", out)[0] == 0
    assert "total of 2 series" in re.sub(r"\s+", " ", out.read_text())
    assert list(lk.plot.series.as_series(lk.read(TAGGED))) == ["total", "get", "set"]


def test_a_total_is_not_counted_again_beside_its_parts(run, requests, tmp_path):
    out = tmp_path / "x.svg"
    assert run("chart", requests, "-o", out)[0] == 0
    text = re.sub(r"\s+", " ", out.read_text())
    assert "3 series and their total · 3,000 requests" in text


@pytest.mark.parametrize("words", [["--by", "host"], ["--merge"]], ids=" ".join)
def test_series_that_a_user_chose_are_not_split_by_endpoint(run, requests, tmp_path, words):
    chosen = names(run, "summary", requests, *words)
    for kind in ("percentiles", "timeline", "density", "ccdf", "dashboard"):
        out = tmp_path / f"{kind}.svg"
        assert run("chart", requests, *words, "--kind", kind, "-o", out)[0] == 0
        drawn = re.sub(r"\s+", " ", out.read_text())
        assert not any(endpoint in drawn for endpoint in ENDPOINTS)
    page = tmp_path / "page.html"
    assert run("report", requests, *words, "-o", page)[0] == 0
    assert [one["name"] for one in model_of(page.read_text())["series"]] == chosen


PLAIN = DATA / "formats/wrk/ctrlz/stdout.txt"


def test_a_file_of_parts_is_compared_with_a_plain_one_by_its_total(run, requests):
    for pair in ((requests, PLAIN), (PLAIN, requests)):
        status, out, err = run("compare", *pair, "--format", "json")
        assert status < 2
        assert "requests.csv: its total is compared" in err
        total = run("compare", *pair, "--series", "total", "--format", "json")[1]
        assert json.loads(out)["rows"] == json.loads(total)["rows"]


@pytest.mark.parametrize(
    "words",
    [
        ("summary",),
        ("check", "--slo", "p99<10s"),
        ("diagnose",),
        ("fanout", "--calls", "3"),
        ("explain",),
        ("chart", "-o", "x.svg"),
        ("report", "-o", "x.html"),
        ("merge", "-o", "x.json"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_the_total(run, requests, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    plain = tmp_path / "plain.csv"
    plain.write_text("\n".join(row.rsplit(",", 2)[0] for row in requests.read_text().split()))
    for path in (requests, plain, TAGGED):
        if words[0] not in ("explain", "check") or path != TAGGED:  # without requests, and unit
            status, _, err = run(*words, path, "--series", "total")
            assert status == 0, err


def test_files_of_several_series_without_a_total_say_so(run):
    path = next(p for p in (DATA / "formats/jmh-json").glob("*/*") if len(lk.read_all(p)) > 1)
    assert "has no series 'total'" in run.refused("summary", path, "--series", "total")
    assert "did you mean 'total'?" in run.refused("summary", TAGGED, "--series", "tota")


@pytest.mark.slow
def test_a_history_keeps_the_total_that_check_and_compare_ask_for(run, requests, tmp_path):
    for label, series in (("", "total"), ("cart=", "cart:total")):
        file, store = f"{label}{requests}", tmp_path / f"of-{series}"
        for day in range(11):
            assert run("history", "add", file, "--store", store, "--time", 86_400 * day)[0] == 0
        assert "no run noise" not in run("check", file, "--slo", "99=1s", "--history", store)[2]
        assert f"history of {series}\n" in run("compare", file, file, "--history", store)[2]
        assert run.json("history", "check", file, "--store", store)["verdict"] == "same"


def test_a_page_names_the_column_and_the_value_of_each_part(run, tmp_path):
    path, page = tmp_path / "requests.csv", tmp_path / "x.html"
    rows = (f"{5 * k},{1 + k % 7},h{k % 2}" for k in range(300))
    path.write_text("\n".join(["start_ms,latency_ms,host", *rows, ""]))
    for more, parts in (((), [None]), (("--by", "host"), [None, "h0", "h1"])):
        assert run("-q", "report", path, *more, "-o", page)[0] == 0
        text = page.read_text()
        begin = text.index("id='model'>") + len("id='model'>")
        model, _ = json.JSONDecoder().raw_decode(text, begin)
        origins = [one["origin"] for one in model["series"]]
        assert [one.get("by") for one in origins] == ["host" if more else None] * len(parts)
        assert [one.get("part") for one in origins] == parts
