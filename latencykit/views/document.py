"""The HTML document of a page: style, script, security policy, and a frame for notebooks."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from latencykit._text import attribute, esc, script_json

if TYPE_CHECKING:
    from latencykit._typing import JSONObject

SPOKEN = "<div id='spoken' class='spoken' role='status' aria-live='polite'></div>"
"""Texts for screen readers."""

_MODULES = (
    "numbers",
    "data",
    "support",
    "draw",
    "timeline",
    "curve",
    "heat",
    "fanout",
    "rest",
    "controls",
    "main",
)

_BETWEEN_MODULES = re.compile(
    r"^import [^;]*;\n|^export (?=(?:async )?function|const)|^ *//.*\n|^ +", re.MULTILINE
)


def bundle(data: object, page: str) -> tuple[dict[str, str], dict[str, object]]:
    """Return what a notebook keeps: a page in a frame, and a picture for viewers that show none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from latencykit.plot import percentiles
    from latencykit.plot.files import figure_of
    from latencykit.plot.label_layout import alt_text

    picture, figure = io.BytesIO(), figure_of(percentiles, data, size=(800, 480), dpi=80)
    FigureCanvasAgg(figure).print_png(picture)  # type: ignore[no-untyped-call]
    png, alt = base64.b64encode(picture.getvalue()).decode(), alt_text(figure)
    return {"image/png": png, "text/html": frame(page, png, alt)}, {"image/png": {"alt": alt}}


# A frame sees the system's theme only: JupyterLab's is sent to the page, and again when it changes.
_THEMED = (
    "const theme=()=&gt;{const light=document.body.dataset.jpThemeLight;if(light)"
    "this.contentWindow?.postMessage({theme:light===&quot;true&quot;?&quot;light&quot;:"
    "&quot;dark&quot;},&quot;*&quot;)};theme();new MutationObserver(theme).observe("
    "document.body,{attributeFilter:[&quot;data-jp-theme-light&quot;]})"
)


def frame(document: str, png: str = "", alt: str = "") -> str:
    """Return a page in a frame; its content is what a viewer shows that removes frames."""
    words = esc(alt or "Latency report", max(len(alt), 20))
    picture = f"<img alt='{words}' src='data:image/png;base64,{png}'>" if png else ""
    content = attribute(document)
    return (
        f"<iframe title='{words}' sandbox='allow-scripts allow-downloads' width='100%' "
        f"height='900' style='border:0' onload='{_THEMED}' srcdoc='{content}'>{picture}</iframe>"
    )


def document(title: str, body: str, model: JSONObject, home: str = "page") -> str:
    """Return a page with its style and its script: the engine, and what starts it."""
    style, script = asset("page.css"), _program(home)
    allowed_script, allowed_style = allowed(home)
    policy = (
        f"default-src 'none'; script-src {allowed_script}; style-src {allowed_style}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<meta "
        "name='color-scheme' content='light dark'>\n"
        f"<title>{esc(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{SPOKEN}\n<script type='application/json' "
        f"id='model'>{script_json(model)}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def allowed(home: str = "page") -> tuple[str, str]:
    """Return the script and the style of a page as a content security policy names them."""
    return f"'{_hash(_program(home))}'", f"'{_hash(asset('page.css'))}'"


def _program(home: str) -> str:
    return f'(() => {{\n"use strict";\n{script_of(home)}}})();'


def script_of(home: str) -> str:
    """Return the modules of the engine and of its home as one text, without comments."""
    texts = (_BETWEEN_MODULES.sub("", asset(f"{name}.js")) for name in (*_MODULES, home))
    return "\n".join(texts)


@cache
def asset(name: str) -> str:
    """Return the text of a file of the engine."""
    return resources.files("latencykit.views").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """The hash by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
