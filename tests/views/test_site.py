"""latencykit as a web page: what is written, what the page asks for, and the page in a browser."""

from __future__ import annotations

import hashlib
import http.server
import importlib
import io
import json
import os
import re
import threading
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from latencykit.cli import main
from latencykit.cli.in_page import answer
from latencykit.errors import InvalidArgumentError
from latencykit.views import site
from latencykit.views.document import document
from tests.conftest import DATA
from tests.views.conftest import CTRLZ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WRK = DATA / "formats" / "wrk" / "ctrlz" / "stdout.txt"


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page sets it for its own process, which is this one."""
    monkeypatch.setenv("COLUMNS", "70")


def asked(folder: Path, command: str = "report", **more: object) -> dict[str, Any]:
    names = sorted(path.name for path in folder.iterdir())
    request = {"command": command, "files": names, "columns": 70, **more}
    return json.loads(answer(json.dumps(request), str(folder)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("a.hlog").write_bytes((CTRLZ / "uncorrected.hlog").read_bytes())
    tmp_path.joinpath("b.hlog").write_bytes((CTRLZ / "scheduled.hlog").read_bytes())
    return tmp_path


def test_the_page_gets_what_the_command_line_prints(folder, capsys, monkeypatch):
    reply = asked(folder, "compare", base="b.hlog", unit="us")
    assert reply["command"] == "latencykit compare b.hlog a.hlog --unit us"
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as end:
        main(["compare", "b.hlog", "a.hlog", "--unit", "us"])
    assert (reply["status"], reply["text"]) == (end.value.code, capsys.readouterr().out)


def test_a_report_comes_with_its_series_and_the_command_that_makes_it(folder):
    reply = asked(folder, slo="99=1s")
    assert reply["status"] == 0
    assert reply["html"].startswith("<!doctype html>")
    assert reply["series"] == ["a.hlog", "b.hlog"]
    assert reply["command"] == "latencykit report a.hlog b.hlog --slo 99=1s -o report.html"
    assert "wrote" not in reply["notes"]


def test_an_error_is_a_line_and_a_status(tmp_path):
    (tmp_path / "bad.hlog").write_text("nonsense\n")
    reply = asked(tmp_path)
    assert reply["status"] == 2
    assert reply["notes"].startswith("latencykit: bad.hlog")
    assert "html" not in reply


def test_a_package_that_is_not_there_is_asked_for(folder, monkeypatch):
    monkeypatch.setattr("latencykit.cli.in_page._PACKAGES", {"not_there"})
    monkeypatch.setattr("latencykit.cli.main", lambda _: importlib.import_module("not_there"))
    assert asked(folder)["needs"] == "not_there"


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files in place of Pyodide's, as small as they can be."""
    place = tmp_path / "runtime"
    place.mkdir()
    wheels = {name: f"{name}-1-py3-none-any.whl" for name in ("numpy", "click", "pandas", "scipy")}
    lock = {
        name: {"file_name": file, "depends": [], "sha256": digest_of(name.encode())}
        for name, file in wheels.items()
    }
    for name, file in wheels.items():
        (place / file).write_bytes(name.encode())
    first = dict.fromkeys(site.RUNTIME.first, b"x") | {
        "pyodide-lock.json": json.dumps({"packages": lock}).encode()
    }
    for name, content in first.items():
        (place / name).write_bytes(content)
    digests = {name: digest_of(content) for name, content in first.items()}
    tested = site.Runtime(site.RUNTIME.address, digests, site.RUNTIME.packages)
    monkeypatch.setattr(site, "RUNTIME", tested)
    return place


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_the_folder_is_complete_and_the_same_each_time(runtime, tmp_path):
    index = site.write_site(tmp_path / "one", str(runtime))
    site.write_site(tmp_path / "two", str(runtime))
    files = {path.relative_to(tmp_path / "one") for path in index.parent.rglob("*.*")}
    assert {path.read_bytes() for path in index.parent.rglob("*.*")} == {
        path.read_bytes() for path in (tmp_path / "two").rglob("*.*")
    }
    first = json.loads(
        re.search(r"FIRST = (\[.*\]);", (index.parent / "offline.js").read_text())[1]
    )
    assert {Path(name) for name in first} - {Path()} < files
    assert not [name for name in first if "pandas" in name or "scipy" in name]
    with zipfile.ZipFile(io.BytesIO((index.parent / "latencykit.zip").read_bytes())) as archive:
        names = archive.namelist()
    assert "latencykit/views/assets/main.js" in names
    assert not [name for name in names if name.endswith((".so", ".ipynb", ".pyc"))]


