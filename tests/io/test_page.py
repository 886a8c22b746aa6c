"""The page of all formats is what the registry says, and the command that lists them says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from latencykit.cli import cli
from latencykit.io.registry import builtin_formats
from tests.io.page import chart_command, page

PAGE = Path(__file__).parents[2] / "notebooks" / "formats.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m tests.io.page > notebooks/formats.md"
    )


def test_every_format_shows_how_such_a_file_is_made():
    for one in builtin_formats():
        file = chart_command(one).removeprefix("latencykit chart ")
        assert file in one.example, one.name
        assert " " not in file, one.name
        assert "\n" not in one.example, one.name


def test_each_format_stands_on_the_page_once_in_two_lines():
    blocks = re.findall(r"```sh\n(.*?)```", page(), re.DOTALL)
    assert len(blocks) == len(builtin_formats())
    assert all(block.count("\n") == 2 for block in blocks)


def test_the_command_lists_them_all():
    done = CliRunner().invoke(cli, ["formats", "--format", "json"])
    assert done.exit_code == 0
    listed = json.loads(done.stdout)
    assert [one["name"] for one in listed] == [one.name for one in builtin_formats()]
    assert all(
        set(one) == {"name", "title", "suffixes", "rung", "reads", "writes"} for one in listed
    )
    writes = {one["name"] for one in listed if one["writes"]}
    assert writes == {"hlog", "hgrm", "json", "parquet", "csv"}
    for style in ("table", "csv", "markdown"):
        text = CliRunner().invoke(cli, ["formats", "--format", style]).stdout
        assert all(one.name in text for one in builtin_formats())
