"""Pages of the site print what they say, and every chart has one."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.image
import pytest

import latencykit as lk
from tests.book.commands import HOW_TO, agrees, pages, run, steps
from tests.ctrlz.worlds import live

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


# ---------------------------------------------------------------- the gallery

BOOK = Path(__file__).resolve().parents[2] / "notebooks" / "book"
SCRIPTS = sorted((BOOK / "gallery").glob("*.py"))
SOURCES = (BOOK / "pages.py", *Path(lk.__file__).parent.rglob("*.py"))

_spec = importlib.util.spec_from_file_location("pages", BOOK / "pages.py")
assert _spec is not None
assert _spec.loader is not None
builder = importlib.util.module_from_spec(_spec)
sys.modules["pages"] = builder
_spec.loader.exec_module(builder)


def changed(path: Path) -> float:
    return path.stat().st_mtime


def test_every_chart_has_its_page():
    assert {path.stem for path in SCRIPTS} == set(lk.plot.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_code_of_a_page_draws_its_chart(script: Path, tmp_path: Path):
    title, text, command, code = builder.gallery_page(script)
    assert title
    assert len(text) > 80
    assert f"lk.plot.{script.stem}(" in code
    assert not command or command.startswith("$ latencykit ")
    drawn = script.with_suffix(".png")  # where the site was built after the last change
    if not drawn.exists() or drawn.stat().st_mtime < max(map(changed, (script, *SOURCES))):
        drawn = tmp_path / "chart.png"
        builder.draw(script, drawn)
    picture = matplotlib.image.imread(drawn)[..., :3]
    assert picture.shape[0] > 400
    assert picture.std() > 0.02  # not an empty page


def test_headings_increase_by_one_level_at_a_time():
    assert builder._in_order("# a\n#### b\n#### c\n## d\n```sh\n# no heading\n```\n### e\n") == (
        "# a\n## b\n## c\n## d\n```sh\n# no heading\n```\n### e\n"
    )
