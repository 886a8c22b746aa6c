"""The histogram of redis-cli.

``latency histogram`` prints per command how many calls took up to 1.032 · 2**k µs, rounded down to
whole ones: buckets of an HdrHistogram of two digits. Above 1 s all are counted as 1 s.
"""

from __future__ import annotations

import re
from itertools import takewhile

import numpy as np

from latencykit.core.run import SERVER_SIDE, Run
from latencykit.io import json_text
from latencykit.io.build import data_from_buckets
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import has_match

_SERVER = Run(tool="redis", measure="service", unit="ns", notes=(SERVER_SIDE,))
_HISTOGRAM = r'\bcalls[\s":),=>integr(\d#]{1,60}\bhistogram_usec\b'


def read_histogram(source: Source, options: ReadOptions) -> Series:
    """Read the calls of every command, whatever redis-cli puts around the words."""
    text = source.text()
    if text.lstrip().startswith("{"):
        json_text.load(source)  # which says where it is corrupt
    words = re.findall(r'[^\s"{}:,]+', re.sub(r"\d{1,6}[)#]\s|\(integer\)|=>", " ", text))
    begins = [k - 1 for k, word in enumerate(words) if word == "calls"]
    for begin, end in zip(begins, [*begins[1:], len(words)], strict=True):
        pairs = list(takewhile(str.isdigit, words[begin + 2 : begin + 3] + words[begin + 4 : end]))
        if len(pairs) < 3 or pairs[0] != pairs[-1]:
            seen = f"the histogram of {words[begin]!r} is incomplete"
            raise source.corrupt(None, seen, f"{''.join(pairs[:1])} calls", "is it cut off?")
        edge, calls = np.array(pairs[1:], np.float64).reshape(-1, 2).T
        high = 1032 * 2.0 ** np.rint(np.log2(np.maximum(edge, 1) / 1.032))
        counts = np.diff(calls, prepend=0)
        late = high > 1e9
        yield words[begin], data_from_buckets(
            np.where(high > 1032, high / 2, 0)[~late], high[~late], counts[~late], _SERVER,
            above=int(counts[late].sum()), bound=1e9,
        )  # fmt: skip


FORMATS = {"redis-histogram": (has_match(_HISTOGRAM), read_histogram)}
