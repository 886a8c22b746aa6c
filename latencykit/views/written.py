"""What commands print of the files that they wrote, and of the formats that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from latencykit.views.tables import Table
from latencykit.views.values import record_from

if TYPE_CHECKING:
    from latencykit.io.source import Format
    from latencykit.views.series import DataType, SeriesRecord


class WrittenRecord(TypedDict):
    """What a command wrote."""

    output: str
    """The file that was written."""


class WrittenSeriesRecord(WrittenRecord):
    """What a command wrote, and its series."""

    series: list[SeriesRecord]


class MergeRecord(WrittenRecord):
    """A merged log."""

    intervals: int
    """0 where requests or histograms were merged, not logs."""
    count: int
    """Requests."""


class FormatRecord(TypedDict):
    """A format."""

    name: str
    title: str
    suffixes: list[str]
    rung: DataType
    """The data type that the format is read as."""
    reads: bool
    writes: bool


def format_record(entry: Format) -> FormatRecord:
    """Return a format as plain values."""
    writes = entry.write is not None
    return record_from(FormatRecord, entry, rung=entry.level, reads=True, writes=writes)


def formats_text(formats: Sequence[Format], style: str = "table") -> str:
    """Return one row per format."""
    table = Table(style)
    for entry in formats:
        table.add(
            {
                "name": entry.name,
                "what it is": entry.title,
                "data type": entry.level,
                "unit": entry.unit or "stated",
                "writes": "yes" if entry.write else "",
                "made by": entry.example,
            }
        )
    return table.render(left=6, optional=("made by", "unit"))
