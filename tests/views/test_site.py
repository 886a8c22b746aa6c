"""latencykit as a web page: what is written, what the page asks for, and the page in a browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
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
from tests.conftest import DATA, RAW, SCHEDULED
from tests.servers import Folder, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATS = DATA / "formats"
WRK = FORMATS / "wrk" / "ctrlz" / "stdout.txt"
TYPES = {
    "log": RAW,
    "histogram": FORMATS / "hgrm" / "csv" / "log.hgrm",
    "samples": FORMATS / "csv" / "decimal-comma" / "export.csv",
    "summary": FORMATS / "hyperfine-csv" / "two-commands" / "out.csv",
    "printed": WRK,
}
DROP = """(page, files) => {
    const given = new DataTransfer();
    for (const [name, base64] of files) {
        given.items.add(new File([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))], name));
    }
    for (const type of ["dragover", "drop"]) {
        page.dispatchEvent(new DragEvent(type, { dataTransfer: given, bubbles: true, cancelable: true }));
    }
}"""
SEND = """async ([address, name, text]) => {
    const other = open(address);
    await new Promise((resolve) => {
        addEventListener("message", ({ data }) => data === "PONG" && resolve());
        setInterval(() => other.postMessage("PING", "*"), 100);
    });
    const { buffer } = new TextEncoder().encode(text);
    other.postMessage({ latencykit: { files: [{ name, buffer }] } }, "*");
}"""
REFUSED = """(other) => new Promise((resolve) => setTimeout(async () => {
    const refused = [];
    try { (0, eval)("1"); } catch (error) { refused.push(error.name); }
    await fetch(other, { mode: "no-cors" }).catch((error) => refused.push(error.name));
    resolve(refused);
}))"""
"""Later than the test's own script, to which the policy does not apply."""


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
    (tmp_path / "a.hlog").write_bytes(RAW.read_bytes())
    (tmp_path / "b.hlog").write_bytes(SCHEDULED.read_bytes())
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
    assert asked(folder)["needs"] == ["not_there"]


ENDPOINTS = "start_ms,latency_ms,endpoint\n" + "".join(
    f"{9 * k},{1 + k % 7 + 40 * (k % 3 == 0)},/{'abc'[k % 3]}\n" for k in range(900)
)


def test_a_report_is_drawn_before_what_explains_slow_requests_is_loaded(tmp_path, monkeypatch):
    (tmp_path / "calls.csv").write_text(ENDPOINTS)
    whole = asked(tmp_path)
    assert "needs" not in whole
    assert "id='explain'" in whole["html"]
    monkeypatch.setattr("latencykit.cli.in_page._PACKAGES", {"not_there"})
    seek = importlib.util.find_spec
    monkeypatch.setattr("latencykit.views.page.find_spec", lambda _: seek("not_there"))
    first = asked(tmp_path)
    assert (first["status"], first["needs"], first["series"]) == (0, ["not_there"], whole["series"])
    assert "id='explain'" not in first["html"]


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files in place of Pyodide's, as small as they can be."""
    place = tmp_path / "runtime"
    place.mkdir()
    wheels = {name: f"{name}-1-py3-none-any.whl" for name in ("numpy", "click", "pandas", "scipy")}
    for name, file in wheels.items():
        members = (f"{name}/{file}.py" for file in ("__init__", "tests/a", "f2py/__init__"))
        (place / file).write_bytes(zipped(dict.fromkeys(members, "x = 1\n")))
    lock = {
        name: {"file_name": file, "depends": [], "sha256": digest_of((place / file).read_bytes())}
        for name, file in wheels.items()
    }
    first = dict.fromkeys(site.RUNTIME.first, b"x") | {
        "pyodide-lock.json": json.dumps({"packages": lock}).encode(),
        "python_stdlib.zip": zipped({"os.py": "", "tests/a.py": ""}),
    }
    monkeypatch.setattr("shutil.which", lambda _: None)  # node: nothing to run
    for name, content in first.items():
        (place / name).write_bytes(content)
    digests = {name: digest_of(content) for name, content in first.items()}
    tested = site.Runtime(site.RUNTIME.address, digests, site.RUNTIME.packages)
    monkeypatch.setattr(site, "RUNTIME", tested)
    return place


