"""``latencykit formats``."""

from __future__ import annotations

import click

from latencykit.cli.options import format_option
from latencykit.cli.output import print_result


@click.command("formats")
@format_option
def command(style: str) -> None:
    """List the formats that can be read and written.

    \b
    latencykit formats
    latencykit formats --format json
    """
    from latencykit.io.registry import all_formats
    from latencykit.views.written import format_record, formats_text

    formats = all_formats()
    records = map(format_record, formats)
    print_result(style, lambda: [*records], lambda: formats_text(formats, style))
