"""``latencykit hiccup``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from latencykit.cli.options import OUTPUT_FILE, format_option, note
from latencykit.cli.output import print_json, print_text

if TYPE_CHECKING:
    from latencykit.record.hiccup import HiccupProgress


@click.command("hiccup")
@click.option(
    "-o", "--output", "out", required=True, type=OUTPUT_FILE, help="Log to write (.hlog)."
)
@click.option(
    "--duration", metavar="SECONDS", help="Length of the recording, such as 10m; until Ctrl+C."
)
@click.option(
    "--resolution", metavar="SECONDS", default="1ms", help="Time between two readings of the clock."
)
@click.option("--interval", metavar="SECONDS", default="1s", help="Length of a log interval.")
@format_option
def command(out: Path, duration: str | None, resolution: str, interval: str, style: str) -> None:
    """Record this machine's hiccups: delays that any program on it would have experienced.

    The log appears whole when the recording ends, with Ctrl+C too. The clock is a child process:
    Ctrl+Z stops both, and is recorded; a stop of this process alone (kill -STOP PID) is not.

    \b
    latencykit hiccup -o hiccup.hlog --duration 10m
    """
    from latencykit._files import check_folder
    from latencykit.errors import InvalidArgumentError
    from latencykit.record.hiccup import hiccup
    from latencykit.units import format_duration
    from latencykit.views.series import series_record
    from latencykit.views.summary import summary_text

    if out.suffix.lower() != ".hlog":
        raise InvalidArgumentError(f"{out.name}: a hiccup log is written as .hlog")
    check_folder(out)

    def report(state: HiccupProgress) -> None:
        last, largest = format_duration(state.worst), format_duration(state.max)
        note(
            f"{format_duration(round(state.elapsed) * 1e9):>8}   "
            f"worst of the last interval {last:>8}   worst so far {largest:>8}"
        )

    log = hiccup(out, duration=duration, resolution=resolution, interval=interval, progress=report)
    record = series_record(out.name, log)
    if style == "json":
        print_json({"output": str(out), "series": [record]})
    else:
        note(f"wrote {out}")
        print_text(summary_text([record], style, None), style)
