"""Files are complete or not there, never replace an input, and obey no untrusted name."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import latencykit as lk
from latencykit._files import whole
from tests.conftest import RAW, SCHEDULED, TAGGED, python

WRITERS = {
    "chart.png": ("chart", RAW, "-o"),
    "chart.pdf": ("chart", RAW, "-o"),
    "chart.html": ("chart", RAW, "-o"),
    "report.html": ("report", RAW, "-o"),
    "a.hlog": ("convert", RAW),
    "a.hgrm": ("convert", RAW),
    "a.csv": ("convert", RAW),
    "a.json": ("convert", RAW),
    "a.parquet": ("convert", RAW),
    "merged.hlog": ("merge", RAW, SCHEDULED, "-o"),
    "slo.xml": ("check", RAW, "--unit", "ns", "--slo", "99=1s", "--junit"),
    "diagnosis.png": ("diagnose", RAW, "-o"),
    "fanout.svg": ("fanout", RAW, "-o"),
    "change.png": ("compare", RAW, SCHEDULED, "-o"),
    "hiccup.hlog": ("hiccup", "--duration", "10ms", "-o"),
}


def started(*words: object, **how: object) -> subprocess.CompletedProcess[bytes]:
    return python("-m", "latencykit", *words, check=False, capture_output=False, text=False, **how)


# ---------------------------------------------------------------- a disk without room


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    """A file system on which files can be made, but nothing can be put into them."""
    place = tmp_path_factory.mktemp("full")
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("only root may mount a small file system")
    try:
        (place / "rest").write_bytes(bytes(os.statvfs(place).f_bavail * os.statvfs(place).f_bsize))
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_one_line_and_leaves_nothing(run, full_disk, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
    err = run.refused("-q", *WRITERS[name], full_disk / name)
    why = "cannot be written: No space left on device; "
    assert err.startswith(f"latencykit: {full_disk / name}: {why}")
    left = {path.name: path.stat().st_size for path in full_disk.iterdir() if path.name != "rest"}
    assert not left.pop("hiccup.hlog", 0)  # which is appended to, line by line
    assert left == {}


def test_lessons_are_not_copied_in_part(run, full_disk):
    assert "No space left" in run.refused("-q", "lab", full_disk / "desk", "--no-launch")
    assert not [path for path in (full_disk / "desk").rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words", [("summary", RAW), ("summary", RAW, "--format", "json"), ("--help",)]
)
def test_standard_output_without_room_is_one_line(words):
    with Path("/dev/full").open("wb") as full:
        done = started("-q", *words, stdout=full, stderr=subprocess.PIPE)
    expected = b"latencykit: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "status"), [("1>&-", 2), ("2>&-", 0), ("<&-", 0)])
def test_results_that_cannot_be_written_are_a_failure_and_notes_are_not(closed, status):
    shell = f"exec {sys.executable} -m latencykit -q summary {RAW} {closed}"
    done = subprocess.run(shell, shell=True, capture_output=True, check=False)
    assert done.returncode == status
    expected = b"latencykit: standard output: Bad file descriptor\n" if status else b""
    assert done.stderr == expected


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_notes_that_nobody_can_read_stop_nothing():
    with Path("/dev/full").open("wb") as full:
        done = started("summary", RAW, stdout=subprocess.PIPE, stderr=full)
    assert done.returncode == 0
    assert b"6,852" in done.stdout


def test_no_help_for_a_reader_who_went_away():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = started("--help", stdout=gone, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")


ENDS = """
import atexit, sys
if {before}:
    atexit.register(lambda: print("first to be registered"))
from latencykit.__main__ import program
sys.meta_path.insert(0, type("Late", (), {{"find_spec": lambda *_: (
    setattr(sys, "meta_path", sys.meta_path[1:]), atexit.register(lambda: print("handled")), None)[2]}}))
