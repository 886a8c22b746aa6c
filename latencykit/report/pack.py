"""Data as text that is safe inside a page: JSON that ends no script, and bytes that deflate well."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit.report.record import number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from latencykit.report.slots import Slots

__all__ = ["numbers", "packed", "script_json"]


def script_json(value: Any) -> str:
    r"""Return JSON for an inline script: pure ASCII, without any character that means something to HTML.

    Examples
    --------
    >>> script_json("</script>\u2028&")
    '"\\u003c/script\\u003e\\u2028\\u0026"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def numbers(values: Iterable[float]) -> list[float | int | None]:
    """Return numbers as JSON has them; what is not finite becomes null."""
    return [number(value) for value in values]


def packed(slots: Slots) -> dict[str, Any]:
    """Return slots as the page's ``data.js`` unpacks them.

    Edges are doubles; lengths, differences of indices, and counts are whole numbers of as many bytes as the largest of
    them needs, a plane of bytes at a time, lowest bytes first. All of it is deflated, and base64 makes it text.
    """
    lengths = np.diff(slots.indptr)
    deltas = np.diff(slots.index, prepend=-1)
    first = slots.indptr[:-1][lengths > 0]
    deltas[first] = slots.index[first] + 1
    columns = (lengths, deltas, slots.counts)
    widths = [max(1, (int(column.max(initial=0)).bit_length() + 7) // 8) for column in columns]
    edges = slots.low.astype("<f8").tobytes() + slots.high.astype("<f8").tobytes()
    raw = edges + b"".join(_planes(column, width) for column, width in zip(columns, widths, strict=True))
    return {
        "start": numbers(slots.start.tolist()), "end": numbers(slots.end.tolist()), "max": numbers(slots.max.tolist()),
        "sum": numbers(slots.sum.tolist()), "width": slots.width,
        "buckets": int(slots.low.size), "entries": int(slots.index.size), "widths": widths,
        "bytes": base64.b64encode(zlib.compress(raw, 9)).decode("ascii"),
    }  # fmt: skip


def _planes(values: NDArray[np.int64], width: int) -> bytes:
    planes = values.astype("<u8").view(np.uint8).reshape(-1, 8).T[:width]
    return planes.tobytes()
