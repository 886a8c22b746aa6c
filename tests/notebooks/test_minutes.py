"""The stated minutes follow from words and cells: read, look at each result, answer each question, solve each exercise."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
WORDS, RESULTS, QUESTIONS, EXERCISES = 200, 3, 1, 0.5
"""Per minute: words read, results looked at, questions answered or controls played with, exercises solved."""

_QUESTION = re.compile(r"\b(?:ask|draw_prediction|play|freeze_it|explore)\(")
_EXERCISE = re.compile(r"^(?:check|explain)\(", re.MULTILINE)


def minutes(cells: Iterable[NotebookNode]) -> float:
    """The minutes that cells take; those that slides leave out take none, but exercises do."""
    words = results = questions = exercises = 0
    for cell in cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if cell.cell_type == "code" and _EXERCISE.search(cell.source):
            exercises += 1
        elif kind in ("skip", "notes"):
            continue
        elif cell.cell_type == "markdown":
            words += len(
                re.sub(r"```.*?```|\]\([^)]*\)", " ", cell.source, flags=re.DOTALL).split()
            )
        elif _QUESTION.search(cell.source):
            questions += 1
        else:
            results += bool(cell.outputs)
    return words / WORDS + results / RESULTS + questions / QUESTIONS + exercises / EXERCISES


def cells_of(path: Path) -> list[NotebookNode]:
    import nbformat  # takes seconds where jsonschema checks addresses, too

    cells: list[NotebookNode] = nbformat.read(path, 4).cells
    return cells


@cache
def sections(number: str) -> dict[str, list[NotebookNode]]:
    """Heading → cells of a lesson; what precedes the first heading is "top"."""
    (path,) = NOTEBOOKS.glob(f"{int(number):02d}-*.ipynb")
    parts: dict[str, list[NotebookNode]] = {"top": []}
    for cell in cells_of(path):
        heading = re.match(r"## (.*)", cell.source) if cell.cell_type == "markdown" else None
        if heading:
            parts[heading[1]] = []
        parts[list(parts)[-1]].append(cell)
    return parts


def taken(number: str) -> float:
    """The minutes of a lesson."""
    return minutes(cell for cells in sections(number).values() for cell in cells)


def test_stated_minutes_follow_from_words_and_cells():
    readme = (NOTEBOOKS / "README.md").read_text("utf-8")
    table = dict(re.findall(r"(?m)^\| (\d+) \| .* \| (\d+) \|", readme))
    assert list(table) == [*map(str, range(1, 12)), "13"]
    for number, stated in table.items():
        assert int(stated) == 5 * round(taken(number) / 5), number
        assert f"*{stated} minutes.*" in sections(number)["top"][0].source
    extra = cells_of(NOTEBOOKS / "trimmed-means.ipynb")
    assert f"*{5 * math.ceil(minutes(extra) / 5)} minutes.*" in extra[0].source


def test_sessions_have_slack():
    text = (NOTEBOOKS / "README.md").read_text("utf-8")
    sessions = [
        (numbers.split(", "), int(sum_))
        for numbers, sum_ in re.findall(r"lessons (\d+(?:, \d+)+) \((\d+) minutes", text)
    ]
    assert [numbers for numbers, _ in sessions] == [
        ["1", "2", "3"],
        ["4", "5", "6"],
        ["7", "9", "10"],
        ["8", "13"],
        ["1", "4", "5"],  # what a single session carries, exercises included
    ]
    for numbers, stated in sessions:
        assert stated == sum(5 * round(taken(number) / 5) for number in numbers)
    assert max(stated for _, stated in sessions) <= 0.8 * 90


def test_the_plan_of_45_minutes_is_carried_by_the_parts_it_names():
    text = (NOTEBOOKS / "book/how-to/teach-in-45-minutes.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| \[(\d+) ·[^|]*\]\([^)]*\)([^|]*)\|", text, re.MULTILINE)
    assert sum(int(stated) for stated, _, _ in rows) == 45
    for stated, number, which in rows:
        named = re.findall(r'"([^"]+)"', which)
        names = list(sections(number))
        kept = (
            names[: names.index(named[0]) + 1]
            if " to " in which
            else [*named, *(name for name in names if name == "Your prediction" and number != "12")]
        )
        assert minutes(cell for name in kept for cell in sections(number)[name]) <= int(stated), (
            number
        )
