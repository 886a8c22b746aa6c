"""Inputs: opened once, decompressed; formats and their options; corrupt lines."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import IntEnum
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from latencykit._files import naming, new_temporary
from latencykit._limits import current_limits
from latencykit._records import record
from latencykit._text import printable, without_secrets
from latencykit.core import Data as Data
from latencykit.core.run import Measure, Note, UnitFrom
from latencykit.errors import (
    CorruptInputError,
    InputTooLargeError,
    InvalidArgumentError,
    LatencyKitError,
    MissingInputError,
    MissingPackageError,
)
from latencykit.units import checked_unit, format_count

Series = Iterator[tuple[str, Data]]
"""What a reader yields; of equal names, the second and later ones are numbered."""

Locate = Callable[["Sequence[int]"], "list[tuple[int | None, str]]"]
"""From numbers of rows to where they stand (a line, if there are lines) and what they say."""

_FIRST = 10  # corrupt lines of a file that are reported one by one


class SkippedLines:
    """Counts the skipped lines of a file; the first few are reported one by one."""

    def __init__(self) -> None:
        self.total = self.reported = 0

    @property
    def note(self) -> str | None:
        """A note for the reader of the numbers; None if nothing was skipped."""
        if not self.total:
            return None
        lines = "line was" if self.total == 1 else "lines were"
        return Note(f"{format_count(self.total)} corrupt {lines} skipped")


def refuse_rows(
    rows: Sequence[int],
    locate: Locate,
    source: Source,
    options: ReadOptions,
    seen: str,
    expected: str,
) -> None:
    """Raise for the first corrupt row; under ``lenient`` count all and report the first few."""
    reported = rows[: _FIRST - options.skipped.reported] if options.lenient else rows[:1]
    for line, text in locate(reported) if len(reported) else ():
        options.refuse(source, line, f"{seen}: {printable(text)!r}", expected)
    if len(rows) > len(reported):
        options.reject(source.corrupt(None, seen, expected), len(rows) - len(reported))


# ------------------------------------------------------------
# Compressed inputs as streams: known by magic number, decoded piece by piece, kept as far as they
# go.

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_MESSAGES = "zstd messages"
_UTF_16 = "UTF-16"
_PIECE = 1 << 16
# the decoder returns all that a piece contains, which is much if it is a bomb
_ZSTD_PIECE = 1 << 9
_LARGEST = 1 << 20
_SKIPPABLE = b"\x2a\x4d\x18"  # a zstd frame without data, such as an index at the end


def compression(begin: bytes) -> str | None:
    """Return ``gzip``, ``xz``, ``bzip2`` or ``zstd`` by the first bytes, or None."""
    # OpenTelemetry's collector compresses each message separately, after a length of four bytes.
    # Text as PowerShell writes it with ``>`` is decoded in the same way: UTF-16 with its mark.
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff") and begin[2:4] != b"\0\0":  # that is UTF-32
        return _UTF_16
    if begin[4:8] in _MAGIC and begin[:1] == b"\0":
        return _MESSAGES
    return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), None)


def _codec(kind: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """What makes a decoder, whose package is imported only now, and its errors for corruption."""
    window, errors = current_limits().window, (OSError, ValueError, zlib.error)
    if kind == "gzip":
        codec: Any = zlib
        with contextlib.suppress(ImportError):
            from isal import isal_zlib as codec
        return partial(codec.decompressobj, wbits=31), (*errors, codec.error)
    if kind == "xz":
        import lzma

        make = partial(lzma.LZMADecompressor, memlimit=window + (1 << 20))
        return make, (*errors, lzma.LZMAError)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2Decompressor, errors
    try:
        import zstandard
    except ImportError as missing:
        raise MissingPackageError("zstandard", "Reading a .zst file", "arrow") from missing
    decoder = zstandard.ZstdDecompressor(max_window_size=window)
    return decoder.decompressobj, (*errors, zstandard.ZstdError)


def _unpacked(kind: str, source: Source, raw: IO[bytes]) -> Iterator[bytes]:
    """Yield the decompressed bytes of a source's stream, as far as they go."""
    make, errors = _codec(kind)
    size = 0
    try:
        for piece in (_messages if kind == _MESSAGES else _members)(kind, source, raw, make):
            size += len(piece)
            source.check_memory(size)
            yield piece
    except LatencyKitError:
        raise
    except errors as error:
        if re.search(r"(?i)memory (?:usage )?limit|too much memory", str(error)):
            raise InputTooLargeError(
                f"{source.shown}: the {kind} stream looks back on more than "
                f"{current_limits().window:,} bytes; --limit window=SIZE (lk.limits) allows more"
            ) from None
        seen = f"the compressed stream is corrupt ({error})"
        raise source.corrupt(None, seen, "", "decompress it by hand and see") from None


