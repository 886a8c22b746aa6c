"""What every reader is made of: a source that can be opened again, its head, the options, and `Format`."""

from __future__ import annotations

import io
import os
import sys
import weakref
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from latencykit.errors import CorruptInputError, LimitError, MissingPackageError
from latencykit.formats.damage import Tally
from latencykit.formats.unpacking import Unpacked, compression
from latencykit.formats.watching import Watch, Watched
from latencykit.histogram import Histogram
from latencykit.limits import in_force
from latencykit.log import HistogramLog
from latencykit.outputs import naming
from latencykit.samples import Samples
from latencykit.summary import Summary
from latencykit.units import checked_unit, printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from latencykit.run import Measure, UnitFrom

__all__ = ["Confidence", "Format", "Head", "ReadOptions", "Rung", "Source", "rung_name"]

Rung = Samples | HistogramLog | Histogram | Summary
HEAD_SIZE = 64 * 1024
_PIECE = 4 << 20
_LONG = 500  # characters of what is quoted in an error


class Confidence(IntEnum):
    """How sure a format is that an input is its own."""

    NO = 0
    GENERIC = 1
    LIKELY = 2
    CERTAIN = 3


@dataclass(frozen=True)
class Head:
    """The beginning of an input, decompressed: all that sniffing sees.

    Attributes
    ----------
    name : str
        File name without its folder, and without a compression suffix.
    data : bytes
        Up to 64 KiB.
    path : Path or None
        Where it lies on disk, for formats that are a directory or tell themselves by their end.
    """

    name: str
    data: bytes
    path: Path | None = None

    @property
    def is_dir(self) -> bool:
        """Whether the input is a directory."""
        return self.path is not None and self.path.is_dir()

    @property
    def whole(self) -> bool:
        """Whether `data` is all there is."""
        return len(self.data) < HEAD_SIZE

    @cached_property
    def text(self) -> str:
        """The head as text: UTF-8 without its byte order mark, line ends as ``\\n``, foreign bytes replaced."""
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


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about an input.

    Attributes
    ----------
    unit : str or None
        Unit of the stored values: ``ns``, ``us``, ``ms``, ``s``, ``none``.
    column, start_column : str or None
        Column of latencies and of start times in tables of raw samples.
    lenient : bool
        Skip damaged lines, and report each.
    counted : bool
        Only histograms will be asked for: long tables of samples are counted while they are read.
    measure : str or None
        What is counted then, where the source knows the intended starts: ``response`` or ``service``.
    series : tuple of str
        Series that were asked for by name. A reader of an output that holds many unlike ones gives its main series
        where none is named, and all it holds where one is.
    report : callable
        Takes one sentence at a time: what was skipped, and why.
    tally : Tally
        Counts what was skipped.
    """

    unit: str | None = None
    column: str | None = None
    start_column: str | None = None
    lenient: bool = False
    counted: bool = False
    measure: Measure | None = None
    series: tuple[str, ...] = ()
    report: Callable[[str], None] = field(default=lambda _: None, repr=False)
    tally: Tally = field(default_factory=Tally, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit is not None:
            checked_unit(self.unit)

    def resolve_unit(self, default: str, origin: UnitFrom = "format") -> tuple[str, UnitFrom]:
        """Return the unit of the stored values, and where it comes from: the option wins over the reader's `default`."""
        return (default, origin) if self.unit is None else (self.unit, "option")

    def damaged(self, error: CorruptInputError, count: int = 1) -> None:
        """Raise `error`, or under `lenient` count its lines, and report the first few, so that the reader can go on."""
        if not self.lenient:
            raise error
        if self.tally.add(error.seen, count):
            self.report(f"skipped: {CorruptInputError(error.path, error.line, error.seen, error.expected)}")


@dataclass(frozen=True)
class Format:
    """One input or output format.

    Attributes
    ----------
    name : str
        Short name, as ``--format-in`` takes it: ``hlog``, ``wrk2``, ``vegeta-json``.
    title : str
        What it is, in words.
    rung : str
        Richest rung that it gives: ``samples``, ``log``, ``histogram`` or ``summary``.
    suffixes : tuple of str
        Usual file name endings, with the dot.
    sniff : callable
        Head → Confidence; never raises.
    read : callable
        (Source, ReadOptions) → series name → rung. The name ``""`` stands for "named after the file".
    write : callable or None
        (rung, path, **options) → None.
    unit : str or None
        Unit of the stored values by the format's own rules; None where the output states it.
    example : str
        The command that makes such an output.
    """

    name: str
    title: str
    rung: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Head], Confidence]
    read: Callable[[Source, ReadOptions], dict[str, Rung]]
    write: Callable[..., None] | None = None
    unit: str | None = None
    example: str = ""


