"""What commands print of real files is what is recorded in ``printed.txt``."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.printed import ROOT, cases, rounded


@pytest.mark.parametrize(("command", "recorded"), cases().items())
def test_a_command_prints_what_is_recorded(command, recorded, run, monkeypatch):
    monkeypatch.chdir(ROOT)
    status, out, err = run(*shlex.split(command))
    assert f"{rounded(out)}{err}exit code {status}" == recorded
