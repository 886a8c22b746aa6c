"""How our own processes start: they import nothing that lies beside a log."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAFE = "PYTHONSAFEPATH"


def own_command(module: str, *options: str) -> list[str]:
    """Return the command that runs a module; the current folder is not searched for modules."""
    return [sys.executable, "-P", "-m", module, *options]


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Have Python processes that a library starts in the block search no current folder either."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_SAFE, None)
        else:
            os.environ[_SAFE] = before
