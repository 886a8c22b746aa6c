"""``latencykit league``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from latencykit._text import did_you_mean
from latencykit.cli.options import OUTPUT_FILE, format_option, freeze_options, note
from latencykit.cli.output import atomic, print_result, print_text
from latencykit.errors import CorruptInputError, InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    from latencykit.ctrlz.records import LeagueRecord


class _ToolsOrFile(click.Command):
    """A command whose ``--json`` takes a file, or nothing: then it prints JSON."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        for word in args:
            if words and words[-1] == "--json" and not word.lower().endswith(".json"):
                words[-1:] = ["--format", "json"]
            words.append(word)
        if words and words[-1] == "--json":
            words[-1:] = ["--format", "json"]
        return super().parse_args(ctx, words)


@click.command("league", cls=_ToolsOrFile)
@click.argument("tools", metavar="[TOOL…]", nargs=-1)
@click.option("--repeat", type=click.IntRange(1, 100), default=3, help="Runs per mode.")
@freeze_options
@click.option("--list", "listing", is_flag=True, help="List the modes, and what is installed.")
@click.option(
    "--from",
    "results",
    metavar="FILE",
    type=OUTPUT_FILE,
    help="Run nothing; print the results in this file (.json).",
)
@click.option(
    "--json",
    "out",
    metavar="[FILE]",
    type=OUTPUT_FILE,
    help="Write the results to this file (.json); results of other modes in it are kept. Without "
    "FILE the same as --format json.",
)
@format_option
def command(
    tools: tuple[str, ...],
    listing: bool,
    results: Path | None,
    out: Path | None,
    style: str,
    **options: Any,
) -> None:
    """Test every load generator that is installed for the stalls that it reports.

    TOOL is a name, or a .toml file with an entry of your own. A verdict that differs between the
    runs of a mode is unknown.

    \b
    latencykit league wrk hey --repeat 3 --json league.json
    latencykit league --from league.json --format markdown
    """
    from latencykit.ctrlz.entries import load_entries
    from latencykit.ctrlz.league import merge_results, run_league
    from latencykit.views.league import league_text, modes_text
    from latencykit.views.tables import json_text

    if listing:
        print_text(modes_text(load_entries(tools), style), style)
        return
    if results is not None:
        record = _read(results)
        known = {row["tool"] for row in record["results"]}
        rows = [row for row in record["results"] if not tools or row["tool"] in tools]
        if missing := sorted(set(tools) - known):
            hint = did_you_mean(missing[0], known)
            raise InvalidArgumentError(f"{results}: no result of {missing[0]!r}{hint}")
        record = {**record, "results": rows}
    else:
        entries = load_entries(tools)
        if out is not None:
            from latencykit._files import check_folder

            check_folder(out)
        old = _read(out) if out is not None and out.exists() else None

        def keep(so_far: LeagueRecord) -> None:
            if out is not None:
                merged = merge_results(old, so_far)
                with atomic(out) as path:
                    path.write_text(json_text(merged) + "\n", encoding="utf-8")

        record = run_league(entries, progress=note, keep=keep, **options)
        if out is not None:
            note(f"wrote {out}")
    print_result(style, lambda: record, lambda: league_text(record, style))


def _read(path: Path) -> LeagueRecord:
    """Return the results in a file."""
    try:
        record: LeagueRecord = json.loads(path.read_text(encoding="utf-8"))
        for row in record["results"]:
            row["tool"], row["mode"], row["error"]
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise CorruptInputError(str(path), None, reason) from None
    except (ValueError, LookupError, TypeError):
        seen, expected = "these are not results", "what `latencykit league --json FILE` writes"
        raise CorruptInputError(str(path), None, seen, expected) from None
    return record