def zipped(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


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
    python = index.parent / "python"
    with zipfile.ZipFile(python / "latencykit.zip") as archive:
        names = archive.namelist()
    tables = (Path(site.__file__).parents[1] / "io").glob("*.csv")
    assert {f"latencykit/io/{path.name}" for path in tables} <= set(names)
    assert "latencykit/views/assets/main.js" in names
    assert not [name for name in names if name.endswith((".so", ".ipynb", ".pyc"))]
    with zipfile.ZipFile(next(python.glob("numpy*"))) as archive:
        assert archive.read("numpy/f2py/__init__.py") == b""  # "from numpy import *" looks for it
    lock = json.loads((python / "lock.json").read_text())["packages"]
    assert lock.keys() == {"numpy", "click", "pandas", "scipy", "latencykit"}
    for package in lock.values():
        content = (python / package["file_name"]).read_bytes()
        assert digest_of(content) == package["sha256"]
        assert b"tests" not in content


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
    """The page, served; ``LATENCYKIT_SITE`` may name the site that has it."""
    place = os.environ.get("LATENCYKIT_PYODIDE")
    if not place:
        pytest.skip("LATENCYKIT_PYODIDE names no folder with Pyodide's files")
    folder = Path(os.environ.get("LATENCYKIT_SITE", ""), "try").resolve()
    if not (folder / "python" / "lock.json").exists():
        folder = tmp_path_factory.mktemp("site")
        site.write_site(folder, place)

    with served(partial(Folder, directory=folder)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


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
    page.set_input_files("#files", [RAW, SCHEDULED])
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
    assert not [url for url in asked_for if not url.startswith(("blob:", f"{address}python/"))]
    (tmp_path / "bad.hlog").write_text("nonsense\n")
    page.set_input_files("#files", tmp_path / "bad.hlog")
    assert "bad.hlog" in state(page, lambda text: "expected" in text)
    assert page.get_attribute("#state", "class") == "wrong"
    context.set_offline(True)
    page.reload()
    assert state(page, lambda text: text.startswith("Ready"))
    assert not errors
    context.close()


@pytest.fixture(scope="module")
def visitor(address, browser) -> Iterator[Any]:
    """The browser of one visitor, who has a narrow screen and likes it dark."""
    look = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    context = browser.new_context(**look)
    yield context
    context.close()


@pytest.fixture(scope="module")
def tab(address, visitor) -> Any:
    """The page, which all tests below use one after the other."""
    page = visitor.new_page()
    page.goto(address)
    assert state(page, lambda text: text.startswith("Ready"))
    return page


def drop(page: Any, *files: tuple[str, bytes]) -> None:
    given = [(name, base64.b64encode(content).decode()) for name, content in files]
    page.locator("#drop").evaluate(DROP, given)


def drawn(page: Any) -> Any:
    """The report, once it is there."""
    text = state(page, settled)
    assert page.get_attribute("#state", "class") != "wrong", text
    report = page.frame_locator("#report")
    report.locator("html[data-ready]").wait_for()
    return report


@pytest.mark.slow
@pytest.mark.needs_tool
def test_a_dropped_file_of_each_type_is_drawn_on_a_narrow_screen(tab):
    for path in TYPES.values():
        drop(tab, (path.name, path.read_bytes()))
        report = drawn(tab)
        assert path.name in tab.inner_text("#command")
        assert report.locator("#plot-curve svg").count() == 1
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    drop(tab, *((path.name, path.read_bytes()) for path in TYPES.values()))
    drawn(tab)
    assert all(path.name in tab.inner_text("#command") for path in TYPES.values())


@pytest.mark.slow
@pytest.mark.needs_tool
def test_a_table_of_requests_is_drawn_and_then_explained(tab):
    drop(tab, ("calls.csv", ENDPOINTS.encode()))
    tab.frame_locator("#report").locator("#explain").get_by_text("/a").first.wait_for()
    assert drawn(tab).locator("#plot-curve svg").count() == 1


@pytest.mark.slow
@pytest.mark.needs_tool
def test_hostile_files_are_refused_or_shown_as_text(tab):
    bomb = gzip.compress(b"#[Histogram log format version 1.3]\n" + b"1" * (65 << 20), 1)
    drop(tab, ("bomb.hlog.gz", bomb))
    assert "bomb.hlog.gz: " in state(tab, settled)
    assert tab.get_attribute("#state", "class") == "wrong"
    tag = "<script>parent.stolen=stolen=1</script>"
    tagged = re.sub(r'(?m)^(?=[^#"])', f"Tag={tag},", TYPES["log"].read_text())
    drop(tab, (f"{tag.replace('/', '_')}.hlog", tagged.encode()))
    report = drawn(tab)
    assert tag in report.locator("body").inner_text()
    assert [frame.evaluate("typeof stolen") for frame in tab.frames] == ["undefined"] * 2


@pytest.mark.slow
@pytest.mark.needs_tool
def test_the_policy_binds_the_worker(tab, address):
    (worker,) = tab.workers
    other = address.replace("127.0.0.1", "localhost")
    assert worker.evaluate(REFUSED, other) == ["EvalError", "TypeError"]


@pytest.mark.slow
@pytest.mark.needs_tool
def test_another_page_hands_a_file_over_while_the_first_tab_reads(tab, visitor, address):
    opener = visitor.new_page()
    opener.goto(address.replace("127.0.0.1", "localhost") + "examples/")
    with opener.expect_popup() as opened:
        opener.evaluate(SEND, [address, "posted.hlog", TYPES["log"].read_text()])
    drop(tab, (WRK.name, WRK.read_bytes()))
    for page, name in ((opened.value, "posted.hlog"), (tab, WRK.name)):
        drawn(page)
        assert f" {name} " in page.inner_text("#command")
