"""Lessons as slides: a notebook becomes one HTML file that needs neither a network nor a kernel.

    python notebooks/slides/slides.py [FOLDER OF LESSONS] [FOLDER OF SLIDES]

Cells are grouped by the slide types that JupyterLab's property inspector sets (``slideshow`` in
their metadata): a slide or subslide begins a slide, ``skip`` leaves a cell out, ``notes`` are for
the speaker. Reveal.js, which nbconvert's slides need, is loaded from the network by default.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latencykit._files import whole
from latencykit.errors import CorruptInputError, LatencyKitError, MissingPackageError

if TYPE_CHECKING:
    from latencykit._typing import JSONObject

_LIVE = "application/vnd.latencykit.live+html"
"""An output of a lesson that works without a kernel, with its picture as a fallback."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<main>{body}</main>
<nav aria-label="Slides"><button id="back" aria-label="Previous slide">←</button>
<output id="place"></output><button id="next" aria-label="Next slide">→</button></nav>
<script>{script}</script>
</html>
"""


def slides_html(notebook: JSONObject, controls: str = "") -> str:
    """Return the slides of a notebook (its JSON, with outputs) as one HTML file.

    `controls` is the JavaScript module whose `mountAll` brings the notebook's controls to life.

    Raises
    ------
    MissingPackageError
        Without nbconvert, which renders Markdown and code.
    """
    slides: list[list[str]] = []
    title = "Slides"
    for cell in notebook["cells"]:
        kind = cell["metadata"].get("slideshow", {}).get("slide_type", "-")
        if kind == "skip":
            continue
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and source.startswith("# "):
            title = source.partition("\n")[0].removeprefix("# ")
        if kind in ("slide", "subslide") or not slides:
            slides.append([])
        content = _markdown(source) if cell["cell_type"] == "markdown" else _code(cell, source)
        if kind == "notes":
            content = f"<aside>{content.replace('<details>', '<details open>')}</aside>"
        slides[-1].append(content)
    body = "\n".join(
        f'<section aria-label="Slide {k} of {len(slides)}"><div>{"".join(parts)}</div></section>'
        for k, parts in enumerate(slides, 1)
    )
    if controls:
        body += f'<script type="module">{controls}\nmountAll();</script>'
    return _page(title, body)


def _page(title: str, body: str) -> str:
    here = Path(__file__).parent
    style, script = (here / f"slides.{kind}" for kind in ("css", "js"))
    style, script = style.read_text("utf-8"), script.read_text("utf-8")
    return _PAGE.format(title=escape(title), style=style, script=script, body=body)


def write_slides(notebooks: list[Path], folder: Path) -> Path:
    """Write the slides of each notebook and an index into a folder; return the index."""
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for path in notebooks:
        try:
            controls = path.with_name("controls.js")
            script = controls.read_text("utf-8") if controls.exists() else ""
            notebook = json.loads(path.read_text("utf-8"))
            text = slides_html(notebook, script)
        except (ValueError, KeyError, TypeError) as error:
            expected = "its JSON with a list of cells"
            raise CorruptInputError(
                path, None, "not a Jupyter notebook of format 4", expected
            ) from error
        with whole(folder / f"{path.stem}.html") as temporary:
            temporary.write_text(text, "utf-8")
        title = text.partition("<title>")[2].partition("</title>")[0]
        links.append(f'<li><a href="{escape(path.stem)}.html">{title}</a></li>')
    index = folder / "index.html"
    body = f"<section><div><h1>Why averages lie</h1><ul>{''.join(links)}</ul></div></section>"
    with whole(index) as temporary:
        temporary.write_text(_page("Why averages lie", body), "utf-8")
    return index


def _markdown(text: str) -> str:
    try:
        from nbconvert.filters.markdown_mistune import markdown2html_mistune
    except ImportError as error:
        raise MissingPackageError("nbconvert", "slides", "lab") from error
    return str(markdown2html_mistune(text)).replace(".ipynb", ".html")


def _code(cell: JSONObject, source: str) -> str:
    """A code cell and its outputs, each in its richest form that needs no kernel."""
    from nbconvert.filters.highlight import Highlight2HTML

    highlighter: Any = Highlight2HTML  # untyped
    code = str(highlighter(pygments_lexer="python")(source))
    if cell["metadata"].get("jupyter", {}).get("source_hidden"):
        code = f"<details><summary>Code</summary>{code}</details>"
    parts = [code]
    for output in cell.get("outputs", ()):
        data = {name: _joined(value) for name, value in output.get("data", {}).items()}
        if _LIVE in data:
            parts.append(f'<div class="live">{data[_LIVE]}</div>')
        elif "image/png" in data:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
            png = data["image/png"].replace("\n", "")
            parts.append(f'<img alt="{escape(alt)}" src="data:image/png;base64,{png}">')
        elif "text/html" in data:
            parts.append(f'<div class="table">{data["text/html"]}</div>')
        elif text := _joined(output.get("text", data.get("text/plain", ""))):
            parts.append(f"<pre>{escape(text)}</pre>")
    return "".join(parts)


def _joined(text: object) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def main(words: list[str]) -> int:
    """Write the slides and print their index; an error is one line."""
    lessons, folder = (*map(Path, words), *(Path("notebooks"), Path("build/slides"))[len(words) :])[:2]
    paths = sorted(lessons.glob("[0-9]*.ipynb"))
    if not paths:
        print(f"slides.py: no lessons in {lessons}; expected [FOLDER OF LESSONS] [FOLDER OF SLIDES]", file=sys.stderr)
        return 2
    try:
        print(write_slides(paths, folder))
    except LatencyKitError as error:
        print(f"slides.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
