"""The widget in a real JupyterLab: a drag reaches Python, Python reaches the picture, two widgets do not clash."""

from __future__ import annotations

import base64
import html
import io
import json
import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from tests.conftest import RAW
from tests.servers import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

anywidget = pytest.importorskip("anywidget", reason="the widget is an anywidget")

widget = pytest.importorskip("latencykit.views.widget")


def test_the_selection_chooses_the_data(raw: lk.HistogramLog) -> None:
    explorer = lk.explore(raw)
    assert explorer.selected is raw
    explorer.selection = (6.0, 14.0)
    assert explorer.selected.histogram().count == raw.between(6, 14).histogram().count
    both = lk.explore({"raw": raw, "again": raw})
    both.selection = (6.0, 14.0)
    assert set(both.selected) == {"raw", "again"}


def test_without_the_widget_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "latencykit.views.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(lk.MissingPackageError, match=r"^lk\.explore needs .*anywidget.*\[lab\]"):
        lk.explore(lk.Histogram.of([1_000_000]))


def test_what_has_no_times_says_so() -> None:
    explorer = lk.explore(lk.Histogram.of([1_000_000, 2_000_000]))
    explorer.selection = (0.0, 1.0)
    with pytest.raises(lk.DataNotAvailableError, match="a Histogram has no times"):
        _ = explorer.selected


def slow_late_on(host: str) -> lk.Samples:
    """Twenty seconds of requests to four hosts, one of which is slow at times from 10 s on."""
    rng = np.random.default_rng(1)
    start, hosts = np.arange(20_000) * 1_000_000, rng.choice(["a", "b", host, "e"], 20_000)
    slow = (start >= 10**10) & (hosts == host) & (rng.random(start.size) < 0.06)
    took = (rng.lognormal(14, 0.3, start.size) * np.where(slow, 9, 1)).astype(np.int64)
    return lk.Samples(start=start, duration=took, host=hosts)


