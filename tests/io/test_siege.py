"""siege's table in both spellings."""

from __future__ import annotations

from tests.io.test_cases import text_of

TEXT = text_of("siege", "text")


def test_every_run_of_a_file(read_text):
    runs = read_text(
        "@ Try 1\n"
        + TEXT
        + "\n@ Try 2\n"
        + TEXT.replace("Longest transaction:", "Longest transaction: 9")
    )
    assert list(runs) == ["run 1", "run 2"]
    assert runs["run 2"].max > runs["run 1"].max == read_text(TEXT)["out.txt"].max
