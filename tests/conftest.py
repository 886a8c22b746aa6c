"""What all tests share."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from latencykit import cli
from latencykit.core.blocks import MemoryPart, block_of_rows
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import HistogramLog
from latencykit.io import parts
from tests import laws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from latencykit.core.buckets import Buckets

mpl.use("Agg")
os.environ.pop("COLUMNS", None)  # of a terminal that the tests are started in: sentences stay whole
# the same examples everywhere, on slow machines too
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

# What runs in the background of a shell, or under nohup, ignores signals that tests send, and hands
# that on to its children.
for number, usual in (
    ("SIGINT", signal.default_int_handler),
    ("SIGHUP", signal.SIG_DFL),
    ("SIGTERM", signal.SIG_DFL),
):
    if hasattr(signal, number) and signal.getsignal(getattr(signal, number)) is signal.SIG_IGN:
        signal.signal(getattr(signal, number), usual)

DATA = Path(__file__).parent / "data"
NOTEBOOKS = "tests/notebooks/"
WAITING = (
    NOTEBOOKS, "tests/ctrlz/", "tests/distributed/", "tests/untrusted/", "tests/book/", "tests/record/",
)  # fmt: skip
QUICK = "not slow"  # what pyproject.toml selects unless `-m` says otherwise
CTRLZ = DATA / "hlog" / "hdrhistogram-java-ctrlz-a"
RAW, SCHEDULED = CTRLZ / "uncorrected.hlog", CTRLZ / "scheduled.hlog"
TAGGED = DATA / "hlog" / "hdrhistogram-java-tags-basetime" / "log.hlog"
LOGS = sorted((DATA / "hlog").glob("*/*.hlog"))
PEAK = """
def peak():  # bytes; ru_maxrss begins with the peak of the process that started this one
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

"""

NOT_IN_A_PAGE = (
    "emscripten does not support processes",
    "emscripten does not support servers",
    "can't start new thread",
    "stack switching not supported",
    "is unsupported on this system",  # links
    "has no attribute 'link'",
    "has no attribute 'mkfifo'",
    "No module named 'jsonschema'",  # of packages with compiled parts
    "No module named 'pyarrow'",
    "`Import pyarrow` failed",
    "needs the package",
    "Unable to find a usable engine",  # pandas without pyarrow
)
"""How Python says in WebAssembly that the machine lacks something."""

SLOW_ONES = pytest.StashKey[int]()  # how many of them were left out


@pytest.hookimpl(optionalhook=True)  # the tests also run without pytest-xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """All cores for folders; this process alone for single files, which begin sooner that way."""
    if any(".py" in word or ".doctest" in word for word in config.args):
        return 0
    cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    return len(cores) + 2 * config.option.markexpr.startswith("slow")  # these wait a third of it


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The lessons are executed once: all tests of their folder run in one process."""
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # the order of collection is better
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return NOTEBOOKS if nodeid.startswith(NOTEBOOKS) else super()._split_scope(nodeid)

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Skip, in WebAssembly, what fails because a web page has no processes, threads or such."""
    report = yield
    if sys.platform == "emscripten" and report.failed and call.excinfo is not None:
        reason = str(call.excinfo.value)
        if any(words in reason for words in NOT_IN_A_PAGE):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {reason}")
    return report


def pytest_configure(config: pytest.Config) -> None:
    """A test that is named runs, slow or not."""
    config.stash[SLOW_ONES] = 0
    selected = any(word.startswith("-m") for word in map(str, config.invocation_params.args))
    if not selected and any("::" in word for word in config.args):
        config.option.markexpr = ""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only slow tests run, leave out the files that have none."""
    if not config.option.markexpr.startswith("slow") or collection_path.suffix != ".py":
        return None
    return True if "slow" not in collection_path.read_text("utf-8") else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[Any]:
    """Examples are in docstrings of the package and in `tests/examples`, not in tests."""
    return [one for one in (yield) if not isinstance(one, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Search for no garbage among what is collected: half a million objects, which all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files whose tests wait for long begin first, lest others wait for them at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))


