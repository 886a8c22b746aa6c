"""Files that charts go to."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit import plot
from latencykit.plot.files import save
from tests.conftest import python
from tests.plot.conftest import CHARTS


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_input_gives_the_same_bytes(tmp_path, raw, ending):
    for name in ("a", "b"):
        save(plot.percentiles, raw, tmp_path / f"{name}.{ending}", confidence=0.95)
    first, second = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("a", "b"))
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])


@pytest.mark.slow
def test_size_and_resolution(tmp_path, raw):
    from matplotlib.image import imread

    save(plot.percentiles, raw, tmp_path / "a.png", size=(800, 450), dpi=100)
    save(plot.percentiles, raw, tmp_path / "b.png", size=(800, 450), dpi=200)
    assert imread(tmp_path / "a.png").shape[:2] == (450, 800)
    assert imread(tmp_path / "b.png").shape[:2] == (900, 1600)


def test_another_ending_is_refused(tmp_path, raw):
    with pytest.raises(lk.InvalidArgumentError, match=r"x\.gif: charts are written as"):
        save(plot.percentiles, raw, tmp_path / "x.gif")


@pytest.mark.slow
def test_charts_leave_global_settings_alone(tmp_path, raw):
    before = dict(mpl.rcParams)
    for chart in CHARTS.values():
        assert chart(Figure(figsize=(9, 6)).add_subplot()) is not None
    save(plot.dashboard, raw, tmp_path / "x.png")
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_a_users_settings_do_not_change_a_saved_chart(tmp_path, raw):
    save(plot.percentiles, raw, tmp_path / "a.svg")
    style = {"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9, "axes.grid": True}
    with mpl.rc_context(style):
        save(plot.percentiles, raw, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_letters_that_no_font_has_cause_no_warning(tmp_path):
    save(plot.percentiles, {"検索 🙂 عربى": lk.Histogram.of([1, 2])}, tmp_path / "x.png")


@pytest.mark.slow
def test_what_a_quick_import_puts_off_works_later():
    code = (
        "import sys\n"
        "from latencykit.plot.files import figure_of\n"
        "from matplotlib.figure import Figure\n"
        "from matplotlib.lines import Line2D\n"
        "assert 'mpl_toolkits.mplot3d' not in sys.modules\n"
        "line = Line2D([], [])\n"
        "line.set(color='red')\n"
        "assert line.get_color() == 'red'\n"
        "class Ours(Line2D):\n"
        "    pass\n"
        "assert 'linestyle' in Ours.set.__doc__\n"
        "assert type(Figure().add_subplot(projection='3d')).__name__ == 'Axes3D'\n"
    )
    python("-W", "error", "-c", code)


def test_bare_numbers_have_no_unit():
    bare = lk.Histogram.of(np.arange(1.0, 5000.0), unit="none")
    figure = Figure(figsize=(8, 4.5))
    ax = plot.percentiles(bare, ax=figure.add_subplot())
    figure.draw_without_rendering()
    assert [label.get_text() for label in ax.get_yticklabels()][-2:] == ["1,000", "10,000"]
