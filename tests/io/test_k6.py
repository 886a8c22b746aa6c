"""k6's summaries in their shapes, and its points."""

from __future__ import annotations

from tests.io.test_cases import text_of

TEXT = text_of("k6", "text, 1")


def test_a_long_line_of_blanks_takes_no_more_than_its_length(read_text):
    assert read_text(TEXT + " " * 60_000)["http_req_duration"].count == 2518
