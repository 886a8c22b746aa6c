"""mtr's JSON and raw output: one series per hop. What was lost is a timeout."""

from __future__ import annotations

import re

import numpy as np

from latencykit.core.run import Run
from latencykit.io.build import samples_of
from latencykit.io.declared import Json
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import has_match, plain

_RUN = Run(tool="mtr", unit="ms", measure="service", corrected="none")
_KEYS = {
    "count": "Snt",
    "lost": "Loss%",
    "mean": "Avg",
    "min": "Best",
    "max": "Wrst",
    "std": "StDev",
}


def read_raw(source: Source, options: ReadOptions) -> Series:
    """Read the probes of every hop: sent (x), answered by a host (h) after its µs (p)."""
    text = plain(source.text())
    hosts = dict(re.findall(r"^h (\d{1,3}) (\S+)", text, re.MULTILINE))
    sent = np.array(re.findall(r"^x (\d{1,3})\b", text, re.MULTILINE), object).astype(int)
    answers = re.findall(r"^p (\d{1,3}) (\d{1,15})\b", text, re.MULTILINE)
    hops, times = np.array(answers, object).reshape(-1, 2).astype(int).T
    for hop in np.union1d(sent, hops).tolist():
        own = times[hops == hop] * 1000
        run = _RUN.replace(timeouts=max(int((sent == hop).sum()) - own.size, 0))
        (data,) = samples_of({"duration": own}, run, options).values()
        yield hosts.get(str(hop), f"hop {hop + 1}"), data


FORMATS = {
    "mtr-json": Json(run=_RUN, facts=_KEYS, each="report.hubs", name="host"),
    "mtr-raw": (
        has_match(r"^[xh] \d{1,3} \S+\n(?:[^\n]*\n){0,99}?p \d{1,3} \d+(?: \d+)?$"),
        read_raw,
    ),
}
