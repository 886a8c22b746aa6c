"""What a question is asked of: data, or what becomes data when it is read."""

from __future__ import annotations

from latencykit._typing import PathOrFrame, is_path_or_frame
from latencykit.core import Data
from latencykit.core.run import require_data
from latencykit.errors import InvalidArgumentError


def as_data(given: Data | PathOrFrame, name: str, unit: str | None = None) -> Data:
    """Return data as they are; a path, a data frame or a Series as `lk.read` reads it."""
    if is_path_or_frame(given):
        from latencykit.io.reading import read

        return read(given, unit=unit)
    require_data(given, name)
    if unit is not None:
        raise InvalidArgumentError(
            f"unit={unit!r} is for a path or a frame; data have one: {given.unit}"
        )
    return given
