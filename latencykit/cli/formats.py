"""``latencykit formats``."""

from __future__ import annotations

import click

from latencykit.cli.options import format_option

__all__ = ["command"]


@click.command("formats")
@format_option
def command(style: str) -> None:
    """List the formats that can be read and written.

    \b
    latencykit formats
    latencykit formats --format json
    """
    from latencykit.io.registry import all_formats
    from latencykit.views.tables import Table, json_text

    formats = all_formats()
    if style == "json":
        records = [
            {
                "name": entry.name,
                "title": entry.title,
                "suffixes": list(entry.suffixes),
                "rung": entry.level,
                "reads": True,
                "writes": entry.write is not None,
            }
            for entry in formats
        ]
        click.echo(json_text(records))
        return
    table = Table(style)
    for entry in formats:
        table.add(
            {
                "name": entry.name,
                "what it is": entry.title,
                "data type": entry.level,
                "unit": entry.unit or "stated",
                "writes": "yes" if entry.write else "",
                "made by": entry.example,
            }
        )
    click.echo(table.render(left=6))
