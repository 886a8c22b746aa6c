"""``latencykit formats``."""

from __future__ import annotations

import click

from latencykit.cli.options import format_option
from latencykit.cli.output import print_text


@click.command("formats")
@format_option
def command(style: str) -> None:
    """List the formats that can be read and written.

    \b
    latencykit formats
    latencykit formats --format json
    """
    from latencykit.io.registry import all_formats
    from latencykit.views.tables import json_text
    from latencykit.views.written import format_record, formats_text

    formats = all_formats()
    if style == "json":
        click.echo(json_text([format_record(entry) for entry in formats]))
    else:
        print_text(formats_text(formats, style), style)
