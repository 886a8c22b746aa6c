"""A unit that is only assumed is noted in every output, survives being written, and is not compared in silence."""

from __future__ import annotations

import re

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.compare import unit_doubts
from latencykit.core.run import Run, merge_runs
from latencykit.io.writing import write_series as write
from latencykit.plot.series import joined

VALUES = np.random.default_rng(11).lognormal(14, 1, 3000)


def bare(path, factor=1.0):
    """A log that states no unit."""
    samples = lk.Samples(start=np.arange(3000) * 10_000_000, duration=VALUES * factor)
    write({"x": samples.to_log("1s").with_run(unit_from="assumed")}, path)
    path.write_text(re.sub(r"(?m)^#\[latencykit.*\n", "", path.read_text()))
    return path


@pytest.fixture
def log(tmp_path):
    return bare(tmp_path / "a.hlog")


COMMANDS = [
    ["summary"], ["summary", "--interval", "5s"], ["summary", "--merge"], ["fanout", "-n", "1,10"],
    ["diagnose"],
    ["check", "--slo", "failed=1%"], ["chart", "--term"], ["summary", "--format", "markdown"],
    ["fanout", "-n", "2", "--format", "markdown"],
    ["diagnose", "--format", "markdown"],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_what_prints_for_people_says_so_where_it_prints(run, log, words):
    if "--term" in words:
        pytest.importorskip("plotext", reason="the extra `report` is not installed")
    status, out, err = run("-q", *words, log)
    assert (status, err) == (0, "")
    text = "assuming nanoseconds; override" if "--term" in words else "unit: ns (assumed"
    assert out.count(text) == 1
    if "--term" not in words:  # the first that a person reads
        assert out.startswith("unit: ns (assumed; --unit states another)\n")
    status, out, err = run(*words, log)
    assert (status, (out + err).count("assum")) == (0, 1)
    _, out, err = run(*words, log, "--unit", "us")
    assert "assum" not in out + err


@pytest.mark.parametrize(
    "words", [["summary"], ["fanout", "-n", "2"], ["diagnose"], ["load"]], ids=" ".join
)
def test_json_says_where_the_unit_comes_from(run, log, words):
    path = f"100={log}" if words == ["load"] else log
    record = run.json(*words, path)
    for one in record.get("series") or record["rows"]:
        assert one["unit_from"] == "assumed"
        assert any("assuming nanoseconds" in note for note in one["notes"])


@pytest.mark.parametrize(
    "kind", ["percentiles", "timeline", "heatmap", "density", "ccdf", "dashboard"]
)
def test_charts_say_so(run, log, tmp_path, kind):
    assert run("-q", "chart", log, "--kind", kind, "-o", tmp_path / "x.svg")[0] == 0
    assert "assumed to be ns" in re.sub(r"\s+", " ", (tmp_path / "x.svg").read_text())


def test_a_chart_of_a_guess_and_a_fact_says_which_is_which():
    guess, fact = (
        lk.Histogram.of(VALUES, run=Run(unit_from=origin)) for origin in ("assumed", "file")
    )
    assert joined({"a": guess, "b": fact}) == "values assumed to be ns in a"
    assert joined({"a": guess, "b": guess}) == "values assumed to be ns"
    assert joined({"b": fact}) == ""


@pytest.mark.slow
def test_pages_and_pictures_of_other_commands_say_so(run, log, tmp_path):
    assert run("-q", "report", log, "-o", tmp_path / "r.html")[0] == 0
    assert "assuming nanoseconds" in (tmp_path / "r.html").read_text()
    load = ["load", f"100={log}", f"200={bare(tmp_path / 'b.hlog')}"]
    for words in (load, ["diagnose", log], ["fanout", log, "-n", "2"]):
        assert run("-q", *words, "-o", tmp_path / "x.svg")[0] == 0
        assert "assumed to be ns" in (tmp_path / "x.svg").read_text()


def test_a_limit_in_time_is_refused(run, log):
    for words in (["check", log], ["load", f"100={log}"]):
        err = run.refused(*words, "--slo", "99=20ms")
        assert "does not state the unit of its values" in err
        assert "--unit ns" in err


# ---------------------------------------------------------------- written and read again


@pytest.mark.parametrize("suffix", [".hlog", ".hgrm", ".csv", ".json", ".parquet"])
def test_a_guess_stays_a_guess_in_every_format(run, log, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
    target = tmp_path / f"out{suffix}"
    assert run("convert", log, target)[0] == 0
    median = lk.read(log).histogram().percentile(50)
    for one in lk.read_all(target).values():
        assert one.run.unit_from == "assumed"
        assert one.run.unit_note in one.run.notes
        assert one.histogram().percentile(50) == pytest.approx(median, rel=2e-3)
    assert run("check", target, "--slo", "99=1s")[0] == 2
    # a guess gives way to the user
    for one in lk.read_all(target, unit="s" if suffix == ".hgrm" else "us").values():
        assert one.run.unit_from == "option"
        now = one.histogram().to_unit("ns").percentile(50)
        assert now == pytest.approx(1e3 * median, rel=2e-3)


@pytest.mark.parametrize("suffix", [".hlog", ".hgrm", ".csv", ".json"])
@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_a_fact_stays_a_fact(tmp_path, suffix, unit):
    target = tmp_path / f"out{suffix}"
    h = lk.Histogram.of(VALUES, unit="us", run=Run(unit="us"))
    write({"x": h}, target, **({"out_unit": unit} if suffix == ".hgrm" else {}))
    again = lk.read(target)
    assert again.run.unit_from != "assumed"
    expected = pytest.approx(h.percentile(90), rel=2e-3 if unit != "s" else 0.3)
    assert again.histogram().to_unit("us").percentile(90) == expected


def test_a_guess_other_than_nanoseconds_survives_a_log(tmp_path):
    line = '10.0.0.1 - - [21/Nov/2026:01:16:36 +0100] "GET / HTTP/1.1" 200 3 "-" "-" 250000\n'
    (tmp_path / "access.log").write_text(line * 30)
    found = lk.read(tmp_path / "access.log")
    assert (found.run.unit, found.run.unit_from) == ("us", "assumed")
    write({"x": found}, tmp_path / "x.hlog")
    again = lk.read(tmp_path / "x.hlog")
    assert (again.run.unit, again.run.unit_from) == ("us", "assumed")
    assert "unit_from: assumed" in (tmp_path / "x.hlog").read_text()
    assert again.histogram().to_unit("ns").max == pytest.approx(250e6, rel=1e-3)


def test_bare_numbers_stay_bare(run, log, tmp_path):
    assert run("convert", log, tmp_path / "x.hlog", "--unit", "none")[0] == 0
    again = lk.read(tmp_path / "x.hlog")
    assert (again.unit, again.run.unit_from) == ("none", "file")


# ---------------------------------------------------------------- together


def test_one_guess_makes_a_sum_a_guess(run, tmp_path, log):
    origins = ("file", "format", "option", "assumed")
    for one in origins:
        for two in origins:
            said = merge_runs([Run(unit_from=one), Run(unit_from=two)]).unit_from
            assert (said == "assumed") == ("assumed" in (one, two))
    sure = tmp_path / "sure.hlog"
    write({"x": lk.read(log, unit="ns")}, sure)
    assert run("merge", log, sure, "-o", tmp_path / "m.hlog")[0] == 0
    assert lk.read(tmp_path / "m.hlog").run.unit_from == "assumed"


@pytest.mark.slow
def test_guesses_a_thousandfold_apart_are_warned_of_and_not_merged(run, tmp_path, log):
    other = bare(tmp_path / "b.hlog", 1000.0)
    _, _, err = run("compare", log, other)
    assert "the medians differ by a factor of" in err
    warnings = run.json("compare", log, other, status=1)["warnings"]
    assert any("a unit is only assumed" in text for text in warnings)
    merged = tmp_path / "m.hlog"
    assert "the medians differ by a factor of" in run.refused("merge", log, other, "-o", merged)
    assert not merged.exists()
    assert run("merge", log, other, "-o", merged, "--force")[0] == 0
    assert lk.read(merged).count == lk.read(log).count + lk.read(other).count
    near = bare(tmp_path / "c.hlog", 1.5)
    assert "factor" not in run("compare", log, near)[2]
    assert "assuming nanoseconds" in " ".join(lk.compare(lk.read(log), lk.read(near)).warnings)
    stated = [lk.read(path, unit="ns") for path in (log, other)]
    assert "assum" not in " ".join(lk.compare(*stated).warnings)


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e-3, 400.0, 2500.0])
def test_a_factor_of_a_unit_and_some_change_is_seen(factor):
    guess = Run(unit_from="assumed")
    assert unit_doubts([guess, guess], [1.0, factor])
    assert unit_doubts([guess, Run()], [1.0, factor])
    assert not unit_doubts([Run(), Run()], [1.0, factor])
    assert not unit_doubts([guess, guess], [1.0, 30.0])
    assert unit_doubts([guess, guess.replace(unit="ms")], [1.0, 1.0])


