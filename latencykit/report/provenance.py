"""Where a page's numbers come from: files, sizes, hashes, tools, and the command that made it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latencykit import __version__
from latencykit.report.markup import esc, table
from latencykit.units import format_count, without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["InputFile", "input_file", "provenance"]


@dataclass(frozen=True)
class InputFile:
    """A file that was read: its name, its size in bytes and its SHA-256; None where it is gone or was a stream."""

    name: str
    size: int | None
    sha256: str | None


def input_file(path: str | Path) -> InputFile:
    """Return what identifies a file.

    Examples
    --------
    >>> input_file("-")
    InputFile(name='standard input', size=None, sha256=None)
    """
    where = Path(without_secrets(str(path)))
    if str(path) == "-" or not where.is_file():
        return InputFile("standard input" if str(path) == "-" else where.name, None, None)
    with where.open("rb") as stream:
        return InputFile(where.name, where.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest())


def provenance(series: Mapping[str, Any], files: Sequence[InputFile], command: str | None) -> str:
    """Return tables of files, of series, and of this page."""
    inputs = [
        [
            esc(one.name),
            "" if one.size is None else f"{format_count(one.size)} bytes",
            f"<code>{one.sha256 or 'not known'}</code>",
        ]
        for one in files
    ]
    said = [
        [esc(label, 80), *(esc(part or "not known") for part in (run.source, run.format, _tool(run))), _code(run.command)]
        for label, run in ((label, rung.run) for label, rung in series.items())
    ]
    page = [["made by", f"latencykit {__version__}"], ["made at", f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"]]
    page += [["command", f"<code>{esc(without_secrets(command), 2000)}</code>"]] if command else []
    parts = [table(["file", "size", "SHA-256"], inputs, words=True)] if inputs else []
    parts.append(table(["series", "source", "format", "tool", "its command"], said, words=True))
    parts.append(table(["this page", ""], page, words=True))
    return "".join(parts)


def _tool(run: Any) -> str:
    return " ".join(filter(None, (run.tool, run.version)))


def _code(text: str | None) -> str:
    return f"<code>{esc(text, 1000)}</code>" if text else ""
