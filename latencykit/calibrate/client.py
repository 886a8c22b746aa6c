"""The project's own load generators: ``python -m latencykit.calibrate.client open|closed|catchup URL``.

They are there to show what the mode does to the report, and to calibrate the calibration: an open loop is honest, a closed
one omits. Samples go to standard output or a file as CSV; what they are worth goes to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from latencykit.calibrate.clients import MODES, Load, Row, generate
from latencykit.calibrate.server import raise_file_limit
from latencykit.errors import LatencyKitError
from latencykit.units import format_count, format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["csv_lines", "main"]


def csv_lines(rows: Sequence[Row], *, intended: bool) -> list[str]:
    """Return the CSV: a header, then one line a request; the intended start only where it is asked for.

    Examples
    --------
    >>> csv_lines([(10, 9, 5, 0, 200)], intended=True)
    ['start_ns,latency_ns,intended_ns,conn,status', '10,5,9,0,200']
    """
    if intended:
        body = [f"{start},{took},{due},{number},{status}" for start, due, took, number, status in rows]
        return ["start_ns,latency_ns,intended_ns,conn,status", *body]
    return [
        "start_ns,latency_ns,conn,status",
        *(f"{start},{took},{number},{status}" for start, _, took, number, status in rows),
    ]


def _report(load: Load, rows: Sequence[Row]) -> str:
    late = sorted(start - due for start, due, *_ in rows)
    unanswered = sum(1 for row in rows if row[-1] == 0)
    text = f"{load.mode} loop: {format_count(len(rows))} requests"
    if unanswered:
        text += f", {format_count(unanswered)} without a reply"
    if late and load.mode != "closed":
        p50, p99 = (format_duration(late[len(late) * p // 100]) for p in (50, 99))
        text += f"; sent {p50} (p50), {p99} (p99) after they were due"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a client; return 0, or 2 where it could not."""
    parser = argparse.ArgumentParser(prog="python -m latencykit.calibrate.client", description=__doc__)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("url", help="http://127.0.0.1:PORT/")
    parser.add_argument("--rate", type=float, help="requests per second, all connections together")
    parser.add_argument("--connections", type=int, default=1, help="of the closed loops; an open one begins with them (1)")
    parser.add_argument("--duration", default="10s", help="10s")
    parser.add_argument(
        "--intended", action="store_true", help="catchup: write the intended starts, from which the truth can be had"
    )
    parser.add_argument("-o", "--output", help="CSV file; standard output without it")
    options = parser.parse_args(arguments)
    if options.intended and options.mode == "closed":
        parser.error("a closed loop has no intended starts: a turn that has passed is dropped")
    try:
        duration = parse_duration(options.duration, "s") / 1e9
        load = Load(options.mode, options.url, duration, options.rate, options.connections)
        raise_file_limit()
        rows = generate(load)
    except LatencyKitError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    text = "\n".join(csv_lines(rows, intended=options.mode == "open" or options.intended)) + "\n"
    if options.output:
        Path(options.output).write_text(text, encoding="ascii")
    else:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(text)
    sys.stderr.write(_report(load, rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
