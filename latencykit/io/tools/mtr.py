"""mtr, WinMTR and owping: one series per hop, or per direction. What was lost is a timeout."""

from __future__ import annotations

import re

import numpy as np

from latencykit.core.run import Run
from latencykit.io.build import samples_of
from latencykit.io.declared import Json, Lines
from latencykit.io.source import ReadOptions, Series, Source
from latencykit.io.text_reports import has_match, plain

_RUN = Run(tool="mtr", unit="ms", measure="service", corrected="none")
_ROW = (
    r"^ *\d+\.(?:\|--)? (?P<name>\S.{0,200}?) {1,200}(?P<lost>[\d.]+)%? +(?P<count>\d+) +[\d.]+"
    r" +(?P<mean>[\d.]+) +(?P<min>[\d.]+) +(?P<max>[\d.]+) +(?P<std>[\d.]+)"
)
_WHOLE = "WinMTR measures in whole milliseconds"
_CSV = (  # with the columns of the usual header
    r"^MTR[^,\n]{0,40},\d+,[^,\n]*,[^,\n]*,\d+,(?P<name>[^,\n]{1,200}),(?P<lost>[\d.]+),"
    r"(?P<count>\d+),\d*,[\d.]+,(?P<mean>[\d.]+),(?P<min>[\d.]+),(?P<max>[\d.]+),(?P<std>[\d.]+)"
)
_WINMTR = (
    r"^\| *(?P<name>\S[^|\n]{0,200}?) +- +(?P<lost>\d+) \| +(?P<count>\d+) \| +\d+ \|"
    r" +(?P<min>\d+) \| +(?P<mean>\d+) \| +(?P<max>\d+) \| +\d+ \|"
)
_OWPING = (
    r"^--- owping statistics from (?P<name>\S{1,80} to \S{1,80}) ---\n(?:[\w(][^\n]*\n){0,4}?"
    r"(?P<count>\d+) sent, \d+ lost \((?P<lost>[\d.]+)%\)[^\n]*\n"
    r"one-way delay min/median/max = (?P<min>-?[\d.]+)/(?P<p50>-?[\d.]+)/(?P<max>-?[\d.]+) ms"
    r"(?:(?:[^\n]*\n){2}Percentiles:(?P<points>(?:\n\s+[\d.]+: -?[\d.]+ ms)+))?"
)
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
    "mtr": (has_match(r"^[^\n]{0,200} Loss% {1,9}Snt {1,9}Last "), Lines(run=_RUN, row=_ROW)),
    "mtr-csv": (has_match(r",Loss%,Snt, ,Last,Avg,Best,Wrst,StDev"), Lines(run=_RUN, row=_CSV)),
    "winmtr": (
        has_match(r"WinMTR statistics", _WINMTR),
        Lines(run=_RUN.replace(tool="WinMTR", notes=(_WHOLE,)), row=_WINMTR),
    ),
    "mtr-json": Json(run=_RUN, facts=_KEYS, each="report.hubs", name="host"),
    "mtr-raw": (
        has_match(r"^[xh] \d{1,3} \S+\n(?:[^\n]*\n){0,99}?p \d{1,3} \d+(?: \d+)?$"),
        read_raw,
    ),
    "owping": (
        has_match(_OWPING),
        Lines(run=_RUN.replace(tool="owping"), row=_OWPING, pair=r"([\d.]+): (-?[\d.]+) ms"),
    ),
}
