"""The script that writes slides: every lesson as slides, in a real browser and without a network."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

LESSONS = Path(__file__).parents[2] / "notebooks"
script = runpy.run_path(str(LESSONS / "slides" / "slides.py"))


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    """The folder of slides."""
    pytest.importorskip("nbconvert")
    assert script["main"]([str(LESSONS), str(tmp_path / "slides")]) == 0
    return tmp_path / "slides"


def test_every_lesson_is_shown_without_what_it_skips(slides: Path) -> None:
    import nbformat

    lessons = sorted(LESSONS.glob("[0-9]*.ipynb"))
    assert {path.stem for path in lessons} == {path.stem for path in slides.glob("[0-9]*.html")}
    for path in lessons:
        text = (slides / f"{path.stem}.html").read_text("utf-8")
        title = nbformat.read(path, 4).cells[0].source.partition("\n")[0].removeprefix("# ")
        assert f"<title>{title}</title>" in text
        assert "Every number above is asserted" not in text
        assert "Takeaway" in text
        assert text.count("<section") > 10
    order = (slides / "index.html").read_text("utf-8")
    assert order.index("01-one") < order.index("06-fastest") < order.index("07-detective") < order.index("12-lab")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cells": [{}]}'])
def test_a_corrupt_notebook_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    pytest.importorskip("nbconvert")
    (tmp_path / "01-one-picture-to-unlearn.ipynb").write_text(content)
    assert script["main"]([str(tmp_path), str(tmp_path / "slides")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "01-one-picture-to-unlearn.ipynb: not a Jupyter notebook" in err
    assert "Traceback" not in err


SHOWN = """() => {
    document.activeElement.blur();
    return [document.getElementById("place").innerText,
        document.querySelector("section.shown > div").getBoundingClientRect().toJSON()];
}"""


@pytest.mark.slow
@pytest.mark.needs_tool
def test_slides_fit_a_projector_and_need_no_network(slides: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda asked: asked.url.startswith(("file:", "data:", "blob:")) or wrong.append(asked.url),
    )
    for path in sorted(slides.glob("[0-9]*.html")):
        page.goto(path.as_uri())
        page.wait_for_timeout(300)
        count = page.locator("section").count()
        for k in range(count):
            place, box = page.evaluate(SHOWN)
            assert place == f"{k + 1} / {count}"
            assert box["height"] <= 720, f"{path.name}: slide {k + 1}"
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 1280
            page.keyboard.press("ArrowRight")
    page.goto((slides / "03-you-cannot-average-percentiles.html").as_uri())
    page.keyboard.press("n")
    assert page.evaluate("document.body.classList.contains('notes')")
    page.close()
    assert wrong == []
