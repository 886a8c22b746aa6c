"""The interactive page of a dense day: how large it is, how long it takes to make, and when a browser can be dragged on.

``python -m tests.benchmarks.report_page [DIR]`` makes a day of one-second intervals (about 280 MB;
in random order, so that no two slots are alike) in DIR, writes its page, opens it in headless
Chromium without a network, and prints Markdown. The targets: the page below 3 MB, interactive
within 2 s of browser time.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import latencykit as lk
from tests.benchmarks.corpora import make

_PATIENCE = 120_000  # milliseconds until a browser that does not get ready is given up


def shuffled_day(folder: Path) -> Path:
    """A day of busy intervals whose payloads come in random order."""
    target = folder / "day.hlog"
    if not target.exists():
        lines = make("b", folder).read_bytes().splitlines(keepends=True)
        heads = [line for line in lines if line[:1] in b'#"']
        payloads = [line.rsplit(b",", 1)[1] for line in lines[len(heads) : len(heads) + 600]]
        chosen = (
            np.random.default_rng(7).integers(0, len(payloads), len(lines) - len(heads)).tolist()
        )
        with target.with_suffix(".part").open("wb") as out:
            out.writelines(heads)
            out.writelines(
                f"{k}.000,1.000,1.000,".encode() + payloads[chosen[k]] for k in range(len(chosen))
            )
        target.with_suffix(".part").replace(target)
    return target


def browser_times(page: Path) -> tuple[float, float]:
    """Milliseconds from the navigation until the page can be dragged on, and those of one selection (median of 20)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
        tab = context.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=_PATIENCE)
        ready = float(tab.evaluate("Number(document.documentElement.dataset.ready)"))
        script = """() => { const [first, last] = window.latencykit.extent(), times = [];
            for (let k = 0; k < 20; k++) { const began = performance.now();
                window.latencykit.select(first, first + (last - first) * (k + 1) / 21); times.push(performance.now() - began); }
            return times.sort((a, b) => a - b)[10]; }"""
        selection = float(tab.evaluate(script))
        browser.close()
    return ready, selection


def main(folder: Path) -> None:
    """Measure, and print a table."""
    log = shuffled_day(folder)
    began = time.process_time()
    page = lk.report(lk.read(log), folder / "day.html", files=[log])
    taken = time.process_time() - began
    ready, selection = browser_times(page)
    print("| what | measured | target |\n|---|--:|--:|")
    print(f"| the log | {log.stat().st_size / 1e6:.0f} MB, {len(lk.read(log)):,} intervals | |")
    print(f"| making the page | {taken:.0f} s of processor | |")
    print(f"| the page | {page.stat().st_size / 1e6:.2f} MB | 3 MB |")
    print(f"| interactive after | {ready:.0f} ms of browser time | 2,000 ms |")
    print(f"| one selection | {selection:.0f} ms | |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
