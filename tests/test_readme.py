"""The README: its notebook session prints what it says, and its link to the page is that of the site."""

from __future__ import annotations

import doctest
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_notebook_session_in_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(
        str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted == 10
    assert result.failed == 0


def test_the_first_screen_links_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    first = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]
    assert f"({project['urls']['Documentation']}try/)" in first
