"""Numbers in the prose of a lesson that neither its code states nor one of its assertions checks.

``python -m tests.notebooks.prose`` lists them for every lesson.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbformat import NotebookNode

_NO_CLAIM = re.compile(
    r"""```.*?``` | `[^`]*` | \]\([^)]*\)          # code, and where a link leads
    | ^\#\ \d+\ · | \[\d+\ · | ^\*\d+\ minutes\.\*  # the number of a lesson, and how long it takes
    | ^(?:\#\#\#\ )?\d+\.\                       # the number of an item or a section
    | [Ll]essons?\ \d+(?:(?:,|\ and|\ to)\ \d+)*
    | ^\*\*\d+\.\d\ \(explain.*                     # what somebody says in an exercise
    | ^\*\*\d+\.\d\ \( | [Ee]xercises?\ \d+\.\d     # the number of an exercise
    | \b(?:19|20)\d\d\b                             # a year
    | \bp(?:50|75|80|90|95|98|99(?:\.(?:9{1,4}|95|995))?)(?!\.?\d)  # a customary percentile
    | \b(?!p)[A-Za-z]\d+\b | \bHTTP/[12]                 # a name
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"(?<![\w.])p?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)")
_SCALES = {
    re.compile(r"\s*(?:%|per cent)"): (1.0, 100.0),  # a share asserts a percentage
    re.compile(r"\s*(?:ns|µs|us|ms|s|seconds?|min|h)\b"): (1.0, 1e3, 1e6, 1e9, 1e-3, 1e-6, 1e-9),  # and nanoseconds a time
}


def unchecked(cells: Iterable[NotebookNode], also: Iterable[NotebookNode] = ()) -> list[str]:
    """Return every number in prose, with the words before it, that no code of `cells` or `also` contains.

    Code contains what the lesson assumes, and what its self-check asserts.
    """
    cells = list(cells)
    known = {value for cell in (*cells, *also) if cell.cell_type == "code" for value in _constants(cell.source)}
    return [
        f"…{text[max(0, hit.start() - 40) : hit.end() + 12]!r}"
        for text in map(_claims, filter(None, map(prose, cells)))
        for hit in _NUMBER.finditer(text)
        if not _contained(float(hit[1].replace(",", "")), text[hit.end() :], known)
    ]


def prose(cell: NotebookNode) -> str:
    """What a reader reads of a cell: its text, and of code the alternative text of its picture."""
    if cell.cell_type == "markdown":
        return str(cell.source)
    return str(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))


def _claims(text: str) -> str:
    """The text without numbers that claim nothing; each of their characters is a space."""
    return _NO_CLAIM.sub(lambda hit: " " * len(hit[0]), text)


def _constants(source: str) -> Iterator[float]:
    """Every number in code, also those within its strings."""
    for node in ast.walk(ast.parse(re.sub(r"^%.*", "", source, flags=re.MULTILINE))):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            yield float(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for text in re.findall(r"\d[\d,_]*(?:\.\d+)?", node.value):
                yield float(text.replace(",", "").replace("_", ""))


def _contained(stated: float, unit: str, known: set[float]) -> bool:
    scales = next((scales for name, scales in _SCALES.items() if name.match(unit)), (1.0,))
    return any(abs(stated - value * scale) <= 1e-9 * stated for value in known for scale in scales)


def lessons() -> Iterator[tuple[str, list[NotebookNode], list[NotebookNode]]]:
    """Name, cells, and the cells of the solutions of every lesson."""
    import nbformat

    folder = Path(__file__).resolve().parents[2] / "notebooks"
    for path in sorted(folder.glob("*.ipynb")):
        solved = folder / "solutions" / f"{path.name[:2]}-solutions.ipynb"
        yield path.name, nbformat.read(path, 4).cells, nbformat.read(solved, 4).cells if solved.exists() else []


if __name__ == "__main__":
    for name, cells, solved in lessons():
        for line in unchecked(cells, solved):
            sys.stdout.write(f"{name}: {line}\n")
