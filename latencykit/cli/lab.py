"""``latencykit lab``."""

from __future__ import annotations

import click

from latencykit.cli.common import note

__all__ = ["command"]


@click.command("lab")
@click.argument(
    "folder", metavar="[DIR]", default="latencykit-lab", type=click.Path(file_okay=False)
)
@click.option("--no-launch", is_flag=True, help="Copy only; do not start JupyterLab.")
def command(folder: str, no_launch: bool) -> None:
    """Copy the lessons and their data into DIR (latencykit-lab), and start JupyterLab there.

    What you have changed in DIR stays as it is; lessons that you have not touched are brought up to date.

    \b
    latencykit lab
    latencykit lab my-desk --no-launch
    """
    from pathlib import Path

    from latencykit.views.lessons import copy_lessons, launch

    copied = copy_lessons(Path(folder))
    note(f"{len(copied.written)} files copied, {len(copied.same)} were up to date")
    for name in copied.kept:
        note(f"kept {name}: you have changed it")
    click.echo(folder)
    if not no_launch:
        launch(Path(folder))
