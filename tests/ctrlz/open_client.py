"""An open loop with random arrivals: ``open_client.py URL RATE DURATION OUT.csv``."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from latencykit.ctrlz import client
from latencykit.ctrlz.server import raise_file_limit

if TYPE_CHECKING:
    from collections.abc import Iterator


def main(url: str, rate: float, duration: float, out: Path) -> None:
    """Send, and write one row per request."""
    rng = random.Random(f"{rate} {duration} {out}")

    def dues(_run: client._Run, begin: int) -> Iterator[int]:
        due = float(begin)
        while (due := due + rng.expovariate(rate) * 1e9) < begin + duration * 1e9:
            yield round(due)

    client._Run.dues = dues  # type: ignore[method-assign, assignment]
    raise_file_limit()
    rows = client.generate(client.Load("open", url, duration, rate, 32))
    lines = client.csv_lines(rows, intended=True)
    out.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
