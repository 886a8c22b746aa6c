"""ghz: calls with their outcomes, and the report."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "ghz/paced/ghz-text.txt").read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "$ ghz x\n" + t,
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("1.48 ms", "1480 µs"),
    ],
)
def test_other_surroundings(read_text, change):
    assert read_text(change(TEXT))["out.txt"].percentile(10) == 1.48e6
