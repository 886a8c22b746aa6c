"""hey's text and CSV, from boom's spelling to replies that failed."""

from __future__ import annotations

from latencykit.io.source import Confidence, Head
from latencykit.io.tools.hey import sniff_text
from tests.io.test_cases import text_of

TEXT = text_of("hey", "percentiles as printed and buckets between")


def test_oha_s_report_is_not_hey_s():
    assert sniff_text(Head("x", TEXT.encode())) == Confidence.CERTAIN
    oha = TEXT.replace("Summary:\n", "Summary:\n  Success rate:\t100.00%\n").replace(
        "Latency dist", "Response time dist"
    )
    assert sniff_text(Head("x", oha.encode())) == Confidence.NO
