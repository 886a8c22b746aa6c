"""Title and conditions above a chart."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from latencykit.plot.label_layout import Heading, head, wrapped


def headings(ax):
    return [artist for artist in ax.artists if isinstance(artist, Heading)]


@pytest.mark.slow
@pytest.mark.parametrize("width", [4.0, 8.0, 16.0])
def test_long_titles_stay_inside_the_figure(width):
    figure = Figure(figsize=(width, 4), layout="constrained")
    ax = figure.add_subplot()
    head(ax, "a finding of many words " * 8, "and a condition of even more words " * 12)
    figure.draw_without_rendering()
    for text in headings(ax)[0].get_children():
        box = text.get_window_extent()
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1 + 1
        assert box.y0 >= ax.get_window_extent().y1
        assert text.get_text().count("\n") <= 1
        assert text.get_text().endswith("…") or width > 8


def test_a_word_longer_than_the_line_is_cut():
    assert wrapped("x" * 50, 10, 2, len) == "x" * 9 + "…"


@pytest.mark.slow
def test_the_title_stands_above_the_conditions():
    figure = Figure(figsize=(8, 4), layout="constrained")
    ax = figure.add_subplot()
    head(ax, "said", "conditions")
    figure.draw_without_rendering()
    title, conditions = headings(ax)[0].get_children()
    assert title.get_text() == "said"
    assert title.get_window_extent().y0 > conditions.get_window_extent().y1
    assert title.get_window_extent().x0 == pytest.approx(ax.get_window_extent().x0, abs=2)


def test_the_user_has_the_last_word():
    ax = Figure().add_subplot()
    head(ax, "said", "conditions", "mine $1$", "")
    (heading,) = headings(ax)
    assert heading.title == r"mine \$1\$"
    assert heading.conditions == ""
    head(ax, "said", "conditions", "", "")
    assert headings(ax) == []
