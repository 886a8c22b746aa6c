"""Numbers as people write them: ``1.234,5`` and ``1,234.5``. A column says by all its cells which of the two it means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Style", "style_of", "styles_of", "with_point"]

Style = Literal["plain", "point", "grouped", "comma", "unclear", "mixed"]
"""What cells are: numbers as programs write them, with a decimal point or without; with a decimal point and grouped digits;
with a decimal comma; ``1,234`` throughout, which may be either; or some of each."""

_GROUP = r"[ '’_\u00a0\u202f]"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_COMMA = re.compile(
    rf"\d{{1,3}}(?:\.\d{{3}})+,\d*|\d{{1,3}}(?:\.\d{{3}}){{2,}}|\d{{1,3}}(?:{_GROUP}\d{{3}})+,\d*"
    rf"|(?:0\d*|\d{{4,}})?,\d+{_EXPONENT}|\d{{1,3}},(?:\d{{1,2}}|\d{{4,}})?{_EXPONENT}|\d{{1,3}},\d{{3}}[eE][-+]?\d+"
)
_GROUPED = re.compile(rf"\d{{1,3}}(?:,\d{{3}})+\.\d*|\d{{1,3}}(?:,\d{{3}}){{2,}}|\d{{1,3}}(?:{_GROUP}\d{{3}})+\.\d*")
_EITHER_GROUP = re.compile(rf"\d{{1,3}}(?:{_GROUP}\d{{3}})+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2},\d{3}")
_POINT = re.compile(rf"\d*\.\d*{_EXPONENT}")
_UNCLEAR_POINT = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_WHOLE = re.compile(rf"\d+{_EXPONENT}")
_GERMAN = re.compile(rf"[-+]?(?:\d{{1,3}}(?:\.\d{{3}})+|\d{{1,3}}(?:{_GROUP}\d{{3}})+|\d*)(?:,\d*)?{_EXPONENT}")
_ENGLISH = re.compile(rf"[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:{_GROUP}\d{{3}})+|\d*)(?:\.\d*)?{_EXPONENT}")
_LOCAL = re.compile(rf"\d,|,\d|\d{_GROUP}\d")
_LONGEST = 60


def _kind(cell: str) -> str:
    bare = cell.strip().lstrip("+-")
    if len(bare) > _LONGEST or not any(digit.isdigit() for digit in bare):
        return ""
    for kind, pattern in (
        ("whole", _WHOLE), ("unclear", _UNCLEAR), ("unclear point", _UNCLEAR_POINT), ("comma", _COMMA), ("grouped", _GROUPED),
        ("point", _POINT), ("spaced", _EITHER_GROUP),
    ):  # fmt: skip
        if pattern.fullmatch(bare):
            return kind
    return ""


def style_of(cells: Iterable[str]) -> Style | None:
    """Return how the numbers of a column are written; None where most cells are no numbers.

    Examples
    --------
    >>> style_of(["1.234,5", "2"]), style_of(["1,234", "12.5"]), style_of(["1,234", "5,678"]), style_of(["1.234", "2"])
    ('comma', 'grouped', 'unclear', 'plain')
    >>> style_of(["1,5", "1.5"])
    'mixed'
    """
    kinds = [_kind(cell) for cell in cells if cell.strip()]
    seen = set(kinds)
    if kinds.count("") * 2 >= len(kinds):
        return None
    comma, point = "comma" in seen, bool(seen & {"grouped", "point"})
    if (comma and point) or ({"unclear", "unclear point"} <= seen and not (comma or point)):
        return "mixed"
    if comma:
        return "comma"
    if point:
        return "grouped" if seen & {"grouped", "unclear", "spaced"} else "point"
    return "unclear" if "unclear" in seen else "grouped" if "spaced" in seen else "plain"


def styles_of(columns: Mapping[str, Iterable[str]]) -> tuple[dict[str, Style], list[str]]:
    """Return the styles of a table's columns of numbers, and the names of those that the other columns decide.

    One file is written by the habits of one country: where ``1,234`` may be either, columns that are clear decide, if they
    agree; and in a table of decimal commas, ``1.234`` is a grouped number.

    Examples
    --------
    >>> styles_of({"a": ["0,5"], "b": ["1,234"], "c": ["1.234"]})
    ({'a': 'comma', 'b': 'comma', 'c': 'comma'}, ['b', 'c'])
    """
    kept = {name: list(cells) for name, cells in columns.items()}
    if not any(_LOCAL.search(cell) for cells in kept.values() for cell in cells):  # as programs write nearly all tables
        return {}, []
    found = {name: style for name, cells in kept.items() if (style := style_of(cells)) is not None}
    clear = {"comma" if style == "comma" else "point" for style in found.values() if style in ("comma", "point", "grouped")}
    decided: list[str] = []
    for name, style in found.items():
        if style == "unclear" and len(clear) == 1:
            found[name] = "comma" if clear == {"comma"} else "grouped"
            decided.append(name)
        elif style == "plain" and clear == {"comma"} and any(_kind(cell) == "unclear point" for cell in kept[name]):
            found[name] = "comma"
            decided.append(name)
    return found, decided


def with_point(cell: str, style: Style) -> str:
    """Return a number of a column as programs write it; ``"?"`` for one that does not fit the column's style.

    Of a column that is unclear or mixed, which is refused if it is needed, only the digits are given.

    Examples
    --------
    >>> with_point("1.234,5", "comma"), with_point("12.5", "comma"), with_point("1,234", "grouped"), with_point("-", "comma")
    ('1234.5', '?', '1234', '-')
    """
    bare = cell.strip()
    if not any(digit.isdigit() for digit in bare):
        return bare
    if style in ("unclear", "mixed"):
        return re.sub(r"[^-+\d]", "", bare)
    if style == "comma":
        return re.sub(rf"{_GROUP}|\.", "", bare).replace(",", ".") if _GERMAN.fullmatch(bare) else "?"
    return re.sub(rf"{_GROUP}|,", "", bare) if _ENGLISH.fullmatch(bare) else "?"
