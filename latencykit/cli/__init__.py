"""The command line; a command parses, calls the library, and prints.

Only click is imported here, and a command's module when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from latencykit import __version__
from latencykit._text import did_you_mean, printable, without_secrets
from latencykit.errors import LatencyKitError

__all__ = ["main"]

# Commands by task: an example, and a line of help.
TASKS = {
    "Look": {
        "chart run.hlog -o run.png": "Plot the full distribution, or latency over time.",
        "summary run.hlog other.hlog": (
            "Print the key numbers, and how far the sample supports them."
        ),
        "report run.hlog -o report.html": "Write an interactive page that needs no server.",
        "site public/try": "Write latencykit itself as a web page, for people who install nothing.",
    },
    "Judge": {
        "diagnose run.hlog --rate 500": (
            "Detect coordinated omission and estimate the corrected distribution."
        ),
        "check run.hlog --unit ns --slo 99.9=20ms": (
            "Check latencies against limits, in a pipeline."
        ),
        "compare before.hlog after.hlog": "Show which percentiles changed, with confidence.",
        "history check out.json --store history": (
            "Keep the runs of a repository, and judge new ones by what they show."
        ),
        "load 'rate-*.txt' --slo 99=20ms": "Find the highest load that meets an SLO.",
        "explain access.log --by endpoint,host": "Find what slow requests have in common.",
        "fanout run.hlog -n 1,10,100": "Estimate tail latency under fan-out.",
    },
    "Measure": {
        "ctrlz -- hey -z {duration}s {url}": (
            "Freeze a server to test whether a load generator reports the stall."
        ),
        "sweep --slo 99=20ms -- wrk2 -R {rate} -d {duration} --latency URL": (
            "Search for the highest load that meets an SLO, with any load generator."
        ),
        "hiccup -o hiccup.hlog --duration 10m": "Record this machine's own hiccups.",
    },
    "Convert": {
        "convert run.hlog run.hgrm": "Convert a file to another format.",
        "merge 'host*.hlog' -o all.hlog": "Merge logs of several hosts or runs into one.",
        "formats": "List the formats that can be read and written.",
    },
    "Learn": {
        "lab my-desk": "Copy the lessons to a folder and open them in JupyterLab.",
        "completion bash >> ~/.bashrc": "Print the script that completes commands in a shell.",
    },
}

_ALIASES = {"capacity": "load"}

_COMPLETE = "_LATENCYKIT_COMPLETE"
"""The variable by which a shell asks for completions."""


class Tasks(click.Group):
    """A group whose commands are loaded when they are used, and listed by task."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [example.split()[0] for commands in TASKS.values() for example in commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known, args = self.list_commands(ctx), [_ALIASES.get(args[0], args[0]), *args[1:]]
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], known)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        # One thread halves the time that importing numpy takes.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.pop("MPLBACKEND", None)  # charts are files; matplotlib raises for unknown names
        module = importlib.import_module(f"latencykit.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        if not any("-q" in param.opts for param in command.params):

            def silence(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
                if value:  # as before the command
                    root = ctx.find_root()
                    root.obj = {**(root.obj or {}), "quiet": True}

            quiet = click.Option(
                ["-q", "--quiet"], is_flag=True, expose_value=False, callback=silence, help=_QUIET
            )
            for one in (command, *getattr(command, "commands", {}).values()):
                one.params.append(quiet)
        if isinstance(command, click.Group) or any("-o" in one.opts for one in command.params):
            import logging

            # Matplotlib would report where it keeps its cache, with -q, too.
            logging.getLogger("matplotlib").setLevel(logging.ERROR)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl(
                    [
                        (example.split()[0], f"{text}  e.g. latencykit {example}")
                        for example, text in commands.items()
                    ]
                )


_QUIET = "Print no notes and no progress on standard error."


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from latencykit.core import kernel

        click.echo(f"latencykit, version {__version__}\nkernel: {kernel.in_use()}")
        ctx.exit()


@click.command(
    cls=Tasks,
    context_settings={
        "help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True,
    },
)  # fmt: skip
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option("-q", "--quiet", is_flag=True, help=_QUIET)
@click.pass_context
def cli(ctx: click.Context, quiet: bool) -> None:
    """See the full latency distribution in the output your tools already produce.

    FILES are paths, globs, NAME=path for a label, or - for standard input.
    Exit status: 0 done, 1 a verdict is negative, 2 usage or unreadable input.
    """
    ctx.obj = {**(ctx.obj or {}), "quiet": quiet}


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; every error becomes one line and an exit status."""
    words = tuple(sys.argv[1:] if args is None else args)
    if sys.stdout is None:  # closed: writing fails, and no file takes its number
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # Names of files are written as their bytes, and letters that the encoding lacks as ?.
        unicode = codecs.lookup(sys.stdout.encoding).name == "utf-8"
        sys.stdout.reconfigure(errors="surrogateescape" if unicode else "replace")
    from latencykit.cli.signals import handle_signals

    with handle_signals():
        try:
            # Continue the processes that a killed `ctrlz` left stopped, and say so.
            from latencykit._files import runtime_folder

            if runtime_folder().is_dir():
                from latencykit.ctrlz.freeze import thaw_left

                if left := ", ".join(map(str, thaw_left())):
                    click.echo(
                        f"thawed what a killed test had left frozen: {printable(left)}", err=True
                    )
            status = _status(words)
            sys.stdout.flush()
        except BrokenPipeError:
            status = 141
            _discard_output()
        except OSError as error:
            # The writers of files name them; without a name it was standard output.
            status = _fail(f"{error.filename or 'standard output'}: {error.strerror or error}")
            _discard_output()
    sys.exit(status)


def _status(words: Sequence[str]) -> int:
    """Run a command and return the exit status."""
    if instruction := os.environ.get(_COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "latencykit", _COMPLETE, instruction)
    if not words:
        help_context = click.Context(cli, info_name="latencykit", **cli.context_settings)
        click.echo(cli.get_help(help_context), err=True)
        return 2
    try:
        # Not `cli.main`: for it a closed pipe is status 1, which is a verdict, and Ctrl+C an empty
        # line. A report shows the command that made it.
        with cli.make_context("latencykit", list(words), obj={"args": tuple(words)}) as started:
            result: Any = cli.invoke(started)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        text = " ".join(error.format_message().split())
        context = getattr(error, "ctx", None)
        if context is not None:
            text = f"{text.removesuffix('.')}; see `{context.command_path} --help`"
        return _fail(text)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except LatencyKitError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail(
            "out of memory; --from and --to select a part, and --jobs 1 reads one file at a time"
        )
    return result if isinstance(result, int) else 0


def _fail(text: str) -> int:
    """Print one line, safe for a terminal, and return the exit status."""
    with contextlib.suppress(OSError):  # with standard error closed, the status is all there is
        click.echo(f"latencykit: {printable(without_secrets(text), len(text))}", err=True)
    return 2


def _discard_output() -> None:
    """Discard standard output, buffered output included."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
