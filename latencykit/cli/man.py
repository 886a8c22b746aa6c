"""``latencykit man``: the manual page, from the objects that print ``--help``."""

from __future__ import annotations

import contextlib
import inspect
import re
from typing import TYPE_CHECKING

import click

from latencykit import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@click.command("man")
@click.pass_context
def command(context: click.Context) -> None:
    """Print the manual page of all commands.

    \b
    latencykit man | man -l -
    latencykit man > ~/.local/share/man/man1/latencykit.1
    """
    root = context.find_root()
    click.echo(_page(root), nl=False)


class _Roff(click.HelpFormatter):
    """Writes what click writes as help in the language of manual pages, man(7)."""

    shared: str = ""
    """The input options, which one section describes for all commands."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:  # noqa: ARG002 - click's
        self.write(f".PP\n\\fB{_escaped(prog)}\\fR {_escaped(args)}\n")

    def write_paragraph(self) -> None:
        """Every text begins with its own paragraph."""

    def write_text(self, text: str) -> None:
        for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
            as_it_is = paragraph.startswith("\b")
            body = _escaped(paragraph.lstrip("\b\n"))
            self.write(f".PP\n.EX\n{body}\n.EE\n" if as_it_is else f".PP\n{body}\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], *_: object, **__: object) -> None:
        for term, text in rows:
            self.write(f".TP\n\\fB{_escaped(term)}\\fR\n{_escaped(text)}\n")

    @contextlib.contextmanager
    def section(self, name: str) -> Iterator[None]:
        before, self.buffer = self.buffer, []
        yield
        if name == "Input options":
            self.shared = max(self.shared, self.getvalue(), key=len)
            self.buffer = [*before, ".PP\nand the input options, see below.\n"]
        else:
            self.buffer = [*before, f".PP\n\\fI{_escaped(name)}\\fR\n", *self.buffer]


def _page(root: click.Context) -> str:
    group = root.command
    assert isinstance(group, click.Group)
    roff = _Roff()
    title, _, details = inspect.cleandoc(group.help or "").partition("\n\n")
    name = title[0].lower() + title[1:].rstrip(".")
    roff.write(
        f'.TH LATENCYKIT 1 "" "latencykit {__version__}" "User Commands"\n'
        f".SH NAME\nlatencykit \\- {_escaped(name)}\n"
        ".SH SYNOPSIS\n\\fBlatencykit\\fR COMMAND FILES... [OPTIONS]\n.SH DESCRIPTION\n"
    )
    roff.write_text(details)
    click.Command.format_options(group, root, roff)
    roff.write(".SH COMMANDS\n")
    for name in group.list_commands(root):
        command = group.get_command(root, name)
        if command is not None:
            context = click.Context(command, info_name=name, parent=root)
            roff.write(f".SS {name}\n")
            command.format_help(context, roff)
            parts = command.commands if isinstance(command, click.Group) else {}
            for part, inner in parts.items():
                roff.write(f".PP\n\\fI{name} {part}\\fR\n")
                inner.format_help(click.Context(inner, info_name=part, parent=context), roff)
    roff.write(f".SH INPUT OPTIONS\n{roff.shared}")
    roff.write(".SH EXIT STATUS\n")
    roff.write_dl(
        [
            ("0", "done"),
            ("1", "a verdict is negative"),
            ("2", "usage, or unreadable input"),
            ("130", "interrupted"),
            ("141", "the reader of the output has closed it"),
        ]
    )
    return roff.getvalue()


def _escaped(text: str) -> str:
    """Text for man(7): no line of it is a request, and a hyphen can be copied as one."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^(?=[.'])", r"\\&", text)
