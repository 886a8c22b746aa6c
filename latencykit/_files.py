"""Output files: written completely or not at all, and never over an input."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from latencykit.errors import InvalidArgumentError, LatencyKitError


def checked_page(path: Path) -> Path:
    """Return the path of a page to write: ``.html``, ``.htm``, or a device or pipe."""
    special = path.exists() and not path.is_file()
    if path.suffix.lower() not in (".html", ".htm") and not special:
        raise InvalidArgumentError(
            f"{path.name}: a page is written as .html; "
            f"name it {path.stem}.html, or draw an image with chart"
        )
    return path


def checked_chart(path: Path) -> str:
    """Return the ending of a chart's file, one of png, svg and pdf."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise InvalidArgumentError(f"{path.name}: charts are written as .png, .svg or .pdf")
    return kind


def check_folder(path: Path) -> None:
    """Refuse a file in a directory that does not exist, before it takes long to make."""
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"{path.parent}: the directory does not exist; make it first")


@contextlib.contextmanager
def whole(path: Path, sources: Iterable[str | os.PathLike[str]] = ()) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which replaces it if the block succeeds."""
    # Devices and pipes are written to directly.
    for source in sources:
        with contextlib.suppress(OSError):  # one of them does not exist
            if path.samefile(source):
                raise InvalidArgumentError(f"{path}: is one of the inputs; name another output")
    check_folder(path)
    if path.exists() and (not path.is_file() or path.is_relative_to("/dev")):
        with naming(path, path):
            yield path
        return
    with naming(path, None):
        temporary = new_temporary(f".{path.stem[:40]}.", path.suffix, path.parent)
    try:
        with naming(path, temporary):
            yield temporary
            if path.exists():
                mode = stat.S_IMODE(path.stat().st_mode)
            else:  # what a new file would get
                mask = os.umask(0)
                os.umask(mask)
                mode = 0o666 & ~mask
            temporary.chmod(mode)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def new_temporary(prefix: str, suffix: str = "", folder: Path | None = None) -> Path:
    """Return a new empty file."""
    import tempfile

    handle, name = tempfile.mkstemp(suffix, prefix, folder)
    os.close(handle)
    return Path(name)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Yield a new folder and remove it afterwards."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        yield Path(name)


def runtime_folder() -> Path:
    """Return this user's folder of what concerns running processes; it may be missing."""
    # It is the same for every command of a session, whatever its ``TMPDIR``.
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp", f"latencykit-{owner}")  # noqa: S108


@contextlib.contextmanager
def naming(path: Path, written: Path | None) -> Iterator[None]:
    """Turn errors of writing `written` (None: a new file) into one line that names `path`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if written is not None and error.filename not in (None, str(written)):
            raise  # about another file
        reason = os.strerror(error.errno) if error.errno else str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some there, or write it" if full else "write it"
        raise LatencyKitError(f"{path}: cannot be written: {reason}; {hint} elsewhere") from error
