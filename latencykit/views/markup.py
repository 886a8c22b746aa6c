"""Pieces of HTML: escaped text, tables, sections, lists and badges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from latencykit._text import esc

BADGES = {  # verdict → how a page colours it
    "better": "good",
    "same": "good",
    "met": "good",
    "clean": "good",
    "no stall": "good",
    "service times": "none",
    "worse": "bad",
    "mixed": "bad",
    "missed": "bad",
    "omits": "bad",
    "inconclusive": "unsure",
    "unknown": "unsure",
}

SCROLLED = "<div class='scroll' tabindex='0' role='group' aria-label='Table'>"
"""What is around a table, which may be wider than the window."""


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str = "",
    name: str = "",
    words: bool = False,
) -> str:
    """Return a table whose first column heads the rows; cells are HTML already."""
    kind = " class='words'" if words else ""
    head = "".join(
        f"<th scope='col'{kind if k else ''}>{cell}</th>" if cell else "<td></td>"
        for k, cell in enumerate(header)
    )
    body = ""
    for first, *cells in rows:
        columns = "".join(f"<td{kind}>{cell}</td>" for cell in cells)
        body += f"<tr><th scope='row'>{first}</th>{columns}</tr>"
    title = f"<caption>{caption}</caption>" if caption else ""
    marked = f" id='{name}'" if name else ""
    return (
        f"{SCROLLED}<table{marked}>{title}<thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with its heading; empty without content."""
    content = "".join(parts)
    if not content:
        return ""
    heading = f"<h2 id='{name}-title'>{title}</h2>"
    return f"<section id='{name}' aria-labelledby='{name}-title'>{heading}{content}</section>"


def bullets(texts: Iterable[str]) -> str:
    """Return escaped texts as a list."""
    items = "".join(f"<li>{esc(text, 500)}</li>" for text in texts if text)
    return f"<ul>{items}</ul>" if items else ""


def as_sentence(text: str) -> str:
    """Return a text with a capital, unless it begins with code, and a full stop; empty stays."""
    if not text:
        return ""
    first = text[:1] if re.match(r"lk\.|[a-z]+[\d_:=]", text) else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith(('.', '!')) else '.'}"


def badge(verdict: str) -> str:
    """Return a verdict as a coloured word."""
    return f"<span class='badge {BADGES[verdict]}'>{verdict}</span>"
