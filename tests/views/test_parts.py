"""A total and its parts: the total's sentence leads, and what is said of it is not repeated."""

from __future__ import annotations

import re

import pytest

from tests.io.test_anything_to_anything import requests

__all__ = ["requests"]  # a fixture


@pytest.fixture
def text(run, requests, tmp_path):
    page = tmp_path / "page.html"
    assert run("report", requests, "-o", page)[0] == 0
    return re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_parts_are_counted_and_not_compared_with_their_total(text):
    assert "<h1>total, /a and /b" in text
    assert "Compared with" not in text


def test_series_of_one_source_share_a_row(text):
    assert "total, /a, /b" in text


def test_footnotes_of_parts_do_not_repeat_the_total(run, requests):
    assert run("summary", requests)[1].count("is taken as the start") <= 1
