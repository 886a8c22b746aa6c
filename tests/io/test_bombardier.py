"""bombardier: JSON and text."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "bombardier/latencies/stdout.txt").read_text()


def test_text_without_blanks_and_with_a_second_distribution(read_text):
    whole = read_text(TEXT)["out.txt"]
    flat = "\n".join(map(str.strip, TEXT.split("\n")))
    assert read_text(flat)["out.txt"] == whole
    begin, end = TEXT.index("  Latency Distribution"), TEXT.index("  HTTP codes")
    good = TEXT[begin:end].replace("Distribution", "Distribution (2xx)").replace("1.", "0.")
    total = TEXT[begin:end].replace("Distribution", "Distribution (Total)")
    assert read_text(TEXT[:begin] + total + good + TEXT[end:])["out.txt"] == whole
