"""Every lesson and every solution, run as a learner runs them: from the wheel, in a folder made by ``latencykit lab``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import needs_package
from tests.notebooks.running import described

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbformat import NotebookNode

    from tests.notebooks.running import Runner

pytestmark = [pytest.mark.slow, needs_package("ipykernel", "test")]

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "notebooks", ROOT / "notebooks/solutions")  # in `book` the site's copies appear when it is built
CONTROLS = re.compile(r"\b(?:ask|draw_prediction|play|freeze_it|you_said)\(")
LESSONS = sorted(path.relative_to(ROOT / "notebooks").as_posix() for folder in FOLDERS for path in folder.glob("*.ipynb"))


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_from_the_wheel_without_a_word_on_stderr(name: str, executed: Callable[[str], NotebookNode]):
    noise = [out.text for cell in executed(name).cells for out in cell.get("outputs", []) if out.get("name") == "stderr"]
    assert noise == []


def test_the_kernel_ran_the_installed_package(desk: Path, installed: Path, runner: Runner):
    import nbformat

    asked = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import latencykit; print(latencykit.__file__)")])
    assert runner.run(asked, desk).cells[0].outputs[0].text.startswith(str(installed))


@pytest.mark.parametrize("name", LESSONS)
def test_a_committed_lesson_reads_well_without_being_run(name: str):
    import nbformat

    cells = nbformat.read(ROOT / "notebooks" / name, 4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert max(len(cell.source.splitlines()) for cell in code) <= 14  # a simulation that is read as a whole
    assert all(len(line) <= 98 for cell in code for line in cell.source.splitlines())
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if any("image/png" in out.get("data", {}) for out in cell.get("outputs", [])):
            assert described(after), cell.source
            alts = {out.metadata["image/png"]["alt"] for out in cell.outputs if "image/png" in out.get("data", {})}
            assert alts == {cell.metadata["mystnb"]["image"]["alt"]} == {described(after)}


@pytest.mark.parametrize("name", [name for name in LESSONS if name[0].isdigit()])
def test_a_lesson_has_the_frame_of_all(name: str):
    import nbformat

    cells = nbformat.read(ROOT / "notebooks" / name, 4).cells
    text = "\n".join(cell.source for cell in cells)
    wanted = ["\n## Your prediction", "**Takeaway: ", "\n## What just happened", "\n## Exercises", "\n## Self-check"]
    assert [part for part in wanted if part not in text] == []
    checks = [cell for cell in cells if cell.cell_type == "code" and re.search(r"^\s*assert ", cell.source, re.MULTILINE)]
    assert checks
    assert all({"self-check", "hide-cell"} <= set(cell.metadata["tags"]) and cell.metadata["jupyter"]["source_hidden"] for cell in checks)
    assert text.count('explain("') == 1


def test_every_exercise_is_asked_once_and_solved_once():
    import nbformat

    source = "\n".join((ROOT / "notebooks" / name).read_text("utf-8") for name in ("exercises.py", "lessons.py"))
    known = re.findall(r'^    "(\d+\.\d)": (?:"|Exercise)', source, re.MULTILINE)
    asked, solved = [], []
    for name in LESSONS:
        text = "\n".join(cell.source for cell in nbformat.read(ROOT / "notebooks" / name, 4).cells if cell.cell_type == "code")
        (solved if "/" in name else asked).extend(re.findall(r'(?:check|explain|model_answer)\("([^"]+)"', text))
    assert sorted(asked) == sorted(solved) == sorted(known)


def test_the_notebooks_are_small():
    sizes = [path.stat().st_size for folder in FOLDERS for path in folder.iterdir() if path.is_file()]
    assert 1_000_000 < sum(sizes) < 6_000_000


@pytest.mark.needs_tool
def test_controls_are_live_where_widgets_are(desk: Path, runner: Runner):
    import nbformat

    pytest.importorskip("ipywidgets")
    cells = [
        "import os; del os.environ['LATENCYKIT_STATIC']",
        "from lessons import *",
        "play(sharing_panel, [{}, {'together': 0}], together=[0, 1])",
    ]
    asked = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    shown = [kind for out in runner.run(asked, desk).cells[-1].outputs for kind in out.get("data", {})]
    restored = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import os; os.environ['LATENCYKIT_STATIC'] = '1'")])
    runner.run(restored, desk)
    assert "application/vnd.jupyter.widget-view+json" in shown


@pytest.mark.needs_tool
@pytest.mark.parametrize("name", [name for name in LESSONS if name[0].isdigit()])
def test_a_gated_lesson_stops_at_each_question_and_then_runs_on(name: str, desk: Path, runner: Runner):
    """Up to its last control: behind that, it is the lesson that runs without controls, too."""
    import nbformat

    pytest.importorskip("anywidget")
    code, asked = nbformat.v4.new_code_cell, nbformat.read(desk / name, 4)
    cells, stopped = [code("import os; del os.environ['LATENCYKIT_STATIC']")], []
    last = max(k for k, cell in enumerate(asked.cells) if cell.cell_type == "code" and CONTROLS.search(cell.source))
    for cell in asked.cells[: last + 1]:
        cells.append(cell)
        if cell.cell_type == "code" and re.search(r"\b(?:ask|draw_prediction)\(", cell.source):
            stopped.append(code(f"below = {len(stopped)}", metadata={"tags": ["raises-exception"]}))
            cells += [stopped[-1], code("skip()")]
    asked.cells = cells
    try:
        runner.run(asked, desk)
    finally:
        runner.run(nbformat.v4.new_notebook(cells=[code("import os; os.environ['LATENCYKIT_STATIC'] = '1'")]), desk)
    assert stopped
    assert all(cell.outputs[0].get("ename") == "UnansweredError" for cell in stopped)
