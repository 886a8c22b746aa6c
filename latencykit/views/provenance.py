"""Where a page comes from: files, sizes, hashes, tools, and the command that made it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from latencykit import __version__
from latencykit._records import record
from latencykit._text import esc, isolated, without_secrets
from latencykit.units import format_count
from latencykit.views.markup import table


@record()
class InputFile:
    """A file that was read: name, size in bytes, SHA-256; None for a stream or a missing file."""

    name: str
    size: int | None
    sha256: str | None


def input_file(path: str | Path) -> InputFile:
    """Return what identifies a file."""
    file = Path(without_secrets(str(path)))
    if str(path) == "-" or not file.is_file():
        return InputFile("standard input" if str(path) == "-" else file.name, None, None)
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return InputFile(file.name, file.stat().st_size, digest)


def provenance(series: Mapping[str, Any], files: Sequence[InputFile], command: str | None) -> str:
    """Return tables of files, of series, and of this page."""
    inputs = [
        [
            esc(file.name),
            "" if file.size is None else f"{format_count(file.size)} bytes",
            f"<code>{file.sha256 or 'not known'}</code>",
        ]
        for file in files
    ]
    sources: dict[tuple[str, ...], list[str]] = {}
    for name, run in ((name, data.run) for name, data in series.items()):
        tool = " ".join(filter(None, (run.tool, run.version)))
        facts = [esc(fact or "not known") for fact in (run.source, run.format, tool)]
        code = f"<code>{esc(run.command, 1000)}</code>" if run.command else ""
        sources.setdefault((*facts, code), []).append(isolated(esc(name or "all requests")))
    # Now, or the time that a reproducible build states.
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    made = datetime.fromtimestamp(int(stated), UTC) if stated.isdigit() else datetime.now(UTC)
    page = [["made by", f"latencykit {__version__}"], ["made at", f"{made:%Y-%m-%d %H:%M:%S} UTC"]]
    if command:
        page.append(["command", f"<code>{esc(without_secrets(command), 2000)}</code>"])
    header = ["series", "source", "format", "tool", "its command"]
    parts = [table(["file", "size", "SHA-256"], inputs, words=True)] if inputs else []
    rows = [[", ".join(names), *facts] for facts, names in sources.items()]
    parts.append(table(header, rows, words=True))
    parts.append(table(["this page", ""], page, words=True))
    return "".join(parts)