def _members(kind: str, source: Source, raw: IO[bytes], make: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the pieces of compressed members, one behind the other."""
    size, most = (_ZSTD_PIECE, ()) if kind == "zstd" else (_PIECE, (_LARGEST,))
    decoder, piece, full = make(), b"", False
    while True:
        if decoder.eof:
            piece, full = decoder.unused_data.lstrip(b"\0"), False
            while len(piece) < 6 and (more := raw.read(_PIECE)):
                piece = (piece + more).lstrip(b"\0")
            if not piece or piece[1:4] == _SKIPPABLE:
                return
            if compression(piece) != kind:
                raise ValueError("other bytes follow its end")
            decoder = make()
        elif not full and not (piece := piece or raw.read(size)):
            source.cut = True
            return
        ready = decoder.decompress(piece, *most)
        # whether the decoder may have more without more input
        piece, full = (
            getattr(decoder, "unconsumed_tail", b""),
            bool(most) and len(ready) >= _LARGEST,
        )
        yield ready


def _messages(_: str, source: Source, raw: IO[bytes], make: Callable[[], Any]) -> Iterator[bytes]:
    """Yield decompressed messages: JSON as a line, others with their length before them."""
    most = current_limits().line
    while begin := raw.read(4):
        size = int.from_bytes(begin, "big")
        frame = raw.read(min(size, most))
        if len(begin) < 4 or len(frame) < size:
            source.cut = True
            return
        decoder, message = make(), b""
        for at in range(0, size, _ZSTD_PIECE):
            message += decoder.decompress(frame[at : at + _ZSTD_PIECE])
            if len(message) > most:
                raise ValueError(f"a message has more than {most:,} bytes")
        if size and not decoder.eof:
            raise ValueError("a message ends early")
        is_json = message.lstrip()[:1] in (b"{", b"[")
        if message:
            yield message + b"\n" if is_json else len(message).to_bytes(4, "big") + message


def _utf_8(raw: IO[bytes]) -> Iterator[bytes]:
    """Yield text of UTF-16 as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    while piece := raw.read(_PIECE):
        yield decoder.decode(piece).encode("utf-8", "replace")


def _bare_lines(
    prefix: str, pasted: tuple[tuple[bytes, bytes], ...], raw: IO[bytes]
) -> Iterator[bytes]:
    """Yield whole lines without what stands before each of them, and what was pasted with them."""
    if prefix:
        pasted = (*pasted, (rf"(?m)\n(?:{prefix})".encode(), b"\n"))
    waiting, longest, ended = io.BytesIO(), current_limits().line, False
    while not ended:
        piece = raw.read(_PIECE)
        ended = not piece
        # the splitting into lines refuses one that is too long
        whole = ended or waiting.tell() > longest
        waiting.write(piece[: (end := len(piece) if whole else piece.rfind(b"\n") + 1)])
        if end or ended:
            lines = b"\n" + waiting.getvalue()
            for pattern, instead in pasted:
                lines = re.sub(pattern, instead, lines)
            yield lines[1:]
            waiting = io.BytesIO()
        waiting.write(piece[end:])


class _Pieces(io.RawIOBase):
    """What a function makes of a stream, piece by piece; going back begins anew."""

    def __init__(self, raw: IO[bytes], pieces_of: Callable[[IO[bytes]], Iterator[bytes]]) -> None:
        self._raw, self._pieces_of = raw, pieces_of
        self._begin()

    def _begin(self) -> None:
        self._pieces, self._ready, self._at = self._pieces_of(self._raw), b"", 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True: forwards by reading, backwards by beginning anew."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        while not self._ready:
            if (piece := next(self._pieces, None)) is None:
                return 0
            self._ready = piece
        size = min(len(self._ready), len(buffer))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        self._at += size
        return size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place counted from the beginning, or from here."""
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of a compressed stream is not known")
        target = offset if whence == io.SEEK_SET else self._at + offset
        if target < self._at:
            self._raw.seek(0)
            self._begin()
        while self._at < target and self.read(min(_LARGEST, target - self._at)):
            pass
        return self._at

    def close(self) -> None:
        """Close the stream, too."""
        self._raw.close()
        super().close()


# ------------------------------------------------------------
# What every reader is made of: a source that can be opened again, its head, the options, and
# `Format`.

HEAD_SIZE = 64 * 1024
_BASE_PIECE = 4 << 20
_LONG = 500  # characters of what is quoted in an error


class Confidence(IntEnum):
    """How sure a format is that an input is its own."""

    NO = 0
    GENERIC = 1
    LIKELY = 2
    CERTAIN = 3


@record()
class Head:
    """The beginning of an input, decompressed: all that sniffing sees."""

    name: str  # of the file, without folder and compression suffix
    data: bytes  # up to 64 KiB
    # on disk, for formats that are a directory or tell themselves by their end
    path: Path | None = None

    @property
    def is_dir(self) -> bool:
        """True if the input is a directory."""
        return self.path is not None and self.path.is_dir()

    @property
    def whole(self) -> bool:
        """True if `data` is all there is."""
        return len(self.data) < HEAD_SIZE

    @cached_property
    def text(self) -> str:
        """The head as text: UTF-8 without byte order mark, line ends as ``\\n``."""
        return self.data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the head; a last line that the head cuts is left out."""
        lines = self.text.splitlines()
        return lines if self.whole or len(lines) < 2 else lines[:-1]

    @property
    def suffix(self) -> str:
        """Lower-case suffix of the name, with its dot."""
        return Path(self.name).suffix.lower()


def drop(_: str) -> None:
    """Report nothing; by name, so that options, and a log that holds them, can be pickled."""


@record(kw_only=True)
class ReadOptions:
    """The user's options for an input."""

    unit: str | None = None  # of the stored values: ``ns``, ``us``, ``ms``, ``s``, ``none``
    column: str | None = None  # of latencies, and of starts, in tables of raw samples
    start_column: str | None = None
    pattern: str | None = None  # what a line of a log looks like, see `tools.log_lines`
    lenient: bool = False  # skip corrupt lines, and report each
    # Only histograms will be asked for: long tables of samples are counted while they are read,
    # where the source knows the intended starts by this `measure`.
    counted: bool = False
    measure: Measure | None = None
    # That were asked for by name. A reader of an output that holds many unlike ones gives its main
    # series where none is named, and all it holds where one is.
    series: tuple[str, ...] = ()
    columns: bool = False  # attach further columns to samples, else they are read when first used
    jobs: int | None = None  # threads that decode one file; None: see `latencykit._threads.jobs`
    # takes one sentence at a time: what was skipped, and why
    report: Callable[[str], None] = field(default=drop, repr=False)
    skipped: SkippedLines = field(default_factory=SkippedLines, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit is not None:
            checked_unit(self.unit)
        if self.jobs is not None and self.jobs < 1:
            raise InvalidArgumentError(f"jobs is the number of threads, at least 1: {self.jobs}")
        if self.measure not in (None, "response", "service"):
            raise InvalidArgumentError(
                f"measure must be 'response' or 'service', not {self.measure!r}"
            )

    def resolve_unit(self, default: str, origin: UnitFrom = "format") -> tuple[str, UnitFrom]:
        """Return the unit of the values and its origin: the option wins over the `default`."""
        return (default, origin) if self.unit is None else (self.unit, "option")

    def refuse(self, source: Source, line: int | None, seen: str, expected: str) -> None:
        """Raise for a corrupt line; under `lenient` skip it, and count it."""
        self.reject(source.corrupt(line, seen, expected, "--lenient skips the line"))

    def reject(self, error: CorruptInputError, count: int = 1) -> None:
        """Raise `error`, or under `lenient` count its lines and report the first few."""
        if not self.lenient:
            raise error
        self.skipped.total += count
        if self.skipped.reported < _FIRST:
            self.skipped.reported += 1
            self.report(
                f"skipped: {CorruptInputError(error.path, error.line, error.seen, error.expected)}"
            )


@record()
class Format:
    """One input or output format."""

    name: str  # as ``--format-in`` takes it: ``hlog``, ``wrk2``, ``vegeta-json``
    title: str  # what it is, in words
    level: str  # richest data type that it gives: ``samples``, ``log``, ``histogram``, ``summary``
    suffixes: tuple[str, ...]  # usual endings of file names, with the dot
    sniff: Callable[[Head], Confidence]  # never raises
    # Returns series by name, as a mapping or in pairs. The name ``""`` stands for "named after the
    # file"; of pairs with equal names, later ones are numbered.
    read: Callable[[Source, ReadOptions], dict[str, Data] | Series]
    write: Callable[..., None] | None = None  # (data type, path, **options)
    unit: str | None = (
        None  # of the stored values by the format's rules; None: the output states it
    )
    example: str = ""  # the command that makes such an output


class Source:
    """An input that can be opened again and again: a path, or a pipe spooled to disk."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.shown = without_secrets(str(path))  # the path as given, for messages
        self.cut = False  # whether a compressed stream was found to end early
        # whether JSON or the like was read of it, where a value of any type may stand anywhere
        self.json = False
        # what terminals, editors and pages add to a text, and what is read instead, see `clean`
        self.pasted: tuple[tuple[bytes, bytes], ...] = ()
        self.prefix = ""  # pattern of what stands before every line and is left out
        self.above = 0  # lines above the text, which are left out
        self.lines: int | None = None  # of a text with other words below, how many are its own
        # of a log that was decoded while it was read, its highest latency in the log's unit
        self.highest: float | None = None
        self.path = Path(path)
        # where the bytes lie: the path, or the copy of standard input or of another pipe
        self.file = _spooled(self) if self.shown == "-" or self.path.is_fifo() else self.path

    @cached_property
    def is_dir(self) -> bool:
        """True if the source is a directory."""
        return self.file.is_dir()

    @property
    def name(self) -> str:
        """File name without its folder and compression suffix; ``stdin`` for standard input."""
        if self.shown == "-":
            return "stdin"
        path = self.path if self.path.name not in ("", ".", "..") else self.path.resolve()
        return path.stem if path.suffix.lower() in (".gz", ".zst", ".xz", ".bz2") else path.name

    def open(self) -> IO[bytes]:
        """Open the bytes, decompressed by magic number; gzip, xz, bzip2 and zstd are understood."""
        head = self.__dict__.get("head")
        if head is not None and head.whole and not self.is_dir:
            return io.BytesIO(head.data)  # a small file is read once
        raw = self._raw()
        try:
            kind = vars(self)["packing"] = compression(raw.read(8))
            raw.seek(0)
            stream: Any = raw
            if kind is not None:
                decode = _utf_8 if kind == _UTF_16 else partial(_unpacked, kind, self)
                stream = io.BufferedReader(_Pieces(raw, decode), 1 << 17)
            if self.prefix or self.pasted:
                lines = _Pieces(stream, partial(_bare_lines, self.prefix, self.pasted))
                stream = io.BufferedReader(lines, 1 << 17)
            for _ in range(self.above):
                stream.readline()
            if self.lines is not None:
                with stream as whole:
                    stream = io.BytesIO(b"".join(islice(whole, self.lines)))
            return cast("IO[bytes]", stream)
        except (CorruptInputError, MissingPackageError):
            raw.close()
            raise

    def _raw(self) -> IO[bytes]:
        try:
            return io.BufferedReader(_File(self.file, self), 1 << 17)
        except IsADirectoryError:
            raise CorruptInputError(self.shown, None, "this is a directory", "a file") from None
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            kind = MissingInputError if missing else CorruptInputError
            raise kind(self.shown, None, f"cannot be read: {error.strerror or error}") from None

    @cached_property
    def packing(self) -> str | None:
        """How the bytes are compressed, or ``UTF-16``; see `compression`."""
        with self._raw() as raw:
            return compression(raw.read(8))

    @property
    def compressed(self) -> bool:
        """True if the bytes have to be decompressed: seeking in them is slow."""
        return self.packing is not None

    @cached_property
    def size(self) -> int:
        """Bytes of the file as it lies on disk, compressed or not."""
        return self.file.stat().st_size

    @cached_property
    def head(self) -> Head:
        """The first 64 KiB; empty for a directory."""
        if self.is_dir:
            return Head(self.path.resolve().name, b"", self.path)
        with self.open() as stream:
            return Head(self.name, stream.read(HEAD_SIZE), self.file)

    def clean(self, added: tuple[tuple[bytes, bytes], ...]) -> bool:
        """Leave out what is not part of a text, such as `PASTED`; False if it has none of it."""
        # Lines keep their numbers.
        head = self.head
        if head.is_dir or added[0] in self.pasted or b"\0" in head.data or "\ufffd" in head.text:
            return False
        if not any(re.search(pattern, b"\n" + head.data) for pattern, _ in added):
            return False
        self.pasted += added
        del vars(self)["head"]
        return True

    def check_memory(self, size: int, what: str = "its content", *, whole: bool = False) -> None:
        """Raise where what is to be decoded takes more memory than a file of this size may."""
        # With `whole` it is kept at once.
        bounds, name = current_limits(), "unpacked"
        limit = bounds.of_packed(self.size)
        if whole and bounds.whole < limit:
            limit, name = bounds.whole, "whole"
        if size > limit:
            raise InputTooLargeError(
                f"{self.shown}: {what} takes more than {limit:,} bytes, unpacked from a file of "
                f"{self.size:,}; if you trust it, --limit {name}=SIZE (lk.limits) allows more"
            )

    def bytes(self) -> bytes:
        """Return all bytes of a source that has to be taken whole."""
        limit = current_limits().whole
        pieces, size = [], 0
        with self.open() as stream:
            # to ask for all at once would take the limit's memory
            while size <= limit and (piece := stream.read(_BASE_PIECE)):
                pieces.append(piece)
                size += len(piece)
        if size > limit:
            unpacked = " unpacked" if self.compressed else ""
            raise InputTooLargeError(
                f"{self.shown}: more than {limit:,} bytes{unpacked}, and it is taken whole; "
                "cut it into parts, or allow more: --limit whole=SIZE (lk.limits)"
            )
        return b"".join(pieces)

    def text(self) -> str:
        r"""Return all text: UTF-8 without byte order mark, line ends as ``\n``, others escaped."""
        data = self.bytes()
        return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")

    def corrupt(
        self, line: int | None, seen: str, expected: str = "", hint: str = ""
    ) -> CorruptInputError:
        """Return the error that names this source, in one line whatever is quoted in it."""
        line = None if line is None else line + self.above
        return CorruptInputError(
            self.shown, line, printable(seen, _LONG), printable(expected, _LONG), hint
        )


class _File(io.FileIO):
    """A file whose failing disk or file server is one clear line."""

    def __init__(self, path: Path, source: Source) -> None:
        super().__init__(path, "rb")
        self._source = source

    def readinto(self, buffer: Any) -> int | None:
        """Fill a buffer."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            self.close()
            seen = f"cannot be read: {error.strerror or error}"
            raise self._source.corrupt(None, seen) from None


_PROMPT = (
    rb"\n(?:(?:\[[\w.-]{1,80}@[^\]\n]{1,80}\]|[\w.-]{1,80}@[\w.-]{1,80}[^\s$#%>]{0,80})[$#%>]"
    rb"|(?:PS )?[A-Z]:\\[^\n<>|]{0,80}>)"
)
_SECONDS = rb"\t\d+m\d+[.,]\d+s(?:\r?\n|\Z)"
_CLOSING = (rb"(?<=<)/(?:code|pre|p)>|(?<=`)``", rb"/(?:code|pre|p)>", rb"``")
# Each pattern begins with a byte that it needs, be it the line break before a line or the text: `^`
# and lookbehinds first take ten times as long. They are compiled when they are needed.
PASTED = (
    (rb"\A\n\xef\xbb\xbf", b"\n"),
    # colours and links; what clears a line or the screen parts one report from the next
    (rb"\x1b(?:\[[\d;]{0,30}m|\]8;[^\x07\x1b]*+(?:\x07|\x1b\\))", b""),
    (rb"\xc2\xa0(?:(?<!\d..)|(?!\d))", b" "),  # not of a number of French
    (rb"(?m)\n( {0,8})(?:```|~~~)(?:[\w-]{0,20}(?=\r?$))?", rb"\n\1"),
    (rb"(?m) (?<!  ) *+(?=\r?$)", b""),
    (rb"(?m)\n`([^`\n]{1,4000})`(?=\r?$)", rb"\n\1"),
    (rb"\*\*(?<![*/\w]..)([\w.+\xc2-][^*/\n]{0,200})\*\*(?![*/])", rb"\1"),
    (rb"(?m)[<`](?:(?<![>\s].)|(?<=\A\n.))(?:%s)(?:<%s|`%s)*(?=\r?$)" % _CLOSING, b""),
    (rb"\n(?:</code>)?</?pre>(?:<code[^>\n]{0,80}>)?", b"\n"),
    (rb"(?m)" + _PROMPT + rb"(?=\r?$)", b"\n"),
    (rb"\n\[[\w.-]{1,80}@[^\]\n]{1,80}\][$#%>] (?=\S)", b"\n$ "),
    (rb"\n(?<=[^\n]\n)\n*real%suser%ssys%s\s*\Z" % ((_SECONDS,) * 3), b"\n"),  # bash's time
    (rb"\n[$%#\xe2\x9d\xaf]{1,3}\s*\Z", b"\n"),
)
"""A byte order mark, colours, fixed blanks, blanks at ends, marks of Markdown and HTML, prompts."""
COMMANDS = ((rb"(?:\n[$\xe2\x9d\xaf]{1,3}|" + _PROMPT + rb") [^\n]*", b"\n"),)
ESCAPED = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&amp;", b"&"))
"""Characters as the source of a page has them; ``&amp;`` comes last."""
DOUBLED = ((rb"\n[ \t\r]*+\n", b"\n"),)
LITERAL = (
    (rb"\A\s*(?:[\w$=]{1,60} ){0,3}(?=[{\[])", b"\n"),
    (rb"(?<=: )\[(?:Object|Array|Function|Circular|Getter)[^\]\n]{0,80}\]", b"null"),
    (rb"((?::|=>) )(?:[A-Za-z]\w{0,40}(?:\(\d+\))? )?(?:\[\w+\] )?(?=[{\[])", rb"\1"),
    (rb"'([^'\"\n\\]*)'", rb'"\1"'),
    (rb"\b(?:np|numpy)\.\w{1,20}\(([^()\n]*)\)", rb"\1"),
    (rb'(?<![^\s{,]):?"?([A-Za-z_$][\w$.]*|\d[\d.]*)"? ?(?::|=>) ', rb'"\1": '),
    (rb"(?<=: )(\d{4}-\d\d-\d\d[T ][\d:.]{5,}Z?)", rb'"\1"'),
    (rb"\b(?:undefined|None|nil)\b", b"null"),
    (rb"(?m)(?<=\d)n?,?(?=\s*[}\]])|\.\.\. \d+ more items?", b""),
    (rb"\bTrue\b", b"true"),
    (rb"\bFalse\b", b"false"),
)
"""What JSON has instead of what Node.js, Python and Ruby print of an object."""


class SeveralDocuments(Exception):  # noqa: N818 - no error: each is read on its own
    """Documents one after the other where a reader takes one: texts, and the lines before each."""

    def __init__(self, parts: list[tuple[str, int]]) -> None:
        super().__init__(f"{len(parts)} documents")
        self.parts = parts


class DocumentSource(Source):
    """One of several documents of a source, in memory; its errors name the line of the file."""

    def __init__(self, source: Source, data: bytes, lines_before: int) -> None:
        vars(self).update(vars(source), packing=None, size=len(data), is_dir=False)
        vars(self).pop("head", None)
        self._data = data
        self.above += lines_before

    def open(self) -> IO[bytes]:
        """Open the document's bytes."""
        return io.BytesIO(self._data)


def _spooled(source: Source) -> Path:
    """A pipe's content on disk, where it can be read again; it goes away with the source."""
    piped = source.shown == "-"
    if piped and sys.stdin is None:
        raise source.corrupt(
            None, "standard input is closed", "the output of a tool", "pipe it in, or name a file"
        )
    import shutil

    spool = new_temporary("latencykit-")
    weakref.finalize(source, spool.unlink, missing_ok=True)
    given = contextlib.nullcontext(sys.stdin.buffer) if piped else source.path.open("rb")
    with given as pipe, naming(spool, spool), spool.open("wb") as stream:
        shutil.copyfileobj(pipe, stream)
    return spool


def level_name(data: Data) -> str:
    """Return ``samples``, ``log``, ``histogram`` or ``summary``."""
    name = type(data).__name__
    return {"HistogramLog": "log"}.get(name, name.lower())
