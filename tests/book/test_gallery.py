"""Every chart has a page in the gallery, whose code draws it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import matplotlib.image
import pytest

import latencykit as lk

BOOK = Path(__file__).resolve().parents[2] / "notebooks" / "book"
SCRIPTS = sorted((BOOK / "gallery").glob("*.py"))
SOURCES = (BOOK / "pages.py", *Path(lk.__file__).parent.rglob("*.py"))

_spec = importlib.util.spec_from_file_location("pages", BOOK / "pages.py")
assert _spec is not None
assert _spec.loader is not None
pages = importlib.util.module_from_spec(_spec)
sys.modules["pages"] = pages
_spec.loader.exec_module(pages)


def changed(path: Path) -> float:
    return path.stat().st_mtime


def test_every_chart_has_its_page():
    assert {path.stem for path in SCRIPTS} == set(lk.plot.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_code_of_a_page_draws_its_chart(script: Path, tmp_path: Path):
    title, text, command, code = pages.gallery_page(script)
    assert title
    assert len(text) > 80
    assert f"lk.plot.{script.stem}(" in code
    assert not command or command.startswith("$ latencykit ")
    drawn = script.with_suffix(".png")  # where the site was built after the last change
    if not drawn.exists() or drawn.stat().st_mtime < max(map(changed, (script, *SOURCES))):
        drawn = tmp_path / "chart.png"
        pages.draw(script, drawn)
    picture = matplotlib.image.imread(drawn)[..., :3]
    assert picture.shape[0] > 400
    assert picture.std() > 0.02  # not an empty page


def test_headings_increase_by_one_level_at_a_time():
    assert pages._in_order("# a\n#### b\n#### c\n## d\n```sh\n# no heading\n```\n### e\n") == (
        "# a\n## b\n## c\n## d\n```sh\n# no heading\n```\n### e\n"
    )
