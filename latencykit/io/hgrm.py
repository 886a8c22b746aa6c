"""Percentile distributions as text: ``.hgrm``, as HistogramLogProcessor and others print them.

A row is a value, a percentile, and how many values were counted up to it. The counts are exact, so
a histogram can be rebuilt whose buckets reach from one row's value to the next; what happened
inside a row is lost, and such a file cannot be merged more finely than that. Writers differ in the
number of columns of the last row, in what they print for 1/(1−p) there, and in the digits of the
percentile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from latencykit._text import printable
from latencykit.core.buckets import COST, HdrBuckets, on_grid
from latencykit.core.histogram import Histogram, with_timeouts
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.io.build import base_unit, data_from_points, in_nanoseconds, nanoseconds_of, unit_in
from latencykit.io.hlog import own_comment, own_facts, run_facts, stated_facts
from latencykit.io.rows import line_refuser
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import fact, has_match, text_of_run
from latencykit.units import NANOSECONDS

_ANY_SIZE = Context(prec=400)  # digits: as many as the largest number has
_LONGEST_ROW = 200  # the pattern of a row takes cubic time on a hostile one
_NUMBER = r"[-+]?(?:(?:\d[\d,]{0,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][-+]?\d{1,3})?|inf(?:inity)?|nan)"
_HEADER = re.compile(
    r'^[ \t]*"?Value(?:\((\w+)\))?"?[ \t,]+"?Percentile"?[ \t,]+"?TotalCount"?'
    r'[ \t,]+"?1/\(1-Percentile\)"?[ \t]*$',
    re.IGNORECASE | re.MULTILINE,
)
_ROW = re.compile(
    rf"^\s*({_NUMBER})[\s,]+({_NUMBER})[\s,]+(\d+)(?:[\s,]+({_NUMBER})?)?\s*$", re.IGNORECASE
)
_TAIL = re.compile(r"^ *[\d.]+ +(0\.\d{6,12}) +\d+ +(\d+\.\d\d) *$")
_MEAN = re.compile(rf"#\[Mean\s*=\s*({_NUMBER}),\s*StdDeviation\s*=\s*({_NUMBER})\]", re.IGNORECASE)
_MAX = re.compile(rf"#\[Max\s*=\s*({_NUMBER}),\s*Total( ?)count\s*=\s*{_NUMBER}\]", re.IGNORECASE)


@dataclass
class Spectrum:
    """The rows of a percentile distribution as printed, and its footer."""

    values: list[float] = field(default_factory=list)
    percentiles: list[float] = field(default_factory=list)  # 0 to 100
    counts: list[int] = field(default_factory=list)  # values counted up to each row
    # ``mean``, ``std``, ``max`` of the footer
    reported_stats: dict[str, float] = field(default_factory=dict)
    unit: str | None = None  # that the header names, or latencykit's own comment
    assumed: bool = False  # whether that comment says that the unit is a guess
    supported: float | None = None  # highest percentile that the data supported, by that comment
    facts: dict[str, Any] = field(default_factory=dict)  # fields of the run that it states


def parse_spectrum(lines: Iterable[tuple[int, str]], fail: Any) -> Spectrum:
    """Parse the header, rows and footer of a distribution."""
    spectrum, ended = Spectrum(), False
    for number, line in lines:
        text = line.strip()
        header = _HEADER.match(text)
        if header is not None:
            spectrum.unit = (unit_in(header[1]) or header[1]) if header[1] else spectrum.unit
        elif text.startswith("#"):
            ended = ended or text.startswith("#[Buckets")  # below it, what else a program prints
            own = own_facts(text)
            if "unit" in own:
                spectrum.unit, spectrum.assumed = own["unit"], own.get("unit_from") == "assumed"
            spectrum.facts |= run_facts(own)
            if "supported" in own:  # as latencykit writes it
                level = re.fullmatch(r"p(\d{1,3}(?:\.\d{1,9})?)", own["supported"])
                spectrum.supported = min(float(level[1]), 100.0) if level else None
            mean, top = _MEAN.search(text), _MAX.search(text)
            if mean is not None:
                spectrum.reported_stats |= {"mean": _float(mean[1]), "std": _float(mean[2])}
            if top is not None:
                spectrum.reported_stats["max"] = _float(top[1])
                if not top[2]:  # the Python port's unit is not that of the mean
                    spectrum.reported_stats.pop("std", None)
        elif text.startswith("-----"):  # wrk2's line below it
            break
        elif text and not ended:
            row = _ROW.match(text) if len(text) < _LONGEST_ROW else None
            if row is None:
                expected = "value, percentile, count, 1/(1-percentile)"
                if (error := fail(number, f"{printable(text, 50)!r}", expected)) is not None:
                    raise error
                continue
            spectrum.values.append(_float(row[1]))
            spectrum.percentiles.append(_float(row[2]) * 100.0)
            spectrum.counts.append(int(row[3]))
    return spectrum


def _float(text: str) -> float:
    return float(text.replace(",", ""))


# ---------------------------------------------------------------- reading


def sniff(head: Head) -> Confidence:
    """Tell a distribution by its header, or by rows that agree with themselves."""
    title = "#[Overall percentile distribution"
    known = any(_HEADER.match(line) or line.startswith(title) for line in head.lines)
    rows = [_TAIL.match(line) for line in head.lines if line.strip()][:3]
    tail = rows and all(r and abs((1 - float(r[1])) * float(r[2]) - 1) < 0.05 for r in rows)
    return Confidence.LIKELY if known or tail else Confidence.NO


def read(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one distribution; milliseconds unless header, comment or user state a unit."""
    text = text_of_run(source, _HEADER)
    lines = text.splitlines()
    notes = ["rebuilt from percentile rows: between two rows nothing is known"]
    notes += [line[2:].rstrip("]") for line in lines if line.startswith(f"#[{COST}")]
    above = next((k for k, line in enumerate(lines) if _HEADER.match(line)), 0)
    rows = [row for row in enumerate(lines, 1) if row[0] > above or row[1].startswith("#")]
    spectrum = parse_spectrum(rows, line_refuser(source, options, text, notes))
    known = spectrum.unit in (*NANOSECONDS, "none")
    stated: Any = (
        (spectrum.unit, "assumed" if spectrum.assumed else "file") if known else ("ms", "assumed")
    )
    unit, unit_from = options.resolve_unit(*stated)
    counted = bool(spectrum.counts and spectrum.counts[-1])
    if not (counted or spectrum.facts.get("timeouts")):
        raise source.corrupt(None, "no value was counted", "rows of values", "")
    run = Run(
        unit=unit,
        unit_from=unit_from,
        notes=tuple(notes),
        supported=spectrum.supported,
        **spectrum.facts,
    )
    if not counted:
        return {"": with_timeouts(replace(Histogram.of([], unit=base_unit(unit)), run=run))}
    return {"": spectrum_data(spectrum, run, source)}


