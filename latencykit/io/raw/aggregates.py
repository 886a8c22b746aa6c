"""Tables whose rows are not requests: values or buckets with counts, percentiles with values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from latencykit._records import record
from latencykit.core.columns import Cells, Words, coded, matching
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run
from latencykit.core.summary import Summary
from latencykit.errors import InvalidArgumentError
from latencykit.io import build
from latencykit.io.raw.cells import (
    ColumnName,
    Kind,
    Sample,
    are_statistics,
    kind_of,
    latency_columns,
    named,
    only_by_default,
    present,
    roles_of,
)
from latencykit.io.raw.outcomes import candidate, words_of
from latencykit.io.source import Data

Columns = Mapping[str, NDArray[Any]]

_OPEN = ("inf", "+inf", "infinity", "+infinity", "∞")

_SURE = build.word_set(
    "count counts frequency frequencies freq weight weights occurrence occurrences"
)
_MAYBE = build.word_set(
    "n requests request reqs hits calls samples observations events queries num number total"
)
_OF = build.word_set(
    "of the bucket bin in per value latency request sample observation hit event call query "
    "cumulative cum running"
)
_CUMULATIVE = build.word_set("cumulative cum running")
_BIN = build.word_set("bucket buckets bin bins bound edge")
_UPPER = build.word_set("le upper ub lt high hi to until max end right top")
_LOWER = build.word_set("ge gt lower lb low lo from min start begin left bottom")
_ALONE = build.word_set("le lt ge gt upper lower ub lb")  # needs no word such as bucket beside it
_PAIRED = _ALONE | {"high", "low", "hi", "lo", "from", "to", "left", "right"}
_FILL = _BIN | build.word_set(
    "limit latency duration value time response service elapsed of in inclusive exclusive"
)
_LEVELS = build.word_set(
    "percentile percentiles pctile centile pct perc percent quantile quantiles q p"
)
_SURE_LEVELS = _LEVELS - {"q", "p", "percent", "pct", "perc"}
_OWN = (("low", "high", "count"), ("statistic", "value"))
_FEW = 4  # rows; as many running numbers are not counts


@record()
class Shape:
    """The kind of the rows."""

    kind: Literal["counts", "percentiles"]
    value: ColumnName  # column of values, or of upper (with `edge` ``lower``: lower) edges
    edge: Literal["value", "upper", "lower", "both"] = "value"
    low: ColumnName | None = None  # column of lower edges, where there are both
    count: str | None = None  # column of counts
    cumulative: bool = False  # whether counts include everything up to an edge
    level: str | None = None  # column of percentiles
    fraction: bool = False  # whether those are 0 to 1
    notes: tuple[str, ...] = ()
    own: bool = False  # whether latencykit wrote the table


def looks_aggregated(columns: Iterable[str]) -> bool:
    """True if names alone mean buckets with counts, or percentiles with values; for sniffing."""
    parts = [named(column) for column in columns]
    counts = [name for name in parts if _counting(name) is not None]
    levels = [name for name in parts if set(words_of(name.stem)) & _LEVELS]
    values = [
        name
        for name in parts
        if name not in counts + levels and (_edge(name) or only_by_default(name))
    ]
    return bool(values and (counts or levels)) or bool(levels and latency_columns(columns)[0])


def shape_of(sample: Sample, column: str | None, notes: list[str]) -> Shape | None:
    """Return the shape of a table whose rows are not requests, by column names and first rows."""
    parts = list(map(named, sample))
    shape = _percentiles(sample, parts, column) or _counts(sample, parts, column, notes)
    if shape is not None and _is_own(parts):
        return replace(shape, own=True, notes=())  # latencykit's own table needs no explanation
    return shape


def _is_own(parts: Sequence[ColumnName]) -> bool:
    """True for a table that latencykit wrote."""
    stems = {part.stem for part in parts}
    return any({"series", *own} <= stems for own in _OWN)


# ---------------------------------------------------------------- percentiles


def level_of(text: str) -> float | str | None:
    """Return the percentile (0..100) or the statistic that a label names; None for another text."""
    bare = text.strip().lower()
    value = build.percentile_named(bare)
    if value is None:
        return build.STATISTIC_WORDS.get(bare)
    return value if 0 <= value <= 100 else None


def _percentiles(sample: Sample, parts: Sequence[ColumnName], column: str | None) -> Shape | None:

    @cache  # of many columns that may hold percentiles, each asks all others
    def kind(name: str) -> Kind:
        cells: Cells = sample[name]
        return kind_of(cells)

    for level in parts:
        fits = _levels_in(
            sample[level.column], level, own=level.stem == "statistic" and _is_own(parts)
        )
        if fits is None:
            continue
        rest = [other for other in parts if other is not level]
        counts = [other for other in rest if _counting(other) is not None]
        value = _value([other for other in rest if other not in counts], kind, column)
        if value is not None:
            notes = [
                (
                    f"column {level.column!r} contains percentiles of column {value.column!r}; "
                    "values between them are unknown"
                )
            ]
            if fits == "fraction":
                notes.append(f"column {level.column!r} contains fractions of 1: 0.99 is p99")
            return Shape(
                "percentiles", value, count=counts[0].column if counts else None,
                level=level.column, fraction=fits == "fraction", notes=tuple(notes),
            )  # fmt: skip
    return None


def _levels_in(
    cells: Cells, name: ColumnName, *, own: bool
) -> Literal["labels", "fraction", "percent"] | None:
    """How a column writes percentiles; None where it does not."""
    text = present(cells)
    if not text:
        return None
    labels = [level_of(cell) for cell in dict.fromkeys(text)]
    if own or (None not in labels and any(isinstance(label, float) for label in labels)):
        return "labels"
    if (
        not (set(words_of(name.stem)) & _LEVELS and set(words_of(name.stem)) <= _LEVELS | _FILL)
        or name.unit is not None
    ):
        return None
    numbers = build.numbers_of(text)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= 100).all()):
        return None
    sure = bool(set(words_of(name.stem)) & _SURE_LEVELS)
    steps = np.diff(numbers)
    if not sure and not (numbers.size > 1 and ((steps > 0).all() or (steps < 0).all())):
        return None
    return (
        "fraction" if numbers.max() <= 1 and (numbers.size > 1 or numbers.max() < 1) else "percent"
    )


def _value(
    rest: Sequence[ColumnName], kind: Callable[[str], str], column: str | None
) -> ColumnName | None:
    """The column of values beside percentiles or counts."""
    if column is not None:
        return next((part for part in rest if part.column == column), None)
    fitting = [
        part
        for part in latency_columns(part.column for part in rest)[0]
        if kind(part.column) in ("number", "span")
    ]
    if fitting and (len(fitting) == 1 or not only_by_default(fitting[0])):
        return fitting[0]
    numbers = [
        part
        for part in rest
        if not are_statistics([part.column]) and kind(part.column) in ("number", "span")
    ]
    return numbers[0] if not fitting and len(numbers) == 1 and numbers[0].unit is not None else None


def percentile_data(
    columns: Columns, labels: Sequence[str], texts: Sequence[str], shape: Shape, run: Run
) -> Data:
    """Return reported percentiles, with the statistics and the count among them."""
    points: dict[float, float] = {}
    stats: dict[str, float] = {}
    count: int | None = None
    beside: dict[float, float] = {}  # the cell of a column of counts beside each percentile
    numbers = columns.get("count", np.zeros(len(labels))).tolist()
    for label, text, value, number in zip(
        labels, texts, columns["duration"].tolist(), numbers, strict=True
    ):
        level = level_of(label)
        if level is None and shape.own:
            level = label
        elif level is None:
            level = float(label) * (100.0 if shape.fraction else 1.0)
            level = round(level, 9)
        if level == "count":
            count = int(float(text))
        elif (isinstance(level, float) and level in points) or level in stats:
            raise ValueError(f"{label!r} occurs more than once")
        elif isinstance(level, float):
            points[level], beside[level] = value, number
        else:
            stats[level] = value
    # one number for all, or the number up to each percentile
    if count is None and "count" in columns and beside:
        ascending = [beside[level] for level in sorted(points)]
        count = int(ascending[-1]) if ascending == sorted(ascending) else None
    if shape.own:  # of a summary, and no more than it
        stats |= {name: points.pop(p) for p, name in ((0.0, "min"), (100.0, "max")) if p in points}
        return Summary(stats, points, count, build.base_unit(run.unit), run)
    return build.data_from_points(points, count, stats, run)


# ---------------------------------------------------------------- counts


def _is_open(text: str) -> bool:
    return text.strip().lower() in _OPEN


def bounded(cells: Cells) -> Cells:
    """Return the ends of buckets without those that are infinite."""
    rows = matching(cells, _is_open)
    if isinstance(cells, Words):
        return Words(np.where(rows, np.int32(-1), cells.codes), cells.names)
    return np.where(rows, np.nan, cells)


def _counting(name: ColumnName) -> Literal["sure", "maybe"] | None:
    """How surely a name means the values per row: ``count``, ``num_requests``; not ``users``."""
    words = words_of(name.stem) if name.unit is None else []
    all_words = set(words)
    if not words or not all_words <= _SURE | _MAYBE | _OF or not all_words & (_SURE | _MAYBE):
        return None
    return "sure" if all_words & _SURE or all_words & _CUMULATIVE else "maybe"


def _edge(name: ColumnName) -> Literal["upper", "lower", "bin"] | None:
    """Which edge of a bucket a name means."""
    words = set(words_of(name.stem))
    if not words or not words <= _UPPER | _LOWER | _FILL or not words & (_UPPER | _LOWER | _BIN):
        return None
    upper, lower, binned = words & _UPPER, words & _LOWER, words & _BIN
    if (upper and lower) or (not binned and not words & _PAIRED):
        return None
    return "upper" if upper else "lower" if lower else "bin"


def _counts(
    sample: Sample, parts: Sequence[ColumnName], column: str | None, notes: list[str]
) -> Shape | None:
    def has_numbers(cells: Cells) -> bool:
        return kind_of(bounded(cells)) in ("number", "span")

    def are_counts(cells: Cells) -> bool:
        numbers = build.numbers_of(present(cells))
        whole = np.isfinite(numbers) & (numbers >= 0) & (numbers == np.rint(numbers))
        return bool(numbers.size and whole.all())

    counting = [
        part for part in parts if _counting(part) is not None and are_counts(sample[part.column])
    ]
    if not counting:
        return None
    count = min(counting, key=lambda part: _counting(part) != "sure")
    cumulative = bool(set(words_of(count.stem)) & _CUMULATIVE)
    rest = [part for part in parts if part is not count]
    uppers, lowers, bins = (
        [part for part in rest if _edge(part) == edge and has_numbers(sample[part.column])]
        for edge in ("upper", "lower", "bin")
    )
    if uppers and lowers:
        note = _counts_note(count, "buckets")
        return Shape(
            "counts", uppers[0], "both", lowers[0], count.column, cumulative, notes=(note,)
        )
    alone = [
        part
        for part in (*uppers, *lowers, *bins)
        if _edge(part) == "bin" or set(words_of(part.stem)) & (_ALONE | _BIN)
    ]
    if alone and column in (None, alone[0].column) and not _timed(parts, alone[0]):
        return _edged(sample, alone[0], count, cumulative=cumulative)
    value = _value(rest, lambda name: kind_of(sample[name]), column)
    if value is None or (only_by_default(value) and are_statistics(part.column for part in rest)):
        return None
    if column is None and _may_be_a_clock(sample[value.column], value):
        raise InvalidArgumentError(
            f"column {value.column!r} may be a latency or the time at which {count.column!r} was "
            "counted; "
            "name it with --column (column=) if it is a latency"
        )
    why = _against(sample, parts, value, count)
    if why is None:
        note = _counts_note(count, "values")
        return Shape("counts", value, count=count.column, cumulative=cumulative, notes=(note,))
    if why:
        notes.append(
            f"column {count.column!r} is not taken as counts ({why}): each row is one request"
        )
    return None


def _may_be_a_clock(cells: Cells, name: ColumnName) -> bool:
    """True if a column such as ``time_s`` advances in equal steps: counts may be per second."""
    steps = (
        np.diff(_floats(cells)) if name.stem == "time" and name.unit in (None, "s") else np.zeros(0)
    )
    return (
        steps.size > 1
        and bool((steps > 0).all())
        and float(np.ptp(steps)) <= 1e-6 * float(steps.max())
    )


def _counts_note(count: ColumnName, of: str) -> str:
    return (
        f"a row is not a request: column {count.column!r} is taken as the number of requests "
        f"of each of the {of}"
    )


def _timed(parts: Sequence[ColumnName], value: ColumnName) -> bool:
    """True if the table has send times or connections: rows then are requests or intervals."""
    roles = roles_of((part.column for part in parts), value.column)
    return bool({"start", "end", "intended", "connection"} & set(roles))


def _against(
    sample: Sample, parts: Sequence[ColumnName], value: ColumnName, count: ColumnName
) -> str | None:
    """Why a column named as counts has none; None where it has, ``""`` where no note is needed."""
    if _timed(parts, value):
        return "the table has times or connections of single rows"
    numbers = _floats(sample[count.column])
    if numbers.size >= _FEW and numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
        return "it numbers the rows"
    if "weight" in count.stem or "freq" in count.stem or "occurrence" in count.stem:
        return None
    groups = [
        part.column
        for part in roles_of((part.column for part in parts), value.column).values()
        if part is not value
    ]
    groups += [
        part.column
        for part in parts
        if candidate(part.column) is not None and part not in (value, count)
    ]
    keys = [coded(sample[name])[0] for name in dict.fromkeys(groups) if name != count.column]
    rows = np.stack([coded(sample[value.column])[0], *keys], axis=1)
    if len(np.unique(rows, axis=0)) < len(rows):
        return "values occur more than once"
    if _counting(count) == "sure" or len(parts) == 2:
        return None
    number = len(np.unique(rows[:, 1:], axis=0))  # each from its first to its last value
    steps = np.diff(_floats(sample[value.column]))
    breaks = [np.count_nonzero(wrong) for wrong in (steps <= 0, steps >= 0, np.diff(numbers) > 0)]
    return None if min(breaks) < number else "neither values nor counts are in order"


def _floats(cells: Cells) -> NDArray[np.float64]:
    codes, names = coded(cells)
    return np.append(build.numbers_of(names), np.nan)[codes]


def _edged(sample: Sample, bound: ColumnName, count: ColumnName, *, cumulative: bool) -> Shape:
    """Buckets of which one edge is stated."""
    edge, notes = _edge(bound), [_counts_note(count, "buckets")]
    above = matching(sample[bound.column], _is_open)
    numbers = _floats(sample[count.column])
    if edge == "bin":
        edges = _floats(sample[bound.column])
        lower = (
            not above.any()
            and edges.size > 0
            and edges[np.argmin(edges)] == 0
            and numbers[np.argmin(edges)] > 0
        )
        edge = "lower" if lower else "upper"
        notes.append(f"column {bound.column!r} is taken as the {edge} end of each bucket")
    if "le" in words_of(bound.stem) and not cumulative and numbers.size > 1:
        order = np.argsort(np.where(above, np.inf, _floats(sample[bound.column])), kind="stable")
        cumulative = bool((np.diff(numbers[order]) >= 0).all())
        notes.append(
            "counts never fall from one edge to the next: they count all requests up to an edge, "
            "as Prometheus counts them"
            if cumulative
            else "counts are the requests of one bucket each"
        )
    side: Literal["lower", "upper"] = "lower" if edge == "lower" else "upper"
    return Shape("counts", bound, side, None, count.column, cumulative, notes=tuple(notes))


def counted_data(
    columns: Columns, shape: Shape, run: Run, fail: Callable[[str], Exception]
) -> Histogram:
    """Return the histogram of rows of counts."""
    value = columns["duration"].astype(np.float64)
    low = columns.get("low", value).astype(np.float64)
    order = np.lexsort((low, value))
    value, low, count = value[order], low[order], np.rint(columns["count"]).astype(np.int64)[order]
    if shape.cumulative:
        count = np.diff(count, prepend=0)
        if (count < 0).any():
            raise fail("the cumulative counts fall towards higher values")
    if shape.edge == "value":
        return build.data_from_values(value, run, count)  # type: ignore[return-value]
    edges, count = build.added_up(np.stack([value, low], 1), count)
    high, low = edges[:, 0], edges[:, 1]
    if shape.edge == "upper":
        low = np.concatenate(([min(0.0, high[0])], high[:-1]))
    elif shape.edge == "lower":
        low, high = high, np.append(high[1:], np.inf)
    if (low > high).any():
        raise fail("a bucket's lower edge lies above its upper one")
    above = ~np.isfinite(high)
    beyond, bound = int(count[above].sum()), float(low[above].min()) if above.any() else np.inf
    return Histogram.from_buckets(
        low[~above], high[~above], count[~above], build.base_unit(run.unit), run=run,
        censored=beyond, censored_at=bound if beyond else np.inf,
    )  # fmt: skip
