"""The options that commands share, and the values that their texts stand for."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from latencykit._files import checked_chart
from latencykit._records import record
from latencykit._text import brief_list, for_stream, printable, without_secrets
from latencykit.errors import InvalidArgumentError
from latencykit.units import format_duration, parse_duration

if TYPE_CHECKING:
    from click.decorators import FC

    from latencykit.analysis.judge import RunVerdict
    from latencykit.analysis.slo import SLO
    from latencykit.core.run import Run
    from latencykit.history.history import History
    from latencykit.io.reading import Selection


@record(kw_only=True)
class Inputs:
    """The values of the input options."""

    files: tuple[str, ...]
    selection: Selection
    out_unit: str | None = None
    notes: bool = False
    merge: bool = False
    dask: str | None = None

    @property
    def jobs(self) -> int:
        """Number of files, or parts of a large log, to read at once."""
        return _jobs(self.selection.jobs)

    def selecting(self, **changes: Any) -> Inputs:
        """Return the same inputs with another selection."""
        return replace(self, selection=replace(self.selection, **changes))


def _jobs(given: int | None = None) -> int:
    from latencykit._threads import jobs  # not for --help

    return jobs(given)


class _InputOption(click.Option):
    """An option that every command with FILES has; `Command` lists it after the command's own."""


_input = functools.partial(click.option, cls=_InputOption)
_INPUT_OPTIONS = (
    _input("--format-in", "format", metavar="NAME", help="Input format; detected by default."),
    _input("--series", multiple=True, metavar="NAME", help="Only this series (repeatable)."),
    _input(
        "--tag",
        "tags",
        multiple=True,
        metavar="NAME",
        help='Only this tag (repeatable; "" for untagged lines).',
    ),
    _input(
        "--measure",
        type=click.Choice(["response", "service"]),
        help="Latency type, where the source has both: response time or service time.",
    ),
    _input(
        "--from",
        "begin",
        metavar="T",
        help="Ignore requests that started before T: seconds from the start, a duration such as "
        "5s, or ISO time (UTC).",
    ),
    _input("--to", "end", metavar="T", help="Ignore requests that started at or after T."),
    _input(
        "--unit",
        type=click.Choice(["ns", "us", "ms", "s", "none"]),
        help="Unit of the recorded values.",
    ),
    _input("--out-unit", type=click.Choice(["ns", "us", "ms", "s"]), help="Unit of the output."),
    _input("--column", metavar="NAME", help="Latency column in a table of raw samples."),
    _input("--start-column", metavar="NAME", help="Start time column in a table of raw samples."),
    _input(
        "--pattern",
        metavar="PATTERN",
        help="What a line of a log looks like: '… (?P<latency>\\S+) …', or nginx's or Apache's "
        "log format.",
    ),
    _input(
        "--lenient",
        is_flag=True,
        help="Skip and report corrupt lines, counted by reason, and unreadable files.",
    ),
    _input("--notes", is_flag=True, help="Print all notes, not only the most important ones."),
    _input(
        "--jobs",
        type=click.IntRange(1),
        default=_jobs,
        show_default="LATENCYKIT_JOBS, or all cores",
        help="Number of files, and parts of large files, to read at once.",
    ),
    _input(
        "--limit",
        multiple=True,
        metavar="NAME=SIZE",
        help="Raise a limit on the size of inputs: whole=4GiB (repeatable).",
    ),
    _input(
        "--allow-private",
        is_flag=True,
        help="Follow a URL that redirects from a public address to a private or loopback one.",
    ),
    _input(
        "--dask",
        metavar="ADDRESS",
        help="Read on the Dask cluster whose scheduler is at tcp://HOST:PORT.",
    ),
)


_DEFINED = (
    *("chart", "check", "compare", "diagnose", "explain", "fanout", "load", "report", "summary"),
    "sweep",
)


_SPLIT_OPTIONS = (
    _input(
        "--by",
        metavar="COLUMN",
        help="Split by the values of this column (or 'tag'), after the total.",
    ),
    _input("--merge", is_flag=True, help="Merge all series: per file where files are compared."),
)


