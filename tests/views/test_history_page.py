"""The page of a history in a browser without a network: a click opens a run, a second compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import latencykit as lk
from latencykit.history.history import trends_of
from latencykit.units import format_value
from latencykit.views.history import history_html
from tests.history.conftest import fill

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]


@pytest.fixture
def shown(tmp_path: Path, opened: Any) -> tuple[lk.History, Any]:
    """Return a history whose level changed, and its page."""
    fill(tmp_path / "history", 20)
    fill(tmp_path / "history", 20, 20, 1.5)
    history = lk.History(tmp_path / "history")
    path = tmp_path / "history.html"
    path.write_text(history_html(history, trends_of(history, ("p50", "p90"))))
    return history, opened(path)


def _table(page: Any) -> list[list[str]]:
    script = """() => [...document.querySelectorAll('#history-table tr')].map(
        row => [...row.cells].map(cell => cell.textContent))"""
    found: list[list[str]] = page.evaluate(script)
    return found


def test_two_clicks_compare_two_runs(shown: tuple[lk.History, Any]) -> None:
    history, page = shown
    assert page.locator("#history-trends circle").count() == 80
    assert page.locator("#history-trends rect title").count() == 2  # a change per statistic
    assert page.inner_text("#history-chosen") == "No run is chosen."
    page.click("circle[data-run='3'] >> nth=0")
    assert "0000003" in page.inner_text("#history-chosen")
    assert page.locator("#history-curves path").count() == 1
    page.click("circle[data-run='35'] >> nth=0")
    assert page.locator("#history-curves path").count() == 2
    ends = """() => [...document.querySelectorAll('#history-curves path')].map(
        path => path.nextSibling.getAttribute('y') - path.getAttribute('d').match(/[\\d.]+$/)[0])"""
    assert page.evaluate(ends) == pytest.approx([4, 4], abs=0.1)  # names beside their curves
    head, *rows = _table(page)
    assert head == ["series", "statistic", "0000003", "0000023", "change"]
    values = [history.runs[k].series["checkout"].value("p50") for k in (3, 35)]
    expected = [f"{100 * (values[1] / values[0] - 1):+.1f} %"]
    assert rows[0] == ["checkout", "p50", *(format_value(v, "ns") for v in values), *expected]
    page.click("circle[data-run='3'] >> nth=0")  # a second click closes it
    assert _table(page)[0] == ["series", "statistic", "0000023"]
    assert len(page.requests) == 1


def test_runs_are_chosen_with_the_keyboard(shown: tuple[lk.History, Any]) -> None:
    _, page = shown
    page.focus("circle[data-run='39'] >> nth=0")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert "0000026" in page.inner_text("#history-chosen")
