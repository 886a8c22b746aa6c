"""Every command of the how-to pages is run, and prints what the page says."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.book.commands import HOW_TO, agrees, pages, run, steps
from tests.ctrlz.worlds import live

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = {"from-wrk-to-p99.99": "wrk"}
"""Page → the program that it needs besides latencykit."""

PACKAGES = {("gate-your-repository", "python slowest.py"): "duckdb"}
"""Page and command → the package that it shows, which the extra `test` lacks."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.needs_tool] if path.stem in TOOLS else []
        )
        for path in pages()
    ],
)
@live
def test_a_page_prints_what_it_says(page: Path, tmp_path_factory: pytest.TempPathFactory):
    tool = TOOLS.get(page.stem)
    if tool is not None and shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    ran = list(run(page, tmp_path_factory.mktemp("page")))
    assert len(ran) >= 1
    missing = {}
    for step, printed in ran:
        package = PACKAGES.get((page.stem, step.command))
        if package is not None and find_spec(package) is None:
            missing[step.command] = package
            continue
        assert agrees(step.expected, printed), f"$ {step.command}\n{printed}"
    if missing:
        pytest.skip(f"all but {', '.join(missing)} agree; missing: {', '.join(missing.values())}")


def test_every_page_is_in_the_list_and_shows_commands():
    listed = re.findall(
        r"^[\w.-]+$",
        (HOW_TO / "index.md").read_text("utf-8").split("```{toctree}")[1],
        re.MULTILINE,
    )
    assert sorted(listed) == [path.stem for path in pages()]


def test_output_that_differs_is_noticed():
    assert agrees("a 1\n...\nb", "a 1\nx\ny\nb\n")
    assert agrees("took ... s", "took 3.1 s")
    assert not agrees("a 1\nb", "a 2\nb")
    assert not agrees("a\n", "a\nb\n")
    assert not agrees("", "an error")


def test_commands_over_several_lines_and_without_output():
    text = "```console\n$ one \\\n  two\nout\n$ three\n```\n"
    assert steps(text) == [[("one \\\n  two", "out\n"), ("three", "")]]
