"""Base64 and inflate: by the fast libraries where they ship wheels, else by the standard library, which is slower."""

from __future__ import annotations

import binascii
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["INFLATE_ERRORS", "SHORT", "adler", "base64_bytes", "inflate", "inflate_short", "inflater"]

base64_bytes: Callable[..., bytes]
"""(text, None, True) → bytes; `ValueError` for what is no base64."""
try:
    from pybase64 import b64decode as base64_bytes
except ImportError:

    def base64_bytes(text: bytes, _altchars: None, _validate: bool) -> bytes:
        """Return the bytes; nothing but base64 is let through."""
        return binascii.a2b_base64(text, strict_mode=True)


adler: Callable[[bytes], int]
inflate: Callable[[bytes], bytes]
inflater: Callable[[], Any]
INFLATE_ERRORS: Any
try:
    from isal.isal_zlib import IsalError, adler32, decompress, decompressobj
except ImportError:
    adler, inflate, inflater, INFLATE_ERRORS = zlib.adler32, zlib.decompress, zlib.decompressobj, (zlib.error,)
else:
    adler, inflate, inflater, INFLATE_ERRORS = adler32, decompress, decompressobj, (zlib.error, IsalError)
inflate_short = zlib.decompress
SHORT = 400  # bytes; below this zlib starts sooner than isal runs faster
