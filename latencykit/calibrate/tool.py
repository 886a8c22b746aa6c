"""The load generator under test: its command, its run, and what it printed."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Self

from latencykit.errors import CorruptInputError, LatencyKitError, UnknownFormatError, UsageError
from latencykit.formats.base import ReadOptions, Source
from latencykit.formats.reading import detect, read_source
from latencykit.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from latencykit.formats.base import Rung

__all__ = ["PLACES", "Tool", "fill", "read_output"]

PLACES = ("url", "host", "port", "rate", "connections", "duration", "rate_per_connection", "requests", "out")
"""What is filled into a command."""

_PLACE = re.compile(r"\{(" + "|".join(PLACES) + r")\}")
MOST_OUTPUT = 1 << 28


def fill(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the command with its ``{places}`` filled; other braces stay as they are.

    Raises
    ------
    UsageError
        For a place that has no value here.

    Examples
    --------
    >>> fill(["hey", "-q", "{rate}", "{url}", "{x}"], {"rate": "50", "url": "http://127.0.0.1:1/"})
    ['hey', '-q', '50', 'http://127.0.0.1:1/', '{x}']
    """
    missing = {name for word in command for name in _PLACE.findall(word)} - set(values)
    if missing:
        raise UsageError(f"{{{min(missing)}}} cannot be filled in: --pid of a server needs --url to know where it serves")
    return [_PLACE.sub(lambda found: values[found[1]], word) for word in command]


class Tool:
    """A load generator that runs in a session of its own, its output in files.

    Parameters
    ----------
    command : sequence of str
        Filled in.
    folder : Path
        Where its output goes.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.command = list(command)
        self.stdout, self.stderr = folder / "stdout.txt", folder / "stderr.txt"

    def __enter__(self) -> Self:
        with self.stdout.open("wb") as out, self.stderr.open("wb") as err:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                    self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as error:
                raise UsageError(f"{self.command[0]}: cannot be started: {error.strerror or error}") from None
        self.started = time.perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says "not permitted" of a group of zombies
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def code(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    def sleep_until(self, moment: int) -> bool:
        """Sleep until a time by ``perf_counter_ns``; return whether the tool still runs then."""
        while (left := (moment - time.perf_counter_ns()) / 1e9) > 0:
            if self.code is not None:
                return False
            time.sleep(min(left, 0.05))
        return self.code is None

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether it came in time."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def said(self, limit: int = 300) -> str:
        """Return the end of what it printed, for a message."""
        for path in (self.stderr, self.stdout):
            text = path.read_bytes()[-4096:].decode("utf-8", "replace").split("\n")
            last = " / ".join(line.strip() for line in text if line.strip())[-limit:]
            if last:
                return printable(last, limit)
        return "nothing"


def read_output(paths: Sequence[Path], command: Sequence[str], format: str | None = None) -> dict[str, Rung]:  # noqa: A002
    """Read the one of a tool's outputs that is recognised best; the first of equals.

    Parameters
    ----------
    paths : sequence of Path
        An output file, standard output, standard error.
    command : sequence of str
        For the message.
    format : str, optional
        Name of the format, where it cannot be recognised.

    Raises
    ------
    LatencyKitError
        Where none is an output that a reader knows.
    """
    best: tuple[int, Path] | None = None
    for path in paths:
        if not path.exists() or not path.stat().st_size:
            continue
        if path.stat().st_size > MOST_OUTPUT:
            raise LatencyKitError(f"{command[0]} printed more than {MOST_OUTPUT >> 20} MiB; run it for a shorter time")
        source = Source(path)
        try:
            confidence = int(detect(source, format).sniff(source.head))
        except (UnknownFormatError, CorruptInputError):
            continue
        if best is None or confidence > best[0]:
            best = (confidence, path)
    if best is None:
        raise LatencyKitError(
            f"no reader knows what {shlex.join(command)} printed; make it print its full output "
            "(`latencykit formats` lists what can be read), or write a file to {out}"
        )
    return read_source(Source(best[1]), ReadOptions(), format)
