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


def lost(found):
    """What became of the requests of a file of which none was answered well, in words."""
    assert found
    assert all(data.count == 0 for data in found.values())
    runs = [data.run for data in found.values()]
    names = ("failed", "timeouts", "dropped", "unfinished")
    counts = {name: sum(getattr(run, name) for run in runs) for name in names}
    said = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
    return said.replace("timeouts", "timed out")
