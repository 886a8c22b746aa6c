"""What a Ctrl+Z test is asked to do, checked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from latencykit.calibrate.clients import loopback
from latencykit.calibrate.server import BACKLOG
from latencykit.calibrate.targets import MOST_WORKERS, CommandTarget, OwnTarget, ProcessTarget
from latencykit.calibrate.tool import fill
from latencykit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

from latencykit.calibrate.targets import Target

__all__ = ["Plan", "parse_part"]

LONGEST = 600.0
"""No run is longer than this, seconds."""


@dataclass(frozen=True)
class Plan:
    """What `ctrlz` was asked for; its parameters, durations in seconds, the service time in ns."""

    command: tuple[str, ...]
    server: str | Sequence[str] | None
    pid: int | None
    url: str | None
    stall: float
    duration: float
    rate: float
    connections: int
    at: str
    partial: Fraction | None
    service_time: float
    series: str | None
    format: str | None
    progress: Callable[[str], None]

    def __post_init__(self) -> None:
        if sys.platform == "win32":
            raise UsageError("Windows cannot freeze a process (it has no SIGSTOP); run this on Linux or macOS, or in WSL")
        if not self.command:
            raise UsageError("no command to test; write it behind --, as in: latencykit ctrlz -- hey -z {duration}s {url}")
        if not 0 < self.stall < self.duration <= LONGEST:
            raise UsageError(f"the stall must be shorter than the run, and the run at most {LONGEST:g} s long")
        if not (0 < self.rate <= 100_000 and 1 <= self.connections <= 10_000):
            raise UsageError("the rate must be up to 100,000 per second, and the connections 1 to 10,000")
        if self.takes("rate", "rate_per_connection") and self.rate * self.stall > 0.9 * BACKLOG:
            raise UsageError(
                f"{self.rate:g}/s for {self.stall:g} s are more requests than the kernel holds for a frozen server "
                f"({BACKLOG:,} connections); lower the rate, or shorten the stall"
            )
        if self.at not in ("middle", "end"):
            raise UsageError(f"at is 'middle' or 'end', not {self.at!r}")
        if sum(given is not None for given in (self.server, self.pid, self.partial)) > 1:
            raise UsageError("a server command, a process id and partial exclude each other: partial is about our own server")
        if self.url is not None:
            if self.server is None and self.pid is None:
                raise UsageError("url= (--url) says where a server of your own listens: name its command or its pid, too")
            loopback(self.url.replace("{port}", "1"))

    def target(self) -> Target:
        """Return the server to freeze, not yet started."""
        if self.server is not None:
            return CommandTarget(self.server, self.url)
        if self.pid is not None:
            return ProcessTarget(self.pid, self.url)
        part = self.partial or Fraction(1)
        return OwnTarget(self.service_time, part.denominator, part.numerator)

    def filled(self, url: str, folder: Path) -> list[str]:
        """Return the command with its places filled."""
        values = {
            "rate": f"{self.rate:g}", "rate_per_connection": f"{self.rate / self.connections:g}",
            "connections": str(self.connections), "duration": f"{self.duration:g}",
            "requests": str(round(self.rate * self.duration)), "out": str(folder / "out"),
        }  # fmt: skip
        if url:
            host, port = loopback(url)
            values |= {"url": url, "host": host, "port": str(port)}
        return fill(self.command, values)

    def takes(self, *places: str) -> bool:
        """Return whether the command asks for one of these places."""
        return any("{" + place + "}" in word for place in places for word in self.command)

    @property
    def stop_after(self) -> float:
        """Seconds from the first request to the freeze."""
        return self.duration - 0.6 * self.stall if self.at == "end" else (self.duration - self.stall) / 2


def parse_part(partial: str | float | Fraction | None) -> Fraction | None:
    """Return a part such as ``"1/4"`` as a fraction, whose denominator is the number of server processes.

    Examples
    --------
    >>> parse_part("1/4"), parse_part(None)
    (Fraction(1, 4), None)
    """
    if partial is None:
        return None
    try:
        part = Fraction(partial).limit_denominator(MOST_WORKERS)
    except (ValueError, ZeroDivisionError):
        part = Fraction(0)
    if not 0 < part <= 1:
        raise UsageError(f"partial is a part of up to {MOST_WORKERS} server processes, such as 1/4; not {partial!r}")
    return part
