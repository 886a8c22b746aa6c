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
from tests.conftest import DATA
from tests.servers import jupyterlab

if TYPE_CHECKING:
    from collections.abc import Iterator

CTRLZ = DATA / "hlog/hdrhistogram-java-ctrlz-a"


@pytest.fixture(scope="session")
def raw() -> lk.HistogramLog:
    """Twenty seconds of a closed loop, six of which the server was stopped."""
    return lk.read(CTRLZ / "uncorrected.hlog")


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
    """A page that was opened from its file, without a network, and what it complained of."""

    def __init__(self, tab: Any, path: Path) -> None:
        self.page, self.context = tab, tab.context
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)

    def rows(self) -> dict[str, dict[float, float]]:
        """Percentile → value of each series, in the table of the selection."""
        script = """() => [...document.querySelectorAll('#numbers tr')].map(row => [
            row.cells[0].textContent,
            [...row.querySelectorAll('[data-percentile]')].map(
                cell => [+cell.dataset.percentile, +cell.dataset.value])])"""
        return {name: dict(map(tuple, cells)) for name, cells in self.page.evaluate(script)}

    def drag(self, begin: float, end: float) -> None:
        """Drag with the mouse across the timeline, from one moment to another (seconds)."""
        script = """() => {
            const box = document.querySelector('#plot-timeline .catch').getBoundingClientRect();
            const {left, width, top, height} = box;
            return [left, width, top + height / 2, ...window.latencykit.extent()] }"""
        self.page.locator("#plot-timeline").scroll_into_view_if_needed()
        left, width, y, first, last = self.page.evaluate(script)
        x = [left + width * (moment - first) / (last - first) for moment in (begin, end)]
        self.page.mouse.move(x[0], y)
        self.page.mouse.down()
        self.page.mouse.move((x[0] + x[1]) / 2, y, steps=3)
        self.page.mouse.move(x[1], y, steps=2)
        self.page.mouse.up()


@pytest.fixture(scope="module")
def tabs() -> list[Any]:
    """Tabs that no test uses now: in a new one, a page takes three times as long."""
    return []


@pytest.fixture
def opened(browser: Any, tabs: list[Any]) -> Iterator[Any]:
    """Open pages; they are given up after the test."""
    held: list[Opened] = []
    devices: list[Any] = []

    def open_page(path: Path, width: int = 1280, scheme: str = "light", **device: Any) -> Opened:
        look = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        if device or not tabs:
            tab = browser.new_context(**look, offline=True, **device).new_page()
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
        tabs.append(one.page)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address and the folder of a JupyterLab with a home of its own."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    folder = tmp_path / "folder"
    folder.mkdir()
    share = tmp_path / "share" / "labextensions"
    share.mkdir(parents=True)
    (share / "latencykit").symlink_to(Path(lk.__file__).parent / "jupyter" / "labextension")
    extension = "--ServerApp.jpserver_extensions={'latencykit.jupyter': True}"
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "JUPYTER_PATH": str(share.parent)}
    with jupyterlab(folder, tmp_path, extension, **paths) as address:
        yield address, folder
