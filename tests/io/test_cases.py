"""What readers make of the inputs in `tests/data/cases`, and `diagnose`, a row per fact.

A case is its title, the name of a file with options, its text (or ``like`` that of another case, with the changes of a diff, or
a ``fixture`` of `tests/data/formats`), and the series that are read, in their order, each with rows of ``expression = value``; or
the ``same`` as of another case; or an error. ``note`` is part of a note, ``reported`` of what is said while it is read.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latencykit import diagnose, errors  # noqa: F401 - for the rows
from latencykit.io.source import Source, level_name

CONSTANTS = {"nan": math.nan, "inf": math.inf}
FOLDER = Path(__file__).parents[1] / "data" / "cases"
FILES = sorted(FOLDER.glob("*.txt"))


def cases_of(path: Path) -> dict[str, dict[str, Any]]:
    """The cases of a file by title."""
    cases: dict[str, dict[str, Any]] = {}
    parts = re.split(r"^>>> (.*)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        word, _, rest = head.partition(" ")
        if word == "case":
            assert rest not in cases, f"{path}: two cases have the title {rest}"
            case = cases[rest] = {"series": {}, "path": path}
        elif word == "file":
            name, _, options = rest.partition(" ")
            case |= {"name": name, "options": eval(f"dict({options})"), "text": body}
        elif word == "unended":
            case["text"] = case["text"][:-1]
        elif word == "escaped":
            case["text"] = re.sub(r"\\x(..)", lambda byte: chr(int(byte[1], 16)), case["text"])
        elif word == "fixture":
            case["text"] = Source(FOLDER.parent / "formats" / rest).text()
        elif word in ("same", "reported"):
            case[word] = rest
        elif word == "like":
            case["text"] = changed(cases[rest]["text"], body)
        elif word == "series":
            rows = [line.split(" = ", 1) for line in body.split("\n") if line and line[0] != "#"]
            case["series"][rest] = [(row, eval(value, CONSTANTS)) for row, value in rows]
        else:
            kind, _, match = rest.partition(" ")
            case["error"] = getattr(errors, kind), match or None
    return cases


def changed(text: str, hunks: str) -> str:
    """The text with lines replaced, which it has in one place."""
    text = f"\n{text}\n"
    for hunk in filter(None, hunks.strip("\n").split("\n\n")):
        old, new = (
            "".join(f"{line[1:]}\n" for line in hunk.split("\n") if line[0] == sign)
            for sign in "-+"
        )
        assert text.count(f"\n{old}") == 1, old
        text = text.replace(f"\n{old}", f"\n{new}")
    return text[1:-1]


def text_of(tool: str, title: str) -> str:
    """The input of a case, for tests that change it."""
    return str(cases_of(FOLDER / f"{tool}.txt")[title]["text"])


CASES = [
    pytest.param(case, id=f"{path.stem}: {title}")
    for path in FILES
    for title, case in cases_of(path).items()
]


@pytest.mark.parametrize("case", CASES)
def test_what_is_read(read_text, case):
    if "error" in case:
        kind, match = case["error"]
        with pytest.raises(kind, match=match) as caught:
            read_text(case["text"], case["name"], **case["options"])
        assert "\n" not in str(caught.value)
        return
    said: list[str] = []
    found = read_text(case["text"], case["name"], report=said.append, **case["options"])
    assert case.get("reported", "") in "\n".join(said)
    if "same" in case:
        other = cases_of(case["path"])[case["same"]]
        assert found == read_text(other["text"], other["name"], **other["options"])
        return
    assert list(found) == list(case["series"])
    for name, rows in case["series"].items():
        for expression, value in rows:
            assert fact(found[name], expression, value) == value, f"{name}: {expression}"


def fact(data: Any, expression: str, value: Any) -> Any:
    """The value of a row's expression, as the row writes it where they differ by rounding alone."""
    if expression in ("note", "no note"):
        noted = any(value in note for note in data.run.notes)
        return value if noted == (expression == "note") else data.run.notes
    if expression == "rung":
        return level_name(data)
    if expression.startswith("error "):
        kind, match = value
        with pytest.raises(getattr(errors, kind), match=match or None):
            eval(f"data.{expression[6:]}")
        return value
    seen = eval(f"data.{expression}")
    seen = seen.tolist() if isinstance(seen, (np.ndarray, np.generic)) else seen
    near = isinstance(value, float | list) and pytest.approx(value, rel=1e-12, abs=0, nan_ok=True)
    return value if seen in (value, near) else seen