class Command(click.Command):
    """A command whose help lists its own options first, and the input options under a heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both groups of options."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], "Input options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                shared = isinstance(param, _InputOption)
                groups["Input options" if shared else "Options"].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
        if self.name in _DEFINED:
            formatter.write_paragraph()
            formatter.write_text(
                "Definitions (met, sure, omits, uncertain): notebooks/book/truth.md"
            )


def inputs(
    *, nargs: int = -1, required: bool = True, split: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the FILES argument and the input options, as one `Inputs`."""
    # With `split`, also those that split series into parts and merge them.

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def wrapped(
            files: str | tuple[str, ...],
            limit: tuple[str, ...],
            *,
            allow_private: bool,
            **options: Any,
        ) -> object:
            from latencykit._limits import limits
            from latencykit._text import in_terminal
            from latencykit.io.reading import Selection

            selection, named = (
                {key: options.pop(key) for key in kind.__dataclass_fields__ if key in options}
                for kind in (Selection, Inputs)
            )
            given = Inputs(
                files=(files,) if isinstance(files, str) else files,
                selection=Selection(**selection, totals=True),
                **named,
            )
            bounds = {
                name.strip(): size
                for name, _, size in (
                    part.partition("=") for part in (*limit, *["private=1"] * allow_private)
                )
            }
            interval = options.get("expected_interval")  # bare: of values without a unit, in theirs
            if interval and not interval[-1].isalpha() and selection.get("unit") != "none":
                options["expected_interval"] = f"{interval}s"
            with limits(**bounds), in_terminal():
                return function(given, **options)

        for option in reversed((*_INPUT_OPTIONS, *(_SPLIT_OPTIONS if split else ()))):
            wrapped = option(wrapped)
        return click.argument("files", nargs=nargs, required=required, type=INPUT_FILE)(wrapped)

    return decorate


class Real(click.FloatRange):
    """A number within bounds; click's own range lets not-a-number through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def _together(*options: Callable[[FC], FC]) -> Callable[[FC], FC]:
    """Return a decorator that gives a command several options, in this order."""

    def decorate(function: FC) -> FC:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)
INPUT_FILE = click.Path(readable=False)  # as text; shells complete it


def _checked_chart(_context: click.Context, _option: click.Parameter, path: Any) -> Any:
    if path is not None:
        checked_chart(path)
    return path


def _is_duration(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Name the option of a text that is not a duration, before anything is read."""
    if text is not None:
        try:
            parse_duration(text, "s")
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{option.opts[0]}: {error}") from error
    return text


format_option = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    help="Output format.",
)
confidence_option = click.option(
    "--confidence", type=Real(0.5, 0.9999), default=0.95, help="Confidence level of the intervals."
)


def _joined(_context: click.Context, _option: click.Parameter, texts: Sequence[str]) -> str | None:
    """The lists of an option that was given several times as one."""
    return ",".join(texts) if texts else None


list_option = functools.partial(click.option, metavar="LIST", multiple=True, callback=_joined)
slo_option = functools.partial(
    click.option, "--slo", "specs", type=INPUT_FILE, metavar="SPEC", multiple=True
)
percentiles_option = list_option(
    "--percentiles", default=["50,90,99,99.9"], help="Percentiles to show."
)
chart_option = click.option(
    "-o",
    "--output",
    "out",
    type=OUTPUT_FILE,
    callback=_checked_chart,  # before anything is read
    metavar="CHART",
    help="Also plot it into this file: .png .svg .pdf.",
)
interval_option = click.option(
    "--expected-interval",
    metavar="SECONDS",
    callback=_is_duration,
    help="Time between two requests of one connection, such as 10ms: shows corrected values, too.",
)
sender_options = _together(
    click.option(
        "--rate", type=Real(0, min_open=True), help="Requests per second, over all connections."
    ),
    click.option("--connections", type=click.IntRange(1), help="Connections that sent requests."),
)
freeze_options = _together(
    click.option("--stall", metavar="SECONDS", default="4s", help="How long the server is frozen."),
    click.option("--duration", metavar="SECONDS", default="12s", help="Length of a run."),
    click.option(
        "--rate",
        type=Real(0, min_open=True),
        default=200,
        help="Requests per second, over all connections.",
    ),
    click.option("--connections", type=click.IntRange(1), default=4, help="Number of connections."),
)
output_options = _together(
    click.option("--series", metavar="NAME", help="Series of the output, if there are several."),
    click.option(
        "--format-in", metavar="NAME", help="Format of the output, if it is not recognised."
    ),
    click.option(
        "--unit",
        type=click.Choice(["ns", "us", "ms", "s"]),
        help="Unit of the values in the output, if it does not state one.",
    ),
    click.option("--column", metavar="NAME", help="Column of latencies in a table of raw samples."),
)