class Source:
    """An input that can be opened again and again: a path, or standard input spooled to disk.

    Parameters
    ----------
    path : str or os.PathLike
        A file, a directory where a tool writes one, or ``-``.

    Attributes
    ----------
    shown : str
        The path as given, for messages.
    path : Path
        The same as a path.
    file : Path
        Where the bytes lie: `path`, or the copy of standard input.
    cut : bool
        Whether a compressed stream was found to end early.
    json : bool
        Whether JSON was read of it, where a value of any type may stand anywhere.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.shown = without_secrets(str(path))
        self.cut = False  # whether a compressed stream ended early
        self.json = False
        self.path = Path(path)
        self._watch = Watch()
        self.file = _spooled(self) if self.shown == "-" else self.path

    @property
    def is_dir(self) -> bool:
        """Whether the source is a directory."""
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
        raw = self._raw()
        kind = compression(raw.read(6))
        raw.seek(0)
        if kind is None:
            return raw
        try:
            return cast("IO[bytes]", io.BufferedReader(Unpacked(raw, kind, self._note_cut, self._stream_damaged), 1 << 17))
        except MissingPackageError:
            raw.close()
            raise

    def _raw(self) -> IO[bytes]:
        try:
            return io.BufferedReader(Watched(self.file, self._watch, self._changed), 1 << 17)
        except IsADirectoryError:
            raise CorruptInputError(self.shown, None, "this is a directory", "a file") from None
        except OSError as error:
            raise CorruptInputError(self.shown, None, f"cannot be read: {error.strerror or error}") from None

    def _changed(self, how: str) -> CorruptInputError:
        return self.corrupt(None, how, "a file at rest", "read a copy, or read it when its writer is done")

    def _note_cut(self) -> None:
        self.cut = True

    def _stream_damaged(self, reason: str) -> CorruptInputError:
        return self.corrupt(None, reason, "", "decompress it by hand and see")

    @cached_property
    def compressed(self) -> bool:
        """Whether the bytes have to be decompressed: seeking in them is slow."""
        with self._raw() as raw:
            return compression(raw.read(6)) is not None

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

    def bytes(self) -> bytes:
        """Return all bytes of a source that has to be taken whole.

        Raises
        ------
        LimitError
            Where it is larger than the limit ``whole``.
        """
        limit = in_force().unpacked(self.size) if self.compressed else in_force().whole
        pieces, size = [], 0
        with self.open() as stream:
            while size <= limit and (piece := stream.read(_PIECE)):  # to ask for all at once would take the limit's memory
                pieces.append(piece)
                size += len(piece)
        if size > limit:
            unpacks = f" unpacked, from a file of {self.size:,}" if self.compressed else ""
            raise LimitError(
                f"{self.shown}: more than {limit:,} bytes{unpacks}, and it has to be taken whole; cut it into parts, "
                "or allow more: --limit whole=SIZE (lk.limits)"
            )
        return b"".join(pieces)

    def text(self) -> str:
        """Return all text: UTF-8 without byte order mark, line ends as ``\\n``, foreign bytes escaped so that nothing is lost.

        Raises
        ------
        CorruptInputError
            For UTF-16 and other wide encodings.
        """
        data = self.bytes()
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise CorruptInputError(self.shown, 1, "the text is UTF-16", "UTF-8", "convert it: iconv -f UTF-16 -t UTF-8")
        return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")

    def corrupt(self, line: int | None, seen: str, expected: str = "", way_out: str = "") -> CorruptInputError:
        """Return the error that names this source, in one line whatever is quoted in it."""
        return CorruptInputError(self.shown, line, printable(seen, _LONG), printable(expected, _LONG), way_out)


def _spooled(source: Source) -> Path:
    """Standard input on disk, where it can be read again; it goes away with the source."""
    if sys.stdin is None:
        raise source.corrupt(None, "standard input is closed", "the output of a tool", "pipe it in, or name a file")
    import shutil
    import tempfile

    handle, name = tempfile.mkstemp(prefix="latencykit-")
    weakref.finalize(source, Path(name).unlink, missing_ok=True)
    with naming(Path(name), Path(name)), os.fdopen(handle, "wb") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
    return Path(name)


def rung_name(rung: Rung) -> str:
    """Return ``samples``, ``log``, ``histogram`` or ``summary``."""
    return {Samples: "samples", HistogramLog: "log", Histogram: "histogram", Summary: "summary"}[type(rung)]
