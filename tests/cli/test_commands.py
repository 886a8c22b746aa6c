"""The command line as users see it: output, exit status, errors of one line, complete files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.compare import parse_condition
from latencykit.cli import cli
from latencykit.core.histogram_log import interval_series
from latencykit.io.writing import write_series as write
from latencykit.simulate import Server, Stall, paced_loop
from tests.conftest import DATA, RAW, SCHEDULED, TAGGED, python


def test_a_row_per_interval_has_its_times_in_a_unit(run):
    rows = run("summary", RAW, "--interval", "5s")[1].splitlines()
    assert ["10.000", "s", "5", "s", "1,056"] in [row.split()[:5] for row in rows]


def test_an_option_names_the_unit_of_a_bare_duration(run):
    """`--interval 5` is 5 s, and --help says so."""
    durations = {}
    for name in cli.list_commands(None):
        for option in cli.get_command(click.Context(cli), name).params:
            durations[option.name] = option.metavar
    times = ("stall", "budget", "resolution", "interval", "duration", "service_time")
    for name in (*times, "expected_interval"):
        assert durations[name] == "SECONDS"


@pytest.mark.parametrize(("unit", "seen"), [((), 10e9), (("--unit", "none"), 10)])
def test_a_bare_interval_is_seconds_unless_the_values_have_no_unit(run, unit, seen):
    words = ("diagnose", RAW, "--expected-interval", "10", "--format", "json", *unit)
    assert json.loads(run(*words)[1])["series"][0]["expected_interval"] == seen


def test_summary_in_json_has_the_contracts_keys_and_notes_go_elsewhere(run):
    status, out, err = run("summary", RAW, "--format", "json")
    record = json.loads(out)
    (series,) = record["series"]
    assert (status, record["schema_version"]) == (0, 1)
    assert [series[key] for key in ("unit", "rung", "format")] == ["ns", "log", "hlog"]
    assert (series["count"], series["max"], series["unit_from"]) == (6852, 6002049023, "assumed")
    keys = "name source tags failed timeouts min mean std start duration trimmed_means run notes aggregate"
    assert {*keys.split()} <= set(series)
    row = next(row for row in series["percentiles"] if row["percentile"] == 99.99)
    assert (row["supported"], row["high"]) == (False, None)
    assert "unit: ns (assumed" in err


def test_labels_globs_and_merge(run):
    both = run.json("summary", f"before={RAW}", f"after={SCHEDULED}")["series"]
    assert [one["name"] for one in both] == ["before", "after"]
    merged = run.json("summary", RAW.parent / "*scheduled.hlog", "--merge")["series"]
    assert merged[0]["name"] == "all"
    both = run.json("summary", RAW, SCHEDULED, "--merge")["series"]
    assert [one["count"] for one in both] == [6852 + 9975]


def test_a_log_without_intervals_has_an_empty_list_of_them(run, tmp_path):
    path = tmp_path / "empty.hlog"
    path.write_text("#[Logged with jHiccup version 2.0.11]\n")
    record = run.json("summary", path, "--interval", "10s")
    assert [series["intervals"] for series in record["series"]] == [[]]


def test_a_timeout_is_in_its_interval(run, tmp_path):
    path = tmp_path / "x.csv"
    rows = "".join(
        f"{k},{5000 if k == 12 else 7},{'timeout' if k == 12 else 'ok'}\n" for k in range(20)
    )
    path.write_text(f"start_s,latency_ms,outcome\n{rows}")
    ask = ("summary", path, "--percentiles", "50,99")
    series, known = run.json(*ask, "--interval", "10s")["series"][0], run.json(*ask)["series"][0]
    assert {**known, "intervals": series["intervals"]} == series
    assert [row["count"] for row in series["intervals"]] == [10, 9]
    late = series["intervals"][1]
    assert (late["max"], late["percentiles"]["50"]) == (5e9, 7000063)
    assert late["ranges"]["99"] == late["ranges"]["max"] == {"low": 5e9, "high": None}


def test_intervals_add_up(run):
    series = run.json("summary", RAW, "--interval", "5s", "--percentiles", "50,99")["series"][0]
    assert sum(row["count"] for row in series["intervals"]) == series["count"] == 6852
    assert max(row["max"] or 0 for row in series["intervals"]) == series["max"]
    assert set(series["intervals"][0]["percentiles"]) == {"50", "99"}


def test_a_maximum_beyond_what_the_tool_can_count_is_at_least_that(run):
    (clipped,) = (DATA / "formats/redis-benchmark/clipped").glob("*.txt")
    assert "≥ 3 s" in run("summary", clipped)[1]
    assert run.json("summary", clipped)["series"][0]["max_is_lower_bound"] is True
    assert "≥" not in run("summary", RAW)[1]


def test_without_an_output_the_chart_goes_beside_the_input(run, tmp_path):
    copy = tmp_path / "run.hlog"
    copy.write_bytes(RAW.read_bytes())
    _, out, _ = run("-q", "chart", copy)
    assert Path(out.strip()) == tmp_path / "run.hlog.png"
    assert (tmp_path / "run.hlog.png").exists()


@pytest.mark.parametrize("suffix", [".hlog", ".json", ".csv", ".hgrm", ".parquet"])
def test_convert(run, tmp_path, suffix):
    out = tmp_path / f"x{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
    status, text, _ = run("convert", RAW, out, "--format", "json")
    assert (status, json.loads(text)) == (0, {"output": str(out)})
    if suffix == ".json":
        assert run("convert", RAW, "-")[:2] == (0, out.read_text())
        asked = ("-", "--format", "csv", "--out-unit", "ms", "--percentiles", "50")
        assert ",-0.001,1.004,,433,0.092735," in run("convert", RAW, *asked)[1]
    if suffix in (".hlog", ".json", ".parquet"):
        again = run.json("summary", out)["series"][0]
        first = run.json("summary", RAW)["series"][0]
        for key in ("count", "min", "max", "mean", "std", "percentiles"):
            assert again[key] == first[key]


@pytest.mark.slow
def test_merge_keeps_tags_and_counts(run, tmp_path):
    out = tmp_path / "all.hlog"
    status, text, _ = run("merge", TAGGED, RAW, "-o", out, "--format", "json")
    assert (status, json.loads(text)["count"]) == (0, 3180 + 795 + 6852)
    series = run.json("summary", out)["series"]
    tags = [(), (), ("get",), ("set",)]  # the total has none either
    assert sorted(tuple(one["tags"]) for one in series) == tags
    run("merge", f"before={RAW}", SCHEDULED, "-o", out, "--tag-by-file")
    series = run.json("summary", out)["series"]
    assert [one["tags"] for one in series] == [[], ["before"], ["scheduled"]]


def test_adding_a_file_to_itself_is_said(run, tmp_path):
    said = f"{RAW}: named more than once, and its requests count as often"
    assert said in run("merge", RAW, SCHEDULED, f"again={RAW}", "-o", tmp_path / "all.hlog")[2]
    assert said in run("summary", RAW, RAW, "--merge")[2]
    for words in ((RAW, RAW), (RAW, SCHEDULED, "--merge")):
        assert "more than once" not in run("summary", *words)[2]
    assert "standard input is named more than once" in run.refused("summary", "-", "-")


def test_a_window_that_ends_before_it_begins_passes_no_gate(run):
    err = run.refused("check", RAW, "--unit", "ns", "--slo", "max=1ns", "--from", "5", "--to", "1")
    assert "--from 5 is later than --to 1" in err


def test_diagnose_knows_that_rows_with_starts_are_such(run, tmp_path):
    path = tmp_path / "freeze.csv"
    at, lines = 0.0, ["start_s,latency_ms"]
    while at < 60:
        took = 5.001 if 30 <= at < 30.01 else 0.001
        lines.append(f"{at:.3f},{1e3 * took:.0f}")
        at = max(at + 0.01, at + took)
    path.write_text("\n".join(lines) + "\n")
    text = run("diagnose", path)[1]
    assert "At 100/s, 500 requests were due in that time: the 1 that was sent waited" in text


def test_diagnose_counts_what_was_as_slow_where_sends_are_unknown():
    stats = {"max": 4e9, "mean": 5e7}
    report = lk.Histogram.from_percentiles([50, 99], [1e6, 4e6], 2000, reported_stats=stats)
    found = lk.diagnose(report.with_run(duration=20.0, connections=8))
    assert "400 requests were due in that time.\n" in str(found)


def test_diagnose_of_all_series_is_one_finding(run, tmp_path):
    server = Server("1ms", servers=64, stalls=[Stall(7, 4)])
    samples = paced_loop(server, 200, 20, connections=8)
    files = [tmp_path / "a.hlog", tmp_path / "b.hlog"]
    for k, file in enumerate(files):
        half = lk.Samples(start=samples.start[k::2], duration=samples.duration[k::2])
        lk.write(half.to_log("1s").with_run(start=1000.0), file)
    apart = run.json("diagnose", *files)["series"]
    (together,) = run.json("diagnose", *files, "--merge")["series"]
    assert [len(apart), together["verdict"]] == [2, "omits"]
    assert together["name"] == "all"
    assert len(together["stalls"]) == 1
    assert run("diagnose", *files, "--merge", "--fail")[0] == 1


def test_merge_refuses_what_must_not_be_added(run, tmp_path):
    out = tmp_path / "y.hlog"
    other = tmp_path / "us.hlog"
    other.write_bytes(b"#[Logging for: READ]\n" + RAW.read_bytes())
    status, _, err = run("merge", RAW, other, "-o", out)
    assert (status, "their unit differs" in err) == (2, True)
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("chart", RAW, "-o", "a.png"), ["output"]),
        (("chart", RAW, "-o", "a.html"), ["output"]),
        (("report", RAW, "-o", "a.html"), ["output"]),
        (("convert", RAW, "a.csv"), ["output"]),
        (("merge", RAW, RAW, "-o", "a.hlog"), ["output", "intervals", "count"]),
    ],
    ids=lambda given: " ".join(map(str, given[:1])),
)
def test_what_was_written_is_printed_as_asked(run, tmp_path, monkeypatch, words, keys):
    monkeypatch.chdir(tmp_path)
    (record,) = run.csv("-q", *words)
    assert list(record) == keys
    assert record["output"] == words[-1]
    reported_stats = run.json("-q", *words)
    assert {key: str(reported_stats[key]) for key in keys} == record
    header, _, row = run("-q", *words, "--format", "markdown")[1].splitlines()
    assert header == f"| {' | '.join(keys)} |"
    assert row == f"| {' | '.join(record.values())} |"
    assert run("-q", *words)[1] == ""


def test_lenient_leaves_out_an_unreadable_file_and_says_so(run, tmp_path):
    bad = tmp_path / "bad.hlog"
    bad.write_bytes(bytes(range(256)) * 10)
    assert run("summary", RAW, bad)[0] == 2
    status, out, err = run("summary", RAW, bad, "--lenient", "--format", "json")
    assert (status, len(json.loads(out)["series"])) == (0, 1)
    assert "bad.hlog" in err


@pytest.mark.slow
def test_standard_input_and_a_closed_pipe():
    words = ("-m", "latencykit", "-q", "summary", "-", "--format", "csv")
    assert python(*words, input=RAW.read_text()).stdout.splitlines()[1].startswith("stdin,6852,")
    command = f"{sys.executable} -m latencykit formats | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- arguments that cannot be meant

H = lk.Histogram.of(np.arange(1, 3_000_000, 1000))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0.99=25ms", "99"),
        ("p0.999 < 1s", "99.9"),
        ("max=1s, 0.5=2ms", "50"),
        (".95=3ms", "95"),
        ("0.9999:1s", "99.99"),
    ],
)
def test_a_share_is_not_taken_for_a_percentile(text, meant):
    with pytest.raises(lk.InvalidArgumentError, match=f"was p{meant} meant"):
        lk.SLO.parse(text)
    with pytest.raises(lk.InvalidArgumentError, match=f"was p{meant} meant"):
        parse_condition(f"{float(meant) / 100:g} > +5%")


@pytest.mark.parametrize(
    ("unit", "meant"),
    [("msec", "ms"), ("MS", "ms"), ("seconds", "s"), ("µs", "us"), ("nanoseconds", "ns")],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda unit: lk.Histogram.of([1, 2], unit=unit),
        lambda unit: lk.Histogram.from_buckets([1], [2], [3], unit),
        lambda unit: lk.Histogram.from_percentiles([50], [2], 3, unit),
        lambda unit: lk.Samples(duration=[1], unit=unit),
        lambda unit: lk.Summary({"mean": 1.0}, unit=unit),
        lambda unit: lk.HistogramLog([0], [1], [], unit=unit),
    ],
)
def test_a_unit_that_is_not_one_is_refused(make, unit, meant):
    with pytest.raises(lk.InvalidArgumentError, match=f"Did you mean '{meant}'"):
        make(unit)


@pytest.mark.parametrize("interval", [2, 2.0, "2", "2e6", np.int64(2), np.float64(2e6)])
def test_an_interval_without_a_unit_is_refused(interval):
    for call in (lk.correct, lk.diagnose):
        with pytest.raises(lk.InvalidArgumentError, match="write a number and a unit"):
            call(H, expected_interval=interval)
    plain = lk.Histogram.of([10, 100], unit="none")
    assert lk.correct(plain, 10).count == lk.correct(lk.Histogram.of([10, 100]), "10ns").count


@pytest.mark.parametrize(
    "name", ["page.png", "page.pdf", "page.svg", "page", "page.html.gz", "page.json"]
)
def test_a_page_is_html(name, tmp_path):
    with pytest.raises(lk.InvalidArgumentError, match="a page is written as"):
        lk.report(H, tmp_path / name)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- written logs


@pytest.mark.parametrize("begin", [-0.001, -0.0004, -3.25, 0.0, 5.5])
@pytest.mark.parametrize("start", [1_700_000_000.0, None])
def test_a_written_log_has_no_negative_time_stamp(begin, start, tmp_path):
    log = lk.Samples(start=[0, 2_000_000_000], duration=[1000, 5000]).to_log("1s")
    run = log.run.replace(start=start)
    log = lk.HistogramLog(log.starts + begin, log.lengths, log._parts, run=run)
    path = tmp_path / "early.hlog"
    write({"": log}, path)
    stamps = [line.split(",")[0] for line in path.read_text().splitlines() if "HIST" in line]
    assert not any(stamp.startswith("-") for stamp in stamps)
    back = lk.read(path)
    assert back.histogram().count == 2
    assert back.starts - back.starts[0] == pytest.approx(log.starts - log.starts[0], abs=1e-3)
    if start is not None:
        assert back.start + back.starts[0] == pytest.approx(start + begin, abs=2e-3)
    if begin >= 0 and start is not None:
        assert back.start == start


# ---------------------------------------------------------------- fan-out


def test_calls_of_one_user_are_those_that_started_together():
    """Twenty calls start in the second of a stall and end two seconds later, as fast ones do."""
    second = 1_000_000_000
    quick = np.arange(0, 6, 0.01)
    quick = quick[(quick < 1) | (quick >= 2)]
    stalled = np.linspace(1, 1.99, 20)
    start = np.concatenate((quick, stalled)) * second
    took = np.concatenate((np.full(quick.size, 1e-3), np.full(stalled.size, 2.5))) * second
    samples = lk.Samples(start=start.astype(np.int64), duration=took.astype(np.int64))
    users = lk.fan_out(samples, 10)
    # Ten consecutive requests reach into the stall from nine places before it.
    share = (stalled.size + 9) / len(samples)
    assert users.share_above(second) == pytest.approx(share, rel=1e-9)
    log = samples.to_log("1s", by_start=True)
    assert interval_series(log).count.tolist() == [100, 20, 100, 100, 100, 100]
    assert interval_series(samples.to_log("1s")).count.sum() == len(samples)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_a_shell(run, shell):
    status, out, _ = run("completion", shell)
    assert status == 0
    assert "_LATENCYKIT_COMPLETE" in out


@pytest.mark.parametrize(
    ("words", "answer"),
    [("su", "plain,summary"), ("summary r", "file,r"), ("check a --slo s", "file,s")],
)
def test_completion_knows_commands_options_and_files(run, monkeypatch, words, answer):
    monkeypatch.setenv("_LATENCYKIT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"latencykit {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    assert answer in run()[1]
