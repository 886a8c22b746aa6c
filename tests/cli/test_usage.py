"""Arguments that cannot be meant are refused, and the message names what may be."""

from __future__ import annotations

import numpy as np
import pytest

import latencykit as lk
from latencykit.analysis.compare import parse_condition
from latencykit.core.histogram_log import interval_series
from latencykit.io.writing import write_series as write

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


def test_completion_knows_commands_and_options(run, monkeypatch):
    monkeypatch.setenv("_LATENCYKIT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "latencykit su")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "plain,summary" in run()[1]
