"""HdrHistogram's HistogramLogProcessor: the intervals that it prints beside the ``.hgrm``.

Each row has the percentiles of its interval and, behind them, those of all values so far; the last
row's are those of the whole log. Values are divided by ``-outputValueUnitRatio`` (1,000,000, ns to
ms, unless it is given), which the output does not state. Source: HistogramLogProcessor.java.
"""

from __future__ import annotations

import re

from latencykit._text import printable
from latencykit.core.run import Run
from latencykit.io.build import data_from_points
from latencykit.io.source import Data, ReadOptions, Source
from latencykit.io.text_reports import fact, has_match

_LEGEND = re.compile(
    r"^(?:Time: IntervalPercentiles:count \( 50% 90% Max \) TotalPercentiles:count|"
    r'"Timestamp","Int_Count","Int_50%","Int_90%","Int_Max","Total_Count",)',
    re.MULTILINE,
)
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_TEXT_ROW = re.compile(
    rf"\s*{_NUMBER}: I:(\d+) \( +{_NUMBER} +{_NUMBER} +{_NUMBER} \) T:(\d+) "
    rf"\( +{_NUMBER} +{_NUMBER} +{_NUMBER} +{_NUMBER} +{_NUMBER} +{_NUMBER} \)\s*"
)
_CSV_ROW = re.compile(rf"{_NUMBER},(\d+)" + rf",{_NUMBER}" * 3 + r",(\d+)" + rf",{_NUMBER}" * 6)
_POINTS = (50.0, 90.0, 99.0, 99.9, 99.99)
_HINT = "the .hlog that it was made from has every percentile, over time"


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the totals of the last row."""
    text = source.text()
    last: list[str] = []
    first = before = 0.0
    for number, line in enumerate(text.split("\n"), 1):
        if not re.match(r'\s*[^#\s"T]', line):
            continue  # comments, the legend, blank lines
        row = _TEXT_ROW.fullmatch(line) or _CSV_ROW.fullmatch(line)
        if row is None or (last and int(row[6]) < int(last[5])):
            seen = f"{printable(line.strip(), 50)!r}"
            options.refuse(source, number, seen, "percentiles of an interval and of all so far")
            continue
        first = first or float(row[1])
        before, last = float(row[1]), list(row.groups())
    unit, origin = options.resolve_unit("ms", "assumed")
    run = Run(
        tool="HdrHistogram", unit=unit, unit_from=origin,
        start=fact(text, r"^#\[StartTime: (\d+\.\d+)", float),
        duration=before if before > first else None, notes=(_HINT,),
    )  # fmt: skip
    if not last:
        raise source.corrupt(None, "it has no interval", "one row per interval", "run it again")
    points = dict(zip(_POINTS, last[6:11], strict=True))
    return {"": data_from_points(points, int(last[5]), {"max": last[11]}, run, unit)}


FORMATS = {
    "log-processor": (has_match(_LEGEND), read),
}
