"""hyperfine's exports and its text."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

JSON = (
    '{"results": [{"command": "a", "mean": 0.2, "stddev": 0.1, "median": 0.2, "user": 0.0, '
    '"system": 0.0, "min": 0.1, '
    '"max": 0.3, "times": [0.1, 0.3, 0.25], "exit_codes": [0, 1, 0]}, '
    '{"command": "a", "mean": 0.2, "stddev": null, "median": 0.2, "user": 0, "system": 0, "min": '
    '0.2, "max": 0.2}]}'
)


def test_every_run_is_a_row_and_failures_are_apart(read_text):
    found = read_text(JSON, "out.json")
    assert list(found) == ["a", "a (2)"]
    h = found["a"].histogram()
    assert (h.count, h.run.failed, h.max) == (2, 1, 250e6)
    assert found["a (2)"].mean == 200e6


def test_markdown_states_its_unit(read_text):
    head = "| Command | Mean [s] | Min [s] | Max [s] | Relative |\n|:---|---:|---:|---:|---:|\n"
    text = head + "| `x \\| y` | 1.5 ± 0.2 | 1.1 | 2.0 | 1.00 |\n"
    found = read_text(text, "out.md")["x | y"]
    assert (found.mean, found.std, found.min, found.max) == (1.5e9, 2e8, 1.1e9, 2e9)


def test_text_of_one_run(read_text):
    text = "Benchmark 1: sleep 1\n  Time (abs ≡):        1.002 s               [User: 0.001 s, System: 0.001 s]\n"
    found = read_text(text)["sleep 1"]
    assert (found.mean, found.count) == (1.002e9, 1)


def test_text_of_the_first_versions_has_no_count(read_text):
    text = "  Time (mean ± σ):     1.02 s ±  0.01 s    [User: 4.1 ms, System: 17.4 ms]\n \n  Range (min … max):   1.01 s …  1.05 s\n"
    found = read_text(f"Benchmark #1: sleep 1\n\n{text}")["sleep 1"]
    assert (found.count, found.min, found.max, found.mean) == (None, 1.01e9, 1.05e9, 1.02e9)
    assert read_text(text)["out.txt"].max == 1.05e9  # pasted without its first line


def test_a_corrupt_row(read_text):
    text = "command,mean,stddev,median,user,system,min,max\nx,0.1,,0.1,0,0,0.1,0.1\ny,fast,0,0,0,0,0,0\n"
    with pytest.raises(CorruptInputError, match=r"out\.csv:3: "):
        read_text(text, "out.csv")
    assert list(read_text(text, "out.csv", lenient=True)) == ["x"]
