"""Output of commands: on standard output, and files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit._text import brief_list, for_stream, on_terminal, printable, prose, without_secrets
from latencykit.cli.inputs import Input, expand
from latencykit.cli.options import Inputs, is_terminal, note, progress
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from latencykit._typing import JSONObject
    from latencykit.core.run import Run


def print_json(record: object) -> None:
    """Print JSON on standard output, and nothing else there."""
    from latencykit.views.tables import json_text

    click.echo(json_text(record))


def print_text(text: str, style: str = "table") -> None:
    """Print a text for people; sentences are broken into lines where a terminal shows them."""
    text = on_terminal(text)
    click.echo(for_stream(text, sys.stdout) if style == "table" else text)


def print_result(
    style: str,
    record: Callable[[], object],
    text: Callable[[], str],
    runs: Mapping[str, Run] | None = None,
) -> None:
    """Print a result as JSON, or as text under the units that are only assumed."""
    print_assumed_units(runs or {}, style)
    if style == "json":
        print_json(record())
    else:
        print_text(text(), style)


def print_assumed_units(runs: Mapping[str, Run], style: str = "") -> None:
    """Print which units are only assumed: above a table, and as a note in other outputs."""
    series: dict[str, list[str]] = {}
    for name, run in runs.items():
        if run.unit_note is not None:
            series.setdefault(run.unit, []).append(name)
    for unit, names in series.items():
        of = "" if len(names) == len(runs) else f"{printable(brief_list(names), 200)}: "
        text = f"{of}unit: {unit} (assumed; --unit states another)"
        if unit == "none":
            text = f"{of}unit: not stated (plain numbers; --unit ms makes them times)"
        if style in ("table", "markdown"):
            print_text(prose(text, style) + "\n" * (style == "markdown"), style)
        else:
            note(text)


def print_sentences(texts: Iterable[str], style: str) -> None:
    """Print what follows from a table below it; with other outputs, as notes."""
    for text in texts:
        if style in ("table", "markdown"):
            print_text(prose(text, style), style)
        else:
            note(text)


def print_written(record: JSONObject, style: str, text: str | None = None) -> None:
    """Print what was written: ``record`` for programs; for people a note of `text`, or the path."""
    # The path is printed unchanged for a program, and safely on a terminal.
    if style == "json":
        print_json(record)
    elif style != "table":
        from latencykit.views.tables import Table

        table = Table(style)
        table.add(record)
        print_text(table.render(), style)
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
    # A terminal learns of what takes longer than a second.
    from latencykit._files import whole

    local = [given for given in files if given != "-" and "://" not in given]
    sources = [*(source for _, source in expand(local)), *filter(None, others)]
    with whole(path, sources) as temporary, progress(f"writing {path.name}"):
        yield temporary


def beside(path: str, ending: str) -> Path:
    """Return the path beside an input (or here, if the input is remote) with an ending appended."""
    from latencykit.io.files import is_url

    name = without_secrets(path).rpartition("/")[2] if is_url(path) else path.rstrip("/")
    source = Path("latencykit" if name == "-" else name)
    return source.with_name(f"{source.name}{ending}")


def write_chart(
    chart: Callable[..., object],
    data: object,
    target: Path,
    files: Sequence[str],
    *others: str | None,
    **options: Any,
) -> None:
    """Plot a result into a file as well, and say so."""
    from latencykit.plot.files import save

    with atomic(target, files, *others) as temporary:
        save(chart, data, temporary, **options)
    note(f"wrote {target}")


def write_page(
    loaded: Sequence[Input], target: Path, given: Inputs, specs: Sequence[str], **options: Any
) -> None:
    """Write the interactive page of some series."""
    if given.out_unit is not None:
        raise InvalidArgumentError(
            "--out-unit is for pictures; a page gives each value the unit that suits it"
        )
    from latencykit.views.page import page_html
    from latencykit.views.provenance import input_file

    args = (click.get_current_context().find_root().obj or {}).get("args", ())
    files = [input_file(path) for path in dict.fromkeys(entry.path for entry in loaded)]
    named = {entry.name: entry.data for entry in loaded}
    chosen = given.selection
    names = ("format", "measure", "unit", "column", "start_column", "pattern")
    read = {name: getattr(chosen, name) for name in names}
    read |= {"lenient": chosen.lenient or None, "from": chosen.begin, "to": chosen.end}
    origins = {entry.name: {"path": without_secrets(entry.path), **read} for entry in loaded}
    if chosen.by not in (None, "tag"):  # tags are chosen one by one
        for entry in loaded:
            part = None if entry.data.run.aggregate else entry.series
            origins[entry.name] |= {"by": chosen.by, "part": part}
    command = shlex.join(["latencykit", *args])
    with atomic(target, given.files, *specs) as temporary:
        text = page_html(named, files=files, command=command, origins=origins, **options)
        temporary.write_text(text, encoding="utf-8")
