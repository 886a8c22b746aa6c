"""What the tests of single readers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def read_text(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Read a text as a file of some name would be read: ``read_text(text, "out.txt", lenient=True)``."""

    def read(text: str | bytes, name: str = "out.txt", **options: Any) -> dict[str, Any]:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_source(Source(path), ReadOptions(**options))

    return read
