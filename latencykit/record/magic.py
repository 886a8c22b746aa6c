"""``%load_ext latencykit``: the magics ``%latency`` and ``%%latency``."""

from __future__ import annotations

import argparse
import shlex
import time
from typing import Any, NoReturn

from latencykit.core.samples import Samples
from latencykit.errors import InvalidArgumentError
from latencykit.record.recorder import Recorder

_BUDGET_NS = 1_000_000_000
_MOST = 1_000_000

USAGE = """\
Measure a statement many times and keep every duration.

    %latency [-n N] [--rate R] [-o FILE.hlog] STATEMENT
    %%latency [-n N] [--rate R] [-o FILE.hlog] [SETUP]

Returns the Samples: one row per run, failed runs apart.

-n N      runs; without it as many as fit into a second, and at least ten
--rate R  starts R times per second and counts from when each run was due, so that a slow run
          shows in those that it delays
-o FILE   writes an interval log, too
"""


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would end the program."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"%latency: {message}; %latency? shows how it is used")


def load(shell: Any) -> None:
    """Register ``%latency`` and ``%%latency`` with an IPython shell."""

    def latency(line: str, cell: str | None = None) -> Samples:
        # The options at the beginning of the line, and the rest verbatim, quotes included.
        parser = _Parser(prog="%latency", add_help=False, allow_abbrev=False)
        parser.add_argument("-n", type=int)
        parser.add_argument("--rate", type=float)
        parser.add_argument("-o", dest="path")
        arguments, rest = list[str](), line.strip()
        while rest.startswith("-"):
            option, _, rest = rest.partition(" ")
            value, _, rest = rest.lstrip().partition(" ") if "=" not in option else ("", "", rest)
            arguments += [option, *shlex.split(value)]
            rest = rest.lstrip()
        options = parser.parse_args(arguments)
        if cell is not None and rest:
            exec(compile(rest, "<setup of %%latency>", "exec"), shell.user_ns)  # noqa: S102
        source = rest if cell is None else cell
        if not source.strip():
            raise InvalidArgumentError(
                "%latency: nothing to measure; %latency? shows how it is used"
            )
        # Run as a module's code: looking up a name costs about 0.1 µs.
        code = compile(shell.transform_cell(source), "<%latency>", "exec")
        if options.n is not None and not 1 <= options.n <= 100 * _MOST:
            raise InvalidArgumentError(f"%latency: -n is 1 to {100 * _MOST:,}, not {options.n}")
        count = options.n or _MOST
        with Recorder(options.path, keep=count) as recorder:
            begin = time.perf_counter_ns()
            rate, timed = options.rate, (recorder.measure() for _ in range(count))
            runs = timed if rate is None else recorder.schedule(rate, count=count)
            for number, run in enumerate(runs):
                spent = time.perf_counter_ns() - begin
                if options.n is None and number >= 10 and spent > _BUDGET_NS:
                    break
                with run:
                    exec(code, shell.user_ns)  # noqa: S102 - what a cell magic is for
        return recorder.samples()

    latency.__doc__ = USAGE
    shell.register_magic_function(latency, "line_cell", "latency")
