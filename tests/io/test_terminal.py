"""Text as it stood on a terminal."""

from __future__ import annotations

import pytest

from latencykit.io.text_reports import below, plain


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a\nb\n", "a\nb\n"),
        (
            "GET: rps=1\r          \rGET: rps=2\r          \r====== GET ======  \nnext\n",
            "====== GET ======  \nnext\n",
        ),
        ("10%\r20%\r\n", "20%\n"),
        ("\x1b[32m│\x1b[39m 5 ms \x1b]8;;http://x\x07link\x1b]8;;\x07\x1b[2K\n", "│ 5 ms link\n"),
        ("\r\r\n", "\n"),
    ],
)
def test_what_was_written_last_stands(given, shown):
    assert plain(given) == shown
    assert plain(given).count("\n") == given.count("\n")


def test_the_lines_below_a_heading():
    text = "Latency:\n a\n\nLatency: again\n b\n c\n"
    assert list(below(text, "Latency:")) == [(5, " b"), (6, " c")]
    assert list(below(text, "Nothing")) == []
