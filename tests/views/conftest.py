"""Logs to show, the data inside a page, and pages opened without a network."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from tests.conftest import RAW
from tests.servers import jupyterlab

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def raw() -> lk.HistogramLog:
    """Twenty seconds of a closed loop, six of which the server was stopped."""
    return lk.read(RAW)


@pytest.fixture(scope="session")
def spiky() -> lk.Samples:
    """Ten minutes of requests at 100/s, slow for the eighth one; every 500th times out at 2 s."""
    rng = np.random.default_rng(5)
    start = np.arange(60_000) * 10_000_000
    duration = rng.lognormal(13.5, 0.5, start.size)
    duration[42_000:48_000] *= 40
    late = np.arange(start.size) % 500 == 499
    duration[late] = 2e9
    outcome = np.where(late, "timeout", "ok")
    return lk.Samples(start=start, duration=duration.astype(np.int64), outcome=outcome)


def model_of(page: str) -> dict[str, Any]:
    """The data inside a page."""
    found = re.search(r"<script type='application/json' id='model'>(.*?)</script>", page, re.DOTALL)
    assert found is not None
    model: dict[str, Any] = json.loads(found[1])
    return model


class Opened:
    """A tab with a page that was opened from its file, without a network, and what it complained of."""

    def __init__(self, tab: Any, path: Path) -> None:
        self.tab = tab
        self.complaints: list[str] = []
        self.requests: list[str] = []
        tab.on("console", lambda message: self.complaints.append(message.text))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=60_000)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tab, name)

    def selection(self) -> list[float] | None:
        """First and last moment of what is selected."""
        return self.evaluate("window.latencykit.selection()")

    def place(self, moment: float) -> tuple[float, float]:
        """Position of a moment in the timeline on the screen."""
        self.locator("#plot-timeline").scroll_into_view_if_needed()
        script = """() => {
            const box = document.querySelector('#plot-timeline .catch').getBoundingClientRect();
            return [box.left, box.width, box.top + box.height / 2, ...window.latencykit.extent()] }"""
        left, width, y, first, last = self.evaluate(script)
        return left + width * (moment - first) / (last - first), y

    def rows(self) -> dict[str, dict[float, float]]:
        """Percentile → value of each series, in the table of the selection."""
        script = """() => [...document.querySelectorAll('#numbers tr')].map(row => [
            row.cells[0].textContent,
            [...row.querySelectorAll('[data-percentile]')].map(
                cell => [+cell.dataset.percentile, +cell.dataset.value])])"""
        return {name: dict(map(tuple, cells)) for name, cells in self.evaluate(script)}

    def copied(self, kind: str) -> str:
        """What a button copies: a "command" or "Python"."""
        self.get_by_role("button", name=f"Copy as {kind}").click()
        self.get_by_text("Copied", exact=True).wait_for()
        said: str = self.text_content("#spoken")
        assert said.startswith("Copied: ")
        self.get_by_text("Copied", exact=True).wait_for(state="detached")
        return said.removeprefix("Copied: ")

    def drag(self, begin: float, end: float) -> None:
        """Drag with the mouse across the timeline, from one moment to another (seconds)."""
        (start, y), (stop, _) = self.place(begin), self.place(end)
        self.mouse.move(start, y)
        self.mouse.down()
        self.mouse.move((start + stop) / 2, y, steps=3)
        self.mouse.move(stop, y, steps=2)
        self.mouse.up()


@pytest.fixture(scope="module")
def tabs() -> list[Any]:
    """Tabs that no test uses now: in a new one, a page takes three times as long."""
    return []


@pytest.fixture
def opened(browser: Any, tabs: list[Any], tmp_path: Path) -> Iterator[Any]:
    """Open pages, or reports of data; they are given up after the test, which none complained in."""
    held: list[Opened] = []
    devices: list[Any] = []

    def open_page(
        shown: Any, width: int = 1280, scheme: str = "light", device: Any = None, **options: Any
    ) -> Opened:
        page = isinstance(shown, Path) and shown.suffix == ".html"
        path = shown if page else lk.report(shown, tmp_path / "page.html", **options)
        look = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        if device or not tabs:
            tab = browser.new_context(**look, offline=True, **(device or {})).new_page()
            devices.extend([tab.context] if device else [])
        else:
            tab = tabs.pop()
            tab.set_viewport_size(look["viewport"])
            tab.emulate_media(media="screen", color_scheme=scheme)
            tab.mouse.move(0, 0)
        held.append(Opened(tab, path))
        return held[-1]

    yield open_page
    for one in held:
        if one.context in devices:
            one.context.close()
            continue
        for other in one.context.pages[1:]:
            other.close()
        tabs.append(one.tab)
    assert [one.complaints for one in held if one.complaints] == []


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the folder of a JupyterLab with a home of its own."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    home = tmp_path_factory.mktemp("home")
    folder = home / "folder"
    folder.mkdir()
    share = home / "share" / "labextensions"
    share.mkdir(parents=True)
    (share / "latencykit").symlink_to(Path(lk.__file__).parent / "jupyter" / "labextension")
    extension = "--ServerApp.jpserver_extensions={'latencykit.jupyter': True}"
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "JUPYTER_PATH": str(share.parent)}
    with jupyterlab(folder, home, extension, **paths) as address:
        yield address, folder
