"""``latencykit check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latencykit.cli.common import (
    Input,
    Inputs,
    atomic,
    confident,
    inputs,
    load,
    need_unit,
    note,
    print_json,
    printing,
    progress,
    say_units,
)

if TYPE_CHECKING:
    from latencykit.analysis.slo import SLO

__all__ = ["command", "slo_of"]


@click.command("check")
@inputs()
@click.option(
    "--slo",
    "spec",
    required=True,
    metavar="SPEC",
    help="Limits such as 99.9=20ms,max=1s,failed=0.1%, or a file.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Where it cannot be told whether a limit is met, take it for missed.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.xml",
    help="Write JUnit's XML, too.",
)
@confident
@printing
def command(
    given: Inputs, spec: str, strict: bool, junit: Path | None, confidence: float, style: str
) -> int:
    """Check limits on latencies, for a pipeline: exit status 0 met or unknown, 1 missed, 2 unreadable.

    A limit is met where the whole confidence interval is within it, and missed where all of it is beyond. Requests that
    failed count as slower than any limit. A file with the SLO may also hold gnuplot's steps or HistogramLogAnalyzer's
    XML.

    \b
    latencykit check run.hlog --unit ns --slo 99.9=20ms,max=1s,failed=0.1%
    latencykit check run.hlog --unit ns --slo slo.txt --strict --junit slo.xml
    """
    from latencykit.analysis.slo import passed
    from latencykit.views.text import check_record, check_text, junit_xml

    slo = slo_of(spec)
    with progress("checking"):
        loaded = load(given)
        found = {one.name: _checked(one, slo, confidence) for one in loaded}
    good = passed((row for rows in found.values() for row in rows), strict=strict)
    if junit is not None:
        with atomic(junit, given.files, spec) as temporary:
            temporary.write_text(junit_xml(found, strict=strict), encoding="utf-8")
    if style == "json":
        print_json(
            check_record(found, good)
            | {"notes": [f"{one.name}: {text}" for one in loaded for text in one.data.run.notes]}
        )
    else:
        click.echo(check_text(found, style, given.out_unit))
        say_units({one.name: one.data.run for one in loaded}, style)
    if good is None:
        note("some limits can neither be called met nor missed; --strict takes them for missed")
    return int(good is False)


def slo_of(spec: str) -> SLO:
    """The SLO that a text states, or that stands in a file."""
    from latencykit.analysis.slo import slo_from_text
    from latencykit.errors import InvalidArgumentError

    path = Path(spec)
    if len(spec) < 1000 and path.is_file():
        return slo_from_text(path.read_text(encoding="utf-8", errors="replace"))
    if "=" not in spec and "<" not in spec and path.suffix:
        raise InvalidArgumentError(
            f"{spec}: no such file, and no limits either; write for example --slo 99.9=20ms,max=1s"
        )
    return slo_from_text(spec)


def _checked(one: Input, slo: SLO, confidence: float) -> Any:
    from latencykit.views.record import in_nanoseconds

    if any(limit.statistic != "failed" and not limit.bare for limit in slo.limits):
        need_unit(one.name, one.data.run)
    return slo.check(in_nanoseconds(one.data), confidence)
