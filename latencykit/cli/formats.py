"""``latencykit formats``."""

from __future__ import annotations

import click

from latencykit.cli.common import print_json, printing

__all__ = ["command"]


@click.command("formats")
@printing
def command(style: str) -> None:
    """List what can be read and written.

    \b
    latencykit formats
    latencykit formats --format json
    """
    from latencykit.io.registry import all_formats
    from latencykit.views.tables import csv_text, markdown, text_table

    if style == "json":
        print_json(
            [
                {
                    "name": one.name, "title": one.title, "suffixes": list(one.suffixes), "rung": one.level,
                    "reads": True, "writes": one.write is not None,
                }
                for one in all_formats()
            ]
        )  # fmt: skip
        return
    header = ["name", "what it is", "rung", "unit", "writes", "made by"]
    rows = [
        [
            one.name,
            one.title,
            one.level,
            one.unit or "stated",
            "yes" if one.write else "",
            one.example,
        ]
        for one in all_formats()
    ]
    render = {"table": text_table, "markdown": markdown}.get(style)
    click.echo(render(header, rows, left=6) if render else csv_text(header, rows))
