"""The page that shows every format in two lines: how its tool makes such a file, and how to chart it.

``python -m tests.io.page > notebooks/formats.md`` writes it anew; a test holds it equal to the
registry.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latencykit.io.source import Format

__all__ = ["chart_command", "page"]

_DETAIL = {
    "samples": "every request",
    "log": "a histogram per interval",
    "histogram": "a histogram",
    "summary": "statistics only",
}
_TOP = """# From what a tool prints to a chart

Every format that latencykit reads, in two lines each: how to make such a file, and how to chart it. The format is recognised by
the content of the file, not by its name; `latencykit summary` prints the same numbers, `latencykit report` makes an interactive page.
The level of detail is in brackets: the more an output contains, the more questions it can answer.

Written by `python -m tests.io.page > notebooks/formats.md`.
"""


def chart_command(one: Format) -> str:
    """Return the second line: the chart of the file that the first line names (``> out.txt``, or ``   # writes out.txt``)."""
    written = re.search(r"# writes (\S+)", one.example)
    words = [
        word.strip("'\"()\\") for word in re.split(r"[\s=(]+", one.example.partition("   # ")[0])
    ]
    named = [word for word in words if one.suffixes and word.endswith(one.suffixes)]
    file = written[1].rstrip(",;") if written else next(reversed(named), f"out{one.suffixes[0]}")
    return f"latencykit chart {file}"


def page() -> str:
    """Return the page as Markdown, formats in order of their titles."""
    from latencykit.io.registry import builtin_formats

    parts = [_TOP]
    for one in sorted(builtin_formats(), key=lambda one: one.title.lower()):
        known = f"`{one.name}`, {_DETAIL[one.level]}{', also written' if one.write else ''}"
        parts.append(
            f"**{one.title}** ({known})\n\n```sh\n{one.example}\n{chart_command(one)}\n```\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
