"""Every command that reads much says on a terminal what it is doing, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.cli import options

COMMANDS = {
    "summary": (), "diagnose": (), "explain": (), "fanout": (), "check": ("--slo", "99=50ms"),
    "report": ("-o", "out.html"), "chart": ("-o", "out.png"), "merge": ("-o", "out.hlog"),
    "history add": ("--store", "store"), "history check": ("--store", "store"),
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "calls.csv"
    rng = np.random.default_rng(1)
    rows = zip(np.arange(20_000) / 1e2, rng.lognormal(0, 1, 20_000), strict=True)
    path.write_text("start_s,latency_ms\n" + "".join(f"{a},{b:.3f}\n" for a, b in rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_learns_what_takes_long(command, table, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (*command.split(), table, *COMMANDS[command])
    assert " … " not in run(*words)[2]
    monkeypatch.setattr(options, "is_terminal", lambda stream: True)
    monkeypatch.setattr(options, "_EVERY", 1e-4)
    status, _, err = run(*words)
    assert status == 0
    assert f"reading {table} … " in err
    assert " … " not in run("-q", *words)[2]
    if command == "summary":
        two = run(*words, table, "--jobs", "1")[2]
        assert "reading, 1 of 2 files … " in two
