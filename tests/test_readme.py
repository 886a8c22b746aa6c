"""The README: its session prints what it says, its commands run, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_the_notebook_cells_in_the_readme(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each, as somebody pastes it, prints the text that follows it."""
    monkeypatch.chdir(ROOT)
    cells = re.findall(r"```python\n(.*?)```\n.*?```text\n(.*?)```", README, re.DOTALL)
    assert len(cells) == README.count("```python") == 2
    names: dict[str, object] = {}
    for cell, text in cells:
        exec(cell, names)
        assert capsys.readouterr().out == text


def commands() -> list[str]:
    """The commands of the README's table that name data of the repository."""
    rows = re.findall(r"^\| `latencykit ([^`]+)` \|", README, re.MULTILINE)
    assert len(rows) >= 15
    return [row for row in rows if " data/" in row or row == "formats"]


@pytest.mark.slow
@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_table_runs_as_it_stands(line, tmp_path, monkeypatch, run):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(*shlex.split(line))
    assert status in (0, 1)
    assert out or len(list(tmp_path.iterdir())) == 2


def test_no_link_leads_nowhere() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert "example/" not in README + project
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (ROOT / target).exists(), target
