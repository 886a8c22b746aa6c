"""Files that hold no latencies but are often given: what each is, and where its numbers are.

Asked only when no format is sure of an input, so a wrong guess costs a reading nothing. The rows of
``other_files.csv`` say by which pattern a file is known, what it is, and a hint, in which ``FILE``
stands for the input's path. A pattern is of the first bytes (``magic``), of a JSON document, or of
another text, where ^ and $ match at every line: of a ``table``, which prose may show further down,
of its first lines only; and what a ``failure`` prints may stand behind results.
"""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

from latencykit._text import printable
from latencykit.io.source import Head

_FIRST = 12  # lines


def hint_for(head: Head, path: str, *, readable: bool, table: bool = False) -> str | None:
    """Return what a file is that holds no latencies, with a hint, or None if that is not known."""
    # One that may be `readable` is known by its first lines only, a `table` as another one only.
    begin = "\n".join(head.lines[:_FIRST])
    text = begin if readable else head.text
    is_json = re.match(r"\s*(?:\{|\[\s*\{)", text) is not None
    for row in csv.DictReader(
        Path(__file__).with_name("other_files.csv").read_text("utf-8").splitlines()
    ):
        kind, detail = row["kind"], ""
        if table and kind != "table":
            continue
        if kind == "magic":
            found = re.match(row["pattern"].encode(), head.data, re.DOTALL) is not None
        elif (kind == "json") is not is_json or (readable and kind == "failure"):
            continue  # what was measured before a failure counts
        elif b"\0" in head.data:
            return None
        else:
            part = begin if kind == "table" else text
            match = re.search(row["pattern"], part, re.MULTILINE | re.IGNORECASE)
            found = match is not None
            detail = printable(match.groupdict().get("what") or "", 40) if match else ""
        if found:
            what = row["what"].format(what=detail)
            return f"this is {what}; {row['hint'].replace('FILE', shlex.quote(path))}"
    return None
