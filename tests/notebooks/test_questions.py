"""A lesson asks first: nothing below a question is seen before it is answered, in a kernel, a copy or a page."""

from __future__ import annotations

import importlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from latencykit.cli import lab
from tests.notebooks.conftest import NOTEBOOKS, ran
from tests.notebooks.running import fold

if TYPE_CHECKING:
    from pathlib import Path

LESSONS = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
ASKS = re.compile(r"\b(ask|draw_prediction)\(")


def test_cells_below_a_question_run_once_it_is_answered(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(shell, "above = 1")
    assert ran(shell, "import gate; gate.close('how slow?')")
    assert not ran(shell, "below = 2")
    assert "below" not in shell.user_ns
    assert "Answer the question above first" in capsys.readouterr().out
    assert ran(shell, "above = 1")  # what ran before may run again, and so may the question
    assert ran(shell, "import gate; gate.close('how slow?')")
    importlib.import_module("gate").answered("how slow?")
    assert ran(shell, "below = 2")
    assert shell.user_ns["below"] == 2


def test_two_questions_wait_for_two_answers_and_a_lecturer_can_skip_them(shell: Any) -> None:
    asks = "gate.close('worst'); gate.close('best', lambda: shown.append('below'))"
    assert ran(shell, f"import gate; from gate import skip; shown = []; {asks}")
    gate = importlib.import_module("gate")
    gate.answered("worst")
    assert not ran(shell, "x = 1")
    assert ran(shell, "skip()")
    assert ran(shell, "x = 1; assert shown == ['below']")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_asks_and_the_answer_comes_back(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    asked = re.findall(r"^(my_\w+) = ask\(", code, re.MULTILINE)
    assert asked
    assert [name for name in asked if f"you_said({name}, " not in code] == []
    assert re.findall(r"^my_(?!explanation)\w+(?:, my_\w+)* = (?!ask\()", code, re.MULTILINE) == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_copy_shows_nothing_below_its_first_question(path: Path) -> None:
    notebook = json.loads(lab._unanswered(path.name, path.read_bytes()))
    cells = notebook["cells"]
    assert [cell["id"] for cell in cells if cell.get("outputs")] == []
    assert len({cell["id"] for cell in cells}) == len(cells)
    first = next(k for k, cell in enumerate(cells) if cell["cell_type"] == "code" and ASKS.search("".join(cell["source"])))
    collapsed, between = False, []
    for cell in cells[first + 1 :]:
        source = "".join(cell["source"])
        if source.startswith("## "):
            collapsed = cell["metadata"]["jp-MarkdownHeadingCollapsed"]
            assert source.count("\n") == 0  # JupyterLab collapses what is below the cell
        if not collapsed:
            between.append(cell)
    # Before the first collapsed heading there are further questions, and what they need.
    assert any(ASKS.search("".join(cell["source"])) for cell in between[-3:]) or not between


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_code_is_folded_after_the_first_lesson_and_exercises_are_open(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, 4)
    before = nbformat.writes(notebook)
    fold(notebook)
    assert nbformat.writes(notebook) == before
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and "self-check" not in cell.metadata.get("tags", [])]
    shown = [cell for cell in code if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    assert len(shown) == len(code) if path.name.startswith("01") else 4 <= len(shown) < len(code) / 2
    assert all("hide-input" in cell.metadata["tags"] for cell in code if cell not in shown)
    assert sum("check(" in cell.source or "explain(" in cell.source for cell in shown) == 4


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_no_slide_shows_a_result_below_its_question(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    asked = False
    for cell in cells:
        kind = cell["metadata"].get("slideshow", {}).get("slide_type", "-")
        asked = asked and kind not in ("slide", "subslide")
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and kind != "skip":
            assert not (asked and cell["outputs"] and not ASKS.search(source)), source
            asked |= bool(ASKS.search(source))


def test_only_lessons_are_copied_without_their_outputs() -> None:
    for name in ("README.md", "solutions/01-solutions.ipynb"):
        content = (NOTEBOOKS / name).read_bytes()
        assert lab._unanswered(name, content) == content
