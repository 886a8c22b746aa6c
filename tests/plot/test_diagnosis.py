"""The picture of a diagnosis: what stands where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner

import latencykit as lk
from latencykit import plot
from latencykit.cli import cli
from latencykit.errors import InvalidArgumentError
from latencykit.io.hlog import write_hlog
from latencykit.plot.files import figure_of, save
from latencykit.plot.style import BLUE, RED
from latencykit.simulate.generators import fixed, open_loop, paced_loop
from latencykit.simulate.server import Server, Stall, exponential
from tests.plot.conftest import lines_named

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

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
    assert heading.title == "hey: coordinated omission detected"
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


def test_sources_without_time_have_curves_alone(tmp_path: Path) -> None:
    page = page_of(PACED.histogram())
    assert len(page.child_axes) == 1
    save(
        plot.diagnosis,
        lk.diagnose(lk.Summary({"mean": 1e6, "max": 2e6}, count=10)),
        tmp_path / "x.svg",
    )
    assert (tmp_path / "x.svg").stat().st_size > 5000


def test_the_commands(tmp_path: Path) -> None:
    log, out = tmp_path / "run.hlog", tmp_path / "run.png"
    write_hlog(PACED.to_log("1s"), log)
    run = CliRunner().invoke
    assert run(cli, ["diagnose", str(log), "-o", str(out)]).exit_code == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    both = tmp_path / "both.svg"
    assert (
        run(cli, ["chart", str(log), "--expected-interval", "10ms", "-o", str(both)]).exit_code == 0
    )
    assert both.stat().st_size > 5000
    wrong = run(
        cli,
        ["chart", str(log), "--expected-interval", "10ms", "--kind", "density", "-o", str(both)],
    )
    assert isinstance(wrong.exception, InvalidArgumentError)