def pytest_collection_finish() -> None:
    """Take what was collected out of all later garbage collections, of which there are fewer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # a twelfth of the time of quick tests went into them


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    config = items[0].config
    if config.option.markexpr == QUICK and all(map(is_slow, items)):
        config.stash[SLOW_ONES] += len(items)


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker reports to the main process
        session.config.workeroutput[QUICK] = session.config.stash[SLOW_ONES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[SLOW_ONES] = getattr(node, "workeroutput", {}).get(QUICK, 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash[SLOW_ONES]:
        folders = [] if config.args == config.getini("testpaths") else config.args
        command = " ".join([os.path.relpath(sys.executable), "-m pytest -q -m slow", *folders])
        terminalreporter.write_line(f"{count:,} slow tests were left out; run them with: {command}")


def needs_package(name: str, extra: str) -> pytest.MarkDecorator:
    """Skip where a package is missing; unlike ``importorskip`` it does not import it to collect."""
    return pytest.mark.skipif(
        find_spec(name) is None, reason=f"the extra `{extra}` is not installed"
    )


def python(*words: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with some words, to its end; its streams are text."""
    usual = {"capture_output": True, "text": True, "check": True}
    return subprocess.run([sys.executable, *map(str, words)], **usual | how)


def golden_of(log: Path) -> dict[str, Any]:
    """The reference's numbers for a log: as encoded where its own sum re-recorded the buckets."""
    encoded = log.with_suffix(".encoded.json")
    rust = log.parent / "rust.golden.json"
    path = (
        encoded if encoded.exists() else rust if rust.exists() else log.with_suffix(".golden.json")
    )
    return json.loads(path.read_text())


def log_of_values(
    values: Sequence[np.ndarray],
    starts: Any = None,
    lengths: Any = None,
    digits: int = 3,
    buckets: Buckets | None = None,
    **facts: Any,
) -> HistogramLog:
    """A log with an interval per row of values: one second each from 0 on, unless given."""
    layout = buckets or HdrBuckets(digits)
    rows = np.repeat(np.arange(len(values)), list(map(len, values)))
    block = block_of_rows(rows, layout.index_of(np.concatenate(values)), len(values), layout)
    return HistogramLog(
        np.arange(len(values)) if starts is None else starts,
        np.ones(len(values)) if lengths is None else lengths,
        [MemoryPart([block])],
        **facts,
    )


FORMS: dict[str, Callable[[Any], Any]] = {
    "samples": lambda data: data,
    "log": lambda data: data.to_log("1s"),
    "histogram": lambda data: data.histogram(),
}
"""Of a run, from what has single requests to what has no times."""


class Commands:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error."""
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        out, err = self.capsys.readouterr()
        status = int(ended.value.code or 0)
        if status < 2:
            laws.output([str(word) for word in words], out)
        return status, out, err

    def printed(self, style: str, words: Sequence[object], expected: int) -> str:
        status, out, err = self(*words, "--format", style)
        assert status == expected, err
        return out

    def json(self, *words: object, status: int = 0) -> Any:
        return json.loads(self.printed("json", words, status))

    def csv(self, *words: object, status: int = 0) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.printed("csv", words, status))))

    def refused(self, *words: object) -> str:
        """Return the one line that is said."""
        status, out, err = self(*words)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        return err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capsys)


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are asked of a file one after the other get what the first of them read."""
    select, known = parts.select, dict[Any, Any]()

    def selected(source: Any, selection: Any) -> list[Any]:
        key, reports = (source.shown, repr(replace(selection, report=None))), list[str]()
        if key not in known:
            known[key] = select(source, replace(selection, report=reports.append)), reports
        for text in known[key][1]:
            selection.report(text)
        return [*known[key][0]]

    monkeypatch.setattr(parts, "select", selected)


@pytest.fixture
def data() -> Path:
    """The folder of test data."""
    return DATA


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, headless; its event loop ends with the module, so that others can run theirs."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="the package playwright drives the browser"
    )
    # The first has no window around its pages, which took a quarter of the browser's time.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("no Chromium here")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()
