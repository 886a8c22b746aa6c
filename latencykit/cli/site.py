"""``latencykit site``: write latencykit itself as a web page."""

from __future__ import annotations

from pathlib import Path

import click

from latencykit.cli.options import note, progress


@click.command("site")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--runtime",
    metavar="ADDRESS",
    envvar="LATENCYKIT_PYODIDE",
    help="Folder or address of Pyodide's files; by default where Pyodide publishes them.",
)
def command(folder: str, runtime: str | None) -> None:
    """Write a folder that runs latencykit in a web page, for any static web server.

    Visitors drop files on the page; Python runs in their browser, and nothing is uploaded.

    \b
    latencykit site public/try
    latencykit site public/try --runtime downloads/pyodide
    """
    import shutil

    from latencykit.views.site import write_site

    with progress("writing the page"):
        index = write_site(Path(folder), runtime)
    note("any web server can serve it: python3 -m http.server -d " + folder)
    if shutil.which("node") is None:
        note("node is not installed, so Python's modules were not compiled: the page starts slower")
    click.echo(index)
