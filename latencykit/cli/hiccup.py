"""``latencykit hiccup``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from latencykit.cli.common import note, print_json, printing

if TYPE_CHECKING:
    from latencykit.record.hiccup import HiccupProgress

__all__ = ["command"]


@click.command("hiccup")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The log to write (.hlog).",
)
@click.option("--duration", metavar="D", help="Such as 10m; without it until Ctrl+C.")
@click.option(
    "--resolution",
    metavar="D",
    default="1ms",
    show_default=True,
    help="Distance of two looks at the clock.",
)
@click.option(
    "--interval", metavar="D", default="1s", show_default=True, help="Length of a line of the log."
)
@printing
def command(out: Path, duration: str | None, resolution: str, interval: str, style: str) -> None:
    """Record how late this machine wakes a process: what any program on it would have felt.

    The log is valid at any moment, after Ctrl+C too.

    \b
    latencykit hiccup -o hiccup.hlog --duration 10m
    """
    from latencykit.errors import CorruptInputError, InvalidArgumentError
    from latencykit.record.hiccup import hiccup
    from latencykit.views.record import series_record
    from latencykit.views.text import summary_text

    if out.suffix.lower() != ".hlog":
        raise InvalidArgumentError(f"{out.name}: a hiccup log is written as .hlog")
    if not out.parent.is_dir():
        raise CorruptInputError(
            str(out.parent), None, "there is no such directory", "", "make it first"
        )
    log = hiccup(out, duration=duration, resolution=resolution, interval=interval, progress=_tell)
    record = series_record(out.name, log)
    if style == "json":
        print_json({"output": str(out), "series": [record]})
    else:
        note(f"wrote {out}")
        click.echo(summary_text([record], style, None))


def _tell(seen: HiccupProgress) -> None:
    from latencykit.units import format_duration

    now, ever = format_duration(seen.worst), format_duration(seen.max)
    note(f"{seen.elapsed:6.0f} s   worst of the last interval {now:>8}   worst so far {ever:>8}")
