"""JupyterLab's file browser: a double click on a log opens its report."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import DATA, RAW
from tests.servers import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]
WRK = DATA / "formats" / "wrk" / "ctrlz" / "stdout.txt"


def page_of(address: str, path: str, token: str = TOKEN) -> tuple[int, str]:
    """The status and the text that the server sends for a file."""
    try:
        with urllib.request.urlopen(
            f"{address}/latencykit/report?path={path}&token={token}"
        ) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_double_click_opens_the_report(lab: tuple[str, Path], browser: Any) -> None:
    address, folder = lab
    shutil.copy(RAW, folder / "run.hlog")
    shutil.copy(WRK, folder / "wrk.txt")
    (folder / "bad.hlog").write_text("nonsense\n")
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/lab?token={TOKEN}", timeout=90_000)
    files = page.locator(".jp-DirListing-item")
    files.first.wait_for(timeout=90_000)
    page.wait_for_timeout(1000)

    def report(name: str) -> Any:
        return page.frame_locator(f'iframe[title="Latency report of {name}"]')

    files.filter(has_text="run.hlog").dblclick()
    report("run.hlog").locator("#plot-timeline svg").wait_for(timeout=60_000)
    assert "6,852 requests" in report("run.hlog").locator("h1").inner_text()
    files.filter(has_text="bad.hlog").dblclick()
    alert = report("bad.hlog").get_by_role("alert")
    alert.wait_for(timeout=60_000)
    assert alert.inner_text().startswith("bad.hlog:1: ")
    files.filter(has_text="wrk.txt").click(button="right")
    page.get_by_text("Open With").hover()
    page.get_by_role("menuitem", name="Latency report").click()
    report("wrk.txt").locator("#plot-curve svg").wait_for(timeout=60_000)
    ground = "() => getComputedStyle(document.body).backgroundColor"
    assert report("wrk.txt").locator("body").evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_text("Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_role("menuitem", name="JupyterLab Dark", exact=True).click()
    dark = report("wrk.txt").locator("html[data-theme=dark]")
    dark.wait_for(state="attached", timeout=30_000)
    assert report("wrk.txt").locator("body").evaluate(ground) == "rgb(20, 22, 26)"
    assert report("run.hlog").locator("html[data-theme=dark]").count() == 1
    (folder / "worse.hlog").write_text("nonsense\n")
    page.get_by_role("button", name="Refresh the file browser").click()
    files.filter(has_text="worse.hlog").dblclick()
    alert = report("worse.hlog").get_by_role("alert")
    alert.wait_for(timeout=60_000)
    scheme = report("worse.hlog").locator("meta[name=color-scheme]")
    assert scheme.get_attribute("content") == "dark"
    assert not errors
    page.close()


def test_the_server_keeps_to_its_root_and_asks_who_it_is(lab: tuple[str, Path]) -> None:
    address, folder = lab
    (folder.parent / "outside.hlog").write_text("")
    (folder / ".hidden.hlog").write_text("")
    (folder / "link.hlog").symlink_to(RAW)
    shutil.copy(RAW, folder / "run.hlog")
    for path in ("../outside.hlog", "..%2Foutside.hlog", "/etc/passwd", "nothing.hlog", ""):
        assert page_of(address, path)[0] == 404, path
    assert page_of(address, ".hidden.hlog")[0] == 404
    assert page_of(address, "link.hlog")[0] == 404  # it leads out of the root
    assert page_of(address, "run.hlog")[0] == 200
    status, text = page_of(address, "run.hlog", token="wrong")
    assert status != 200 or "6,852 requests" not in text