def spectrum_data(spectrum: Spectrum, run: Run, source: Source) -> Histogram | Summary:
    """Return the buckets between rows in the run's unit; percentiles where the last rows lack."""
    v, n = nanoseconds_of(spectrum.values, run.unit), np.asarray(spectrum.counts, np.int64)
    stats = in_nanoseconds(spectrum.reported_stats, run.unit)
    if any((np.diff(column) < 0).any() for column in (v, n, spectrum.percentiles)):
        seen = "values, percentiles and counts do not all ascend"
        raise source.corrupt(None, seen, "rows in ascending order", "")
    if spectrum.percentiles[-1] < 99.9999:
        end = f"the rows end at p{spectrum.percentiles[-1]:.6g}: the slowest values are missing"
        run = run.replace(notes=(end,))
        levels = dict(zip(spectrum.percentiles, v.tolist(), strict=True))
        return data_from_points(levels, None, stats, run)
    # A row that counts nothing new still ends the bucket of the next one that does.
    counts = np.diff(n, prepend=0)
    nonempty = counts > 0
    whole = spectrum.percentiles[0] == 0 or n[0] == 1  # else the rows of the fastest are missing
    lows, highs = np.concatenate(([whole * v[0]], v[:-1]))[nonempty], v[nonempty]
    highs[-1] = v[-1]
    rows = (tuple(spectrum.percentiles), tuple(v.tolist())) if whole else ((), ())
    return with_timeouts(
        Histogram.from_buckets(
            lows, highs, counts[nonempty], base_unit(run.unit), run=run, reported_stats=stats,
            reported_percentiles=rows,
        )
    )  # fmt: skip


