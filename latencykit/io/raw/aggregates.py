"""Tables whose rows are not requests: values or buckets with counts, percentiles with values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
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
_TIMED = ("number", "span")
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
    stems = {part.stem for part in parts}
    own = any({"series", *names} <= stems for names in _OWN)  # latencykit wrote it
    shape = _percentiles(sample, parts, column, own=own) or _counts(sample, parts, column, notes)
    return shape and (replace(shape, own=True, notes=()) if own else shape)


# ---------------------------------------------------------------- percentiles


def level_of(text: str) -> float | str | None:
    """Return the percentile (0..100) or the statistic that a label names; None for another text."""
    value = build.statistic_named(text.strip().lower())
    return value if isinstance(value, str) or 0 <= (value or 0.0) <= 100 else None


def _percentiles(
    sample: Sample, parts: Sequence[ColumnName], column: str | None, *, own: bool
) -> Shape | None:
    timed = cache(lambda name: kind_of(sample[name]) in _TIMED)  # many columns ask all others
    for level in parts:
        fits = _levels_in(sample[level.column], level, own=level.stem == "statistic" and own)
        if fits is None:
            continue
        rest = [other for other in parts if other is not level]
        counts = [other for other in rest if _counting(other) is not None]
        value = _value([other for other in rest if other not in counts], timed, column)
        if value is not None:
            note = f"column {level.column!r} contains percentiles of column {value.column!r}; "
            notes = [f"{note}values between them are unknown"]
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
    labels = [level_of(cell) for cell in dict.fromkeys(text)]
    if text and own:
        return "labels"
    if None not in labels and any(isinstance(label, float) for label in labels):
        return "labels"
    words = set(words_of(name.stem))
    if not text or name.unit is not None or not words & _LEVELS or words - _LEVELS - _FILL:
        return None
    numbers = build.numbers_of(text)
    steps, sure = np.diff(numbers), bool(words & _SURE_LEVELS)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= 100).all()):
        return None
    if not sure and not (steps.size and ((steps > 0).all() or (steps < 0).all())):
        return None
    top = numbers.max()
    return "fraction" if top < 1 or (top == 1 and steps.size) else "percent"


def _value(
    rest: Sequence[ColumnName], timed: Callable[[str], bool], column: str | None
) -> ColumnName | None:
    """The column of values beside percentiles or counts."""
    if column is not None:
        return next((part for part in rest if part.column == column), None)
    named_so = latency_columns(part.column for part in rest)[0]
    fitting = [part for part in named_so if timed(part.column)]
    if fitting:
        return fitting[0] if len(fitting) == 1 or not only_by_default(fitting[0]) else None
    numbers = [p for p in rest if not are_statistics([p.column]) and timed(p.column)]
    return numbers[0] if len(numbers) == 1 and numbers[0].unit is not None else None


def percentile_data(
    columns: Columns, cells: Sequence[tuple[str, str]], shape: Shape, run: Run
) -> Data:
    """Return reported percentiles, with the statistics and the count among them."""
    # `cells` are the label of each row and its value as written.
    points: dict[float, float] = {}
    stats: dict[str, float] = {}
    count: int | None = None
    beside: dict[float, float] = {}  # the cell of a column of counts beside each percentile
    numbers = columns.get("count", np.zeros(len(cells))).tolist()
    values = columns["duration"].tolist()
    for (label, text), value, number in zip(cells, values, numbers, strict=True):
        level = level_of(label)
        if level is None and shape.own:
            level = label
        elif level is None:
            level = round(float(label) * (100.0 if shape.fraction else 1.0), 9)
        if level == "count":
            count = int(float(text))
        elif level in points or level in stats:
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
    def are_counts(cells: Cells) -> bool:
        numbers = build.numbers_of(present(cells))
        whole = np.isfinite(numbers) & (numbers >= 0) & (numbers == np.rint(numbers))
        return bool(numbers.size and whole.all())

    counting = [part for part in parts if _counting(part) and are_counts(sample[part.column])]
    if not counting:
        return None
    count = min(counting, key=lambda part: _counting(part) != "sure")
    rest = [part for part in parts if part is not count]
    shape = partial(
        Shape, "counts", count=count.column,
        cumulative=not _CUMULATIVE.isdisjoint(words_of(count.stem)),
    )  # fmt: skip
    note = f"a row is not a request: column {count.column!r} is taken as the number of requests "
    edges: dict[str | None, list[ColumnName]] = {"upper": [], "lower": [], "bin": []}
    for part in rest:
        if (edge := _edge(part)) and kind_of(bounded(sample[part.column])) in _TIMED:
            edges[edge].append(part)
    note_on_buckets = f"{note}of each of the buckets"
    if edges["upper"] and edges["lower"]:
        upper, lower = edges["upper"][0], edges["lower"][0]
        return shape(value=upper, edge="both", low=lower, notes=(note_on_buckets,))
    for part in chain(*edges.values()):
        if _edge(part) == "bin" or set(words_of(part.stem)) & (_ALONE | _BIN):
            if column in (None, part.column) and not _of_rows(parts, part):
                return _edged(sample, part, shape, note_on_buckets)
            break
    value = _value(rest, lambda name: kind_of(sample[name]) in _TIMED, column)
    if value is None or (only_by_default(value) and are_statistics(part.column for part in rest)):
        return None
    if column is None and value.stem == "time" and value.unit in (None, "s"):
        steps = np.diff(_floats(sample[value.column]))  # equal ones: counts may be per second
        if steps.size > 1 and (steps > 0).all() and np.ptp(steps) <= 1e-6 * steps.max():
            raise InvalidArgumentError(
                f"column {value.column!r} may be a latency or the time at which {count.column!r} "
                "was counted; name it with --column (column=) if it is a latency"
            )
    if (why := _against(sample, parts, value, count, column)) is None:
        return shape(value=value, notes=(f"{note}of each of the values",))
    why = f"column {count.column!r} is not taken as counts ({why}): each row is one request"
    notes.append(why)
    return None


def _of_rows(parts: Sequence[ColumnName], value: ColumnName) -> bool:
    """True if the table has send times or connections: rows then are requests or intervals."""
    roles = roles_of((part.column for part in parts), value.column)
    return not roles.keys().isdisjoint(("start", "end", "intended", "connection"))


def _against(
    sample: Sample,
    parts: Sequence[ColumnName],
    value: ColumnName,
    count: ColumnName,
    column: str | None,
) -> str | None:
    """Why a column named as counts has none; None where it has."""
    if _of_rows(parts, value):
        return "the table has times or connections of single rows"
    numbers = _floats(sample[count.column])
    if numbers.size >= _FEW and numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
        return "it numbers the rows"
    sums = {"sum", "total", "cumulative"} & set(words_of(value.stem))
    others = (part.column for part in parts if part is not count)
    name = roles_of((part.column for part in parts), value.column).get("tag")
    rows_by_name = [] if name is None else coded(sample[name.column])[0].tolist()
    one_each = len(set(rows_by_name)) == len(rows_by_name) > 1
    if column is None and sum(map(bool, (one_each, sums, are_statistics(others)))) > 1:
        raise InvalidArgumentError(
            f"the rows are statistics: column {value.column!r} seems to be of all the requests "
            f"that {count.column!r} counts, not of each; read what they were made from or, if "
            "each of them took that long, name it with --column (column=)"
        )
    if "weight" in count.stem or "freq" in count.stem or "occurrence" in count.stem:
        return None
    groups = [part.column for part in roles_of(sample, value.column).values()]
    groups += [name for name in sample if candidate(name) and name != value.column]
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


def _edged(sample: Sample, bound: ColumnName, shape: partial[Shape], note: str) -> Shape:
    """Buckets of which one edge is stated."""
    edge, notes, ends = _edge(bound), [note], _floats(sample[bound.column])
    above = matching(sample[bound.column], _is_open)
    counts, cumulative = _floats(sample[shape.keywords["count"]]), shape.keywords["cumulative"]
    if edge == "bin":
        least = np.argmin(ends) if ends.size and not above.any() else None
        edge = "upper" if least is None or ends[least] != 0 or counts[least] <= 0 else "lower"
        notes.append(f"column {bound.column!r} is taken as the {edge} end of each bucket")
    if "le" in words_of(bound.stem) and not cumulative and counts.size > 1:
        order = np.argsort(np.where(above, np.inf, ends), kind="stable")
        cumulative = bool((np.diff(counts[order]) >= 0).all())
        notes.append(
            "counts never fall from one edge to the next: they count all requests up to an edge, "
            "as Prometheus counts them"
            if cumulative
            else "counts are the requests of one bucket each"
        )
    return shape(value=bound, edge=edge, cumulative=cumulative, notes=tuple(notes))


def counted_data(columns: Columns, shape: Shape, run: Run) -> Data:
    """Return the histogram of rows of counts; ValueError where they contradict each other."""
    if not columns["count"].any():
        raise ValueError("no request was counted")
    value = columns["duration"].astype(np.float64)
    low = columns.get("low", value).astype(np.float64)
    order = np.lexsort((low, value))
    value, low, count = value[order], low[order], np.rint(columns["count"]).astype(np.int64)[order]
    if shape.cumulative:
        count = np.diff(count, prepend=0)
        if (count < 0).any():
            raise ValueError("the cumulative counts fall towards higher values")
    if shape.edge == "value":
        return build.data_from_values(value, run, count)
    edges, count = build.added_up(np.stack([value, low], 1), count)
    high, low = edges[:, 0], edges[:, 1]
    if shape.edge == "upper":
        low = np.concatenate(([min(0.0, high[0])], high[:-1]))
    elif shape.edge == "lower":
        low, high = high, np.append(high[1:], np.inf)
    if (low > high).any():
        raise ValueError("a bucket's lower edge lies above its upper one")
    above = ~np.isfinite(high)
    beyond, bound = int(count[above].sum()), float(low[above].min()) if above.any() else np.inf
    return Histogram.from_buckets(
        low[~above], high[~above], count[~above], build.base_unit(run.unit), run=run,
        censored=beyond, censored_at=bound if beyond else np.inf,
    )  # fmt: skip
