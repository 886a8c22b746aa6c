"""The loops that numpy takes many passes for, compiled where the installation found a compiler.

numpy is the definition and the fallback: every function here has a twin in numpy, the compiled one
refuses whatever is not plain, and the twin then words the error.
``LATENCYKIT_KERNEL=no`` turns the compiled loops off, ``=yes`` makes it an error that they are
missing, as does the path of a library built for a test; `in_use` says which are used.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._typing import AnyArray, Floats, Ints
from latencykit.errors import LatencyKitError

FILE = "_kernel.dll" if sys.platform == "win32" else "_kernel.so"
_LARGEST = 16 << 20  # bytes of varints: 16 times as many are set aside, and touched where filled
_VERSION = 8  # of kernel.c: a library that an older checkout left behind is not used


def _load() -> ctypes.CDLL | None:
    """The compiled loops, unless there are none or they are not wanted."""
    choice = os.environ.get("LATENCYKIT_KERNEL", "")
    if choice == "no":
        return None
    try:
        library = ctypes.CDLL(choice if os.sep in choice else str(Path(__file__).parent / FILE))
        signatures = {
            "lk_version": "",
            "lk_rows": "siaaiaiaaaiai",
            "lk_tabulate": "aiiaaiaaiai",
            "lk_values": "aiidiai",
        }
        kinds = {
            "i": ctypes.c_int64,
            "d": ctypes.c_double,
            "s": ctypes.c_char_p,
            "a": ctypes.c_void_p,
        }
        for name, arguments in signatures.items():
            function = getattr(library, name)
            function.restype = ctypes.c_int64
            function.argtypes = [kinds[letter] for letter in arguments]
        if library.lk_version() == _VERSION:
            return library
        reason = "it was built from another version of kernel.c"
    except (OSError, AttributeError) as error:
        reason = str(error)
    if choice:
        raise LatencyKitError(
            f"LATENCYKIT_KERNEL={choice}, but the compiled kernel cannot be used: {reason}"
        )
    return None


_C = _load()
_address: Any = (ctypes.c_char * 0).from_buffer


def in_use() -> str:
    """Return ``"C"`` or ``"numpy"``."""
    return "numpy" if _C is None else "C"


def _plain(*arrays: Ints) -> bool:
    """Return whether the compiled loops can read the arrays as they lie in memory."""
    return all(array.dtype == np.int64 and array.flags.c_contiguous for array in arrays)


def _at(array: AnyArray) -> object:
    """The address of an array; for a read-only one numpy takes ten times as long."""
    return _address(array) if array.flags.writeable else array.ctypes.data


def decode_varints(
    data: bytes, begins: Ints, ends: Ints, slots: Ints, *, sum_only: bool = False
) -> tuple[Ints, Ints, Ints, Ints | None] | None:
    """Return indptr, index and counts of rows of varints, and their sum if it has fewer numbers."""
    # `begins` and `ends` say where the rows lie; `slots` is how many buckets each may have, or all.
    # With `sum_only` the rows are left empty. None if numpy is to decode them.
    size = int(ends.sum() - begins.sum())
    if _C is None or not 0 <= size <= _LARGEST or not _plain(begins, ends, slots):
        return None
    room = 0 if sum_only else size
    indptr, index, counts = (np.empty(n, np.int64) for n in (ends.size + 1, room, room))
    width = int(slots.max())
    sums = np.zeros(width if width <= size else 0, np.int64)
    entries = _C.lk_rows(
        data, len(data), _at(begins), _at(ends), ends.size, _at(slots), slots.size > 1,
        _at(indptr), _at(index), _at(counts), room, _at(sums), sums.size,
    )  # fmt: skip
    if entries < 0:
        return None
    return indptr, index[:entries], counts[:entries], sums if sums.size else None


def tabulate(
    table: Floats, line: Ints, indptr: Ints, index: Ints, counts: Ints, column: Ints
) -> None:
    """Add the rows of a CSR block to a table, in place."""
    # Row r goes into ``table[line[r]]``, and bucket i into its column ``column[i]``.
    if _C is not None and _plain(line, indptr, index, counts, column) and table.flags.c_contiguous:
        refused = _C.lk_tabulate(
            _at(table), *table.shape, _at(line), _at(indptr), line.size,
            _at(index), _at(counts), counts.size, _at(column), column.size,
        )  # fmt: skip
        if not refused:
            return
    flat = np.repeat(line * table.shape[1], as_positions(np.diff(indptr))) + column[index]
    np.add.at(table.reshape(-1), flat, counts.astype(np.float64))


def count_plain(
    values: NDArray[np.int64 | np.float64], factor: float, half: int, table: NDArray[np.uint32]
) -> int:
    """Count values at their fine indices in `table`, up to an unusual one; return how many."""
    # The fine index of a number is that of `latencykit.core.counting`; only int64 (not multiplied
    # by `factor`) and float64 are counted here, and less than 2**32 in all.
    if _C is None or not values.flags.c_contiguous or values.dtype.char not in "dlq":
        return 0
    whole = values.dtype.kind == "i"
    if (whole and (factor != 1.0 or values.dtype.itemsize != 8)) or not values.dtype.isnative:
        return 0
    counted: int = _C.lk_values(
        _at(values), values.size, whole, factor, half, _at(table), table.size
    )
    return counted
