"""What all charts share: figures, colours, words, what readers see, and a path in place of data."""

from __future__ import annotations

from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imread

import latencykit as lk
from latencykit import plot
from latencykit._text import plain
from latencykit.plot import style
from latencykit.plot.curves import curve_of, two_stories
from latencykit.plot.files import save
from latencykit.plot.label_layout import EndLabels
from latencykit.plot.series import as_series, chart_title, conditions, read_paths
from latencykit.plot.style import (
    BLUE,
    COLOURS,
    INK,
    LIGHT,
    UNCERTAIN,
    UNSUPPORTED,
    lighten,
    series_styles,
)
from latencykit.units import sure_percentile
from tests.conftest import RAW, TAGGED, needs_package
from tests.plot.conftest import CHARTS, drawn, log_of, says, words_of, world


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


def test_bare_numbers_have_no_unit():
    bare = lk.Histogram.of(np.arange(1.0, 5000.0), unit="none")
    ax = drawn(plot.percentiles, bare).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()][-2:] == ["1,000", "10,000"]


# ---------------------------------------------------------------- style

# Machado, Oliveira, Fernandes (2009), severity 1.0
MATRICES = """
normal 1 0 0 0 1 0 0 0 1
deuteranopia 0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.01182 0.04294 0.968881
protanopia 0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998
tritanopia 1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.3039
"""
ROWS = [line.split() for line in MATRICES.strip().splitlines()]
SIGHT = {name: np.array(numbers, float).reshape(3, 3) for name, *numbers in ROWS}


