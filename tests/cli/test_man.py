"""The manual page: every command with every option, in man(7)'s language."""

from __future__ import annotations

import re
import shutil
import subprocess

import click
import pytest

from latencykit import cli


@pytest.fixture
def page(run) -> str:
    status, out, err = run("man")
    assert (status, err) == (0, "")
    return out


def test_every_command_and_every_option_is_described(page):
    context = click.Context(cli.cli, info_name="latencykit")
    names = cli.cli.list_commands(context)
    assert re.findall(r"^\.SS (\S+)$", page, re.MULTILINE) == names
    parts = dict(zip(names, re.split(r"^\.S[SH] .*$", page, flags=re.MULTILINE)[5:], strict=False))
    shared = page.split(".SH INPUT OPTIONS")[1]
    plain = {name: text.replace("\\-", "-") for name, text in parts.items()}
    for name in names:
        command = cli.cli.get_command(context, name)
        assert command is not None
        assert f"latencykit {name}" in plain[name]
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.opts[-1] in plain[name] + shared.replace("\\-", "-"), (
                    name,
                    param.opts,
                )


def test_input_options_are_described_once(page):
    assert page.count("\\fB\\-\\-lenient\\fR") == 1
    assert (
        page.index(".SH INPUT OPTIONS")
        < page.index("\\fB\\-\\-lenient\\fR")
        < page.index(".SH EXIT STATUS")
    )


def test_no_text_is_taken_for_a_request(page):
    known = {"TH", "SH", "SS", "PP", "TP", "EX", "EE"}
    assert set(re.findall(r"^\.(\S+)", page, re.MULTILINE)) == known


@pytest.mark.needs_tool
@pytest.mark.slow
def test_groff_sets_it_without_a_warning(page):
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-ww", "-Tutf8", "-k"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "EXIT STATUS" in re.sub(r".\x08", "", done.stdout)