def is_quiet() -> bool:
    """Return True if ``-q`` is given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool((context.find_root().obj or {}).get("quiet"))


def note(text: str) -> None:
    """Print a note of one line on standard error, safe for a terminal, unless ``-q`` is given."""
    if not is_quiet():
        with contextlib.suppress(OSError):  # a note that cannot be written stops nothing
            text = printable(without_secrets(text), len(text))
            click.echo(for_stream(text, sys.stderr), err=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if somebody reads the stream on a screen."""
    return stream is not None and stream.isatty()


_EVERY = 1.0
"""Seconds between two lines of progress."""


@contextlib.contextmanager
def progress(task: str | Callable[[], str]) -> Iterator[None]:
    """Report on a terminal a task that takes longer than a second; what it is may change."""
    import threading

    if is_quiet() or not is_terminal(sys.stderr):  # a thread does not know the command's options
        yield
        return
    done = threading.Event()

    def report() -> None:
        began = time.monotonic()
        while not done.wait(_EVERY):
            words = task if isinstance(task, str) else task()
            note(f"{words} … {format_duration(round(time.monotonic() - began) * 1e9)}")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# ------------------------------------------------------------
# The values of options.


def names_in(text: str) -> list[str]:
    """Return the names in a list such as ``endpoint,host``."""
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str) -> list[float]:
    """Return percentiles from a list such as ``50,99,99.9``."""
    from latencykit.units import parse_percentile

    percentiles = [parse_percentile(part) for part in text.split(",") if part.strip()]
    if not percentiles:
        raise InvalidArgumentError(f"{text!r} names no percentiles; write them as 50,99,99.9")
    for value in percentiles:
        if 0.9 <= value < 1:
            note(f"note: p{value:g} lies below the first per cent; was p{value * 100:g} meant?")
    return percentiles


def counts(text: str) -> list[int]:
    """Return whole numbers of 1 or more from a list such as ``1,10,100``."""
    parts = [part.replace("_", "") for part in names_in(text)]
    if not parts or not all(
        part.isdecimal() and len(part) <= 10 and 0 < int(part) <= 10**9 for part in parts
    ):
        raise InvalidArgumentError(
            f"{text!r} is not a list of whole numbers from 1 to a billion; write them as 1,10,100"
        )
    return [int(part) for part in parts]


def share(text: str) -> float:
    """Return a share (0..1) from a percentage such as ``3%``."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number) / 100
    except ValueError:
        value = -1.0
    if not (text.strip().endswith("%") or value == 0) or not 0 <= value <= 1:
        raise InvalidArgumentError(f"{text!r} is not a percentage; write it as 3%")
    return value


def slo_of(specs: Sequence[str]) -> SLO:
    """Return the SLO that texts state, or that files contain."""
    from latencykit.analysis.slo import SLO

    texts = []
    for spec in specs:
        path = Path(spec)
        if len(spec) < 1000 and path.is_file():
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
        elif "=" not in spec and "<" not in spec and path.suffix:
            raise InvalidArgumentError(
                f"{spec}: neither a file nor limits; write for example --slo 99.9=20ms,max=1s"
            )
        else:
            texts.append(spec)
    return SLO.parse("\n".join(texts))


def need_unit(name: str, run: Run) -> None:
    """Refuse a limit in time on values whose unit is only assumed."""
    if run.unit_note is not None:
        raise InvalidArgumentError(
            f"{name}: does not state the unit of its values, so they cannot be compared with a "
            f"limit in time; state it: --unit {'ms' if run.unit == 'none' else run.unit}"
        )


# ------------------------------------------------------------
# The run noise that a history shows, for ``check`` and ``compare``.


def noise_of(history: History, series: str, statistics: Iterable[str]) -> dict[str, RunVerdict]:
    """Return level, band and noise of the statistics that show some; by the latest run's labels."""
    labels = history.runs[-1].labels if history.runs else None
    found = {word: history.latest(series, word, labels) for word in statistics}
    return {word: verdict for word, verdict in found.items() if verdict is not None}


def no_noise(history: History, store: str, series: str, statistics: str = "") -> str:
    """Return what a history lacks for `noise_of`, and which series it has instead."""
    text = f"{store}: shows no run noise of {series}{statistics}; it takes six runs"
    known = list(dict.fromkeys(name for run in history.runs for name in run.series))
    if series in known:
        return text
    return f"{text} (series: {brief_list(known) or 'none'}; NAME=FILE names one)"
