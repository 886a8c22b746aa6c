"""Siblings of files that once hung, exhausted memory, crashed or wrote to the terminal."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.hostile import MEBIBYTES, measure, siblings, unsafe

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the bounds are those of Linux"),
]


def test_no_small_file_takes_much_or_reaches_the_terminal(tmp_path: Path) -> None:
    """A command that takes a minute is ended, and has no status; times are the benchmark's."""
    for path, command, status, _, mebibytes, text in measure(siblings(tmp_path)):
        assert status in (0, 2), (path.name, command, status, text)
        assert mebibytes <= MEBIBYTES, (path.name, command)
        assert not unsafe(text), (path.name, command)


def test_no_mutant_of_a_real_output_falls() -> None:
    """Two of each of 60; ``python -m tests.benchmarks.hostile --mutants 500`` is the whole run."""
    command = [sys.executable, "-m", "tests.benchmarks.hostile", "--mutants", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "120 mutants, 0 fell\n"