program()
"""


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("words", "status"), [(["--version"], 0), (["summary", "none"], 2)])
def test_the_program_ends_with_its_status_after_all_exit_handlers(before, words, status):
    done = python("-c", ENDS.format(before=before), *words, check=False)
    assert done.returncode == status
    lines = done.stdout.splitlines()
    assert lines[-1 - before :] == ["handled", "first to be registered"][: 1 + before]


# ---------------------------------------------------------------- interrupted

HALF = """
import os, signal, time
import latencykit.io.writing as out
def write_csv(series, path, percentiles=None):
    path.write_text("half of it")
    os.kill(os.getpid(), signal.{name})
    time.sleep(20)
out.write_csv = write_csv
from latencykit.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_interrupted_writer_leaves_what_was_there(tmp_path, name, status):
    target = tmp_path / "a.csv"
    target.write_text("before")
    done = python("-c", HALF.format(name=name), "-q", "convert", RAW, target, check=False)
    assert (done.returncode, done.stderr) == (status, "interrupted\n" if name == "SIGINT" else "")
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


CUT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
MAIN = "from latencykit.__main__ import main; main()"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["latencykit.cli", "click", "matplotlib.ft2font"])
def test_an_interrupted_import_is_reported_in_a_word(tmp_path, module):
    """Some compiled modules abort the interpreter if interrupted; the signal waits for them."""
    words = ("-q", "chart", RAW, "-o", tmp_path / "a.png")
    done = python("-c", CUT.format(module=module) + MAIN, *words, check=False)
    assert (done.returncode in (130, -signal.SIGINT), done.stderr) == (True, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_imported_before_an_early_interrupt_can_be_reported():
    """Until `main` runs, Ctrl+C gives a traceback: the package must not make that time longer."""
    code = (
        "import sys; before = set(sys.modules); import latencykit.__main__; "
        "print(*sorted(set(sys.modules) - before))"
    )
    root = str(Path(lk.__file__).parents[1])
    done = python("-S", "-c", code, env={"PYTHONPATH": root})
    assert done.stdout.split() == ["__future__", "latencykit", "latencykit.__main__"]


LATE = """
from latencykit.cli.signals import handle_signals
before = signal.getsignal(signal.SIGINT)
with handle_signals():
    try:
        import numpy, time
        time.sleep(9)
    except KeyboardInterrupt:
        print("numpy.linalg" in sys.modules)
print(signal.getsignal(signal.SIGINT) is before)
"""


@pytest.mark.slow
def test_a_signal_waits_until_a_compiled_package_is_imported():
    """And afterwards no handler is left behind."""
    done = python("-c", CUT.format(module="numpy.linalg") + LATE, check=False)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr


# ---------------------------------------------------------------- files that are replaced


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "run=a.hlog", "a.hlog"),
        ("merge", "*.hlog", "-o", "a.hlog"),
        ("merge", "run=a.hlog", "-o", "link.hlog"),
        ("check", "a.hlog", "--unit", "ns", "--slo", "slo.xml", "--junit", "slo.xml"),
        ("report", "a.hlog", "--slo", "slo.html", "-o", "slo.html"),
        ("chart", "a.hlog", "--slo", "slo.png", "-o", "slo.png"),
        ("compare", "--base", "a*.hlog", "--new", "a.hlog", "-o", "a.svg"),
    ],
    ids=" ".join,
)
def test_no_input_is_written_over_by_whatever_name(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("a.hlog").write_bytes(RAW.read_bytes())
    Path("link.hlog").symlink_to("a.hlog")
    Path("a.svg").symlink_to("a.hlog")
    for name in ("slo.xml", "slo.html", "slo.png"):
        Path(name).write_text("99=1s\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "is one of the inputs" in run.refused("-q", *words)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_gets_the_usual(tmp_path):
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("x")
    old.chmod(0o640)
    for path in (old, new):
        with whole(path) as temporary:
            temporary.write_text("y")
    mask = os.umask(0)
    os.umask(mask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (old, new)] == [0o640, 0o666 & ~mask]


def test_a_pipe_is_written_to_not_replaced(run, tmp_path):
    pipe = tmp_path / "out.xml"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run("-q", "check", RAW, "--unit", "ns", "--slo", "99=1s", "--junit", pipe)[0] == 0
    reader.join(60)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert ET.fromstring(got[0]).tag == "testsuites"


@pytest.mark.slow
def test_a_page_of_the_library_is_whole_or_not_there(tmp_path):
    log = tmp_path / "a.html"
    log.write_bytes(RAW.read_bytes())
    with pytest.raises(lk.LatencyKitError, match="is one of the inputs"):
        lk.report(lk.read(log), log, files=[log])
    with pytest.raises(lk.LatencyKitError, match="the directory does not exist; make it first"):
        lk.report(lk.read(log), tmp_path / "no" / "a.html")
    assert log.read_bytes() == RAW.read_bytes()
    assert list(tmp_path.iterdir()) == [log]


# ---------------------------------------------------------------- untrusted names

NAMES = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "$\\frac{$", "$x$",
    "\\n%(x)s{0}", "&amp;]]>",
    "\x1b]0;x\x07\x1b[31m", "\u202egnp.exe", "\udcff\x00", "=1+1", "a" * 250,
]  # fmt: skip


@pytest.fixture
def strange(tmp_path):
    """A log whose tags are made to be obeyed."""
    line = next(line for line in RAW.read_text().splitlines() if re.match(r"[^#\"].*HIST", line))
    path = tmp_path / "in" / "a.hlog"
    path.parent.mkdir()
    lines = [f"Tag={name.replace(' ', '_').replace(',', '')},{line}" for name in NAMES]
    path.write_text("\n".join(lines) + "\n", "utf-8", "surrogateescape")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("chart", "--kind", "percentiles", "-o", "a.svg"),
        ("chart", "--kind", "timeline", "-o", "a.svg"),
        ("chart", "--kind", "ccdf", "-o", "a.svg"),
        ("chart", "--kind", "density", "-o", "a.svg"),
        ("chart", "--kind", "dashboard", "--tag", NAMES[2], "-o", "a.svg"),
        ("chart", "--kind", "heatmap", "--tag", NAMES[0], "-o", "a.svg"),
        ("diagnose", "--tag", NAMES[2], "-o", "a.svg"),
        ("check", "--unit", "ns", "--slo", "99=1s", "--junit", "a.xml"),
        ("report", "-o", "a.html"),
        ("fanout", "--tag", NAMES[3], "-o", "a.svg"),
        ("chart", "-o", "a.pdf"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_no_picture_and_no_page_obeys_a_name(run, tmp_path, monkeypatch, strange, words):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("-q", words[0], strange, *words[1:])
    assert (status, err) == (0, "")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", out)
    (made,) = (path for path in tmp_path.iterdir() if path.is_file())
    if made.suffix in (".svg", ".xml"):
        tags = {element.tag.rpartition("}")[2] for element in ET.parse(made).iter()}
        assert tags
        assert not tags & {"script", "img"}
    if made.suffix == ".html":
        page = made.read_text("utf-8")
        assert "<img src=x" not in page
        assert "<script>alert" not in page


@pytest.mark.parametrize("options", [(), ("--percentiles", "50,99")])
def test_a_csv_of_counts_is_safe_to_look_at_and_to_open(run, tmp_path, strange, options):
    out = tmp_path / "a.csv"
    assert run("-q", "convert", strange, out, *options)[0] == 0
    text = out.read_text("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    tags = {row["tag"] for row in csv.DictReader(io.StringIO(text))}
    assert {"'=1+1", "$x$", r"\x1b]0;x\x07\x1b[31m"} <= tags
    assert len(tags) == len(NAMES)


# ---------------------------------------------------------------- one line for a wrong command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["summary", "no-such-file.hlog"], "cannot be read"),
        (["summary", "no-such-*.hlog"], "no file matches"),
        (["summary", RAW, "--percentiles", "50,abc"], "not a valid percentile"),
        (["summary", RAW, "--interval", "1e400"], "not a valid duration"),
        (["summary", RAW, "--interval", "0s"], "longer than nothing"),
        (["summary", RAW, "--series", "nope"], "has no series"),
        (["summary", TAGGED, "--tag", "nope"], "no line has the tag 'nope'; there are"),
        (["summary", RAW, "--format-in", "nope"], "is not a format"),
        (["diagnose", RAW, "--duration", "0"], "a duration must be positive"),
        (["chart", RAW, "--size", "7"], "a size is"),
        (
            ["chart", RAW, "--kind", "density", "--y", "linear"],
            "--y is for --kind percentiles or timeline",
        ),
        (["chart", RAW, "--kind", "timeline", "--confidence", "0.9"], "--kind percentiles or ccdf"),
        (["chart", RAW, "--term", "--slo", "99=1s"], "--slo is for pictures"),
        (["chart", RAW, "--nines", "3", "-o", "x.html"], "--nines is for pictures"),
        (["chart", RAW, "--runs", "--confidence", "0.9"], "--runs draws the range"),
        (["merge", RAW, "-o", "x.hlog", "--out-unit", "ms"], "--out-unit does not apply to a log"),
        (["report", RAW, "-o", "x.html", "--out-unit", "ms"], "--out-unit is for pictures"),
        (["convert", TAGGED, "x.hgrm"], "holds one series, not 2"),
        (["convert", RAW, "x.json", "--out-unit", "ms"], "--out-unit applies to .hgrm and"),
        (["sumary"], "No such command 'sumary'; did you mean 'summary'?"),
        (["chart"], "Missing argument 'FILES...'; see `latencykit chart --help`"),
        (["chart", RAW, "--kind", "x"], "'x' is not one of"),
        (["chart", RAW, "--fromat", "x"], "No such option"),
        (["chart", RAW, "--expected-interval", "1ns", "-o", "x.png"], "would add 6,8"),
        (
            ["chart", RAW, "--size", "20000x200", "--dpi", "400", "-o", "x.png"],
            "80,000 × 800 pixels are too many",
        ),
        (["check", RAW], "Missing option '--slo'; see `latencykit check --help`"),
        (["diagnose", RAW, "-o", "x.bmp"], "latencykit: x.bmp: charts are written as"),
        (["convert", RAW, "x.xyz"], "latencykit: x.xyz: cannot write .xyz; take"),
        (["--wrong"], "see `latencykit --help`"),
        (["merge", RAW, "-o", "x.csv"], "x.csv: a merged log is written as .hlog"),
        (["chart", RAW, "--term", "--format", "json"], "leave one of them out"),
        (["ctrlz", "-o", "x.bmp", "--", "true"], "charts are written as"),
        (
            ["chart", RAW, "-o", "no/such/x.png"],
            "no/such: the directory does not exist; make it first",
        ),
    ],
)
def test_a_wrong_command_is_one_line(run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    err = run.refused(*words)
    assert says in err.splitlines()[-1]
    lines = err.splitlines()
    assert sum(not line.startswith("note") and "assuming" not in line for line in lines) == 1
    assert list(tmp_path.iterdir()) == []


def test_without_a_command_the_help_is_shown_and_nothing_done(run):
    status, out, err = run()
    assert (status, out) == (2, "")
    assert "Judge:" in err


@pytest.mark.parametrize("spec", ["tm95", "tm99", "IQM"])
def test_a_trimmed_statistic_that_was_asked_for_is_printed(run, spec, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    words = ("summary", RAW, "--unit", "ns", "--trim", spec)
    assert f"\n{spec} = " in run(*words)[1]
    assert any(name.startswith(spec) for name in run.csv(*words)[0])


def test_values_in_a_fixed_unit_have_no_exponent(run):
    out = run("summary", RAW, "--unit", "s", "--out-unit", "ns")[1]
    assert (bool(re.search(r"\d,\d{3},\d{3} ns", out)), "e+" in out) == (True, False)
