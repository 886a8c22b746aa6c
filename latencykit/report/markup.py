"""HTML from text that may come from anywhere: everything goes through `esc`."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["bullets", "esc", "section", "table"]


def esc(text: object, limit: int = 300) -> str:
    r"""Return foreign text as HTML text, or as the value of a quoted attribute.

    Examples
    --------
    >>> esc('<b onclick="x">\x07')
    '&lt;b onclick=&quot;x&quot;&gt;\\x07'
    """
    return html.escape(printable(str(text), limit), quote=True)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", name: str = "", words: bool = False) -> str:
    """Return a table whose first column heads the rows; cells are HTML already.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequence of str
    caption : str
        HTML.
    name : str
        The table's id.
    words : bool, default False
        Cells are text, not numbers.
    """
    kind = " class='words'" if words else ""
    head = "".join(f"<th scope='col'{kind if k else ''}>{cell}</th>" for k, cell in enumerate(header))
    body = "".join(
        f"<tr><th scope='row'>{row[0]}</th>{''.join(f'<td{kind}>{cell}</td>' for cell in row[1:])}</tr>" for row in rows
    )
    said = f"<caption>{caption}</caption>" if caption else ""
    marked = f" id='{name}'" if name else ""
    return (
        f"<div class='scroll' tabindex='0'><table{marked}>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with its heading; empty where it has nothing to say."""
    inside = "".join(parts)
    return (
        f"<section id='{name}' aria-labelledby='{name}-title'><h2 id='{name}-title'>{title}</h2>{inside}</section>"
        if inside
        else ""
    )


def bullets(texts: Iterable[str]) -> str:
    """Return escaped texts as a list."""
    items = "".join(f"<li>{esc(text, 500)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""