# ---------------------------------------------------------------- names and descriptions


SCRAPE = """# HELP rpc {described}
# TYPE rpc histogram
rpc_bucket{{le="1"}} 5
rpc_bucket{{le="10"}} 9
rpc_bucket{{le="+Inf"}} 9
rpc_sum 30
rpc_count 9
"""


def scraped(path, name, described):
    """A scrape of one histogram of that name and description."""
    text = SCRAPE.format(described=described)
    path.write_text(re.sub(r"\brpc(?=_bucket|_sum|_count| )", name, text))
    return path


@pytest.mark.parametrize(
    ("name", "described", "unit", "origin"),
    [
        ("rpc", "Latency of calls in milliseconds.", "ms", "file"), ("rpc", "Call latency (us)", "us", "file"),
        ("rpc", "Time taken, microseconds", "us", "file"), ("rpc", ("How long calls take, in ms, "
                                                                   "over a 60 second window"), "ms", "file"),
        ("rpc", "Latency in the last 30 seconds", "s", "assumed"), ("rpc", "Latency of calls.", "s", "assumed"),
        ("rpc_ms", "Latency of calls.", "ms", "format"), ("rpc_latency_microseconds_hist", "of calls", "us", "format"),
        ("rpcDurationMs", "", "ms", "format"), ("rpc_seconds", "in milliseconds", "s", "format"),
    ],
)  # fmt: skip
def test_a_name_or_a_description_is_believed_before_a_default(
    tmp_path, name, described, unit, origin
):
    found = lk.read(scraped(tmp_path / "x.prom", name, described))
    assert (found.run.unit, found.run.unit_from) == (unit, origin)
    assert found.max == {"us": 1e3, "ms": 1e6, "s": 1e9}[unit] * 10
    assert (found.run.unit_note is not None) == (origin == "assumed")


