"""Anywhere: without a home, a terminal or a locale, in folders that cannot be written to, and with Python's own switches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DATA

pytestmark = pytest.mark.slow

LOG = DATA / "hlog/hdrhistogram-java-ctrlz-a/uncorrected.hlog"
ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "/proc/nowhere"  # where not even root can make anything

ALL = """
import sys
from latencykit.cli import main
log, out = sys.argv[1:]
for words in (
    ["summary", log], ["chart", log, "-o", out + "/chart.png"],
    ["report", log, "-o", out + "/page.html"], ["chart", log, "--term"], ["summary", "--help"],
):
    try:
        main(["-q", *words])
    except SystemExit as ended:
        if ended.code:
            raise
"""


def everything(tmp_path: Path, code: str = ALL, **environment: str | None) -> str:
    """Run the commands that print and draw under an environment; return what they printed."""
    held = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    } | environment
    done = subprocess.run(
        [sys.executable, "-c", code, str(LOG), str(tmp_path)],
        env={name: value for name, value in held.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd="/",
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")
    text = done.stdout.decode("utf-8", "replace")
    assert "6,852" in text
    assert "1.04 ms" in text
    assert "latencykit summary" in text
    return text


@pytest.fixture(scope="session")
def german(tmp_path_factory):
    """A folder with a locale whose decimal mark is a comma."""
    folder = tmp_path_factory.mktemp("locale")
    made = shutil.which("localedef") and subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")],
        capture_output=True,
        check=False,
    )
    if not made or made.returncode:
        pytest.skip(
            "localedef cannot make a German locale here; Debian's package locales brings it"
        )
    return str(folder)


@pytest.mark.parametrize(
    "environment",
    [
        {
            "HOME": None,
            "LC_ALL": "C",
            "COLUMNS": "20",
            "LINES": "3",
            "PYTHONIOENCODING": "ascii",
            "DISPLAY": ":99",
            "MPLBACKEND": "TkAgg",
        },
        {
            "HOME": NOWHERE,
            "XDG_CONFIG_HOME": NOWHERE,
            "XDG_CACHE_HOME": NOWHERE,
            "TZ": "Antarctica/Troll",
            "PYTHONIOENCODING": "cp1252",
            "TERM": "dumb",
            "NO_COLOR": "1",
        },
        {
            "MPLCONFIGDIR": NOWHERE,
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "TZ": "no/such/zone",
        },
        {"PYTHONWARNINGS": "error", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "0"},
    ],
    ids=lambda environment: " ".join(f"{name}={value}" for name, value in environment.items()),
)
def test_it_works_in_any_environment(tmp_path, environment):
    everything(tmp_path, **environment)


def test_a_decimal_comma_changes_no_number(tmp_path, german):
    plain, foreign = tmp_path / "plain", tmp_path / "foreign"
    plain.mkdir()
    foreign.mkdir()
    code = (
        "import locale\nlocale.setlocale(locale.LC_ALL, '')\nassert "
        "locale.localeconv()['decimal_point'] == ','\n" + ALL
    )
    reported_percentiles = everything(foreign, code, LOCPATH=german, LC_ALL="de_DE.UTF-8")
    assert reported_percentiles == everything(plain, LC_ALL="C.UTF-8")
    assert (foreign / "chart.png").read_bytes() == (plain / "chart.png").read_bytes()


@pytest.mark.skipif(
    not Path("/proc").exists(), reason="there is no folder here that is closed even to root"
)
@pytest.mark.parametrize("name", [f"{NOWHERE}/x.png", "/proc/x.png", "x.png"])
def test_a_closed_folder_is_reported_in_a_line(run, monkeypatch, name):
    monkeypatch.chdir("/proc")
    status, _, err = run("-q", "chart", LOG, "-o", name)
    assert (status, err.count("\n")) == (2, 1)
    assert (
        "the directory does not exist; make it first" in err or "x.png: cannot be written: " in err
    )


def test_names_that_are_not_text_keep_their_bytes(tmp_path, german):
    source = os.fsencode(tmp_path) + b"/l\xff\xc3\xb6g.hlog"
    shutil.copyfile(LOG, source)
    environment = os.environ | {"LC_ALL": "de_DE.UTF-8", "LOCPATH": german}
    done = subprocess.run(
        [sys.executable, "-m", "latencykit", "-q", "chart", source],
        capture_output=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, source + b".png\n", b"")
    assert Path(os.fsdecode(source + b".png")).exists()
