"""The same latencies in many spellings of tables are equal; an ambiguous one is an error of one line."""

from __future__ import annotations

import numpy as np
import pytest

from latencykit.errors import CorruptInputError

MS = [12.5, 3.25, 100.0, 7.75, 1234.5, 8.5, 9.25, 10.0]


def german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def table(header: str, spell, start=lambda k: f"2024-05-01T12:00:{k:02d}Z", sep: str = ",") -> str:
    rows = [f"time{sep}{header}", *(f"{start(k)}{sep}{spell(ms)}" for k, ms in enumerate(MS))]
    return "\n".join(rows) + "\n"


TABLES = {
    "ISO 8601": table("duration", lambda ms: f"PT{ms / 1000}S"),
    "clock": table("duration", lambda ms: f"00:00:{ms / 1000:09.6f}"),
    "grouped digits with a unit": table("latency", lambda ms: f'"{ms:,} ms"'),
    "Greek mu": table("latency", lambda ms: f"{ms * 1000:g} \u03bcs"),
    "micro sign": table("latency", lambda ms: f"{ms * 1000:g}\u00b5s"),
    "decimal commas": table("latency_ms", german, sep=";"),
    "a title": "Load test of the shop\n" + table("latency (ms)", str),
    "two titles": "Load test\nof the shop\n\n" + table("latency (ms)", str),
    "web server's dates": table("latency_ms", str, lambda k: f"01/May/2024:12:00:{k:02d} +0000"),
    "dates with UTC": table("latency_ms", str, lambda k: f"2024-05-01 12:00:{k:02d}.000 UTC"),
    "dates in a zone": table("latency_ms", str, lambda k: f"2024-05-01T14:00:{k:02d}+02:00"),
    "a line for the spreadsheet": "sep=;\n" + table("latency_ms", str, sep=";"),
}
LISTS = {
    "one column with decimal commas": "latency_ms\n" + "\n".join(map(german, MS)),
    "a unit after a blank": "\n".join(f"{ms * 1000:g} us" for ms in MS),
    "Go": "\n".join(f"{ms}ms" if ms < 1000 else f"{ms / 1000}s" for ms in MS),
}


@pytest.mark.parametrize("name", TABLES)
def test_latencies_and_starts_are_right_however_they_are_spelled(read_text, name):
    (data,) = read_text(TABLES[name], "calls.csv").values()
    assert (data.duration / 1e6).tolist() == pytest.approx(MS)
    assert data.run.start == 1_714_564_800
    assert np.diff(data.start).tolist() == [1e9] * 7


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_latencies(read_text, name):
    (data,) = read_text(LISTS[name] + "\n", "calls.txt").values()
    assert (data.duration / 1e6).tolist() == pytest.approx(MS)


def test_a_comma_that_may_mean_two_things_is_not_guessed(read_text):
    text = table("latency", lambda ms: f"{ms}ms").replace("1234.5ms", '"1,234 ms"')
    with pytest.raises(CorruptInputError, match=r":6: this row has no latency that can be read"):
        read_text(text, "calls.csv")


def test_prose_above_words_is_not_a_table(read_text):
    from latencykit.errors import UnknownFormatError

    with pytest.raises(UnknownFormatError):
        read_text("Notes\nof,the,meeting\nnobody,was,there\n", "notes.csv")


def test_a_column_without_a_number_is_said_to_hold_none(read_text):
    with pytest.raises(CorruptInputError, match="contains no latencies"):
        read_text("latency_ms\nNaN\nNaN\n", "calls.csv")
