"""What marimo, which runs notebooks as programs, shows of latencykit's objects."""

from __future__ import annotations

import runpy

import pytest

from tests.conftest import RAW

NOTEBOOK = """
import marimo
app = marimo.App()

@app.cell
def _():
    import latencykit as lk
    log = lk.read({path!r})
    return lk, log

@app.cell
def _(lk, log):
    explorer = lk.explore(log)
    explorer
    return (explorer,)

@app.cell
def _(lk, log):
    lk.report(log)

@app.cell
def _(lk, log):
    lk.plot.percentiles(log)

@app.cell
def _(log):
    log
"""


@pytest.mark.slow
@pytest.mark.needs_tool
def test_marimo_shows_what_notebooks_show(tmp_path):
    marimo = pytest.importorskip("marimo", reason="marimo is not installed (extra dev)")
    pytest.importorskip("anywidget", reason="the widget is an anywidget")
    path = tmp_path / "notebook.py"
    path.write_text(NOTEBOOK.format(path=str(RAW)))
    outputs, names = runpy.run_path(str(path))["app"].run()
    explored, report, chart, log = [marimo.as_html(one).text for one in outputs[1:]]
    assert "<marimo-anywidget" in explored
    assert "text/html" in report
    assert "iframe" in report
    assert "image/png" in chart
    assert "21 intervals" in log
    names["explorer"].selection = (7.0, 13.0)
    assert names["explorer"].selected.duration == pytest.approx(6, abs=1)
