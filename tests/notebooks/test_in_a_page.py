"""The lessons in the browser: JupyterLite runs them to their end, and asks no other host for anything."""

from __future__ import annotations

import functools
import http.server
import importlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from latencykit.views.site import write_site
from tests.notebooks.conftest import beside
from tests.servers import Folder, Silent, served

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.name for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
EXPLANATION = "Two or three sentences that a reader would have written here, more or less."
OWN = re.compile(r"http://127\.0\.0\.1:|data:|blob:")
CHROMIUM = ("content-autofill.googleapis.com:",)
"""Hosts that Chromium itself asks, whatever page it shows."""
MANY = 300  # seconds, on a busy machine

CELLS = """() => jupyterapp.shell.currentWidget.content.widgets.map(cell => ({
    type: cell.model.type, source: cell.model.sharedModel.getSource(), tags: cell.model.getMetadata("tags") || [],
    count: cell.model.executionCount ?? null, outputs: cell.model.type === "code" ? cell.model.outputs.toJSON() : []}))"""
ENDED = """() => {
    const code = jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model).filter(
        cell => cell.type === "code" && cell.sharedModel.getSource().trim());
    const failed = cell => Array.from({ length: cell.outputs.length }, (_, k) => cell.outputs.get(k).type).includes("error");
    return code.some(failed) || code.every(cell => cell.executionCount); }"""
FILL = """answers => jupyterapp.shell.currentWidget.content.widgets.forEach((cell, k) => {
    if (answers[k]) cell.model.sharedModel.setSource(answers[k]); })"""
CHOOSE = """k => {
    const notebook = jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = k;
    notebook.activeCell.model.clearExecution(); }"""
NEXT = """async ([path, code]) => {
    const before = jupyterapp.shell.currentWidget, { kernel } = before.sessionContext.session;
    if (before.context.path === path) return;
    await kernel.requestExecute({ code }).done;
    const next = await jupyterapp.commands.execute("docmanager:open", { path, factory: "Notebook", kernel: { id: kernel.id } });
    before.dispose();
    await next.sessionContext.ready;
    jupyterapp.shell.activateById(next.id); }"""
SELECTED = """async () => {
    const code = `from latencykit.views.widget import Explorer
print([one.selection for one in Out.values() if isinstance(one, Explorer)])`;
    const asked = jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({ code });
    let printed = "";
    asked.onIOPub = message => { printed += message.content.text || ""; };
    await asked.done;
    return printed; }"""
FRESH = """
get_ipython().reset(new_session=False)
import sys
for name in ("lessons", "exercises", "pictures", "controls", "gate"):
    sys.modules.pop(name, None)
"""
"""Python starts once for all lessons; in a page that takes longer than a lesson."""


class Files(Folder):
    """The site; the test may read the notebook of a page, which the site does not offer."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self.path.endswith("/lite/jupyter-lite.json"):
            return super().do_GET()
        config = json.loads(Path(self.translate_path(self.path)).read_text("utf-8"))
        config["jupyter-config-data"]["exposeAppInBrowser"] = True
        content = json.dumps(config).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None


@pytest.fixture(scope="module")
def exercises() -> Iterator[Any]:
    """The answers to all exercises."""
    with beside("exercises") as module:
        yield module.EXERCISES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two parts of the site that run Python, or where ``LATENCYKIT_SITE`` says that they are."""
    with beside("lite", ROOT / "notebooks" / "book") as lite:
        pass
    if reason := lite.missing():
        pytest.skip(reason)
    built = Path(os.environ.get("LATENCYKIT_SITE", "")).resolve()
    if (built / "lite" / "jupyter-lite.json").exists():
        return built
    folder = tmp_path_factory.mktemp("site")
    write_site(folder / "try", os.environ["LATENCYKIT_PYODIDE"])
    lite.write_lessons(folder, os.environ["LATENCYKIT_PYODIDE"])
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(functools.partial(Files, directory=site)) as server:
        yield f"http://127.0.0.1:{server.server_port}/lite/"


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """A proxy for all other hosts, and what it was asked for: the requests of pages, workers and service workers."""
    asked: list[str] = []

    class Refused(Silent, http.server.BaseHTTPRequestHandler):
        def refuse(self) -> None:
            if not self.path.startswith(CHROMIUM):
                asked.append(self.path)
            self.send_error(403)

        do_GET = do_POST = do_HEAD = do_CONNECT = refuse  # noqa: N815 - the names of the base class

    with served(Refused) as server:
        yield f"http://127.0.0.1:{server.server_port}", asked


@pytest.fixture(scope="module")
def context(browser: Any, elsewhere: tuple[str, list[str]]) -> Iterator[Any]:
    """One visitor; what they ask other hosts for goes to the proxy, and is noted before it does."""
    one = browser.new_context(viewport={"width": 1300, "height": 1000}, proxy={"server": elsewhere[0], "bypass": "127.0.0.1"})
    one.on("request", lambda request: None if OWN.match(request.url) else elsewhere[1].append(request.url))
    yield one
    one.close()


