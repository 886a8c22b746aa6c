"""mtr: its report, one series per hop (ms). What no router answered is lost: a timeout."""

from __future__ import annotations

from latencykit.core.run import Run
from latencykit.io.declared import Lines
from latencykit.io.source import Format
from latencykit.io.text_reports import has_match

_ROW = (
    r"^ *\d+\.\|-- (?P<name>\S.{0,200}?) +(?P<lost>[\d.]+)% +(?P<count>\d+) +[\d.]+"
    r" +(?P<mean>[\d.]+) +(?P<min>[\d.]+) +(?P<max>[\d.]+) +(?P<std>[\d.]+)"
)
FORMATS = (
    Format(
        "mtr", "mtr (report)", "summary", (".txt",),
        has_match(r"^HOST: \S+ {1,80}Loss% {1,9}Snt "),
        Lines(run=Run(tool="mtr", unit="ms"), row=_ROW, unit="ms"), unit="ms",
        example="mtr --report-wide -c 100 HOST > mtr.txt",
    ),
)  # fmt: skip
