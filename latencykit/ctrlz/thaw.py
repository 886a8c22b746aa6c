"""The second watchdog of a freeze: ``python -m latencykit.ctrlz.thaw``.

The first one writes what it freezes, and until when, a JSON list per line. Where it dies, or does
not end the freeze in time because somebody stopped it, this process does.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time

from latencykit.ctrlz.freeze import Target, thaw, thaw_left


def main() -> None:
    """Thaw what is frozen when the first watchdog is gone or late."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):  # it ends when the first one does
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    frozen: list[Target] = []
    until, pending = 0.0, b""
    while True:
        left = max(until - time.monotonic(), 0.0) if frozen else None
        if not select.select([0], [], [], left)[0]:
            thaw(frozen)
            frozen = []
            continue
        data = os.read(0, 1 << 16)
        if not data:
            thaw(frozen)
            thaw_left()
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            until, *frozen = json.loads(line)


if __name__ == "__main__":
    main()