def lab(colour, sight):
    rgb = np.array(to_rgb(colour))
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(sight @ light, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ linear / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_for_every_eye(sight):
    seen = [lab(colour, SIGHT[sight]) for colour in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


@pytest.mark.parametrize("corrected", [0, 4, 5, 12])  # of them, beside one that is not
def test_twenty_four_series_are_distinguishable(corrected):
    done = lk.Histogram.of([1e6, 2e6]).with_run(corrected="schedule")
    names = {f"corrected {k}": done for k in range(corrected)} | (
        {"raw": None} if corrected else {}
    )
    others = {f"host{k}": None for k in range((20 if 0 < corrected < 5 else 24) - len(names))}
    styles = series_styles(names | others).values()
    assert len({(style["color"], style["marker"]) for style in styles}) == len(names | others)


def test_foreign_text_is_never_mathematics_nor_control():
    assert plain("$x^2$ \x1b[31m") == r"\$x^2\$ \x1b[31m"
    text = Figure().text(0.5, 0.5, plain(r"$\frac{a}{b$ $"))
    text.figure.draw_without_rendering()
    assert text.get_window_extent().width > 0


def test_each_colour_of_an_artist_is_exchanged_by_itself() -> None:
    with plt.style.context("dark_background"):
        figure, ax = plt.subplots()
        lines = ax.vlines([1, 2, 3], 0, 1, color=[INK, BLUE, "#123456"], alpha=0.5)
        lighten(ax)
        plt.close(figure)
        change = plot.compare(world("compared"), ax=Figure().add_subplot())
    assert all(np.mean(to_rgb(area.get_facecolor())) < 0.3 for area in change.patches)
    assert {to_rgb(one.get_markerfacecolor()) for one in change.lines} >= {to_rgb("black")}
    light = [to_rgba(colour, 0.5) for colour in (LIGHT[INK], LIGHT[BLUE], "#123456")]
    assert np.allclose(lines.get_color(), light)


def test_shortened_names_are_distinct_and_have_numbers_only_where_they_must():
    short = style.short_names([f"{'x' * 30}{k}{'y' * 30}" for k in range(12)], 20)
    assert len({*short}) == 12
    assert max(map(len, short)) <= 20
    assert style.short_names([f"{'word ' * 9}{k}" for k in range(3)], 20) == ["…0", "…1", "…2"]
    names = [f'requests_total{{code="{code}",path="/var"}}' for code in (200, 503)]
    some = style.short_names([*names, "requests_total", "other"], 20)
    assert some == ['…200",path="/var"}', '…503",path="/var"}', "requests_total", "other"]


# ---------------------------------------------------------------- words


def test_conditions_are_what_the_run_says():
    run = lk.Run(tool="wrk2", loop="open", connections=10, rate=500.0, measure="response")
    run = run.replace(corrected="schedule", timeouts=8)
    said = conditions(lk.Histogram.of([1], run=run))
    assert said == [
        "wrk2", "500 requests/s offered", "open loop", "10 connections", "response times",
        "timed from the schedule", "8 timed out",
    ]  # fmt: skip


def test_titles_of_several():
    h = lk.Histogram.of([1, 2])
    assert chart_title({"a": h, "b": h, "c": h}) == "a, b and c · 6 requests"
    assert chart_title({str(k): h for k in range(12)}) == "12 series · 24 requests"
    assert chart_title({str(k): h for k in range(12)}, "runs") == "12 runs · 24 requests"
    assert chart_title({"raw": h, "corrected": h}) == "raw and corrected"  # the same requests twice


def test_the_limit_of_trust_is_never_rounded_up():
    for limit in (50.0, 63.2, 95.01, 99.94618, 99.9999631):
        assert limit * (1 - 0.02) < sure_percentile(limit) <= limit


def test_two_stories_need_a_difference():
    h = lk.Histogram.of([1_000_000] * 1000)
    other = h.with_run(corrected="us")
    assert two_stories({"raw": h, "b": other}, {"raw": curve_of(h), "b": curve_of(other)}) is None
    slow = lk.Histogram.of([1_000_000] * 900 + [10**9] * 200)
    curves = {"raw": curve_of(h), "corrected": curve_of(slow)}
    assert two_stories({"raw": h, "corrected": slow}, curves) == "Two stories: p90 is 1 ms or 1 s"


# ---------------------------------------------------------------- paths


def test_a_path_is_read_wherever_data_is_taken():
    log = lk.read(RAW)
    assert read_paths(str(RAW)) == read_paths(RAW) == log
    assert as_series({"before": RAW, "after": log}) == {"before": log, "after": log}
    assert list(as_series({"a": RAW, "b": TAGGED})) == ["a", "b:total", "b:get", "b:set"]
    assert lk.plot.percentiles(str(RAW), ax=Figure().add_subplot()).get_lines()


def test_a_page_names_the_file_that_it_read(tmp_path):
    page = lk.report(RAW, tmp_path / "page.html").read_text(encoding="utf-8")
    assert RAW.name in page
    copy = tmp_path / "x.html"
    copy.write_bytes(RAW.read_bytes())
    with pytest.raises(lk.LatencyKitError, match="input"):
        lk.report(copy, copy)


@needs_package("anywidget", "lab")
def test_the_explorer_reads_a_file():
    explorer = lk.explore(str(RAW))
    explorer.selection = (1.0, 5.0)
    assert explorer.selected == lk.read(RAW).between(1.0, 5.0)


# ---------------------------------------------------------------- reading


def pattern(line, look):
    return line._dash_pattern[1] == [part * line.get_linewidth() for part in look[1]]


@pytest.mark.parametrize("chart", [plot.percentiles, plot.ccdf, plot.timeline])
@pytest.mark.parametrize("many", [True, False])
def test_dashes_are_for_what_is_uncertain_alone(chart, many, raw, twelve_logs):
    figure = drawn(chart, twelve_logs if many else raw)
    dashed = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "--"]
    assert all(pattern(line, UNCERTAIN) or pattern(line, UNSUPPORTED) for line in dashed)
    explained = says(figure, "dashed: ")
    assert explained == any(pattern(line, UNCERTAIN) for line in dashed)


def test_maxima_that_meet_share_a_label():
    near = {f"s{k}": lk.Histogram.of(np.geomspace(1e6, 1e9 + 5e6 * k, 500)) for k in range(4)}
    words = [word for word in words_of(drawn(plot.percentiles, near)) if word.startswith("max ")]
    assert words == ["max 1 s to 1.02 s (all 4)"]
    far = {"fast": lk.Histogram.of([1e6] * 500), "slow": lk.Histogram.of([1e9] * 500)}
    words = [word for word in words_of(drawn(plot.percentiles, far)) if word.startswith("max ")]
    assert sorted(words) == ["max 1 ms", "max 1 s"]


def test_labels_of_limits_are_in_the_order_of_their_lines():
    rng = np.random.default_rng(2)
    runs = {
        str(rate): lk.Histogram.of(rng.lognormal(14, 0.5, 5000) * rate).with_run(rate=rate)
        for rate in (1.0, 2.0, 4.0)
    }
    slo = "50=2ms, 90=2.2ms, 99=2.4ms, 99.9=9ms"
    figure = drawn(plot.load_curve, runs, width=1200, height=300, slo=slo)
    (ends,) = [own for own in figure.axes[0].artists if isinstance(own, EndLabels)]
    boxes = {text.get_text(): text.get_window_extent() for text in ends.texts}
    heights = [box.y0 for _, box in sorted(boxes.items(), key=lambda own: own[0].split()[-2:])]
    assert heights == sorted(heights)
    ordered = sorted(boxes.values(), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(ordered))
    assert all(box.x0 >= figure.axes[0].get_window_extent().x1 for box in ordered)
    assert all(box.x1 <= figure.bbox.x1 for box in ordered)


@pytest.mark.parametrize("shape", [(1200, 300), (1000, 560), (700, 300)])
def test_a_diagnosis_keeps_the_names_of_its_axes(shape):
    width, height = shape
    figure = drawn(plot.diagnosis, lk.diagnose(lk.read(RAW)), width, height)
    upper, lower = figure.axes[0].child_axes
    name, other = upper.xaxis.label.get_window_extent(), lower.get_window_extent()
    assert name.y0 >= 0
    assert name.x1 <= other.x0 if height == 300 else name.y0 >= other.y1  # low pages: beside


def test_the_axis_of_time_ends_where_the_data_do():
    log = log_of(40, 50)
    assert drawn(plot.timeline, log).axes[0].get_xlim() == (0.0, 40.0)
    assert drawn(plot.heatmap, log).axes[0].get_xlim() == (0.0, 40.0)
    assert drawn(plot.timeline, log.between(20, 40)).axes[0].get_xlim() == (20.0, 40.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(30 * 3600 + 12, "30 h"), (3 * 3600 + 1800, "3.5 h"), (354, "5.9 min")]
)
def test_large_times_are_a_number_and_a_unit(seconds, text):
    rng = np.random.default_rng(1)
    start = np.sort(rng.uniform(0, seconds * 1e9, 3000)).astype(np.int64)
    start[[0, -1]] = 0, seconds * 10**9
    figure = drawn(plot.timeline, lk.Samples(start=start, duration=start % 7_000_000 + 10**6))
    assert says(figure, f"in {text}")