class Lab:
    """JupyterLab in a page; one notebook is open in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, name: str) -> None:
        self.page.evaluate(NEXT, [name, FRESH])
        self.page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=1000 * MANY)

    def cells(self) -> list[dict[str, Any]]:
        return self.page.evaluate(CELLS)

    def run(self, item: str = "Run All Cells") -> list[dict[str, Any]]:
        """Run cells, until one fails or all have run; return the notebook then."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text(item, exact=True).click()
        self.page.wait_for_function(ENDED, timeout=1000 * MANY, polling=300)
        return self.cells()

    def run_on(self, index: int) -> list[dict[str, Any]]:
        """Run a cell that failed, and what is below it."""
        self.page.evaluate(CHOOSE, index)
        return self.run("Run Selected Cell and All Below")

    def answer(self) -> None:
        """Answer the open question."""
        asked = self.page.locator(".lesson.open").first
        asked.wait_for(timeout=30_000)
        asked.scroll_into_view_if_needed()
        if asked.locator("input[type=text]").count():
            asked.locator("input[type=text]").fill("20")
        elif asked.locator("input").count():
            asked.locator("input").first.check()
        else:
            asked.locator("canvas").focus()
            for _ in range(61):
                asked.locator("canvas").press("ArrowRight")
            asked.get_by_role("button", name="Show the truth").click()
            return
        asked.get_by_role("button", name="Answer").click()


def failed(cells: list[dict[str, Any]]) -> list[int]:
    return [k for k, cell in enumerate(cells) if any(out["output_type"] == "error" for out in cell["outputs"])]


def text_of(cell: dict[str, Any]) -> str:
    return "".join("".join(out.get("text", "")) for out in cell["outputs"])


def filled(source: str, exercises: Any) -> str | None:
    """The cell of an exercise with its answer, as somebody types it."""
    if 'explain("' in source:
        return source.replace("= ...", f"= {EXPLANATION!r}")
    if 'check("' not in source or "..." not in source:
        return None
    right = exercises[source.partition('check("')[2].partition('"')[0]].answer
    given = right if isinstance(right, tuple) else (right,)
    return source.replace(", ".join(["..."] * len(given)), ", ".join(map(repr, given)))


@pytest.fixture(scope="module")
def lab(context: Any, address: str) -> Iterator[Lab]:
    page = context.new_page()
    one = Lab(page)
    page.goto(f"{address}lab/index.html?path={LESSONS[0]}")
    page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=1000 * MANY)
    page.wait_for_function("() => jupyterapp.shell.currentWidget.sessionContext?.session?.kernel", timeout=1000 * MANY)
    yield one
    page.close()


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_to_its_end_in_the_browser(name: str, lab: Lab, elsewhere: Any, exercises: Any):
    lab.open(name)
    lab.page.evaluate(FILL, [filled(cell["source"], exercises) for cell in lab.cells()])
    cells = lab.run()
    while stopped := failed(cells):
        assert "Answer the question above first" in json.dumps(cells[stopped[0]]["outputs"]), cells[stopped[0]]
        lab.answer()
        cells = lab.run_on(stopped[0])
    code = [cell for cell in cells if cell["type"] == "code" and cell["source"].strip()]
    assert [cell["source"] for cell in code if not cell["count"]] == []
    assert [text_of(cell) for cell in code if any(out.get("name") == "stderr" for out in cell["outputs"])] == []
    checked = [text_of(cell) for cell in code if 'check("' in cell["source"]]
    assert len(checked) >= 3
    assert [text for text in checked if not text.rstrip().endswith(": right.")] == []
    assert any("A model answer" in text_of(cell) for cell in code)
    assert any("self-check" in cell["tags"] for cell in code)
    TRIED.get(name, lambda page: None)(lab.page)
    assert lab.errors == []
    assert elsewhere[1] == []


def explore(page: Any) -> None:
    """Drag over the timeline of `lk.explore`: the numbers are those of the span."""
    explorer = page.locator("[data-ready=true]").first
    explorer.wait_for(timeout=1000 * MANY)
    assert explorer.locator("#selected").inner_text() == "the whole run"
    area = explorer.locator("#plot-timeline .catch")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 50, steps=8)
    page.mouse.up()
    assert "whole run" not in explorer.locator("#selected").inner_text()
    end_time = time.monotonic() + 30
    while not (printed := re.findall(r"[\d.]+", page.evaluate(SELECTED))):
        assert time.monotonic() < end_time, page.evaluate(SELECTED)
        page.wait_for_timeout(300)
    start, end = map(float, printed)
    assert 0 < start < end


def freeze(page: Any) -> None:
    """Move a slider; freeze the server, which is simulated, and says so."""
    slider = page.locator(".lesson input[type=range]").first
    slider.scroll_into_view_if_needed()
    slider.focus()
    slider.press("Home")
    page.get_by_text("Maximum: 1 ms for all three").wait_for(timeout=1000 * MANY)
    live = page.locator(".lesson:has(button[aria-pressed])")
    assert "simulated. Recorded runs of a real one are below" in live.inner_text()
    button = live.locator("button[aria-pressed]")
    button.scroll_into_view_if_needed()
    button.focus()
    page.keyboard.down(" ")
    page.wait_for_timeout(1500)
    page.keyboard.up(" ")
    page.wait_for_timeout(500)
    rows = [row.inner_text().split("\t") for row in live.locator("tr").all()][1:]
    assert all(re.search(r"\d\.\d+ s", row[3]) for row in rows), rows


TRIED = {"02-reading-the-nines-axis.ipynb": explore, "05-ctrl-z.ipynb": freeze}
"""Lesson → what is tried by hand once it has run."""


def test_a_link_opens_a_lesson_that_asks_first(context: Any, address: str):
    page = context.new_page()
    page.goto(f"{address}notebooks/index.html?path={LESSONS[0]}")
    page.locator(".jp-NotebookPanel .jp-CodeCell").first.wait_for(timeout=1000 * MANY)
    assert not page.locator(".jp-OutputArea-output").count()
    page.locator(".jp-collapseHeadingButton.jp-mod-collapsed").nth(3).wait_for(state="attached", timeout=30_000)
    page.close()
