"""Charts of findings: comparisons, capacities, limits, fan-outs and diagnoses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.colors import same_color

import latencykit as lk
from latencykit import plot
from latencykit.cli import cli
from latencykit.errors import InvalidArgumentError
from latencykit.io.hlog import write_hlog
from latencykit.plot.files import figure_of, save
from latencykit.plot.style import AMBER, BLUE, RED
from latencykit.simulate.generators import fixed, open_loop, paced_loop
from latencykit.simulate.server import Server, Stall, exponential
from tests.conftest import SCHEDULED
from tests.plot.conftest import (
    assert_tidy,
    drawn,
    legend_words,
    lines_named,
    lines_of,
    says,
    words_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes


@pytest.fixture(scope="module")
def scheduled():
    return lk.read(SCHEDULED)


def run_of(seed: int, factor: float = 1.0, size: int = 5000) -> lk.Histogram:
    return lk.Histogram.of(np.random.default_rng(seed).lognormal(14, 0.4, size) * factor)


def sweep(*rates: int) -> dict[str, lk.Histogram]:
    """An M/M/1 queue of 1,000 requests per second."""
    quantiles = (np.arange(1, 400_001) - 0.5) / 400_000
    runs = {}
    for rate in rates:
        known = lk.Run(duration=400_000 / rate, achieved=min(rate, 960.0), loop="open")
        runs[str(rate)] = lk.Histogram.of(-np.log(1 - quantiles) / (1000 - rate) * 1e9, run=known)
    return runs


# ---------------------------------------------------------------- fan-out


def test_a_curve_for_each_number_of_calls_and_its_bound(ax, scheduled):
    plot.fan_out({"a": scheduled}, [1, 100], ax=ax)
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"1 call", "100 calls"}
    (bound,) = lines_named(ax, "_bound")  # that of one call is the curve itself
    for line, alone in ((lines["100 calls"], False), (bound, True)):
        k = np.searchsorted(line.get_xdata(), 50)
        found = lk.fan_out(scheduled, 100, independent=alone)
        assert line.get_ydata()[k] == found.percentile(float(line.get_xdata()[k]))


@pytest.mark.slow
def test_fan_out_says_how_many_users_fare_worse(scheduled):
    figure = drawn(plot.fan_out, {"a": scheduled}, n=[1, 10, 100])
    assert {"1 call", "10 calls", "100 calls"} <= set(words_of(figure))
    assert says(figure, "30 % of users who wait for 100 calls fare worse than the p99 of one (63 %")
    assert_tidy(figure)
    alone = words_of(drawn(plot.fan_out, {"a": scheduled}, n=[100], independent=True))
    assert any(word.startswith("63 % of users") for word in alone)
    assert not any("dashed" in word for word in alone)


def test_solid_ends_where_single_calls_do_not_support_it(ax):
    plot.fan_out(lk.Histogram.of(np.arange(1, 100_001)), [100], ax=ax)
    # it takes 99,500 calls for the p99 of a hundred
    assert ax.lines[0].get_xdata()[-1] == pytest.approx(99, abs=0.3)


@pytest.mark.slow
def test_many_numbers_of_calls_have_a_legend(scheduled):
    figure = drawn(plot.fan_out, {"a": scheduled}, n=[1, 3, 10, 30, 100, 300])
    assert legend_words(figure)[:2] == ["300 calls", "100 calls"]
    assert_tidy(figure)


def test_fan_out_of_what_has_none(ax, scheduled):
    with pytest.raises(lk.DataNotAvailableError):
        plot.fan_out(lk.Summary({"mean": 1.0}), ax=ax)
    with pytest.raises(lk.InvalidArgumentError, match="one series, not 2"):
        plot.fan_out({"a": scheduled, "b": scheduled}, ax=ax)


# ---------------------------------------------------------------- comparison


def test_the_shift_of_two_runs(ax):
    plot.compare(run_of(1), run_of(2, 1.3), ax=ax, run_noise=0.01)
    marks = {line.get_label(): line for line in ax.lines if line.get_label().startswith("_p")}
    assert marks["_p50"].get_ydata()[0] == pytest.approx(1.3, rel=0.03)
    assert same_color(marks["_p50"].get_markerfacecolor(), AMBER)
    # the maximum is shown, not judged
    assert same_color(marks["_p100"].get_markerfacecolor(), "white")
    assert ax.get_ylim()[0] < 1 < ax.get_ylim()[1]


def test_the_shift_says_its_verdict():
    worse = drawn(plot.compare, run_of(2), new=run_of(3, 1.3), run_noise=0.01)
    named = ("Worse: p50 ", "Worse: p99")  # as the headline of `compare`
    assert any(word.startswith(named) for word in words_of(worse))
    assert_tidy(worse)
    single = words_of(drawn(plot.compare, run_of(1, 1.3), new=run_of(2)))
    assert any(word.startswith("Inconclusive: p") for word in single)
    assert any("one run per side" in word for word in single)
    assert says(drawn(plot.compare, OPEN, new=PACED), "not alike: one side measures response time")


def test_the_shift_of_several_runs(ax):
    sides = [run_of(k) for k in range(5)], [run_of(10 + k, 0.7) for k in range(5)]
    plot.compare(*sides, ax=ax)
    marks = {line.get_label(): line for line in ax.lines if line.get_label().startswith("_p")}
    assert same_color(marks["_p50"].get_markerfacecolor(), BLUE)
    again = plot.compare(lk.compare(*sides), ax=ax.figure.add_subplot())
    assert len(lines_named(again, "_interval")) >= 5


def test_no_percentile_no_shift(ax):
    with pytest.raises(lk.DataNotAvailableError, match="no percentile"):
        plot.compare(lk.Summary({"mean": 1.0}), lk.Summary({"mean": 2.0}), ax=ax)


# ---------------------------------------------------------------- load


@pytest.mark.slow
def test_percentiles_against_load(ax):
    plot.load_curve(sweep(300, 600, 750, 780, 950), ax=ax, slo="99=20ms")
    lines = lines_of(ax)
    p99 = lines["p99"]
    at_capacity = np.interp(lines["_capacity"].get_xdata()[0], p99.get_xdata(), p99.get_ydata())
    assert at_capacity == pytest.approx(20e6, rel=0.01)  # where the curve crosses the limit
    measured = [line.get_xdata().tolist() for line in ax.lines if line.get_label() == "_runs"]
    assert [300, 600, 750, 780, 950] in measured
    assert lines["p99.9"].get_linewidth() > lines["p50"].get_linewidth()
    assert lines["_capacity"].get_xdata()[0] == pytest.approx(770, abs=21)
    assert lines["_slo"].get_ydata()[0] == 20e6
    (strip,) = ax.child_axes
    assert [bar.get_height() for bar in strip.patches] == [300, 600, 750, 780, 950]


@pytest.mark.slow
def test_the_load_chart_says_the_capacity():
    figure = drawn(plot.load_curve, sweep(300, 600, 750, 780, 950), slo="99=20ms")
    assert says(figure, "requests/s within the SLO: between 750 (met) and 780 (not)")
    assert_tidy(figure)
    assert says(drawn(plot.load_curve, sweep(300, 600), slo="99=1us"), "No load")
    met = drawn(plot.load_curve, sweep(300, 600), slo="99=10s")
    assert says(met, "met up to 600")
    assert (says(figure, "limited by p99"), says(met, "limited by")) == (True, False)
    assert says(met, "upright: 95 % interval of p99.9")


def test_between_the_ends_of_a_capacity_the_chart_is_shaded(ax):
    found = lk.load_curve(sweep(300, 600, 750, 780, 950), "99=20ms")
    plot.load_curve(found, ax=ax)
    (span,) = ax.patches
    ends = span.get_x(), span.get_x() + span.get_width()
    assert ends == (found.capacity.low, found.capacity.high)


def test_saturated_runs_stand_out(ax):
    plot.load_curve(sweep(600, 990), ax=ax)
    colours = [bar.get_facecolor()[:3] for bar in ax.child_axes[0].patches]
    assert not same_color(colours[0], AMBER)
    assert same_color(colours[1], AMBER)


def test_a_load_curve_takes_what_was_measured(ax):
    found = lk.load_curve(sweep(300, 600), "99=20ms")
    assert plot.load_curve(found, ax=ax) is ax
    assert says(drawn(plot.load_curve, sweep(300)), "1 run at 300 requests/s")
    with pytest.raises(lk.DataNotAvailableError):
        plot.load_curve({"500": lk.Summary({"mean": 1.0})}, ax=ax)


def test_each_of_many_limits_has_its_line_and_its_name():
    limits = {50: 3, 75: 4, 90: 5, 95: 6, 97: 7, 98: 8}
    slo = ", ".join(f"{p}={limit}ms" for p, limit in limits.items())
    figure = drawn(plot.load_curve, sweep(300, 600), slo=slo)
    lines = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_label() == "_slo"]
    assert lines == [limit * 1e6 for limit in limits.values()]
    assert {f"SLO p{p} {limit} ms" for p, limit in limits.items()} <= set(words_of(figure))
    assert_tidy(figure)


# ---------------------------------------------------------------- diagnoses

SERVER = Server(exponential("1ms"), servers=8, stalls=[Stall(7, 6)])
PACED, OPEN = paced_loop(SERVER, 100, 20), open_loop(SERVER, fixed(100, 20), duration=20)


def page_of(data: object, **options: object) -> Axes:
    return figure_of(plot.diagnosis, lk.diagnose(data), size=(1000, 780), **options).axes[0]


def line(ax: Axes, label: str) -> object:
    return next(one for one in ax.lines if one.get_label() == label)


def test_course_above_and_curves_below() -> None:
    page = page_of(PACED, name="hey")
    upper, lower = page.child_axes[0], page.child_axes[-1]
    assert [round(span.get_x()) for span in upper.patches] == [7]
    assert line(lower, "raw").get_color() == RED
    assert line(lower, "corrected").get_color() == BLUE
    heading = page.artists[-1]
    assert heading.title == "hey: requests were omitted"
    assert heading.conditions.startswith("from 7.0 s on, nothing was answered for 6 s")
    assert "10 ms" in heading.conditions


@pytest.mark.slow
def test_the_floor_is_what_the_stall_must_leave() -> None:
    lower = page_of(PACED).child_axes[-1]
    at, least = line(lower, "floor").get_data()
    assert np.asarray(least) == pytest.approx(
        (6.0 - (1 - np.asarray(at) / 100) * 20.0) * 1e9, rel=0.01, abs=1e6
    )
    assert any(
        tuple(one.get_facecolor()[0][:3]) == pytest.approx((0xD0 / 255, 0x31 / 255, 0x2D / 255))
        for one in lower.collections
    )


def test_an_honest_run_has_one_curve_above_its_floor() -> None:
    lower = page_of(OPEN).child_axes[-1]
    assert not lines_named(lower, "corrected")
    at, least = line(lower, "floor").get_data()
    measured = lk.diagnose(OPEN).raw.percentile(np.asarray(at))
    assert (measured >= np.asarray(least) * 0.98).all()
    alike = np.random.default_rng(1).lognormal(17, 1, 20_000)
    steady = page_of(lk.Samples(start=np.arange(20_000) * 5e6, duration=alike))
    assert not lines_named(steady.child_axes[-1], "floor")  # nothing stalled: it implies nothing


def test_sources_without_time_have_curves_alone(tmp_path: Path) -> None:
    page = page_of(PACED.histogram())
    assert len(page.child_axes) == 1
    summary = lk.Summary({"mean": 1e6, "max": 2e6}, count=10)
    save(plot.diagnosis, lk.diagnose(summary), tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 5000


def test_the_commands(tmp_path: Path) -> None:
    log, out = tmp_path / "run.hlog", tmp_path / "run.png"
    write_hlog(PACED.to_log("1s"), log)
    run = CliRunner().invoke
    assert run(cli, ["diagnose", str(log), "-o", str(out)]).exit_code == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    both = tmp_path / "both.svg"
    corrected = ["chart", str(log), "--expected-interval", "10ms", "-o", str(both)]
    assert run(cli, corrected).exit_code == 0
    assert both.stat().st_size > 5000
    wrong = run(cli, [*corrected, "--kind", "density"])
    assert isinstance(wrong.exception, InvalidArgumentError)
