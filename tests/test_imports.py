"""What is imported only where it is needed: a small command takes little longer than its imports."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import DATA, RAW, python

if TYPE_CHECKING:
    from pathlib import Path

CSV = DATA / "formats" / "csv" / "intended-starts" / "samples.csv"
COMMAND = "from latencykit.cli import main; main(['-q', *sys.argv[1:]])"
TOTAL = "import latencykit as lk; lk.read(sys.argv[1]).histogram()"
READ = "import latencykit as lk; lk.read(sys.argv[1], format='wrk')"
DRAW = """
    import latencykit as lk
    from pathlib import Path
    from latencykit import plot
    from latencykit.plot.files import save
    for chart in (plot.percentiles, plot.density, plot.ccdf, plot.dashboard):
        save(chart, lk.Histogram.of([1, 2, 3]), Path("x.png"))
"""


def imported(code: str, words: tuple[object, ...], folder: Path) -> list[str]:
    """The modules that are loaded after some code."""
    script = f"import sys\ntry:\n    {code.strip()}\nexcept SystemExit: pass\nprint('', *sys.modules, sep='\\n.')"
    alone = os.environ | {"XDG_RUNTIME_DIR": str(folder)}  # what other tests froze stays frozen
    shown = python("-c", script, *words, cwd=folder, env=alone).stdout
    return re.findall(r"^\.(.*)$", shown, re.MULTILINE)


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


HEAVY = "scipy|pandas|dask|pyarrow"
LATE = r"matplotlib|importlib\.metadata|zipfile|logging|.*percentile_lines"


@pytest.mark.parametrize(
    ("code", "words", "unneeded"),
    [
        ("import latencykit", (), r"(numpy|pandas|scipy|matplotlib|click)\b"),
        ("import latencykit.cli", (), r"(numpy|pandas|scipy|matplotlib)\b"),
        slow("import latencykit.views.page", (), "matplotlib$"),
        slow(DRAW, (), r"matplotlib\.pyplot|scipy\.stats|pandas"),
        slow(READ, (DATA / "formats/wrk/ctrlz/stdout.txt",), r"latencykit\.io\.tools\.(?!wrk$)"),
        slow(TOTAL, (RAW,), ".*distributed"),
        slow(COMMAND, ("summary", RAW), f"({HEAVY}|matplotlib)$|.*distributed"),
        slow(COMMAND, ("summary", CSV), rf"({HEAVY}|{LATE})$|.*history|.*\.judge$"),
        slow(COMMAND, ("diagnose", RAW), f"({HEAVY}|matplotlib)$"),
        slow(COMMAND, ("diagnose", CSV), r".*history|.*\.judge$"),
        slow(COMMAND, ("report", CSV, "-o", "x.html"), r".*history|.*\.judge$"),
        slow(
            COMMAND, ("chart", RAW, "-o", "x.png"), rf"({HEAVY}|matplotlib\.pyplot)$|.*distributed"
        ),
    ],
)
def test_what_is_not_needed_is_not_imported(tmp_path, code, words, unneeded):
    names = imported(code, words, tmp_path)
    assert "latencykit" in names
    assert [name for name in names if re.match(unneeded, name)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "most"),
    [(("chart", "--help"), 14), (("chart", RAW, "-o", "x.png"), 51), (("diagnose", RAW), 64)],
)
def test_a_command_enters_few_modules(tmp_path, words, most):
    names = imported("from latencykit.cli import main; main(sys.argv[1:])", words, tmp_path)
    entered = [name for name in names if name.partition(".")[0] == "latencykit"]
    assert len(entered) <= most, sorted(entered)
    assert "latencykit.distributed.executors" not in entered