# ---------------------------------------------------------------- writing


def percentile_levels(ticks: int) -> Iterator[float]:
    """Yield the reference's reporting levels: 0, then `ticks` in each half of the rest to 100."""
    # Source: ``PercentileIterator.java`` of HdrHistogram 2.2.2.
    level = 0.0
    while True:
        yield level
        halves = int(math.log(100.0 / (100.0 - level)) / math.log(2)) + 1
        level += 100.0 / (ticks * 2**halves)


def _decimal(value: float, places: int) -> str:
    """Rounded as Java prints a double: its shortest decimal form, half up."""
    exact, last_place = Decimal(repr(float(value))), Decimal(1).scaleb(-places)
    return f"{exact.quantize(last_place, ROUND_HALF_UP, _ANY_SIZE):f}"


def hgrm_lines(histogram: Histogram, ratio: float, ticks: int = 5, csv: bool = False) -> list[str]:
    """Return the lines of the distribution as the reference prints them."""
    layout, index, counts = on_grid(histogram.buckets, histogram.index, histogram.counts)
    if not isinstance(layout, HdrBuckets):
        raise InvalidArgumentError(
            "an .hgrm needs a full HDR histogram; write .csv or .json instead"
        )
    if ticks < 1:
        raise InvalidArgumentError(f"ticks must be 1 or more, not {ticks}")
    histogram = replace(histogram, buckets=layout, index=index, counts=counts)
    places = layout.digits
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    if csv:
        lines = ['"Value","Percentile","TotalCount","1/(1-Percentile)"']
    cumulative = histogram.cumulative
    rows: list[tuple[int, float]] = []  # bucket's position and percentile of each
    if histogram.count:
        total, end = int(cumulative[-1]), cumulative.size - 1
        share_of = 100.0 * cumulative.astype(np.float64) / total
        for level in percentile_levels(ticks):
            rows.append((int(np.searchsorted(share_of, level, "left")), level))
            if rows[-1][0] == end:
                break
        rows.append((end, 100.0))
    for position, level in rows:
        count = int(cumulative[position])
        value = _decimal(float(histogram.buckets.high(histogram.index[position])) / ratio, places)
        share = _decimal(level / 100.0, 12)
        inverse = "Infinity" if level == 100.0 else _decimal(1.0 / (1.0 - level / 100.0), 2)
        if csv:
            lines.append(f"{value},{share},{count},{inverse}")
        else:
            last = "" if level == 100.0 else f" {inverse:>14}"
            lines.append(f"{value:>12} {share:>14} {count:>10}{last}")
    if csv:
        return lines
    empty = not histogram.count
    mean, std, top = (
        0.0 if empty else getattr(histogram, name) / ratio for name in ("mean", "std", "max")
    )
    buckets = 1 if empty else max(1, int(histogram.index[-1]) >> layout.half_magnitude)
    return [
        *lines,
        f"#[Mean    = {_decimal(mean, places):>12}, StdDeviation   = {_decimal(std, places):>12}]",
        f"#[Max     = {_decimal(top, places):>12}, Total count    = {histogram.count:>12}]",
        f"#[Buckets = {buckets:>12}, SubBuckets     = {2 << layout.half_magnitude:>12}]",
    ]


