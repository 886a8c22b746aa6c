"""How lessons teach, and that every number in their prose is in their code."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
import pytest
from tests.notebooks.conftest import NOTEBOOKS, beside, ran
import nbformat
from tests.notebooks.prose import lessons, unchecked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


QTI = "{http://www.imsglobal.org/xsd/imsqti_v2p1}"


@pytest.fixture
def quizzes() -> Iterator[Any]:
    with beside("quizzes") as module:
        yield module


def _choices(block: str) -> list[tuple[str, str, str]]:
    """Mark, text and feedback of a GIFT question, by Moodle's rules for escapes."""
    found = re.findall(r"^\t([=~])((?:\\.|[^#\\])*)#(.*)$", block, re.MULTILINE)
    return [(mark, re.sub(r"\\(.)", r"\1", text), re.sub(r"\\(.)", r"\1", said)) for mark, text, said in found]


def test_every_question_has_one_right_choice_and_each_wrong_one_its_misconception(quizzes: Any) -> None:
    exercises = quizzes.exercises()
    assert {one.name.split()[1].rstrip(",") for one in exercises} == set(quizzes.EXERCISES)
    assert sum(len(one.wrong) for one in exercises) >= 290
    assert len(quizzes.INVENTORY) == 24
    for one in (*exercises, *quizzes.INVENTORY, *quizzes.SECTIONS):
        choices = [one.right, *(choice for choice, _ in one.wrong)]
        assert len(set(choices)) == len(choices) >= 4, one.name
        assert all(len(text) > 10 for _, text in one.wrong), one.name


def test_gift_and_qti_say_the_same(quizzes: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quizzes.main(tmp_path)
    said = capsys.readouterr().out
    assert "inventory: 24 questions" in said
    assert "sections: 6 questions" in said
    everything = {"exercises": quizzes.exercises(), "inventory": quizzes.INVENTORY, "sections": quizzes.SECTIONS}
    for name, items in everything.items():
        blocks = [block for block in (tmp_path / f"{name}.gift").read_text("utf-8").split("\n\n") if block.strip()]
        assert [_choices(block) for block in blocks] == [
            [("=", one.right, "Right."), *(("~", choice, text) for choice, text in one.wrong)] for one in items
        ]
        with zipfile.ZipFile(tmp_path / f"{name}-qti.zip") as package:
            listed = re.findall(r'<file href="([^"]+)"', package.read("imsmanifest.xml").decode())
            assert sorted(package.namelist()) == sorted(["imsmanifest.xml", *listed])
            for one, file in zip(items, listed, strict=True):
                item = ElementTree.fromstring(package.read(file))
                shown = {choice.get("identifier"): choice.text for choice in item.iter(f"{QTI}simpleChoice")}
                assert list(shown.values()) == [one.right, *(choice for choice, _ in one.wrong)]
                assert shown[item.find(f".//{QTI}correctResponse/{QTI}value").text] == one.right  # type: ignore[union-attr]
                assert {said.get("identifier") for said in item.iter(f"{QTI}modalFeedback")} == set(shown)


@pytest.mark.parametrize("way", ["environment", "skip"])
def test_a_teacher_opens_every_gate(way: str, shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "environment":
        monkeypatch.setenv("LATENCYKIT_TEACH", "1")
    cells = ["import gate; from gate import skip; gate.close('one')", "skip(all=True)", "gate.close('two')", "x = 1"]
    assert all(ran(shell, cell) for cell in cells if way == "skip" or "skip(" not in cell)
    assert shell.user_ns["x"] == 1


def test_each_lesson_has_its_note_for_teachers() -> None:
    parts = re.split(r"^## ", (NOTEBOOKS / "teaching.md").read_text("utf-8"), flags=re.MULTILINE)
    notes = {int(part.split(" ")[0]): part for part in parts[1:] if part[0].isdigit()}
    assert list(notes) == list(range(1, 14)) == [int(path.name[:2]) for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))]
    minutes = dict(re.findall(r"^\| (\d+) \| .* \| (\d+) \|", (NOTEBOOKS / "README.md").read_text("utf-8"), re.MULTILINE))
    for number, note in notes.items():
        for name in ("Objectives", "Key points"):
            assert note.split(f"**{name}**: ")[1].split("\n")[0].count(";") == 2, (number, name)
        assert "**For** " in note
        assert "**Needs** " in note
        assert "**Instructor's note**: " in note
        if str(number) in minutes:  # a fifth of the session is for talking
            stated = int(re.search(r"\*\*In class\*\* (\d+) minutes", note)[1])  # type: ignore[index]
            assert stated == 5 * -(-int(minutes[str(number)]) * 6 // 25)


# ---------------------------------------------------------------- prose

def test_every_number_in_prose_is_in_the_code():
    assert [f"{name}: {line}" for name, cells, solved in lessons() for line in unchecked(cells, solved)] == []


def test_the_scan_finds_a_number_that_no_code_contains():
    said = "In 2016, the p99 of lesson 3 was 0.344 ms for 63 % of 1,500 requests, up to p99.977; {}"
    code = nbformat.v4.new_code_cell('assert share == 0.63 and parsed("1_500") == 1500 and (median, limit) == (344_000, 99.977)')
    for text, count in (("", 0), ("5.7 s", 1), ("64 %", 1), ("1,501", 1), ("344 s", 0), ("p99.976", 1), ("p99.9", 0)):
        assert len(unchecked([nbformat.v4.new_markdown_cell(said.format(text)), code])) == count, text
