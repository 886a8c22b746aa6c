"""Columns of a DataFrame as plain arrays: times in nanoseconds whatever their type, words without gaps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._limits import in_force
from latencykit.core.blocks import MemoryPart, block_of_rows
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram import Evidence, Histogram, HistogramBacked
from latencykit.core.histogram_log import HistogramLog, slot_edges, tails_of_requests
from latencykit.core.run import Run
from latencykit.core.value import Value, read_only
from latencykit.errors import DataNotAvailableError, InputTooLargeError, InvalidArgumentError
from latencykit.units import (
    NANOSECONDS,
    checked_unit,
    format_count,
    format_duration,
    parse_duration,
    parse_moment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from latencykit.core.run import Measure

    Ints = NDArray[np.int64]

__all__ = ["OUTCOMES", "Samples", "as_nanoseconds", "sample_columns", "word_column"]


_FARTHEST = 9e9  # seconds, 285 years; 64 bits of nanoseconds hold little more
_TIMES = ("duration", "start", "intended")


def sample_columns(
    frame: pd.DataFrame, columns: Mapping[str, str], unit: str
) -> dict[str, NDArray[Any]]:
    """Return what `latencykit.core.samples.Samples` is made of."""
    missing = [name for name in columns.values() if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"no column {missing[0]!r}; the columns are {', '.join(map(str, frame.columns))}"
        )
    checked_unit(unit)
    found: dict[str, NDArray[Any]] = {}
    for role, name in columns.items():
        cells = frame[name]
        if role in _TIMES:
            found[role] = _times(cells, unit)
        elif role == "tag":
            found[role] = cells.astype(object).where(cells.notna(), "").to_numpy().astype(np.str_)
        elif role == "connection":
            found[role] = _connections(cells)
        elif cells.dtype.kind == "b":
            raise InvalidArgumentError(
                f"column {name!r} holds booleans; write outcomes as words: numpy.where(df[{name!r}], 'ok', 'error')"
            )
        else:
            found[role] = (
                cells.to_numpy()
                if cells.dtype.kind in "iu"
                else cells.astype(object).to_numpy().astype(np.str_)
            )
    return found


def as_nanoseconds(cells: pd.Series[Any]) -> NDArray[Any]:
    """Return datetimes (UTC) or timedeltas in nanoseconds; NaT for what 64 bits of them cannot hold, which casts wrap around."""
    if cells.dtype.kind == "m":
        return cells.where(cells.dt.total_seconds().abs() < _FARTHEST).to_numpy("m8[ns]")
    plain = (
        cells
        if cells.dtype.kind == "M" and getattr(cells.dtype, "tz", None) is None
        else cells.dt.tz_convert("UTC").dt.tz_localize(None)
    )
    return plain.where(plain.dt.year.between(1678, 2261)).to_numpy("M8[ns]")


def word_column(words: Sequence[str] | NDArray[Any]) -> pd.Series[Any]:
    r"""Return words as a column; as plain objects where one is not UTF-8, which the strings of pandas cannot hold."""
    import pandas as pd

    given = np.asarray(words, np.str_)
    codes = given.view(np.uint32) if given.size and given.dtype.itemsize else np.zeros(0, np.uint32)
    halves = ((codes >= 0xD800) & (codes <= 0xDFFF)).any()
    return pd.Series(given.astype(object), dtype=object) if halves else pd.Series(given)


def _times(cells: pd.Series[Any], unit: str) -> NDArray[np.int64]:
    import pandas as pd

    empty = int(cells.isna().sum())
    if empty:
        raise InvalidArgumentError(
            f"column {cells.name!r} has {empty} empty cells; leave those rows out: df.dropna(subset=[{cells.name!r}])"
        )
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype):
        found = as_nanoseconds(cells)
        if np.isnat(found).any():
            raise InvalidArgumentError(
                f"column {cells.name!r} lies beyond the years that 64 bits of nanoseconds hold: 1678 to 2261"
            )
        return found.astype(np.int64)
    try:
        numbers = pd.to_numeric(cells)
    except (ValueError, TypeError):
        raise InvalidArgumentError(
            f"column {cells.name!r} holds no numbers; pandas.to_timedelta and to_datetime read words"
        ) from None
    factor = NANOSECONDS.get(unit, 1.0)
    if numbers.dtype.kind in "iu":
        return numbers.to_numpy(np.int64) * np.int64(factor)
    reals = numbers.to_numpy(np.float64) * factor
    if not (np.abs(reals) < 2.0**63).all():
        raise InvalidArgumentError(
            f"column {cells.name!r} holds times that do not fit in 63 bits of nanoseconds"
        )
    return np.rint(reals).astype(np.int64)


def _connections(cells: pd.Series[Any]) -> NDArray[np.int64]:
    import pandas as pd

    if cells.dtype.kind in "iu" and not cells.isna().any():
        return cells.to_numpy(np.int64)
    return np.asarray(pd.factorize(cells)[0], np.int64)


# ------------------------------------------------------------
# One row per request: the top of the ladder, from which everything else can be made.

OUTCOMES = ("ok", "error", "timeout", "dropped", "unfinished")
"""What became of a request; `Samples.outcome` holds positions in this tuple."""


@dataclass(frozen=True, eq=False, init=False)
class Samples(HistogramBacked, Value):
    """Requests, one row each, as arrays of one length.

    Parameters
    ----------
    start : array_like, shape (n,), optional
        When each request was sent: nanoseconds since the epoch or since the run's begin, in `unit`.
    duration : array_like, shape (n,)
        Service time: from the send to the reply.
    intended : array_like, shape (n,), optional
        When each request was due; with it the response time (from the intended start) is known, too.
    outcome : array_like of int or str, optional
        ``ok``, ``error``, ``timeout``, ``dropped`` or ``unfinished`` (or its position in `OUTCOMES`).
    connection : array_like of int, optional
        Which connection, user or thread sent it.
    tag : array_like of str, optional
        Which operation it was.
    unit : str, default "ns"
        Unit of the given times and durations (``none`` for bare numbers); inside they are nanoseconds, int64.
    run : Run, optional

    Examples
    --------
    >>> s = Samples(start=[0, 10, 20], duration=[1, 2, 300], unit="ms")
    >>> s.histogram().max, len(s)
    (300000000.0, 3)
    """

    start: Ints | None
    duration: Ints
    intended: Ints | None
    outcome: NDArray[np.int8] | None
    connection: Ints | None
    tag: NDArray[np.str_] | None
    unit: str
    run: Run
    _clock: int | None = field(repr=False, compare=False)
    _whole: Histogram | None = field(repr=False, compare=False)

    def __init__(
        self,
        *,
        duration: ArrayLike,
        start: ArrayLike | None = None,
        intended: ArrayLike | None = None,
        outcome: ArrayLike | None = None,
        connection: ArrayLike | None = None,
        tag: ArrayLike | None = None,
        unit: str = "ns",
        run: Run | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "duration": _nanoseconds(duration, unit),
            "start": None if start is None else _nanoseconds(start, unit),
            "intended": None if intended is None else _nanoseconds(intended, unit),
            "outcome": None if outcome is None else _outcome_codes(outcome),
            "connection": None if connection is None else np.asarray(connection, np.int64),
            "tag": None if tag is None else np.asarray(tag, np.str_),
        }
        sizes = {name: array.shape for name, array in given.items() if array is not None}
        if len(set(sizes.values())) > 1 or len(given["duration"].shape) != 1:
            raise InvalidArgumentError(f"the columns of samples must be of one length, not {sizes}")
        if (given["duration"] < 0).any():
            raise InvalidArgumentError(
                "durations must not be negative; leave such rows out and say so in a note"
            )
        _refuse_ages(given)
        measure: Measure = "response" if intended is not None else "service"
        known = run or Run(unit=unit)
        if known.measure == "unknown":
            known = known.replace(measure=measure)
        for name, array in given.items():
            object.__setattr__(self, name, None if array is None else read_only(array))
        object.__setattr__(self, "unit", "none" if unit == "none" else "ns")
        object.__setattr__(self, "run", known)
        object.__setattr__(self, "_clock", None)
        object.__setattr__(self, "_whole", None)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        duration: str | None = None,
        unit: str = "ns",
        run: Run | None = None,
        **columns: str,
    ) -> Samples:
        """Take columns of a DataFrame.

        Parameters
        ----------
        frame : DataFrame
        duration : str, optional
            Name of the column of durations. Where no column is named at all, those of `to_frame` are taken.
        unit : str, default "ns"
            Unit of numbers. Columns of datetimes (of any zone; without one they are UTC) and of timedeltas need none.
        run : Run, optional
        **columns : str
            Names of further columns: `start`, `intended`, `outcome`, `connection`, `tag`.

        Raises
        ------
        InvalidArgumentError
            For a column that is not there, and for cells that are empty or no times.

        Examples
        --------
        >>> import pandas as pd
        >>> df = pd.DataFrame({"sent": pd.date_range("2026-01-31", periods=3, freq="1s"), "took": [1.5, 2.0, 300.0]})
        >>> s = Samples.from_frame(df, duration="took", start="sent", unit="ms")
        >>> s.histogram().max, Samples.from_frame(s.to_frame()).duration.tolist()
        (300000000.0, [1500000, 2000000, 300000000])
        """
        strange = sorted(set(columns) - {"start", "intended", "outcome", "connection", "tag"})
        if strange:
            raise InvalidArgumentError(
                f"samples have no {strange[0]!r}; name columns for start, intended, outcome, connection or tag"
            )
        if duration is None and not columns:
            names = ("start", "duration", "intended", "outcome", "connection", "tag")
            columns = {name: name for name in names if name in frame.columns}
        arrays = sample_columns(frame, {"duration": duration or "duration"} | columns, unit)
        return cls(unit="none" if unit == "none" else "ns", run=run or Run(unit=unit), **arrays)

    def __len__(self) -> int:
        return int(self.duration.size)

    def _content(self) -> tuple[Any, ...]:
        return *super()._content(), None if self.start is None else self._zero

    # ------------------------------------------------------------ what is measured

    @property
    def good(self) -> NDArray[np.bool_]:
        """Which rows were answered well, bool, shape (n,)."""
        return np.ones(len(self), np.bool_) if self.outcome is None else self.outcome == 0

    @property
    def response(self) -> Ints:
        """Response time: from the intended start to the reply, int64 ns, shape (n,).

        Raises
        ------
        DataNotAvailableError
            Where the source does not know when requests were due.
        """
        if self.intended is None or self.start is None:
            raise DataNotAvailableError(
                "these samples do not know when each request was due; lk.retime(samples, rate=...) takes it from the schedule"
            )
        response: Ints = np.maximum(self.start + self.duration - self.intended, 0)
        return response

    @property
    def values(self) -> Ints:
        """Latency of every row by the run's measure (response where the intended start is known), int64."""
        return (
            self.response
            if self.run.measure == "response" and self.intended is not None
            else self.duration
        )

    def measured(self, measure: Measure) -> Samples:
        """Return the same samples, asked for their ``service`` or ``response`` time.

        Raises
        ------
        DataNotAvailableError
            For the response time, where no intended start is known.
        """
        if measure == "response" and self.run.measure != "response":
            self.response  # noqa: B018 - raises where it is not known
        return self.with_run(measure=measure)

    def with_run(self, **changes: Any) -> Samples:
        """Return a copy with some facts of the run changed."""
        copy = object.__new__(Samples)
        copy.__setstate__(vars(self) | {"run": replace(self.run, **changes), "_whole": None})
        return copy

    def to_unit(self, unit: str) -> Samples:
        """Return itself: samples are nanoseconds (or bare numbers) inside.

        Raises
        ------
        InvalidArgumentError
            For any other unit: ask the histogram for it.
        """
        if unit != self.unit:
            raise InvalidArgumentError(
                f"samples hold {self.unit}; take .histogram().to_unit({unit!r})"
            )
        return self

    def select(self, rows: NDArray[Any]) -> Samples:
        """Return some of the rows: a boolean mask or positions."""
        copy = self.with_run()
        for name in ("start", "duration", "intended", "outcome", "connection", "tag"):
            column = getattr(self, name)
            object.__setattr__(copy, name, None if column is None else read_only(column[rows]))
        if self.start is not None:  # times of a part count from where those of the whole do
            object.__setattr__(copy, "_clock", self._zero)
        return copy

    @property
    def epoch(self) -> int | None:
        """Nanoseconds since the epoch from which times of the run count, where the samples know it."""
        if self.start is not None and self._zero > 10**17:
            return self._zero
        return None if self.run.start is None else round(self.run.start * 1e6) * 1000

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Seconds from the run's first moment to each send, float64, shape (n,); of a part, too, from that of the whole."""
        zero = self._zero
        assert self.start is not None
        return np.asarray((self.start - zero) / 1e9, np.float64)

    def between(self, start: Any = -np.inf, end: Any = np.inf) -> Samples:
        """Return the requests with start ≤ t < end, where t is when a request was sent.

        Parameters
        ----------
        start, end : float, str or datetime
            Seconds from the run's first moment (of a part, too), a duration (``"5s"``), or a timestamp.
        """
        first, last = (parse_moment(moment, self.epoch) for moment in (start, end))
        return self.select((self.offsets >= first) & (self.offsets < last))

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the rows, in order of name; empty where there are none."""
        return () if self.tag is None else tuple(np.unique(self.tag).tolist())

    def tagged(self, tag: str) -> Samples:
        """Return the rows of one tag."""
        if self.tag is None or tag not in self.tags:
            raise InvalidArgumentError(
                f"no row is tagged {tag!r}; the tags are {', '.join(self.tags) or 'none'}"
            )
        return self.select(self.tag == tag).with_run(tags=(tag,) if tag else ())

    def by_tag(self) -> dict[str, Samples]:
        """Return one set of samples a tag."""
        return {tag: self.tagged(tag) for tag in self.tags} if self.tags else {"": self}

    @property
    def elapsed(self) -> float:
        """Seconds from the first send to the last reply, or what the run says."""
        if self.start is None or not len(self):
            return self.run.duration or 0.0
        return float((self.start + self.duration).max() - self._origin) / 1e9

    @property
    def _zero(self) -> int:
        """The moment that times count from, ns: the first of the samples, or of those that these are a part of."""
        return self._origin if self._clock is None else self._clock

    @property
    def _origin(self) -> int:
        """First moment that the samples know of, ns."""
        if self.start is None:
            raise DataNotAvailableError(
                "these samples do not know when each request was sent; name the column with start="
            )
        first = int(self.start.min()) if len(self) else 0
        return (
            first
            if self.intended is None or not len(self)
            else min(first, int(self.intended.min()))
        )

    # ------------------------------------------------------------ down the ladder

    def _run_with_failures(self, run: Run) -> Run:
        """`run` with the rows' outcomes counted in."""
        if self.outcome is None:
            return run
        n = np.bincount(self.outcome, minlength=len(OUTCOMES)).tolist()
        names = ("failed", "timeouts", "dropped", "unfinished")
        found = {
            name: max(getattr(run, name), count) for name, count in zip(names, n[1:], strict=True)
        }
        return run.replace(**found)

    def histogram(self, digits: int = 3) -> Histogram:
        """Count the good requests' latencies; timeouts become censored mass at the timeout.

        Parameters
        ----------
        digits : int, default 3
            Significant digits of the buckets.
        """
        if digits == 3 and self._whole is not None:
            return self._whole
        run = self._run_with_failures(self.run)
        run = run.replace(duration=run.duration or (self.elapsed or None))
        good, values = self.good, self.values
        counted = Histogram.of(values[good], digits, self.unit, run)
        exact = (
            {"min": float(values[good].min()), "max": float(values[good].max())}
            if good.any()
            else {}
        )
        late = (
            np.zeros(0, np.int64)
            if self.outcome is None
            else values[self.outcome == OUTCOMES.index("timeout")]
        )
        bound = float(late.min()) if late.size else float("inf")
        histogram = replace(
            counted, censored=int(late.size), censored_at=bound, reported_stats=exact
        )
        if digits == 3:
            object.__setattr__(self, "_whole", histogram)
        return histogram

    def evidence(self, whole: Histogram | None = None) -> Evidence:
        """Return how far the latencies can be trusted; requests belong to the moment when they began.

        Parameters
        ----------
        whole : Histogram, optional
            ``samples.histogram()``, where it is known already.
        """
        counted = self.histogram() if whole is None else whole
        if self.start is None or not counted.count:
            return Evidence(counted)
        begin, good = self.start - self._origin, self.good
        late = (
            begin[~good]
            if self.outcome is None
            else begin[self.outcome == OUTCOMES.index("timeout")]
        )
        tag = (
            None
            if self.tag is None
            else np.unique(self.tag[good], return_inverse=True)[1].reshape(-1)
        )
        return tails_of_requests(begin[good], self.values[good], late, tag, counted)

    def to_log(
        self, interval: str | float = "1s", digits: int = 3, *, by_start: bool = False
    ) -> HistogramLog:
        """Count the good requests into intervals by the time of their reply, as a recorder would, or of their start.

        Parameters
        ----------
        interval : str or float, default "1s"
            ``"1s"``, ``"100ms"``, or seconds.
        digits : int, default 3
        by_start : bool, default False
            Count each request in the interval that it was sent in.

        Raises
        ------
        DataNotAvailableError
            Where no start times are known.
        """
        width = parse_duration(interval, "s")
        good, origin = self.good, self._zero
        assert self.start is not None
        first = (self._origin - origin) // int(max(width, 1))
        moment = (self.start if by_start else self.start + self.duration)[good] - origin
        slot = (moment // int(max(width, 1))).astype(np.int64) - first
        size = int(slot.max(initial=-1)) + 1
        if size > in_force().intervals:
            raise InputTooLargeError(
                f"intervals of {format_duration(width)} would make {size:,} of them; take longer ones"
            )
        names = self.tags or ("",)
        code = (
            np.zeros(slot.size, np.int64)
            if self.tag is None
            else np.searchsorted(np.asarray(names), self.tag[good])
        )
        buckets = HdrBuckets(digits)
        block = block_of_rows(
            slot * len(names) + code,
            buckets.index_of(self.values[good]),
            size * len(names),
            buckets,
        )
        starts = np.repeat(
            slot_edges(first + np.arange(size, dtype=np.float64), width / 1e9), len(names)
        )
        run = self._run_with_failures(self.run)
        epoch = origin / 1e9 if origin > 10**17 else run.start
        return HistogramLog(
            starts,
            np.full(starts.size, width / 1e9),
            [MemoryPart([block])],
            tag_code=np.tile(np.arange(len(names)), size),
            tag_names=names,
            unit=self.unit,
            run=run.replace(start=epoch, duration=run.duration or self.elapsed),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per request: times in ns (int64), outcomes as words; `from_frame` takes it back.

        Returns
        -------
        DataFrame
            Those of the columns start, duration, intended, outcome, connection, tag that are known.
        """
        import pandas as pd

        columns: dict[str, Any] = {
            "start": self.start,
            "duration": self.duration,
            "intended": self.intended,
        }
        if self.outcome is not None:
            columns["outcome"] = np.asarray(OUTCOMES)[self.outcome]
        columns |= {
            "connection": self.connection,
            "tag": None if self.tag is None else word_column(self.tag),
        }
        return pd.DataFrame(
            {name: column for name, column in columns.items() if column is not None}
        )

    def _repr_html_(self) -> str:
        from latencykit.core.key_statistics import html_of

        return html_of("Samples", self)

    def __repr__(self) -> str:
        good = int(self.good.sum())
        others = f", {format_count(len(self) - good)} others" if good < len(self) else ""
        over = (
            f" over {format_duration(self.elapsed * 1e9)}"
            if self.start is not None and len(self)
            else ""
        )
        return f"Samples({format_count(good)} good requests{others}{over})"


def _refuse_ages(columns: dict[str, Any]) -> None:
    """Refuse times so far apart that their distances are no int64."""
    begins = [columns[name] for name in ("start", "intended") if columns[name] is not None]
    if not begins or not columns["duration"].size:
        return
    last = max(int(begin.max()) for begin in begins) + int(columns["duration"].max())
    if max(last, last - min(int(begin.min()) for begin in begins)) >= 1 << 63:
        raise InvalidArgumentError(
            "the times lie more than 292 years apart; are they of the unit that they are taken for?"
        )


def _nanoseconds(values: ArrayLike, unit: str) -> Ints:
    """Times of a unit as int64 nanoseconds; floats are rounded to the nearest one."""
    given = np.asarray(values)
    factor = NANOSECONDS.get(checked_unit(unit), 1.0)
    if given.dtype.kind in "iu":
        return given.astype(np.int64) * np.int64(factor)
    reals = given.astype(np.float64) * factor
    if not np.isfinite(reals).all():
        raise InvalidArgumentError(
            "times must be finite; leave rows without a latency out, or give them an outcome"
        )
    return np.rint(reals).astype(np.int64)


def _outcome_codes(outcome: ArrayLike) -> NDArray[np.int8]:
    given = np.asarray(outcome)
    if given.dtype.kind in "iub":
        codes = given.astype(np.int8)
        if codes.size and not (codes.min() >= 0 and codes.max() < len(OUTCOMES)):
            raise InvalidArgumentError(
                f"outcomes are positions 0 to {len(OUTCOMES) - 1} in {OUTCOMES}"
            )
        return codes
    names, inverse = np.unique(given.astype(np.str_), return_inverse=True)
    unknown = [name for name in names.tolist() if name not in OUTCOMES]
    if unknown:
        raise InvalidArgumentError(
            f"an outcome must be one of {', '.join(OUTCOMES)}; not {unknown[0]!r}"
        )
    return np.array([OUTCOMES.index(name) for name in names.tolist()], np.int8)[inverse]
