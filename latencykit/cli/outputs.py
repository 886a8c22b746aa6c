"""Files that commands write, whole or not at all: charts and others."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import expand, note, print_json
from latencykit.errors import UsageError
from latencykit.units import printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["atomic", "beside", "drawing", "picture", "progress", "say_written"]


@contextlib.contextmanager
def atomic(path: Path, files: Sequence[str] = (), *also: str | None) -> Iterator[Path]:
    """Give a temporary path that takes the place of `path` when all went well; neither FILES nor `also` are written over."""
    from latencykit.outputs import whole

    local = [given for given in files if given != "-" and "://" not in given]
    with whole(path, [*(found for _, found in expand(local)), *(other for other in also if other)]) as temporary:
        yield temporary


def beside(path: str, ending: str) -> Path:
    """The file beside an input, or here where the input is elsewhere, that takes its name and an ending."""
    from latencykit.cluster.places import is_url

    name = without_secrets(path).rpartition("/")[2] if is_url(path) else path.rstrip("/")
    source = Path("latencykit" if name == "-" else name)
    return source.with_name(f"{source.name}{ending}")


def picture(
    chart: Callable[..., Any], data: Any, target: Path | None, files: Sequence[str], *also: str | None, **options: Any
) -> None:
    """Draw a chart into a file, where one is asked for, and say so."""
    if target is None:
        return
    from latencykit.plot.figure import save

    with atomic(target, files, *also) as temporary, progress(f"drawing {target.name}"):
        save(chart, data, temporary, **options)
    note(f"wrote {target}")


def drawing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``-o CHART``."""
    kind = _Picture(dir_okay=False, path_type=Path)
    return click.option("-o", "--output", "out", type=kind, metavar="CHART", help="Draw it, too: .png .svg .pdf.")(function)


class _Picture(click.Path):
    """A chart's file, whose ending is looked at before the work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path: Any = super().convert(value, param, ctx)
        if path.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise UsageError(f"{path.name}: charts are written as .png, .svg or .pdf")
        return path


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Say on standard error what takes longer than a second, where a person is watching."""
    import threading

    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def tell() -> None:
        began = time.monotonic()
        while not done.wait(1.0):
            note(f"{what} … {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def say_written(record: dict[str, Any], style: str, said: str | None = None) -> None:
    """Print what was written as ``--format`` asks: ``record`` for programs; for people `said`, beside the output, or the path.

    The path is printed as it is for a program, safe for a terminal.
    """
    if style == "json":
        print_json(record)
    elif style != "table":
        from latencykit.report.tables import styled

        row = list(record.values())
        click.echo(styled(style, list(record), [row], [row]))
    elif said is not None:
        note(said)
    else:
        path = record["output"]
        click.echo(printable(path, len(path)) if sys.stdout is not None and sys.stdout.isatty() else path)
