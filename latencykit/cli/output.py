"""Output of commands: on standard output, and files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from latencykit.cli.inputs import expand
from latencykit.cli.options import note
from latencykit.errors import InvalidArgumentError
from latencykit.units import printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from latencykit.cli.inputs import Input
    from latencykit.cli.options import Inputs
    from latencykit.core.run import Run

__all__ = [
    "atomic",
    "beside",
    "is_terminal",
    "print_assumed_units",
    "print_json",
    "print_written",
    "progress",
    "write_chart",
    "write_page",
]


def print_json(record: Any) -> None:
    """Print JSON on standard output, and nothing else there."""
    from latencykit.views.tables import json_pieces

    for piece in json_pieces(record):
        click.echo(piece, nl=False)
    click.echo()


def print_assumed_units(runs: Mapping[str, Run], style: str) -> None:
    """Print below a table which units are only assumed: a table may be read without the notes.

    Where both streams end in one place, a terminal or a log, the note on standard error, a few
    lines above, says the same.
    """
    quiet = (click.get_current_context().find_root().obj or {}).get("quiet")
    above = not quiet and _share_a_place(sys.stdout, sys.stderr)
    if style in ("table", "markdown") and not above:
        messages: dict[str, list[str]] = {}
        for name, run in runs.items():
            if run.unit_note is not None:
                messages.setdefault(run.unit_note, []).append(name)
        for text, names in messages.items():
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            click.echo(f"{printable(shown, 200)}: {text}" if shown else text)


def _share_a_place(*streams: TextIO | None) -> bool:
    """Return True if both streams have the same reader: ``2>&1``, or a terminal."""
    try:
        first, second = [stream.fileno() for stream in streams if stream is not None]
        return os.path.sameopenfile(first, second)
    except (OSError, ValueError):  # a stream is closed, or none of the system's
        return False


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if somebody reads the stream on a screen."""
    return stream is not None and stream.isatty()


def print_written(record: dict[str, Any], style: str, text: str | None = None) -> None:
    """Print what was written: ``record`` for programs; for people a note of `text`, or the path.

    The path is printed unchanged for a program, and safely on a terminal.
    """
    if style == "json":
        print_json(record)
    elif style != "table":
        from latencykit.views.tables import Table

        table = Table(style)
        table.add(record)
        click.echo(table.render())
    elif text is not None:
        note(text)
    else:
        path = record["output"]
        click.echo(printable(path, len(path)) if is_terminal(sys.stdout) else path)


# ------------------------------------------------------------
# Files: charts, pages and others.


@contextlib.contextmanager
def atomic(path: Path, files: Sequence[str] = (), *others: str | None) -> Iterator[Path]:
    """Give a temporary path that replaces `path` on success, unless it is one of the inputs."""
    from latencykit._files import whole

    local = [given for given in files if given != "-" and "://" not in given]
    sources = [*(source for _, source in expand(local)), *filter(None, others)]
    with whole(path, sources) as temporary:
        yield temporary


def beside(path: str, ending: str) -> Path:
    """Return the path beside an input (or here, if the input is remote) with an ending appended."""
    from latencykit.io.files import is_url

    name = without_secrets(path).rpartition("/")[2] if is_url(path) else path.rstrip("/")
    source = Path("latencykit" if name == "-" else name)
    return source.with_name(f"{source.name}{ending}")


def write_chart(
    chart: Callable[..., Any],
    data: Any,
    target: Path,
    files: Sequence[str],
    *others: str | None,
    **options: Any,
) -> None:
    """Plot into a file."""
    from latencykit.plot.files import save

    with atomic(target, files, *others) as temporary, progress(f"drawing {target.name}"):
        save(chart, data, temporary, **options)


def write_page(
    loaded: Sequence[Input], target: Path, given: Inputs, spec: str | None, **options: Any
) -> None:
    """Write the interactive page of some series."""
    if given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit is for pictures; a page gives each value the unit that suits it"
        )
    from latencykit.views.page import page_html
    from latencykit.views.page_sections import input_file

    args = (click.get_current_context().find_root().obj or {}).get("args", ())
    files = [input_file(path) for path in dict.fromkeys(entry.path for entry in loaded)]
    named = {entry.name: entry.data for entry in loaded}
    read = {
        "format": given.format_in, "measure": given.measure, "unit": given.unit,
        "column": given.column, "start_column": given.start_column,
        "lenient": given.lenient or None, "from": given.begin, "to": given.end,
    }  # fmt: skip
    origins = {entry.name: {"path": without_secrets(entry.path), **read} for entry in loaded}
    command = shlex.join(["latencykit", *args])
    with atomic(target, given.files, spec) as temporary, progress(f"writing {target.name}"):
        text = page_html(named, files=files, command=command, origins=origins, **options)
        temporary.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def progress(task: str) -> Iterator[None]:
    """Report on a terminal a task that takes longer than a second."""
    import threading

    if not is_terminal(sys.stderr):
        yield
        return
    done = threading.Event()

    def report() -> None:
        began = time.monotonic()
        while not done.wait(1.0):
            note(f"{task} … {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
