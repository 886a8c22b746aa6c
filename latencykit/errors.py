"""The errors that latencykit raises.

Every error that latencykit raises on purpose is a `LatencyKitError`, and its text is one line:
where, what was seen, what was expected, and a hint. The command line prints that line and exits
with status 2.
"""

from __future__ import annotations

import os
from typing import Any


class LatencyKitError(Exception):
    """The parent of all errors that latencykit raises on purpose."""


class InvalidArgumentError(LatencyKitError, ValueError):
    """An invalid argument: a percentile above 100, a malformed duration, an unknown series."""


class DataNotAvailableError(LatencyKitError, LookupError):
    """The source does not contain the answer; the message names an output of the tool that does."""


class IncompatibleDataError(LatencyKitError, ValueError):
    """Data that cannot be merged: different units, latency types or corrections, or summaries."""


class AlreadyCorrectedError(LatencyKitError):
    """Coordinated omission was already corrected for; doing it twice would invent latencies."""


class InputError(LatencyKitError):
    """Input that cannot be read: corrupt, of no known format, or larger than a limit."""


class InputTooLargeError(InputError):
    """A limit that protects memory or time was reached."""


class UnknownFormatError(InputError):
    """No reader recognises the input, or several do equally well."""


class ReaderError(LatencyKitError):
    """A reader failed unexpectedly: a bug in the reader; the exception is its cause."""


class MissingPackageError(LatencyKitError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    package : str
        The package's name, as pip knows it.
    purpose : str
        The feature that needs it, as the beginning of a sentence.
    extra : str
        The extra of latencykit that brings it.
    """

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}; "
            f"install it with: pip install {package}, "
            f"or '.[{extra}]' in a checkout of latencykit"
        )
        self._given = (package, purpose, extra)

    def __reduce__(self) -> tuple[type[MissingPackageError], tuple[str, str, str]]:
        return type(self), self._given


class CorruptInputError(InputError):
    """Input that is corrupt or not what it claims to be.

    Parameters
    ----------
    path : str or os.PathLike
        The file, or ``-`` for standard input.
    line : int or None
        The physical line, counted from 1; None where the input has no lines.
    seen : str
        The text or value found there.
    expected : str, optional
        The text or value expected there.
    hint : str, optional
        Advice for the user.

    Examples
    --------
    >>> error = CorruptInputError("a.hlog", 7, "the time is 'nan'", "seconds", "--lenient skips it")
    >>> print(error)
    a.hlog:7: the time is 'nan'; expected seconds; --lenient skips it
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        line: int | None,
        seen: str,
        expected: str = "",
        hint: str = "",
    ) -> None:
        self.path, self.line = os.fspath(path), line
        self.seen, self.expected, self.hint = seen, expected, hint
        where = self.path if line is None else f"{self.path}:{line}"
        parts = (seen, f"expected {expected}" if expected else "", hint)
        super().__init__(f"{where}: " + "; ".join(filter(None, parts)))

    def __reduce__(self) -> tuple[type[CorruptInputError], tuple[str, int | None, str, str, str]]:
        return type(self), (self.path, self.line, self.seen, self.expected, self.hint)


def require(value: object, kinds: Any, expected: str) -> None:
    """Raise InvalidArgumentError unless a value is of a type, or of one of several."""
    if not isinstance(value, kinds):
        raise InvalidArgumentError(f"expected {expected}, not {type(value).__name__}")


def require_path(value: object) -> None:
    """Raise InvalidArgumentError unless a value is the path or the URL of a file."""
    require(value, (str, os.PathLike), "a path or a URL as text")


class MissingInputError(CorruptInputError, FileNotFoundError):
    """A file that is not there: a `FileNotFoundError` with the text of every other input error."""


class PayloadError(LatencyKitError, ValueError):
    """An HdrHistogram payload that is corrupt or not a possible histogram."""

    # Its text is the reason alone; the reader of the file adds where it is.


class RowError(PayloadError):
    """A corrupt payload among several, and its place, from 0."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row

    def __reduce__(self) -> tuple[type[RowError], tuple[int, str]]:
        return type(self), (self.row, str(self))


class UndecidedWarning(UserWarning):
    """The budget was spent before a latency assertion was decided."""
