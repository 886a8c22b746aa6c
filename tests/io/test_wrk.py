"""wrk and wrk2: what they print, whatever stands around it."""

from __future__ import annotations

import re

import pytest

from tests.io.test_cases import text_of

WRK = text_of("wrk", "wrk is corrected by itself")
WRK2 = text_of("wrk", "wrk2 s spectrum and its short table")


@pytest.mark.parametrize("text", [WRK, WRK2])
def test_a_copy_without_leading_blanks(read_text, text):
    flat = re.sub(r"(?m)^ +| +(?= )", "", text)
    (found,), (whole,) = read_text(flat).values(), read_text(text).values()
    assert found == whole
