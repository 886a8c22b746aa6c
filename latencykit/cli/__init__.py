"""The command line: one command a file; each parses, calls the library, and prints.

Only click is imported here, and a command's module when it runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import itertools
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from latencykit import __version__
from latencykit.cli.signals import in_order
from latencykit.errors import LatencyKitError
from latencykit.units import printable, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

# Commands by what people want to do, each with a line of help and an example.
TASKS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Look": (
        (
            "chart",
            "Draw the whole distribution, or its course over time.",
            "latencykit chart run.hlog -o run.png",
        ),
        (
            "summary",
            "Print the key numbers and how far they hold.",
            "latencykit summary run.hlog other.hlog",
        ),
        (
            "report",
            "Write an interactive page that needs no server.",
            "latencykit report run.hlog -o report.html",
        ),
    ),
    "Judge": (
        (
            "diagnose",
            "Tell whether stalls were left out, and what is true.",
            "latencykit diagnose run.hlog --rate 500",
        ),
        (
            "check",
            "Check latencies against limits, in a pipeline.",
            "latencykit check run.hlog --unit ns --slo 99.9=20ms",
        ),
        (
            "compare",
            "Tell what changed, and how sure that is.",
            "latencykit compare before.hlog after.hlog",
        ),
        (
            "load",
            "Tell how much load a system carries.",
            "latencykit load 'rate-*.txt' --slo 99=20ms",
        ),
        (
            "fanout",
            "Tell what users see who wait for many calls.",
            "latencykit fanout run.hlog -n 1,10,100",
        ),
    ),
    "Measure": (
        (
            "ctrlz",
            "Test live whether a load generator tells of a stall.",
            "latencykit ctrlz -- hey -z {duration}s {url}",
        ),
        (
            "hiccup",
            "Record this machine's own hiccups.",
            "latencykit hiccup -o hiccup.hlog --duration 10m",
        ),
    ),
    "Convert": (
        ("convert", "Turn a file into another format.", "latencykit convert run.hlog run.hgrm"),
        (
            "merge",
            "Join logs of several hosts or runs into one.",
            "latencykit merge 'host*.hlog' -o all.hlog",
        ),
        ("formats", "List what can be read and written.", "latencykit formats"),
    ),
    "Learn": (
        (
            "lab",
            "Copy the lessons to a folder of yours and open them in JupyterLab.",
            "latencykit lab my-desk",
        ),
    ),
}


class ReaderGoneError(Exception):
    """Nobody reads standard output any more; click would end a `BrokenPipeError` with 1, which means a verdict."""


class CutShortError(Exception):
    """Ctrl+C; click would print an empty line."""


@contextlib.contextmanager
def _past_click() -> Iterator[None]:
    """Carry past click what it has ideas of its own about."""
    try:
        yield
    except BrokenPipeError as gone:
        raise ReaderGoneError from gone
    except KeyboardInterrupt as cut:
        raise CutShortError from cut


class Tasks(click.Group):
    """A group whose commands are loaded when they are used, and listed by task."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [name for commands in TASKS.values() for name, _, _ in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        os.environ.setdefault(
            "OPENBLAS_NUM_THREADS", "1"
        )  # halves the time that importing numpy takes
        module = importlib.import_module(f"latencykit.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        if command.help is None:  # the interpreter was told to drop what modules say of themselves
            command.help = next(
                "\n\n".join(said)
                for said in itertools.chain(*TASKS.values())
                if said[0] == cmd_name
            )
        logging.getLogger("matplotlib").setLevel(
            logging.ERROR
        )  # where it keeps its cache is no news; -q means silence
        return command

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _past_click():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _past_click():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl(
                    [(name, f"{text}  e.g. {example}") for name, text, example in commands]
                )


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from latencykit.core import kernel

        click.echo(f"latencykit, version {__version__}\nkernel: {kernel.in_use()}")
        ctx.exit()


@click.command(
    cls=Tasks, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option(
    "-q", "--quiet", is_flag=True, help="Print no notes and no progress on standard error."
)
@click.pass_context
def cli(ctx: click.Context, quiet: bool) -> None:
    """Read what your tools print, see the whole latency distribution, and know how far to trust it.

    FILES are paths, globs, NAME=path for a label, or - for standard input.
    Exit status: 0 good, 1 a verdict is negative, 2 usage or unreadable input.
    """
    ctx.obj = {**(ctx.obj or {}), "quiet": quiet}


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; whatever goes wrong becomes one line and an exit status."""
    words = tuple(sys.argv[1:] if args is None else args)
    _make_printable()
    with in_order():
        try:
            status = _status(words)
            if sys.stdout is not None:
                sys.stdout.flush()
        except (BrokenPipeError, ReaderGoneError):
            status = 141
            _give_up_output()
        except OSError as error:
            # Files that cannot be written are named where that happens; without a name it was standard output.
            status = _told(f"{error.filename or 'standard output'}: {error.strerror or error}")
            _give_up_output()
    sys.exit(status)


def _make_printable() -> None:
    """Let standard output take any text: names of files as their bytes, and ? for letters that its encoding lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        unicode = codecs.lookup(sys.stdout.encoding).name == "utf-8"
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "replace")


def _status(words: Sequence[str]) -> int:
    """Run a command and return the exit status."""
    if not words:
        click.echo(
            cli.get_help(click.Context(cli, info_name="latencykit", **cli.context_settings)),
            err=True,
        )
        return 2
    try:
        given = {"args": tuple(words)}  # a report tells the command that made it
        result: Any = cli.main(
            args=list(words), prog_name="latencykit", standalone_mode=False, obj=given
        )
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        return _told(_of_click(error))
    except (click.Abort, CutShortError, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except LatencyKitError as error:
        return _told(str(error))
    except MemoryError:
        return _told(
            "there is not memory enough for this; --from and --to cut out a part, and --jobs 1 reads one file at a time"
        )
    return result if isinstance(result, int) else 0


def _told(text: str) -> int:
    """Print one line: names of files and what stood in them may hold line ends and commands for the terminal."""
    with contextlib.suppress(OSError):  # with standard error closed, the status alone tells
        click.echo(f"latencykit: {printable(without_secrets(text), len(text))}", err=True)
    return 2


def _of_click(error: click.ClickException) -> str:
    """What click found wrong, in one line, with its hint to the help."""
    text = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return (
        text
        if context is None
        else f"{text.removesuffix('.')}; see `{context.command_path} --help`"
    )


def _give_up_output() -> None:
    """Nothing more can be said on standard output, not even what is still held back for it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
