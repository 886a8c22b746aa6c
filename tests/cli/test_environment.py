"""The command line anywhere: any environment, another day, other hashes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.conftest import DATA, RAW, python

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
    usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    given = {name: value for name, value in (usual | environment).items() if value is not None}
    how = {"text": False, "stdin": subprocess.DEVNULL, "check": False, "cwd": "/"}
    done = python("-c", code, RAW, tmp_path, env=given, **how)
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
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    if (
        not shutil.which("localedef")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("localedef cannot make a German locale here; Debian's package `locales` can")
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        "LC_ALL=C COLUMNS=20 LINES=3 PYTHONIOENCODING=ascii DISPLAY=:99 MPLBACKEND=nosuch HOME",
        (
            f"HOME={NOWHERE} XDG_CONFIG_HOME={NOWHERE} XDG_CACHE_HOME={NOWHERE} "
            "PYTHONIOENCODING=cp1252 TZ=Antarctica/Troll TERM=dumb NO_COLOR=1"
        ),
        f"MPLCONFIGDIR={NOWHERE} LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 TZ=no/such/zone",
        "PYTHONWARNINGS=error PYTHONOPTIMIZE=2 PYTHONHASHSEED=0",
    ],
)
def test_it_works_in_any_environment(tmp_path, environment):
    """A name without a value is taken out of it."""
    pairs = (word.partition("=") for word in environment.split())
    everything(tmp_path, **{name: value or None for name, _, value in pairs})


@pytest.mark.slow
def test_a_decimal_comma_changes_no_number(tmp_path, german):
    plain, foreign = tmp_path / "plain", tmp_path / "foreign"
    plain.mkdir()
    foreign.mkdir()
    code = (
        "import locale\nlocale.setlocale(locale.LC_ALL, '')\nassert "
        "locale.localeconv()['decimal_point'] == ','\n" + ALL
    )
    fonts = {"MPLCONFIGDIR": mpl.get_configdir()}  # else each looks for all fonts again
    printed = everything(foreign, code, LOCPATH=german, LC_ALL="de_DE.UTF-8", **fonts)
    assert printed == everything(plain, LC_ALL="C.UTF-8", **fonts)
    assert (foreign / "chart.png").read_bytes() == (plain / "chart.png").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc").exists(), reason="there is no folder here that is closed even to root"
)
@pytest.mark.parametrize("name", [f"{NOWHERE}/x.png", "/proc/x.png", "x.png"])
def test_a_closed_folder_is_reported_in_a_line(run, monkeypatch, name):
    monkeypatch.chdir("/proc")
    err = run.refused("-q", "chart", RAW, "-o", name)
    assert re.search(
        r"the directory does not exist; make it first|x\.png: cannot be written: ", err
    )


@pytest.mark.slow
def test_names_that_are_not_text_keep_their_bytes(tmp_path, german):
    source = os.fsencode(tmp_path) + b"/l\xff\xc3\xb6g.hlog"
    shutil.copyfile(RAW, source)
    environment = os.environ | {"LC_ALL": "de_DE.UTF-8", "LOCPATH": german}
    command = [sys.executable, "-m", "latencykit", "-q", "chart", source]
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == (source + b".png\n", b"")
    assert Path(os.fsdecode(source + b".png")).exists()


# ---------------------------------------------------------------- the same bytes

READ_ALL = """
import contextlib, hashlib, pathlib, sys
import latencykit as lk
from latencykit.errors import LatencyKitError
for folder in pathlib.Path(sys.argv[1]).iterdir():
    every = [one for one in folder.rglob("*") if one.is_file() and one.name != "expect.json"]
    for path in sorted(every, key=lambda one: one.stat().st_size)[:1]:
        with contextlib.suppress(LatencyKitError):
            said = [
                (name, repr(one), one.run.notes, one._repr_html_(), list(getattr(one, "columns", ())))
                for name, one in lk.read_all(path).items()
            ]
            print(path, hashlib.sha256(repr(said).encode()).hexdigest())
"""


def output(seed: str, *words: object) -> bytes:
    """What a process of its own prints under a seed of hashes."""
    environment = {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000"}
    return python(*words, env=os.environ | environment, text=False).stdout


def test_a_page_is_the_same_on_another_day_and_with_other_hashes(tmp_path):
    page, made = tmp_path / "page.html", []
    for seed in ("1", "2"):
        output(seed, "-m", "latencykit", "report", RAW, "--slo", "99=1ms", "-o", page)
        made.append(page.read_bytes())
    assert made[0] == made[1]
    assert b"2023-11-14 22:13:20 UTC" in made[0]


@pytest.mark.slow
def test_no_reader_depends_on_the_order_of_hashes():
    first, second = (output(seed, "-c", READ_ALL, DATA / "formats") for seed in ("1", "2"))
    assert first.count(b"\n") > 300
    assert first == second
