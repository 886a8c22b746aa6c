"""Files that are written: whole or not at all, and never over what was read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from latencykit.errors import InvalidArgumentError, LatencyKitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["checked_page", "naming", "whole"]


def checked_page(path: Path) -> Path:
    """Return the path of a page to write: ``.html``, ``.htm``, or a device or pipe."""
    special = path.exists() and not path.is_file()
    if path.suffix.lower() not in (".html", ".htm") and not special:
        raise InvalidArgumentError(
            f"{path.name}: a page is written as .html; name it {path.stem}.html, or draw a picture with chart"
        )
    return path


@contextlib.contextmanager
def whole(path: Path, sources: Iterable[str | os.PathLike[str]] = ()) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place when all went well.

    Devices and pipes have no place to take: they are written to as they are.
    """
    if any(_is_same(path, source) for source in sources):
        raise InvalidArgumentError(f"{path}: is one of the inputs; name another output")
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"{path.parent}: there is no such directory; make it first")
    if path.exists() and (not path.is_file() or path.is_relative_to("/dev")):
        with naming(path, path):
            yield path
        return
    import tempfile

    with naming(path, None):
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem[:40]}.", suffix=path.suffix, dir=path.parent
        )
    os.close(handle)
    temporary = Path(name)
    try:
        with naming(path, temporary):
            yield temporary
            temporary.chmod(_mode(path))
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def naming(path: Path, written: Path | None) -> Iterator[None]:
    """Turn what goes wrong while `written` (None: a file to be made) is written into one line that names `path`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if written is not None and error.filename not in (None, str(written)):
            raise  # about another file
        reason = (
            os.strerror(error.errno) if error.errno else str(error)
        )  # a package may tell the number in a text of its own
        hint = (
            "free some there, or write it"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "write it"
        )
        raise LatencyKitError(f"{path}: cannot be written: {reason}; {hint} elsewhere") from error


def _is_same(path: Path, source: str | os.PathLike[str]) -> bool:
    try:
        return path.samefile(source)
    except OSError:  # one of them is not there
        return False


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or those that a new one would get."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
