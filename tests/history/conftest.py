"""A store with runs, and data for further ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import latencykit as lk

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0


def run_of(seed: int, factor: float = 1.0) -> lk.Histogram:
    """Return a run of 3,000 requests around a millisecond, which differs by 3 % from run to run."""
    rng = np.random.default_rng(seed)
    level = 1e6 * factor * np.exp(0.03 * rng.standard_normal())
    return lk.Histogram.of((level * np.exp(0.3 * rng.standard_normal(3000))).astype(np.int64))


def fill(
    store: Path | str, runs: int, first: int = 0, factor: float = 1.0, **facts: object
) -> None:
    """Add runs, one a day."""
    history = lk.History(store)
    for number in range(first, first + runs):
        time = (number + 1) * DAY
        history.add(
            {"checkout": run_of(number, factor)}, commit=f"{number:07x}", branch="main",
            time=time, **facts,
        )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with twenty runs."""
    fill(tmp_path / "history", 20)
    return tmp_path / "history"
