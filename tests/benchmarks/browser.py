"""The page that reads files in a browser, measured in Chromium.

``LATENCYKIT_PYODIDE=DIR python -m tests.benchmarks.browser`` writes the page, serves it from this
machine and prints Markdown. Times are wall times, so nothing else should run.
"""

from __future__ import annotations

import contextlib
import gzip
import http.server
import os
import shutil
import statistics
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.views.site import runtime_files, write_site
from tests.benchmarks.corpora import make
from tests.benchmarks.report_page import shuffled_day

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SMALL, HOUR = ROOT / "data" / "ctrlz-uncorrected.hlog", "a"
ROUNDS = 5
_PATIENCE = 180_000

_ALONE = """<!doctype html><script type="module">
const code = `import { loadPyodide } from "${new URL("pyodide/pyodide.mjs", location)}";
  const python = await loadPyodide({ packages: ["numpy"] });
  python.runPython("import numpy");
  postMessage(0);`;
new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })), { type: "module" })
  .onmessage = () => { window.took = performance.now(); };
</script>"""
"""Pyodide with numpy and nothing else, in a worker as on the page."""

_READY = """new Promise((resolve) => {
  const look = () => document.getElementById("state").textContent.startsWith("Ready")
    ? resolve(performance.now()) : setTimeout(look, 5);
  look();
})"""

_WATCH = """() => {
  let last = performance.now();
  window.pause = 0;
  setInterval(() => { const now = performance.now(); window.pause = Math.max(window.pause, now - last); last = now; }, 10);
  document.getElementById("files").addEventListener("change", () => {
    window.began = performance.timeOrigin + performance.now(); window.pause = 0;
  }, true);
}"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and notes what was asked for."""

    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(self.path.partition("?")[0])
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def alone(browser: Any, address: str) -> float:
    """Seconds until Pyodide with numpy alone is ready."""
    with contextlib.closing(browser.new_context()) as context:
        tab = context.new_page()
        tab.goto(f"{address}alone/")
        tab.wait_for_function("window.took", timeout=_PATIENCE)
        return float(tab.evaluate("window.took")) / 1e3


def opened(browser: Any, address: str) -> tuple[Any, float]:
    """The page in a new browser profile, and seconds until it is ready."""
    tab = browser.new_context(viewport={"width": 1280, "height": 900}, service_workers="block")
    tab = tab.new_page()
    tab.set_default_timeout(_PATIENCE)
    tab.goto(address)
    ready = float(tab.evaluate(_READY)) / 1e3
    tab.evaluate(_WATCH)
    return tab, ready


def drawn(tab: Any, path: Path) -> float:
    """Seconds from the choice of a file until its report is drawn."""
    before = tab.get_attribute("#report", "src")
    tab.set_input_files("#files", [])
    tab.set_input_files("#files", path)
    tab.wait_for_function(
        "before => document.getElementById('report').getAttribute('src') !== before", arg=before
    )
    report = tab.frame_locator("#report").locator("html[data-ready]")
    report.wait_for(state="attached")
    ended = report.evaluate("html => performance.timeOrigin + Number(html.dataset.ready)")
    return (float(ended) - float(tab.evaluate("window.began"))) / 1e3


def transfer(folder: Path) -> float:
    """Megabytes of what was asked for, compressed."""
    files = {folder / (path.lstrip("/") or "index.html") for path in _Handler.asked}
    return sum(len(gzip.compress(file.read_bytes(), 9)) for file in files if file.is_file()) / 1e6


Row = tuple[str, str, str]
"""What, measured, aim."""


def starts(browser: Any, address: str, site: Path) -> Iterator[Row]:
    """What is transferred, and how soon the page is ready."""
    _Handler.asked.clear()
    tab, _ = opened(browser, address)
    drawn(tab, SMALL)
    yield "gzipped transfer for a `.hlog`", f"{transfer(site):.2f} MB", "≤ 9.5 MB"
    tab.context.close()
    bare, ready, first = [], [], []
    for _ in range(ROUNDS):
        bare.append(alone(browser, address))
        tab, seconds = opened(browser, address)
        ready.append(seconds)
        first.append(drawn(tab, SMALL))
        tab.context.close()
    ratio = statistics.median(mine / other for mine, other in zip(ready, bare, strict=True))
    yield "Pyodide with numpy alone", f"{statistics.median(bare):.2f} s", ""
    yield "ready", f"{statistics.median(ready):.2f} s", ""
    yield "ready / Pyodide with numpy alone", f"{ratio:.2f}", "≤ 1.15"
    yield "small log chosen at once → drawn", f"{statistics.median(first):.2f} s", ""


def logs(browser: Any, address: str, folder: Path) -> Iterator[Row]:
    """Logs from small to a busy day."""
    day, hour = shuffled_day(folder), make(HOUR, folder)
    tab, _ = opened(browser, address)
    drawn(tab, SMALL)
    _Handler.asked.clear()
    small = statistics.median(drawn(tab, SMALL) for _ in range(ROUNDS))
    yield "small log, chosen → drawn, warm", f"{small:.2f} s", "≤ 0.4 s"
    took = statistics.median(drawn(tab, hour) for _ in range(ROUNDS))
    yield f"{hour.stat().st_size / 1e6:.0f} MB of log", f"{took:.2f} s", "≤ 2.5 s"
    took = drawn(tab, day)
    pause = float(tab.evaluate("window.pause"))
    yield f"{day.stat().st_size / 1e6:.0f} MB of log, a busy day", f"{took:.1f} s", "≤ 20 s"
    yield "longest pause of the page meanwhile", f"{pause:.0f} ms", ""
    yield "requests after ready", f"{len(_Handler.asked)}", "0"
    tab.context.close()


def tables(browser: Any, address: str, folder: Path) -> Iterator[Row]:
    """Requests as CSV."""
    table = folder / "requests.csv"
    table.write_text("start,latency_ms\n" + "".join(f"{k},{k % 97 + 0.5}\n" for k in range(5000)))
    first, later = [], []
    for _ in range(ROUNDS):
        tab, _ = opened(browser, address)
        tab.wait_for_timeout(3000)
        first.append(drawn(tab, table))
        later.append(drawn(tab, table))
        tab.context.close()
    yield "first CSV, chosen → drawn", f"{statistics.median(first):.2f} s", "≤ 2 s"
    yield "CSV, warm", f"{statistics.median(later):.2f} s", ""


@click.command()
@click.option("--only", default="starts,logs,tables", show_default=True, help="Sections.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keeps corpora.")
@click.option("--site", type=click.Path(exists=True, path_type=Path), help="A page that is there.")
def main(*, only: str, folder: Path | None, site: Path | None) -> None:
    """Measure, and print a table."""
    from playwright.sync_api import sync_playwright

    place = os.environ.get("LATENCYKIT_PYODIDE")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        corpora, page = folder or Path(temporary), site or Path(temporary, "site")
        if site is None:
            write_site(page, place)
        (page / "alone" / "pyodide").mkdir(parents=True, exist_ok=True)
        (page / "alone" / "index.html").write_text(_ALONE)
        for name, content in runtime_files(("numpy",), place):
            (page / "alone" / "pyodide" / name).write_bytes(content)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with served(page) as address:
            sections = {
                "starts": lambda: starts(browser, address, page),
                "logs": lambda: logs(browser, address, corpora),
                "tables": lambda: tables(browser, address, corpora),
            }
            print("| what | measured | aim |\n|---|--:|--:|")
            for section in only.split(","):
                for row in sections[section]():
                    print(f"| {' | '.join(row)} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
