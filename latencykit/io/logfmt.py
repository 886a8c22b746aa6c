"""Lines of ``key=value`` pairs, as services and web servers log them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from latencykit.io.rows import CUT_LINE, line_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from latencykit.io.source import Source

_PAIR = re.compile(r'(?:^|(?<=[\s,;\[{]))([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s,;\]}"]*)')


def pairs(line: str) -> dict[str, str]:
    """Return the pairs of a line; of a key that comes twice, the last one."""
    return {key: value.strip('"') for key, value in _PAIR.findall(line)}


def lines(source: Source, notes: list[str]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """Yield (number of the first line, pairs of each line that is not blank) chunk by chunk."""
    last: dict[str, str] = {}
    for first, chunk in line_chunks(source):
        texts = chunk.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
        records = [pairs(text) for text in texts if text.strip()]
        # A line without an end is cut where it does not end in the pair that others end in.
        before = records[-2] if len(records) > 1 else last
        if texts[-1].strip() and before and list(before)[-1:] != list(records[-1])[-1:]:
            notes.append(CUT_LINE)
            records.pop()
        if records:
            last = records[-1]
            yield first, records
