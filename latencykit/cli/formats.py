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
                "name": one.name,
                "title": one.title,
                "suffixes": list(one.suffixes),
                "rung": one.level,
                "reads": True,
                "writes": one.write is not None,
            }
            for one in formats
        ]
        click.echo(json_text(records))
        return
    table = Table(style)
    for one in formats:
        table.add(
            {
                "name": one.name,
                "what it is": one.title,
                "rung": one.level,
                "unit": one.unit or "stated",
                "writes": "yes" if one.write else "",
                "made by": one.example,
            }
        )
    click.echo(table.render(left=6))