def test_the_widget_asks_what_slow_requests_share(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = lk.explore(slow_late_on("<d>"))
    assert json.loads(explorer._model)["explains"]
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(explorer, "send", lambda message, buffers=None: sent.append(message))
    for span in (None, [10.0, 20.0], [0.0, 9.0]):
        explorer._handle_custom_msg({"explain": span}, [])
    whole, part, quiet = (message["explained"] for message in sent)
    assert "host=&lt;d&gt;" in whole
    assert "host=&lt;d&gt;" in part
    assert whole != part
    assert "host=&lt;d&gt;</th>" not in quiet
    assert "<d>" not in whole + part + quiet


def test_without_columns_nothing_is_asked(raw: lk.HistogramLog) -> None:
    assert not json.loads(lk.explore(raw)._model)["explains"]


def test_a_report_is_kept_with_its_picture(raw: lk.HistogramLog) -> None:
    report = lk.report(raw)
    bundle, metadata = report._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png"}
    assert "6,852 requests" in metadata["image/png"]["alt"]
    again = pickle.loads(pickle.dumps(report))
    assert again == report
    assert "srcdoc=" in again._repr_mimebundle_()[0]["text/html"]
    frame = "title='uncorrected.hlog: p50 63.3 µs, p99 (1.04 ms), max 6 s."
    assert frame in bundle["text/html"]


@pytest.mark.slow
def test_charts_in_a_notebook_describe_themselves(raw: lk.HistogramLog) -> None:
    formatter = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    figure = Figure()
    left, right = figure.subfigures(1, 2)
    lk.plot.percentiles(raw, ax=left.subplots())
    lk.plot.timeline({"raw <1>": raw}, ax=right.subplots())
    draw = io.BytesIO()
    figure.savefig(draw, format="png")
    formatter.formatters["image/png"].for_type(Figure, lambda _: draw.getvalue())
    data, metadata = formatter.format(figure)
    alt = metadata["image/png"]["alt"]
    assert "6,852 requests" in alt
    assert "raw <1>" in alt
    assert "max 6 s" in alt  # a label of the curve
    new = nbformat.v4
    data["image/png"] = base64.b64encode(data["image/png"]).decode()
    output = new.new_output("display_data", data=data, metadata=metadata)
    saved = new.new_notebook(cells=[new.new_code_cell("", outputs=[output])])
    text = nbconvert.HTMLExporter(template_name="classic").from_notebook_node(saved)[0]
    assert f'alt="{html.escape(alt)}"' in text


@pytest.mark.slow
def test_nbconvert_shows_the_page_and_beneath_it_the_picture(raw: lk.HistogramLog) -> None:
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    data, metadata = lk.explore(raw)._repr_mimebundle_()
    new = nbformat.v4
    output = new.new_output("display_data", data=data, metadata=metadata)
    saved = new.new_notebook(cells=[new.new_code_cell("lk.explore(log)", outputs=[output])])
    text = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(saved)[0]
    frame = text.partition("<iframe")[2].partition("</iframe>")[0]
    assert "sandbox=" in frame
    assert "6,852 requests" in frame
    picture = frame.partition("<img alt=")[2]  # where frames are removed, this is left
    assert "data:image/png;base64," in picture


@pytest.mark.slow
def test_a_saved_notebook_shows_a_page_and_a_picture(raw: lk.HistogramLog) -> None:
    bundle, metadata = lk.explore(raw)._repr_mimebundle_()
    assert "6,852 requests" in metadata["image/png"]["alt"]
    assert {"text/html", "image/png", "application/vnd.jupyter.widget-view+json"} <= set(bundle)
    assert "srcdoc=" in bundle["text/html"]
    assert "no live widgets" in bundle["text/html"]  # where the page stands in for the widget
    assert "no live widgets" not in lk.report(raw)._repr_mimebundle_()[0]["text/html"]
    assert "<img alt=" in bundle["text/html"].partition("srcdoc=")[2]


def notebook(*cells: str) -> str:
    """A notebook with cells of code."""
    new = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    code = [new | {"source": text} for text in cells]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    record = {"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(record)


@pytest.mark.needs_tool
@pytest.mark.slow
def test_live(lab: tuple[str, Path], browser: Any) -> None:
    address, folder = lab
    (folder / "a.ipynb").write_text(
        notebook(
            f"import latencykit as lk; log = lk.read({str(RAW)!r}); a = lk.explore(log); a",
            "b = lk.explore({'x': log, 'y': log.between(0, 12)}); b",
            "print('SELECTED', a.selection, a.selected.histogram().count)",
            "b.selection = (2.0, 5.0)",
            "import numpy as np; rng = np.random.default_rng(1); n = 20_000\n"
            "start, host = np.arange(n) * 1_000_000, rng.choice(list('abcd'), n)\n"
            "slow = (host == 'c') & (rng.random(n) < 0.06)\n"
            "took = (rng.lognormal(14, 0.3, n) * np.where(slow, 9, 1)).astype(np.int64)\n"
            "lk.explore(lk.Samples(start=start, duration=took, host=host))",
        )
    )
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/lab/tree/a.ipynb?token={TOKEN}", timeout=90_000)
    cells = page.locator(".jp-NotebookPanel .jp-CodeCell")
    cells.first.wait_for(timeout=90_000)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=90_000)
    page.wait_for_timeout(1000)

    def run(cell: int) -> None:
        prompt = cells.nth(cell).locator(".jp-InputPrompt")
        for _ in range(20):  # JupyterLab drops what is run before it listens to the kernel
            cells.nth(cell).locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
            page.wait_for_timeout(500)
            if prompt.inner_text().strip() != "[ ]:":
                return

    def widget(cell: int) -> Any:
        found = cells.nth(cell).locator("[data-ready=true]")
        found.wait_for(timeout=60_000)
        return found

    run(0)
    first = widget(0)
    run(1)
    second = widget(1)
    area = first.locator("#plot-timeline .catch")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 50, steps=8)
    page.mouse.up()
    assert "whole run" not in first.locator("#selected").inner_text()
    assert second.locator("#selected").inner_text() == "the whole run"
    run(2)
    text = cells.nth(2).locator(".jp-OutputArea-output")
    text.wait_for(timeout=30_000)
    printed = text.inner_text()
    start, end = map(float, printed.partition("(")[2].partition(")")[0].split(","))
    assert f" {lk.read(RAW).between(start, end).histogram().count}" in printed
    run(3)
    second.get_by_text("2 s to 5 s", exact=True).wait_for(timeout=30_000)
    page.screenshot(path=str(folder / "widget.png"))
    assert not first.get_by_role("button", name="What do slow requests").count()
    run(4)
    third = widget(4)
    third.get_by_role("button", name="What do slow requests").click()
    third.locator("#explained th", has_text="host=c").wait_for(timeout=30_000)
    page.wait_for_timeout(1000)  # the notebook lays itself out anew
    heading = third.locator("#explained h3").bounding_box()
    assert 0 <= heading["y"] < 300  # the answer is scrolled to
    # as on a telephone: no column is cut
    third.evaluate("widget => (widget.style.width = '390px')")
    table = third.locator("#explained .scroll")
    assert table.evaluate("place => place.scrollWidth - place.clientWidth") <= 0
    assert not errors
    page.close()
