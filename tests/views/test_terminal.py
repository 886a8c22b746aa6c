"""Charts in characters: for a terminal, a pipe, and names that would take the terminal over."""

from __future__ import annotations

import pytest

import latencykit as lk
from latencykit.views.terminal import terminal_chart
from tests.conftest import RAW


def test_curve_and_timeline_stand_below_each_other_with_their_axes_and_maxima(raw):
    text = terminal_chart(raw, colour=False)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 2 * 20 + 1
    assert "6,852 requests in 21 s" in lines[0]
    for words in ("percentile of requests", "seconds from the start"):
        assert words in text
    for label in ("max 6 s", "100%", "99.9", "10 ms", "p50"):
        assert label in text


@pytest.mark.slow
def test_the_gap_of_the_stall_is_a_gap(raw):
    timeline = terminal_chart(raw, colour=False).split("percentile of requests")[1]
    framed = [line for line in timeline.splitlines() if line.endswith("│")]
    columns = list(zip(*(line[7:79] for line in framed), strict=True))
    marks = ["".join(column).strip() for column in columns]
    inside = marks[int(72 * 8 / 21) : int(72 * 11 / 21)]
    assert not any(inside)
    assert sum(map(bool, marks)) > 40


def test_without_colours_lines_have_letters(raw):
    text = terminal_chart({"one": raw, "two": raw.histogram()}, colour=False)
    assert "\x1b" not in text
    assert "aa one max 6 s" in text
    assert "bb two max 6 s" in text


def test_foreign_names_cannot_speak_to_the_terminal(raw):
    text = terminal_chart({"a\x1b[2J\x07": raw}, colour=False)
    assert r"a\x1b[2J\x07" in text
    assert "\x1b" not in text


def test_what_has_no_curve_says_so():
    with pytest.raises(lk.DataNotAvailableError):
        terminal_chart(lk.Summary({"mean": 1.0}))
    with pytest.raises(lk.DataNotAvailableError):
        terminal_chart(lk.Histogram.of([0, 0]))


@pytest.mark.slow
def test_the_command_draws_on_standard_output(run):
    status, out, _ = run("chart", RAW, "--term")
    assert status == 0
    assert "percentile of requests" in out
    assert "\x1b" not in out