def test_the_policy_lets_reports_run_and_nothing_else(runtime, tmp_path):
    text = site.write_site(tmp_path / "site", str(runtime)).read_text()
    policy = re.search(r'content="(default-src[^"]*)"', text)[1]
    own = re.search(r'content="(default-src[^"]*)"', document("", "", {}))[1]
    assert set(re.findall(r"'sha256-[^']*'", own)) <= set(re.findall(r"'sha256-[^']*'", policy))
    assert "unsafe-eval" not in policy.replace("wasm-unsafe-eval", "")
    assert "connect-src 'self';" in policy


def test_another_release_of_the_runtime_is_refused(runtime, tmp_path):
    (runtime / "pyodide.mjs").write_bytes(b"another")
    with pytest.raises(InvalidArgumentError, match=r"pyodide\.mjs: is not the file"):
        site.write_site(tmp_path / "site", str(runtime))
    with pytest.raises(InvalidArgumentError, match=r"no pyodide\.mjs there"):
        site.write_site(tmp_path / "site", str(tmp_path / "nowhere"))
    assert not (tmp_path / "site").exists()


# ------------------------------------------------------------ in a browser, where Pyodide can be had


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page, served."""
    place = os.environ.get("LATENCYKIT_PYODIDE")
    if not place:
        pytest.skip("LATENCYKIT_PYODIDE names no folder with Pyodide's files")
    folder = tmp_path_factory.mktemp("site")
    site.write_site(folder, place)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def state(page: Any, until: Callable[[str], bool]) -> str:
    """The page's words, once they are so."""
    end = time.monotonic() + 120
    while not until(text := page.inner_text("#state")):
        assert time.monotonic() < end, text
        page.wait_for_timeout(30)
    return text


def settled(text: str) -> bool:
    return not text.startswith(("Reading", "Loading", "Fetching", "Python is", "latencykit is"))


@pytest.mark.slow
@pytest.mark.needs_tool
def test_the_page_reads_files_offline_and_sends_nothing(address, browser, tmp_path):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    assert state(page, lambda text: text.startswith("Ready"))
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    page.set_input_files("#files", [CTRLZ / "uncorrected.hlog", CTRLZ / "scheduled.hlog"])
    state(page, lambda text: settled(text) and not text.startswith("Ready"))
    report = page.frame_locator("#report")
    report.locator("#plot-curve svg").first.wait_for()
    page.click("#tab-compare")
    state(page, settled)
    assert "uncorrected.hlog" in page.inner_text("#command")
    assert "p99" in page.inner_text("#answer")
    page.keyboard.press("ArrowLeft")
    state(page, settled)
    assert page.get_attribute("#tab-explain", "aria-selected") == "true"
    hostile = tmp_path / "<img src=x onerror=alert(1)>.txt"
    hostile.write_bytes(WRK.read_bytes())
    page.set_input_files("#files", hostile)
    state(page, settled)
    report.locator("h1").wait_for()
    assert not [url for url in asked_for if not url.startswith(("blob:", f"{address}pyodide/"))]
    (tmp_path / "bad.hlog").write_text("nonsense\n")
    page.set_input_files("#files", tmp_path / "bad.hlog")
    assert "bad.hlog" in state(page, lambda text: "expected" in text)
    assert page.get_attribute("#state", "class") == "wrong"
    context.set_offline(True)
    page.reload()
    assert state(page, lambda text: text.startswith("Ready"))
    assert not errors
    context.close()
