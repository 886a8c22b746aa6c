"""Compressed inputs as streams: known by magic number, decoded piece by piece, kept as far as they go.

The standard library's readers lose what they have decoded of a file that is cut; here it is given out first.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from typing import IO, TYPE_CHECKING, Any

from latencykit.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Unpacked", "compression"]

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_PIECE = 1 << 16
_ZSTD_PIECE = 1 << 12  # its decoder gives out all that a piece holds: a bomb must not get far with one
_LARGEST = 1 << 20
_SKIPPABLE = b"\x2a\x4d\x18"  # a zstd frame without data, such as an index at the end


def compression(begin: bytes) -> str | None:
    """Return ``gzip``, ``xz``, ``bzip2`` or ``zstd`` by the first bytes, or None.

    Examples
    --------
    >>> compression(b"BZh91AY"), compression(b"start,latency")
    ('bzip2', None)
    """
    return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), None)


def _gzip() -> Any:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj(wbits=31)
    return isal_zlib.decompressobj(wbits=31)


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as missing:
        raise MissingPackageError("zstandard", "Reading a .zst file", "arrow") from missing
    return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()


def _xz() -> Any:
    import lzma

    return lzma.LZMADecompressor()


def _bzip2() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


_MAKERS: dict[str, Callable[[], Any]] = {"gzip": _gzip, "xz": _xz, "bzip2": _bzip2, "zstd": _zstd}


def _errors(kind: str) -> tuple[type[Exception], ...]:
    """What a decoder raises for damage."""
    known: list[type[Exception]] = [OSError, ValueError, zlib.error]
    if kind == "xz":
        import lzma

        known.append(lzma.LZMAError)
    if kind == "zstd":
        import zstandard

        known.append(zstandard.ZstdError)
    if kind == "gzip":
        with contextlib.suppress(ImportError):
            from isal import isal_zlib

            known.append(isal_zlib.error)  # type: ignore[arg-type]
    return tuple(known)


class Unpacked(io.RawIOBase):
    """The decompressed bytes of a stream.

    Parameters
    ----------
    raw : file object
        Compressed bytes, at their beginning; closed with this stream.
    kind : str
        As `compression` names it.
    cut : callable
        Called once where the stream ends too early; what was decoded is given out all the same.
    damaged : callable
        Reason → the error to raise.
    """

    def __init__(self, raw: IO[bytes], kind: str, cut: Callable[[], None], damaged: Callable[[str], Exception]) -> None:
        self._raw, self._kind, self._cut, self._damaged = raw, kind, cut, damaged
        self._decoder: Any = None
        self._held = b""  # compressed, not yet decoded
        self._ready = b""  # decoded, not yet given out
        self._full = False  # whether the decoder may have more without more input
        self._begin(b"")
        self._errors = _errors(kind)
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True: forwards by decoding, backwards by beginning anew."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        while not self._ready:
            if not self._decode():
                return 0
        size = min(len(self._ready), len(buffer))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        self._at += size
        return size

    def _decode(self) -> bool:
        """Decode the next piece into `_ready`; False at the end."""
        if self._decoder.eof:
            return self._next_member()
        piece = self._held or getattr(self._decoder, "unconsumed_tail", b"")
        if not piece and not self._full:
            piece = self._raw.read(_ZSTD_PIECE if self._kind == "zstd" else _PIECE)
            if not piece:
                self._cut()
                return False
        self._held = b""
        try:
            self._ready = self._decoder.decompress(piece) if self._kind == "zstd" else self._decoder.decompress(piece, _LARGEST)
        except self._errors as error:
            raise self._damaged(f"the compressed stream is damaged ({error})") from None
        self._full = self._kind != "zstd" and len(self._ready) >= _LARGEST
        return True

    def _next_member(self) -> bool:
        """Go on to what follows a finished stream: another one, after padding, or the end."""
        rest = self._decoder.unused_data.lstrip(b"\0")
        while len(rest) < 6 and (more := self._raw.read(_PIECE)):
            rest = (rest + more).lstrip(b"\0")
        if not rest or rest[1:4] == _SKIPPABLE:
            return False
        if compression(rest) != self._kind:
            raise self._damaged("after the end of the compressed stream stand other bytes")
        self._begin(rest)
        return True

    def _begin(self, held: bytes) -> None:
        self._decoder = _MAKERS[self._kind]()
        self._held, self._ready, self._full = held, b"", False

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place counted from the beginning, or from here."""
        target = offset if whence == io.SEEK_SET else self._at + offset
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of a compressed stream is not known")
        if target < self._at:
            self._raw.seek(0)
            self._begin(b"")
            self._at = 0
        while self._at < target and self.read(min(_LARGEST, target - self._at)):
            pass
        return self._at

    def tell(self) -> int:
        """Return the place in the decompressed bytes."""
        return self._at

    def close(self) -> None:
        """Close the compressed stream, too."""
        self._raw.close()
        super().close()