@pytest.mark.parametrize(
    "described",
    ["Size of replies in bytes", "Payload (KiB)", "Number of rows", "Memory in kilobytes"],
)
@pytest.mark.parametrize("name", ["rpc", "rpc_per_second", "rpc_size", "payload_bytes_hist"])
def test_bytes_are_not_latency(tmp_path, name, described):
    with pytest.raises(lk.LatencyKitError, match=r"contains no latencies"):
        lk.read(scraped(tmp_path / "x.prom", name, described))


def test_it_is_said_once_for_both_sides_and_for_the_one_that_does_not_state_it(run, log, tmp_path):
    _, out, err = run("compare", log, bare(tmp_path / "b.hlog"))
    assert (out.count("unit: ns (assumed"), err.count("assum")) == (1, 0)
    stated = tmp_path / "c.hlog"
    write({"c": lk.read(log, unit="ns")}, stated)
    assert run("compare", log, stated)[1].startswith("base: unit: ns (assumed")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"p50": 4.2, "p99": 130.5}'),
        ("b.txt", "p50: 4.2\np99: 130.5\n"),
        ("c.json", "[4.2, 5.1, 3.3, 130.5]"),
        ("d.txt", "4.2\n5.1\n3.3\n130.5\n"),
    ],
)
def test_numbers_without_any_unit_are_plain_numbers(run, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    for command in ("summary", "compare", "diagnose"):
        files = [path, tmp_path / f"other-{name}"] if command == "compare" else [path]
        files[-1].write_text(text)
        status, out, err = run(command, *files)
        assert status == 0
        assert not re.search(r"\d [nµm]s\b", out)
        assert (out + err).count("plain numbers") == 1
    assert "state it: --unit ms" in run.refused("check", path, "--slo", "99=50ms")
    assert "131 ms" in run("summary", path, "--unit", "ms")[1].replace("130 ms", "131 ms")
