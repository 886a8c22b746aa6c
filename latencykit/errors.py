"""What can go wrong, in the words of the person who has to mend it.

Every error that latencykit raises on purpose is a `LatencyKitError`, and its text is one line: where, what was
seen, what was expected, and a hint. The command line prints that line and exits with status 2.
"""

from __future__ import annotations

import os

__all__ = [
    "AlreadyCorrectedError",
    "CorruptInputError",
    "DataNotAvailableError",
    "IncompatibleDataError",
    "InputError",
    "InputTooLargeError",
    "InvalidArgumentError",
    "LatencyKitError",
    "MissingPackageError",
    "ReaderError",
    "UnknownFormatError",
]


class LatencyKitError(Exception):
    """The parent of all errors that latencykit raises on purpose."""


class InvalidArgumentError(LatencyKitError, ValueError):
    """An argument that cannot be used: a percentile above 100, a malformed duration, an unknown series."""


class DataNotAvailableError(LatencyKitError, LookupError):
    """The source does not hold what was asked for; the message says which output of that tool would."""


class IncompatibleDataError(LatencyKitError, ValueError):
    """Things that must not be added: different units, measures or corrections, or summaries."""


class AlreadyCorrectedError(LatencyKitError):
    """Coordinated omission was already corrected for; doing it twice would invent latencies."""


class InputError(LatencyKitError):
    """Input that cannot be read: corrupt, of no known format, or larger than a limit."""


class InputTooLargeError(InputError):
    """A limit that protects memory or time was reached."""


class UnknownFormatError(InputError):
    """No reader recognises the input, or several do equally well."""


class ReaderError(LatencyKitError):
    """A reader broke over a file in a way that it does not foresee: a bug in the reader; the exception is the cause."""


class MissingPackageError(LatencyKitError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    package : str
        The package's name, as pip knows it.
    purpose : str
        What needs it, as the beginning of a sentence.
    extra : str
        The extra of latencykit that brings it.
    """

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}; install it with: pip install 'latencykit[{extra}]'"
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
        What stands there.
    expected : str, optional
        What should.
    hint : str, optional
        What the user can do.

    Examples
    --------
    >>> print(CorruptInputError("a.hlog", 7, "the timestamp is 'nan'", "seconds", "--lenient skips the line"))
    a.hlog:7: the timestamp is 'nan'; expected seconds; --lenient skips the line
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        line: int | None,
        seen: str,
        expected: str = "",
        hint: str = "",
    ) -> None:
        self.path, self.line, self.seen, self.expected, self.hint = (
            os.fspath(path),
            line,
            seen,
            expected,
            hint,
        )
        super().__init__(self._text())

    def _text(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        expected = f"expected {self.expected}" if self.expected else ""
        return f"{where}: " + "; ".join(part for part in (self.seen, expected, self.hint) if part)

    def __reduce__(self) -> tuple[type[CorruptInputError], tuple[str, int | None, str, str, str]]:
        return type(self), (self.path, self.line, self.seen, self.expected, self.hint)
