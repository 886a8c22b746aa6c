"""Fitting a table into a terminal: its columns, and the names in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit._text import text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = Sequence[Sequence[str]]

_NAME, _LEAST = 16, 8
"""Columns that a name keeps before columns are dropped, and in any case."""

_GAP = "  "


def shortened(text: str, width: int) -> str:
    """Return a name that takes at most `width` columns: its middle is left out.

    Examples
    --------
    >>> shortened("checkout-service-eu-west-3.hlog", 16)
    'checkout…-3.hlog'
    """
    if text_width(text) <= width:
        return text
    head, tail = text, text
    while text_width(head) > width // 2:
        head = head[:-1]
    while text_width(tail) > width - 1 - text_width(head):
        tail = tail[1:]
    return f"{head}…{tail}"


def fitted(
    header: Sequence[str], rows: Rows, left: int, width: int, optional: Sequence[str] = ()
) -> str:
    """Return rows in aligned columns that take at most `width` columns of a terminal.

    The first `left` columns are flush left, and their texts may be shortened. Where that is not
    enough, `optional` columns are left out, the first ones first; then a name that all rows share
    becomes a heading; at last there is one line per statistic instead of a column.
    """
    table = [list(row) for row in (header, *rows)]
    names, kept = min(left, len(header)), list(range(len(header)))

    def room(least: int) -> int:
        sizes = [max(text_width(row[k]) for row in table) for k in kept]
        floors = [
            min(size, least) if k < names else size for k, size in zip(kept, sizes, strict=True)
        ]
        return width - sum(floors) - len(_GAP) * (len(kept) - 1)

    kept = [k for k in kept if not k or not rows or any(row[k] for row in table[1:])]
    expendable = [k for name in optional for k in kept if header[k] == name]
    if room(10**6) < 0:
        for k in expendable:
            if room(_NAME if left < len(header) else 2 * _NAME) >= 0:
                break
            kept.remove(k)
    heading: list[str] = []
    if room(_NAME) < 0 and len(kept) > 2 and len({row[kept[0]] for row in table[1:]}) == 1:
        heading = [shortened(table[1][kept.pop(0)], width)]
    if room(_LEAST) < 0:
        return _one_line_per_column([[row[k] for k in kept] for row in table], width)
    while room(10**6) < 0:  # the widest name gives way
        widest = max(
            (k for k in kept if k < names), key=lambda k: max(text_width(row[k]) for row in table)
        )
        size = max(text_width(row[widest]) for row in table)
        others = [
            max(text_width(row[k]) for row in table) for k in kept if k < names and k != widest
        ]
        target = max(_LEAST, size + room(10**6), *(other - 1 for other in others if other < size))
        for row in table:
            row[widest] = shortened(row[widest], min(target, size - 1))
    return "\n".join(
        [*heading, _aligned([[row[k] for k in kept] for row in table], sum(k < left for k in kept))]
    )


def _aligned(table: Rows, left: int) -> str:
    sizes = [[text_width(cell) for cell in row] for row in table]
    widths = [max(column) for column in zip(*sizes, strict=True)]
    lines = []
    for row, used in zip(table, sizes, strict=True):
        spaces = [" " * (width - size) for width, size in zip(widths, used, strict=True)]
        padded = [
            cell + space if k < left else space + cell
            for k, (cell, space) in enumerate(zip(row, spaces, strict=True))
        ]
        lines.append(_GAP.join(padded).rstrip())
    return "\n".join(lines)


def _one_line_per_column(table: Rows, width: int) -> str:
    """A line per column and a column per row, as many side by side as fit."""
    header, *rows = table
    if len(rows) > 1:  # names no wider than their numbers
        rows = [
            [shortened(row[0], max(_NAME, *map(text_width, row[1:]))), *row[1:]] for row in rows
        ]
    label = min(max(map(text_width, header)), width // 2)
    parts: list[list[Sequence[str]]] = [[]]
    used = label
    for row in rows:
        size = len(_GAP) + min(max(map(text_width, row)), width - label - len(_GAP))
        if parts[-1] and used + size > width:
            parts.append([])
            used = label
        parts[-1].append(row)
        used += size
    most = width - label - len(_GAP)
    return "\n\n".join(
        _aligned(
            [
                [shortened(cell, label if not k else most) for k, cell in enumerate(line)]
                for line in zip(header, *part, strict=True)
            ],
            1,
        )
        for part in parts
    )
