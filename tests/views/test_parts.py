"""A total and its parts: the total's sentence leads, and what is said of it is not repeated."""

from __future__ import annotations

import pickle
import re

import pytest

from latencykit.core.run import Note, Run, code_of
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


def test_what_touches_all_numbers_comes_before_what_the_numbers_say(run, tmp_path):
    path = tmp_path / "times.csv"
    rows = [*(["1000"] * 900), "1O00", *(["9000000"] * 100)]
    path.write_text("\n".join(["latency_ns", *rows, ""]), encoding="utf-8")
    record = run("summary", path, "--lenient", "--format", "json")[1]
    assert '"findings": []' not in record
    *_, doubt, finding = run("summary", path, "--lenient")[1].splitlines()
    assert doubt == "1 corrupt line was skipped"
    assert finding == "2 modes: 90 % around 1 µs, 10 % around 9 ms"
    merged = Run(notes=("a",)).with_notes(pickle.loads(pickle.dumps(Note("b", "unit", 3.0))))
    assert [*map(code_of, merged.notes)] == ["", "unit"]
    assert merged.notes[1].value == 3.0