def write_hgrm(
    data: Any, path: Path, *, out_unit: str | None = None, ticks: int = 5, csv: bool = False
) -> None:
    """Write the distribution of data with HDR buckets, by default in milliseconds."""
    if isinstance(data, Summary):
        raise InvalidArgumentError(
            "a summary has no buckets to write into an .hgrm; convert the tool's full output "
            "instead"
        )
    tails = data.evidence() if hasattr(data, "evidence") else None  # sums a log in the same pass
    histogram = replace(data.histogram(), reported_stats={})
    timed = histogram.unit in NANOSECONDS
    unit = out_unit or "ms" if timed else "none"
    ratio = NANOSECONDS[unit] / NANOSECONDS[histogram.unit] if timed else 1.0
    lines = hgrm_lines(histogram, ratio, ticks, csv)
    facts = {"unit": unit} | (
        {"unit_from": "assumed"} if histogram.run.unit_from == "assumed" else {}
    )
    facts |= stated_facts(histogram.run)
    if tails is not None:
        limit = tails.supported_up_to()
        if limit < histogram.sample_limit():
            facts["supported"] = f"p{limit:.6g}"
    if not csv:
        costs = [note for note in histogram.run.notes if note.startswith(COST)]
        lines += [f"#[{text}]" for text in (own_comment(facts), *costs)]
    # comments have no place in CSV, and without a unit it is read as milliseconds
    elif unit in NANOSECONDS and unit != "ms":
        lines[0] = lines[0].replace('"Value"', f'"Value({unit})"')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# ------------------------------------------------------------
# HdrHistogram's HistogramLogProcessor: the intervals that it prints beside the ``.hgrm``.
#
# Each row has the percentiles of its interval and, behind them, those of all values so far; the
# last row's are those of the whole log. Values are divided by ``-outputValueUnitRatio``
# (1,000,000, ns to ms, unless it is given), which the output does not state. Source:
# HistogramLogProcessor.java.

_LEGEND = re.compile(
    r"^(?:Time: IntervalPercentiles:count \( 50% 90% Max \) TotalPercentiles:count|"
    r'"Timestamp","Int_Count","Int_50%","Int_90%","Int_Max","Total_Count",)',
    re.MULTILINE,
)
_CELL = r"(-?\d+(?:\.\d+)?)"
_TEXT_ROW = re.compile(
    rf"\s*{_CELL}: I:(\d+) \( +{_CELL} +{_CELL} +{_CELL} \) T:(\d+) "
    rf"\( +{_CELL} +{_CELL} +{_CELL} +{_CELL} +{_CELL} +{_CELL} \)\s*"
)
_CSV_ROW = re.compile(rf"{_CELL},(\d+)" + rf",{_CELL}" * 3 + r",(\d+)" + rf",{_CELL}" * 6)
_POINTS = (50.0, 90.0, 99.0, 99.9, 99.99)
_HINT = "the .hlog that it was made from has every percentile, over time"


def read_processor(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the totals of the last row."""
    from latencykit.io.hlog import EPOCH_FROM

    text = source.text()
    last, ends = list[str](), list[float]()
    for number, line in enumerate(text.split("\n"), 1):
        if not re.match(r'\s*[^#\s"T]', line):
            continue  # comments, the legend, blank lines
        row = _TEXT_ROW.fullmatch(line) or _CSV_ROW.fullmatch(line)
        if row is None or (last and int(row[6]) < int(last[5])):
            seen = f"{printable(line.strip(), 50)!r}"
            options.refuse(source, number, seen, "percentiles of an interval and of all so far")
            continue
        ends.append(float(row[1]))
        last = list(row.groups())
    unit, origin = options.resolve_unit("ms", "assumed")
    start, begin = fact(text, r"^#\[StartTime: (\d+\.\d+)", float), 0.0
    known = bool(ends) and ends[-1] > ends[0]
    if known and ends[0] > EPOCH_FROM:  # of a log without a start
        start = begin = 2 * ends[0] - ends[1]
    run = Run(
        tool="HdrHistogram", unit=unit, unit_from=origin, start=start,
        duration=ends[-1] - begin if known else None, notes=(_HINT,),
    )  # fmt: skip
    if not last:
        raise source.corrupt(None, "it has no interval", "one row per interval", "run it again")
    points = dict(zip(_POINTS, last[6:11], strict=True))
    return {"": data_from_points(points, int(last[5]), {"max": last[11]}, run, unit)}


FORMATS = {"hgrm": (sniff, read, write_hgrm), "log-processor": (has_match(_LEGEND), read_processor)}
