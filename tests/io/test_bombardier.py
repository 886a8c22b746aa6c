"""bombardier: JSON and text."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "bombardier/latencies/stdout.txt").read_text()


@pytest.mark.parametrize(
    "change",
    [
        str,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(
            "\n", "\n [====>----] 10.00% 1s\r [=========] 100.00%\nDone!\n", 1
        ),
        lambda text: "$ bombardier -l\n" + text[text.index("Statistics") :],
    ],
)
def test_text(read_text, change):
    h = read_text(change(TEXT))["out.txt"]
    assert (h.count, h.mean, h.std, h.max) == (3000, 1.53e6, 314_250, 6.12e6)
    assert h.percentile([50, 75, 90, 95, 99]).tolist() == [1.48e6, 1.54e6, 1.63e6, 1.81e6, 3.25e6]


def test_several_runs_in_one_file(read_text):
    found = read_text(TEXT + TEXT)
    once = read_text(TEXT)["out.txt"]
    assert list(found) == ["run 1", "run 2"]
    assert [(one.count, one.run.failed, one.run.notes) for one in found.values()] == [
        (once.count, once.run.failed, once.run.notes)
    ] * 2


def test_text_without_blanks_and_with_a_second_distribution(read_text):
    whole = read_text(TEXT)["out.txt"]
    flat = "\n".join(map(str.strip, TEXT.split("\n")))
    assert read_text(flat)["out.txt"] == whole
    begin, end = TEXT.index("  Latency Distribution"), TEXT.index("  HTTP codes")
    good = TEXT[begin:end].replace("Distribution", "Distribution (2xx)").replace("1.", "0.")
    total = TEXT[begin:end].replace("Distribution", "Distribution (Total)")
    assert read_text(TEXT[:begin] + total + good + TEXT[end:])["out.txt"] == whole
