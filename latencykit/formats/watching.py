"""Files that are watched while they are read: one that is cut or replaced meanwhile is no longer the one that was begun.

What is added to a file at its end does no harm. A log that is rotated (renamed, copied and cut) would give half of one
file and half of another, or offsets into what is no longer there.
"""

from __future__ import annotations

import io
import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Watch", "Watched"]


class Watch:
    """What a file was like when it was last looked at."""

    def __init__(self) -> None:
        self._identity: tuple[int, int] | None = None
        self._size = self._changed = 0

    def look(self, number: int) -> str | None:
        """Return what happened to an open file since, if anything; only regular ones are known to keep what is in them."""
        now = os.fstat(number)
        if not stat.S_ISREG(now.st_mode):
            return None
        # Some network file systems number a file anew whenever it is opened.
        same = (now.st_dev, now.st_ino) == self._identity or (now.st_mtime_ns, now.st_size) == (self._changed, self._size)
        if self._identity is not None and not same:
            return "another file took its place while it was read"
        if now.st_size < self._size:
            return f"the file shrank from {self._size:,} to {now.st_size:,} bytes while it was read"
        self._identity, self._size, self._changed = (now.st_dev, now.st_ino), now.st_size, now.st_mtime_ns
        return None


class Watched(io.FileIO):
    """A file that is looked at whenever bytes of it are read.

    Parameters
    ----------
    path : Path
    watch : Watch
        The same for every time that the file is opened.
    changed : callable
        What happened → the error to raise.
    """

    def __init__(self, path: Path, watch: Watch, changed: Callable[[str], Exception]) -> None:
        super().__init__(path, "rb")
        self._watch, self._changed = watch, changed
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    def _look(self) -> None:
        how = self._watch.look(self.fileno())
        if how is not None:
            raise self._changed(how)

    def readinto(self, buffer: Any) -> int | None:
        """Fill a buffer; what was cut off before this is known after it."""
        size = super().readinto(buffer)
        self._look()
        return size

    def readall(self) -> bytes:
        """Return the rest."""
        rest = super().readall()
        self._look()
        return rest
