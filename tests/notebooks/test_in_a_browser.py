"""JupyterLab in a real browser: lesson 0 runs to its end, and its pictures are seen."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]
LESSON = "0-one-picture-to-unlearn.ipynb"
TOKEN = "lesson"  # noqa: S105 - of a server that lives for this test


@pytest.fixture
def lab(desk: Path, installed: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab in the learner's folder, with a home of its own."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = {
        name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    environment = dict(os.environ, PYTHONPATH=str(installed), **home)
    options = [
        f"--ServerApp.root_dir={desk}", f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}", "--no-browser",
        "--ServerApp.allow_root=True", "--ServerApp.ip=127.0.0.1",
    ]  # fmt: skip
    command = [sys.executable, "-m", "jupyterlab", *options]
    with (tmp_path / "said.txt").open("wb") as said:
        server = subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd=desk)
        try:
            _wait(f"http://127.0.0.1:{port}/api?token={TOKEN}", 60)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(20)


def _wait(url: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_lesson_0_runs_in_jupyterlab_and_its_pictures_are_seen(lab: str, desk: Path, browser: Any):
    path = desk / LESSON
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.goto(f"{lab}/lab/tree/{LESSON}?token={TOKEN}", timeout=90_000)
    page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=90_000)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for(timeout=90_000)
    page.wait_for_timeout(1500)
    if page.locator(".jp-Dialog").is_visible():  # which kernel?
        page.locator(".jp-Dialog .jp-mod-accept").click()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    _until_saved(page, path)
    picture = page.locator(".jp-NotebookPanel .jp-RenderedImage img").first
    picture.scroll_into_view_if_needed(timeout=30_000)
    width = picture.evaluate("image => image.naturalWidth")
    page.close()
    assert width > 400
    done = nbformat.read(path, 4)
    pictures = [out for cell in done.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) == 3
    assert not [out for cell in done.cells for out in cell.get("outputs", []) if out.output_type == "error"]


def _until_saved(page: object, path: Path, seconds: float = 120) -> None:
    """Save until the file shows that the last cell has run."""
    end = time.monotonic() + seconds
    while True:
        page.keyboard.press("Control+s")
        page.wait_for_timeout(1000)
        code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        if code[-1].execution_count:
            return
        assert time.monotonic() < end, f"cells run: {[cell.execution_count for cell in code]}"
