"""Every number in the prose of a lesson is in its code: an assumption, or one of its assertions."""

from __future__ import annotations

import nbformat

from tests.notebooks.prose import lessons, unchecked


def test_every_number_in_prose_is_in_the_code():
    assert [f"{name}: {line}" for name, cells, solved in lessons() for line in unchecked(cells, solved)] == []


def test_the_scan_finds_a_number_that_no_code_contains():
    said = "In 2016, the p99 of lesson 3 was 0.344 ms for 63 % of 1,500 requests, up to p99.977; {}"
    code = nbformat.v4.new_code_cell('assert share == 0.63 and parsed("1_500") == 1500 and (median, limit) == (344_000, 99.977)')
    for text, count in (("", 0), ("5.7 s", 1), ("64 %", 1), ("1,501", 1), ("344 s", 0), ("p99.976", 1), ("p99.9", 0)):
        assert len(unchecked([nbformat.v4.new_markdown_cell(said.format(text)), code])) == count, text
