"""Reads the log of a made-up tool: ``acme 12.5ms`` per request, below a header."""

from __future__ import annotations

import re

import numpy as np

from latencykit import Run, Samples
from latencykit.errors import CorruptInputError
from latencykit.io.source import Confidence, Format, Head, ReadOptions, Source

_HEADER = "# acme latency log 1"
_LINE = re.compile(r"acme (\d{1,12}(?:\.\d{1,6})?)ms")


def sniff(head: Head) -> Confidence:
    return Confidence.CERTAIN if head.text.startswith(_HEADER) else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Samples]:
    text = source.bytes().decode("utf-8", "replace")
    values = []
    for number, line in enumerate(text.splitlines()[1:], 2):
        hit = _LINE.fullmatch(line.strip())
        if hit is None:
            raise CorruptInputError(
                source.shown, number, f"the line is {line[:40]!r}", "acme 12.5ms"
            )
        values.append(float(hit[1]))
    run = Run(tool="acme", unit="ms", unit_from="file")
    return {"": Samples(duration=np.rint(np.array(values) * 1e6).astype(np.int64), run=run)}


MADE = {"unit": "ms", "example": "acme run > out.acme"}
FORMAT = Format("acme", "acme's latency log", "samples", (".acme",), sniff, read, **MADE)
