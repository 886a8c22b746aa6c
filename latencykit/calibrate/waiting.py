"""How many requests wait for a frozen server: what a load generator does while nobody replies tells its model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Waiting", "waiting_requests"]

_ESTABLISHED = "01"


@dataclass(frozen=True)
class Waiting:
    """Connections to a server that does not read.

    Attributes
    ----------
    connections : int
        Established ones, accepted or not.
    octets : int
        Bytes that wait to be read on all of them. A request that was read and not yet replied to has none.
    """

    connections: int
    octets: int


def waiting_requests(port: int, tables: tuple[str, ...] = ("/proc/net/tcp", "/proc/net/tcp6")) -> Waiting | None:
    """Return what waits on a local port; None where the system has no such tables (only Linux has).

    Parameters
    ----------
    port : int
    tables : tuple of str
    """
    unread: list[int] = []
    found = False
    for table in tables:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        found = True
        for line in lines:
            _, local, _, state, queues, *_ = line.split()
            if state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port:
                unread.append(int(queues.rpartition(":")[2], 16))
    return Waiting(len(unread), sum(unread)) if found else None
