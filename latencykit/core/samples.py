"""Samples: one row per request, as arrays of nanoseconds, also from and to a DataFrame."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latencykit import errors, units
from latencykit._arrays import Value, read_only
from latencykit._limits import current_limits
from latencykit._records import record
from latencykit._text import printable
from latencykit._typing import AnyArray, AnySeries, Floats, Ints
from latencykit.core.blocks import MemoryPart, block_of_rows, narrowed
from latencykit.core.buckets import HdrBuckets
from latencykit.core.columns import Columns, Words, coded, word_of
from latencykit.core.evidence import Evidence, OrderedSupport, tails_of_requests
from latencykit.core.histogram import Histogram, HistogramBacked
from latencykit.core.histogram_log import HistogramLog, IntervalSeries, interval_series, slot_edges
from latencykit.core.run import Measure, Run, failure_counts, merge_runs
from latencykit.errors import DataNotAvailableError, InputTooLargeError, InvalidArgumentError
from latencykit.units import Moment

if TYPE_CHECKING:
    import pandas as pd


_FARTHEST = 9e9  # seconds, 285 years; int64 nanoseconds reach 292 years
_TIMES = ("duration", "start", "intended")
_STEPS = (1, 10, 60, 600, 3600, 86400)  # seconds of an interval that nobody chose
_COLUMNS = ("start", "duration", "intended", "outcome", "connection", "tag")


def sample_columns(
    frame: pd.DataFrame, columns: Mapping[str, str], unit: str
) -> dict[str, AnyArray]:
    """Return the arrays of `Samples` from columns of a table."""
    from pandas import DatetimeTZDtype, factorize, to_numeric

    if not hasattr(frame, "columns"):
        raise InvalidArgumentError(f"expected a data frame, not {type(frame).__name__}")
    missing = [name for name in columns.values() if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"no column {missing[0]!r}; the columns are {', '.join(map(str, frame.columns))}"
        )
    units.checked_unit(unit)
    arrays: dict[str, AnyArray] = {}
    for role, name in columns.items():
        cells = frame[name]
        if role in _TIMES:
            empty = int(cells.isna().sum())
            if empty:
                raise InvalidArgumentError(
                    f"column {cells.name!r} has {empty} empty cells; "
                    f"drop those rows: df.dropna(subset=[{cells.name!r}])"
                )
            try:
                if cells.dtype.kind in "mM" or isinstance(cells.dtype, DatetimeTZDtype):
                    times = as_nanoseconds(cells)
                else:
                    numbers = to_numeric(cells)
                    kind = {"i": np.int64, "u": np.uint64}.get(numbers.dtype.kind, np.float64)
                    times = numbers.to_numpy(kind)
                arrays[role] = _nanoseconds(times, unit)
            except (ValueError, TypeError) as error:
                raise InvalidArgumentError(f"column {cells.name!r}: {error}") from None
        elif role == "tag":
            arrays[role] = cells.astype(object).where(cells.notna(), "").to_numpy()
        elif role == "connection":
            numbered = cells.dtype.kind in "iu" and not cells.isna().any()
            codes = cells.to_numpy(np.int64) if numbered else factorize(cells)[0]
            arrays[role] = np.asarray(codes, np.int64)
        elif cells.dtype.kind == "b":
            raise InvalidArgumentError(
                f"column {name!r} contains booleans; write outcomes as words: "
                f"numpy.where(df[{name!r}], 'ok', 'error')"
            )
        elif cells.dtype.kind in "iu":
            arrays[role] = cells.to_numpy()
        else:
            arrays[role] = cells.astype(object).to_numpy()
    return arrays


def as_nanoseconds(cells: AnySeries) -> AnyArray:
    """Return datetimes (UTC) or timedeltas in nanoseconds; NaT if beyond 64 bits of them."""
    if cells.dtype.kind == "m":
        return cells.where(cells.dt.total_seconds().abs() < _FARTHEST).to_numpy("m8[ns]")
    naive = cells.dtype.kind == "M" and getattr(cells.dtype, "tz", None) is None
    plain = cells if naive else cells.dt.tz_convert("UTC").dt.tz_localize(None)
    return plain.where(plain.dt.year.between(1678, 2261)).to_numpy("M8[ns]")


def word_column(words: ArrayLike | Words) -> AnySeries:
    """Return words as a column; as objects if one is not UTF-8, which pandas' strings require."""
    import pandas as pd

    words = words if isinstance(words, Words) else Words.of(words)
    halves = re.search("[\ud800-\udfff]", "".join(words.names))
    return pd.Series(words.cells, dtype=object if halves else "str")


# ------------------------------------------------------------
# One row per request: the highest level of detail, from which all others can be derived.

OUTCOMES = ("ok", "error", "timeout", "dropped", "unfinished")
"""Outcomes of a request; `Samples.outcome` contains positions in this tuple."""


@record(eq=False)
class Samples(HistogramBacked, Value):
    """Requests, one row each, as arrays of one length.

    Parameters
    ----------
    start : array_like, shape (n,), optional
        Time of each send, in `unit`: since the epoch or since the start of the run.
    duration : array_like, shape (n,)
        Service time: from the send to the reply.
    intended : array_like, shape (n,), optional
        Time at which each request was due, from which the response time counts.
    outcome : array_like of int or str, optional
        ``ok``, ``error``, ``timeout``, ``dropped`` or ``unfinished`` (or its position in them).
    connection : array_like of int, optional
        Connection, user or thread that sent it.
    tag : array_like of str, optional
        Operation.
    unit : str, default "ns"
        Unit of the numbers (``none`` for bare ones); the attributes are nanoseconds, int64.
        Timedeltas and datetimes have their own.
    run : Run, optional
    **columns : array_like
        Further columns such as endpoint, host or status: numbers, or words (None for none).

    Examples
    --------
    >>> s = Samples(start=[0, 10, 20], duration=[1, 2, 300], unit="ms", host=["a", "a", "b"])
    >>> s.histogram().max, len(s), s.where(host="a").histogram().max
    (300000000.0, 3, 2000000.0)
    """

    start: Ints | None
    duration: Ints
    intended: Ints | None
    outcome: NDArray[np.int8] | None
    connection: Ints | None
    tag: NDArray[np.object_] | None
    unit: str
    run: Run
    columns: Columns = field(repr=False)
    _tag_words: Words | None = field(repr=False, compare=False)
    _request: Ints | None = field(repr=False)
    _clock: int | None = field(repr=False, compare=False)
    _whole: Histogram | None = field(repr=False, compare=False)
    _evidence: Evidence | None = field(repr=False, compare=False)

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
        **columns: ArrayLike,
    ) -> None:
        words = None  # readers have numbered the tags
        if tag is not None:
            words = (tag if isinstance(tag, Words) else Words.of(tag)).sorted()
        own: dict[str, Any] = {
            "duration": _nanoseconds(duration, unit),
            "start": None if start is None else _nanoseconds(start, unit),
            "intended": None if intended is None else _nanoseconds(intended, unit),
            "outcome": None,
            "connection": None,
            "tag": None if words is None else words.cells,
        }
        if outcome is not None:
            codes = np.asarray(outcome)
            if codes.dtype.kind in "iub":
                own["outcome"] = codes.astype(np.int8)
                if codes.size and not (codes.min() >= 0 and codes.max() < len(OUTCOMES)):
                    raise InvalidArgumentError(
                        f"outcomes are positions 0 to {len(OUTCOMES) - 1} in {OUTCOMES}"
                    )
            else:
                named = Words.of(codes).sorted()
                names = named.names.tolist()
                unknown = [name for name in names if name not in OUTCOMES]
                if unknown:
                    raise InvalidArgumentError(
                        f"an outcome must be one of {', '.join(OUTCOMES)}; not {unknown[0]!r}"
                    )
                places = np.array([OUTCOMES.index(name) for name in names], np.int8)
                own["outcome"] = places[named.codes]
        if connection is not None:
            try:
                own["connection"] = np.asarray(connection, np.int64)
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidArgumentError(f"connections must be whole numbers ({error})") from None
        further = {name: _cells(values) for name, values in columns.items()}
        sizes = {name: array.shape for name, array in (own | further).items() if array is not None}
        if len(set(sizes.values())) > 1 or len(own["duration"].shape) != 1:
            raise InvalidArgumentError(f"the columns of samples must be of one length, not {sizes}")
        if (own["duration"] < 0).any():
            raise InvalidArgumentError("durations must not be negative; drop such rows")
        begins = [own[name] for name in ("start", "intended") if own[name] is not None]
        if begins and own["duration"].size:  # distances must be int64, too
            last = max(int(begin.max()) for begin in begins) + int(own["duration"].max())
            if max(last, last - min(int(begin.min()) for begin in begins)) >= 1 << 63:
                raise InvalidArgumentError(
                    "the times span more than 292 years; is their unit correct?"
                )
        facts = run or Run(unit=unit)
        if facts.measure == "unknown":
            facts = facts.replace(measure="service" if intended is None else "response")
        own = {name: None if array is None else read_only(array) for name, array in own.items()}
        vars(self).update(
            own, unit="none" if unit == "none" else "ns", run=facts, columns=Columns(further),
            _tag_words=words, _request=None, _clock=None, _whole=None, _evidence=None,
        )  # fmt: skip

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
        """Return samples from columns of a DataFrame.

        Parameters
        ----------
        frame : DataFrame
        duration : str, optional
            Column of durations. If no column is named at all, those of `to_frame` are used.
        unit : str, default "ns"
            Unit of numbers. Datetimes (UTC if they have no zone) and timedeltas need none.
        run : Run, optional
        **columns : str
            The columns of `start`, `intended`, `outcome`, `connection` and `tag`. All others are
            kept in `Samples.columns` under their own names.

        Raises
        ------
        InvalidArgumentError
            For a missing column, and for cells that are empty or not times.

        Examples
        --------
        >>> import pandas as pd
        >>> sent = pd.date_range("2026-01-31", periods=3, freq="1s")
        >>> df = pd.DataFrame({"sent": sent, "took": [1.5, 2.0, 300.0]})
        >>> s = Samples.from_frame(df, duration="took", start="sent", unit="ms")
        >>> s.histogram().max, Samples.from_frame(s.to_frame()).duration.tolist()
        (300000000.0, [1500000, 2000000, 300000000])
        """
        unknown = sorted(set(columns) - {*_COLUMNS} - {"duration"})
        if unknown:
            raise InvalidArgumentError(
                f"samples have no {unknown[0]!r}; "
                "name columns for start, intended, outcome, connection or tag"
            )
        if duration is None and not columns:
            columns = {name: name for name in _COLUMNS if name in frame.columns}
        roles = {"duration": duration or "duration"} | columns
        arrays = sample_columns(frame, roles, unit)
        samples = cls(unit="none" if unit == "none" else "ns", run=run or Run(unit=unit), **arrays)
        others = [name for name in frame.columns if name not in roles.values()]
        return samples.with_columns({str(name): frame[name] for name in others})

    def __len__(self) -> int:
        return int(self.duration.size)

    def __add__(self, other: Samples) -> Samples | Histogram:
        errors.require(other, Samples, "samples; lk.merge adds up others")
        together = self._joined([self, other], "absolute")
        return self.histogram() + other.histogram() if together is None else together

    def _content(self) -> tuple[object, ...]:
        return *super()._content(), None if self.start is None else self._zero

    def with_columns(self, columns: Mapping[str, ArrayLike] | Columns) -> Samples:
        """Return a copy with further columns, in addition to those that it has.

        Parameters
        ----------
        columns : mapping of str to array_like
            One cell per row: numbers, or words (None for none).

        Examples
        --------
        >>> s = Samples(duration=[1, 2]).with_columns({"unit": ["rack 1", "rack 2"]})
        >>> s.columns["unit"].tolist()
        ['rack 1', 'rack 2']
        """
        if not isinstance(columns, Columns):
            further = {name: _cells(values) for name, values in columns.items()}
            for name, cells in further.items():
                if cells.shape != self.duration.shape:
                    raise InvalidArgumentError(
                        f"column {name!r} has the shape {cells.shape}; the samples have "
                        f"{len(self)} rows"
                    )
            present = {name: self.columns.cells(name) for name in self.columns}
            columns = Columns(present | further)
        return self._with(columns=columns)

    @property
    def request(self) -> Ints | None:
        """The request that each row belongs to, int64, shape (n,); None where each row is one."""
        return self._request

    def with_request(self, number: ArrayLike) -> Samples:
        """Return a copy that states to which request each row belongs.

        Latencies of several types that one table gives for the same requests are matched by these
        numbers (see `latencykit.SLO.check_all`). Rows of one request, such as the times between
        its tokens, depend on each other: confidence intervals then count requests, not rows.

        Parameters
        ----------
        number : array_like of int, shape (n,)
            In the order in which the requests were sent.

        Examples
        --------
        >>> gaps = Samples(duration=[5, 6, 4], unit="ms").with_request([0, 0, 1])
        >>> gaps.select(gaps.duration > 4_500_000).request.tolist()
        [0, 0]
        """
        numbers = np.asarray(number, np.int64)
        if numbers.shape != self.duration.shape:
            raise InvalidArgumentError(
                f"the numbers of the requests have the shape {numbers.shape}; the samples have "
                f"{len(self)} rows"
            )
        return self._with(_request=read_only(numbers))

    # ------------------------------------------------------------ latencies

    @property
    def good(self) -> NDArray[np.bool_]:
        """Mask of the successful requests, bool, shape (n,)."""
        if self.outcome is None:
            return read_only(np.ones(len(self), np.bool_))
        return read_only(np.asarray(self.outcome == 0))

    @property
    def response(self) -> Ints:
        """Response time: from the intended start to the reply, int64 ns, shape (n,).

        Raises
        ------
        DataNotAvailableError
            If the source does not state when requests were due.
        """
        if self.intended is None or self.start is None:
            raise DataNotAvailableError(
                "these samples do not state when each request was due; "
                "lk.retime(samples, rate=...) derives it from the schedule"
            )
        response: Ints = np.maximum(self.start + self.duration - self.intended, 0)
        return read_only(response)

    @property
    def values(self) -> Ints:
        """Latency of every row, int64: service or response time, as `run.measure` says."""
        if self.run.measure == "response" and self.intended is not None:
            return self.response
        return self.duration

    def measured(self, measure: Measure) -> Samples:
        """Return the same samples with ``service`` or ``response`` time as their latency.

        Raises
        ------
        DataNotAvailableError
            For the response time, if no intended start is known.
        """
        if measure == "response" and self.run.measure != "response":
            self.response  # noqa: B018 - raises where it is not known
        return self.with_run(measure=measure)

    def with_run(self, **changes: object) -> Samples:
        """Return a copy with some facts of the run changed."""
        return self._with(run=self.run.replace(**changes))

    def _with(self, **changes: object) -> Samples:
        copy = object.__new__(Samples)
        copy.__setstate__(vars(self) | {"_whole": None, "_evidence": None} | changes)
        return copy

    def to_unit(self, unit: str) -> Samples:
        """Return itself: samples are in nanoseconds (or bare numbers).

        Raises
        ------
        InvalidArgumentError
            For any other unit; convert the histogram instead.
        """
        if unit != self.unit:
            raise InvalidArgumentError(
                f"the unit of samples is {self.unit}; use .histogram().to_unit({unit!r})"
            )
        return self

    def select(self, rows: NDArray[np.bool_] | Ints) -> Samples:
        """Return some of the rows: a boolean mask or positions."""
        arrays = {name: getattr(self, name) for name in (*_COLUMNS, "_request")}
        known = {
            name: read_only(array[rows]) for name, array in arrays.items() if array is not None
        }
        return self._with(
            **known,
            columns=self.columns.select(rows),
            _tag_words=None if self._tag_words is None else self._tag_words.select(rows),
            # times of a selection count from the same origin
            _clock=self._clock if self.start is None else self._zero,
        )

    def where(self, **values: object) -> Samples:
        """Return the rows that have a value, or one of several, in each of the columns named.

        Parameters
        ----------
        **values : object or sequence
            Column → its value, or a list of values. `outcome`, `connection` and `tag` are columns,
            too.

        Raises
        ------
        InvalidArgumentError
            For a column that is not there, and for a value that no row has.

        Examples
        --------
        >>> s = Samples(duration=[1, 2, 3], host=["a", "b", "b"], status=[200, 200, 404])
        >>> s.where(host="b", status=[200, 404]).duration.tolist()
        [2, 3]
        """
        rows = np.ones(len(self), np.bool_)
        for name, value in values.items():
            choices = list(value) if isinstance(value, list | tuple | set | np.ndarray) else [value]
            cells = self._attribute(name)
            if isinstance(cells, Words):
                known = {None: -1} | {word: k for k, word in enumerate(cells.names.tolist())}
                keys = [word_of(choice) for choice in choices]
                places = [known.get(key, -2) for key in keys]
                unknown = [key for key, place in zip(keys, places, strict=True) if place == -2]
                if unknown:
                    seen = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.names))
                    often = cells.names[np.argsort(-seen, kind="stable")[:6]].tolist()
                    raise InvalidArgumentError(
                        f"no row has {name} {unknown[0]!r}; values are {', '.join(often) or 'none'}"
                    )
                rows &= np.isin(cells.codes, places)
            else:
                rows &= np.isin(cells, np.asarray(choices))
        return self.select(rows)

    def _attribute(self, name: str) -> Words | AnyArray:
        """A column by its name: a further one, or outcome, connection or tag."""
        if name not in ("outcome", "connection", "tag") or getattr(self, name) is None:
            return self.columns.cells(name)
        if name == "tag" and self._tag_words is not None:
            return self._tag_words
        values = getattr(self, name)
        if name == "connection":
            return np.asarray(values)
        return Words(values.astype(np.int32), np.array(OUTCOMES, object))

    def by(self, column: str) -> dict[str, Samples]:
        """Return the samples of each value of a column, by its name as text.

        Parameters
        ----------
        column : str
            A further column, or outcome, connection or tag; rows without a value are under ``""``.

        Examples
        --------
        >>> s = Samples(duration=[1, 2, 3], host=["b", "a", "b"])
        >>> {name: len(part) for name, part in s.by("host").items()}
        {'a': 1, 'b': 2}
        """
        words = Words.named(*coded(self._attribute(column))).sorted()
        codes = narrowed(words.codes.astype(np.int64))  # which are sorted sooner
        parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        return {name: self.select(rows) for name, rows in zip(words.names, parts, strict=False)}

    @property
    def epoch(self) -> int | None:
        """Origin of the run's times in nanoseconds since the epoch, if known."""
        if self.start is not None and self._zero > 10**17:
            return self._zero
        return None if self.run.start is None else round(self.run.start * 1e6) * 1000

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Seconds from the start of the run to each send, float64, shape (n,)."""
        zero = self._zero
        assert self.start is not None
        return read_only(np.asarray((self.start - zero) / 1e9, np.float64))

    def between(self, start: Moment = -np.inf, end: Moment = np.inf) -> Samples:
        """Return the requests with start ≤ t < end, where t is the time of the send.

        Parameters
        ----------
        start, end : float, str or datetime
            Seconds from the start of the run, a duration (``"5s"``), or a timestamp.
        """
        first, last = (units.parse_moment(moment, self.epoch) for moment in (start, end))
        return self.select((self.offsets >= first) & (self.offsets < last))

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of the rows, sorted; empty without tags."""
        return () if self._tag_words is None else tuple(self._tag_words.names.tolist())

    def tagged(self, tag: str) -> Samples:
        """Return the rows of one tag."""
        if self._tag_words is None or tag not in self.tags:
            raise InvalidArgumentError(
                f"no row is tagged {tag!r}; the tags are {', '.join(self.tags) or 'none'}"
            )
        rows = self._tag_words.codes == self.tags.index(tag)
        return self.select(rows).with_run(tags=(tag,) if tag else ())

    def by_tag(self) -> dict[str, Samples]:
        """Return the samples of each tag."""
        if self.tag is None or not len(self):
            return {"": self}
        return {
            tag: part.with_run(tags=(tag,) if tag else ()) for tag, part in self.by("tag").items()
        }

    @property
    def elapsed(self) -> float:
        """Seconds from the first send to the last reply, or the duration of the run."""
        if self.start is None or not len(self):
            return self.run.duration or 0.0
        return float((self.start + self.duration).max() - self._origin) / 1e9

    @property
    def _zero(self) -> int:
        """Origin of the times, ns: the first of the samples, also after a selection."""
        return self._origin if self._clock is None else self._clock

    @property
    def _origin(self) -> int:
        """First time in the samples, ns."""
        if self.start is None:
            raise DataNotAvailableError(
                "these samples do not state when each request was sent; name the column with start="
            )
        if not len(self):
            return 0
        return min(int(t.min()) for t in (self.start, self.intended) if t is not None)

    @classmethod
    def _joined(cls, parts: Sequence[Samples], align: str) -> Samples | None:
        """Return the requests of several sources by start; None if some have none, or no date."""
        if any(part.start is None or not len(part) for part in parts):
            return None
        epochs = [part.epoch for part in parts]
        if align == "absolute" and len({epoch is None for epoch in epochs}) > 1:
            return None
        unit = parts[0].unit
        run = merge_runs([part.run.replace(unit=part.unit) for part in parts])
        known = {
            name for name in _COLUMNS if all(getattr(part, name) is not None for part in parts)
        }
        columns: dict[str, list[AnyArray]] = {name: [] for name in _COLUMNS if name in known}
        if any(part.outcome is not None for part in parts):
            columns["outcome"] = []
        if any(part.tag is not None for part in parts):
            columns["tag"] = []
        shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
        others: dict[str, list[AnyArray]] = {name: [] for name in shared}
        connections = 0  # of different sources are different ones
        for part, epoch in zip(parts, epochs, strict=True):
            zero = part._zero  # noqa: SLF001 - its own class
            shift = -zero if align == "relative" else epoch - zero if epoch is not None else 0
            missing = {"outcome": np.zeros(len(part), np.int8), "tag": np.full(len(part), "")}
            for name, pieces in columns.items():
                own = getattr(part, name)
                own = missing[name] if own is None else own
                if name in ("start", "intended"):
                    own = own + shift
                elif name == "connection":
                    own = np.unique(own, return_inverse=True)[1].reshape(-1) + connections
                    connections = int(own.max()) + 1
                pieces.append(own)
            for name, pieces in others.items():
                pieces.append(part.columns[name])
        arrays: dict[str, Any] = {name: np.concatenate(pieces) for name, pieces in columns.items()}
        whole = cls(unit=unit, run=run, **arrays).with_columns(
            {  # words where any source has words
                name: np.concatenate(pieces)
                if all(piece.dtype.kind in "biuf" for piece in pieces)
                else np.concatenate([piece.astype(object) for piece in pieces])
                for name, pieces in others.items()
            }
        )
        return whole.select(np.argsort(arrays["start"], kind="stable"))

    # ------------------------------------------------------------ lower levels of detail

    @property
    def _timed_out(self) -> Floats:
        """How long requests took that timed out."""
        outcome = np.zeros(len(self), np.int8) if self.outcome is None else self.outcome
        return np.asarray(self.values[outcome == OUTCOMES.index("timeout")], np.float64)

    def _run_with_failures(self) -> Run:
        """The run with the outcomes of the rows counted."""
        if self.outcome is None:
            return self.run
        n = np.bincount(self.outcome, minlength=len(OUTCOMES)).tolist()
        counted = zip(failure_counts(self.run).items(), n[1:], strict=True)
        facts: dict[str, Any] = {name: max(known, k) for (name, known), k in counted}
        if n[OUTCOMES.index("timeout")]:
            facts["timeout"] = self._timed_out.min()
        return self.run.replace(**facts)

    def histogram(self, digits: int = 3) -> Histogram:
        """Count the good requests' latencies; timeouts become censored mass at the timeout.

        Parameters
        ----------
        digits : int, default 3
            Significant digits of the buckets.
        """
        if digits == 3 and self._whole is not None:
            return self._whole
        histogram = counted(self, digits)
        if digits == 3:
            object.__setattr__(self, "_whole", histogram._counted_from(self))  # noqa: SLF001
        return histogram

    def evidence(self, whole: Histogram | None = None) -> Evidence:
        """Return how far the latencies can be trusted; requests count at the time of their send.

        Parameters
        ----------
        whole : Histogram, optional
            ``samples.histogram()``, if known already.
        """
        counted = self.histogram() if whole is None else whole
        if self._evidence is not None and self._evidence.whole is counted:
            return self._evidence
        moment, timed, good = self.start, True, self.good
        if self._request is not None and counted.count:
            numbers, first, place = np.unique(self._request, return_index=True, return_inverse=True)
            if numbers.size < len(self):  # several rows per request count together
                timed = moment is not None
                begins = np.arange(numbers.size) if moment is None else moment[first]
                moment = begins[place.reshape(-1)]
        known = Evidence(counted)
        begin = None if moment is None else moment - (self._origin if timed else 0)
        if begin is not None and counted.count and begin.any():  # not all at once: as without times
            late = ~good
            if self.outcome is not None:
                late = self.outcome == OUTCOMES.index("timeout")
            tails = tails_of_requests(begin[good], self.values[good], begin[late], counted)
            if self.outcome is not None:
                slot = np.searchsorted(tails.start, begin[~good] / 1e9, "right") - 1
                failed = np.bincount(np.maximum(slot, 0), minlength=tails.start.size)
                tails = replace(tails, failed=failed.astype(np.float64))
            known = tails if timed else OrderedSupport(**vars(tails))
        object.__setattr__(self, "_evidence", known)
        return known

    def to_log(
        self, interval: str | float | None = None, digits: int = 3, *, by_start: bool = False
    ) -> HistogramLog:
        """Count the good requests into intervals by the time of their reply, as a recorder would.

        Parameters
        ----------
        interval : str or float, optional
            ``"1s"``, ``"100ms"``, or seconds; by default 1 s, or longer where requests are so far
            apart that nearly all intervals would be empty.
        digits : int, default 3
        by_start : bool, default False
            Count each request in the interval of its send.

        Raises
        ------
        DataNotAvailableError
            If no start times are known.
        InputTooLargeError
            If there were more than 100,000 intervals and more than ten a request.
        """
        good, origin = self.good, self._zero
        assert self.start is not None
        moment = (self.start if by_start else self.start + self.duration) - origin
        last, moment = int(moment.max(initial=0)), moment[good]
        span = last - (self._origin - origin)
        most = min(max(100_000, 10 * moment.size), current_limits().intervals)
        fitting = next((s for s in _STEPS if span // (s * 10**9) < most), _STEPS[-1])
        width = units.parse_duration(fitting if interval is None else interval, "s")
        first = (self._origin - origin) // int(max(width, 1))
        slot = (moment // int(max(width, 1))).astype(np.int64) - first
        size = last // int(max(width, 1)) - first + 1 if len(self) else 0
        if size > most:
            raise InputTooLargeError(
                f"intervals of {units.format_duration(width)} would number {size:,}, for "
                f"{moment.size:,} requests; use longer ones, such as "
                f"{units.format_duration(fitting * 1e9)}"
            )
        names, code = self.tags or ("",), np.zeros(moment.size, np.int64)
        if self._tag_words is not None:
            code = self._tag_words.codes[good].astype(np.int64)
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
        run = self._run_with_failures()
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
        """Return a table with one row per request, the inverse of `from_frame`.

        Returns
        -------
        DataFrame
            The known columns of start, duration, intended (ns, int64), outcome (words),
            connection and tag, and all further columns.
        """
        import pandas as pd

        columns: dict[str, object] = {
            "start": self.start,
            "duration": self.duration,
            "intended": self.intended,
        }
        if self.outcome is not None:
            columns["outcome"] = np.asarray(OUTCOMES)[self.outcome]
        columns |= {
            "connection": self.connection,
            "tag": None if self._tag_words is None else word_column(self._tag_words),
        }
        columns = {name: self.columns[name] for name in self.columns} | {
            name: column for name, column in columns.items() if column is not None
        }
        order = sorted(columns, key=lambda name: name not in _COLUMNS)
        return pd.DataFrame({name: columns[name] for name in order})

    def __repr__(self) -> str:
        good = int(self.good.sum())
        others = f", {units.format_count(len(self) - good)} others" if good < len(self) else ""
        timed = self.start is not None and len(self) > 0
        over = f" in {units.format_duration(self.elapsed * 1e9)}" if timed else ""
        return f"Samples({units.format_count(good)} good requests{others}{over})"


def _cells(values: Any) -> Any:
    """Cells of a further column as they were given, safe from later changes; encoded when used."""
    if isinstance(values, Words) or hasattr(values, "cat"):
        return values
    if hasattr(values, "to_numpy"):
        return values.copy()
    if isinstance(values, np.ndarray):
        return values.copy() if values.flags.writeable else values
    cells = list(values)
    plain = np.asarray(cells) if all(isinstance(cell, int | float) for cell in cells) else None
    if plain is None or plain.dtype.kind not in "biuf":
        plain = np.empty(len(cells), object)
        plain[:] = cells
    return plain


def _nanoseconds(values: ArrayLike, unit: str) -> Ints:
    """Times as int64 nanoseconds; floats are rounded, and dates and timedeltas have own units."""
    array = np.asarray(values)
    factor = units.NANOSECONDS.get(units.checked_unit(unit), 1.0)
    if array.dtype.kind in "mM":
        ns = array.astype(f"{array.dtype.kind}8[ns]")
        if not (ns.astype(array.dtype) == array).all():  # NaT is not equal to itself
            raise InvalidArgumentError("a time is missing, or beyond 64 bits of nanoseconds")
        return ns.astype(np.int64)
    if np.ma.is_masked(values):
        raise InvalidArgumentError("times are masked; leave those rows out of all columns")
    if array.dtype.kind in "iu":
        most = max(abs(int(array.min())), int(array.max())) if array.size else 0
        if most * int(factor) < 1 << 63:
            return array.astype(np.int64) * np.int64(factor)
    try:
        if array.dtype.kind not in "iufO":
            raise TypeError  # noqa: TRY301 - as objects that are not numbers
        with np.errstate(over="ignore"):
            reals = array.astype(np.float64) * factor
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"times must be numbers, timedeltas or datetimes, not {array.dtype}: "
            f"{printable(repr(array.flat[0]) if array.size else '', 40)}"
        ) from None
    most = np.abs(reals).max(initial=0.0)
    if not most < np.inf:
        raise InvalidArgumentError(
            "times must be finite; drop rows without a latency, or give them an outcome"
        )
    if most >= 2.0**63:
        raise InvalidArgumentError("times must fit 64 bits of nanoseconds; is their unit correct?")
    return np.rint(reals).astype(np.int64)


def counted(samples: Samples, digits: int = 3) -> Histogram:
    """Return the histogram of samples, which does not keep them alive."""
    run = samples._run_with_failures()  # noqa: SLF001
    run = run.replace(duration=run.duration or (samples.elapsed or None))
    values = samples.values
    good = values if samples.outcome is None else values[samples.outcome == 0]
    exact = {"min": float(good.min()), "max": float(good.max())} if good.size else {}
    late = samples._timed_out  # noqa: SLF001
    return replace(
        Histogram.of(good, digits, samples.unit, run), reported_stats=exact,
        censored=int(late.size), censored_at=float(late.min(initial=np.inf)),
    )  # fmt: skip


def requests_by_interval(
    samples: Samples, interval: str | float, percentiles: Sequence[float]
) -> IntervalSeries:
    """Return what each interval says; timeouts took at least as long as the shortest of them."""

    def series_of_rows(rows: Samples) -> IntervalSeries:
        log = rows.to_log(interval)
        together = log.with_tag("").resample(interval) if len(log.tags) > 1 else log
        return interval_series(together, percentiles)

    outcome = np.int8(0) if samples.outcome is None else samples.outcome
    late = outcome == OUTCOMES.index("timeout")
    if not late.any():
        return series_of_rows(samples)
    ended = samples._with(outcome=np.where(late, 0, outcome))  # noqa: SLF001
    series, timeouts = series_of_rows(ended), series_of_rows(ended.select(late))
    counts, bound = np.zeros(series.count.size, np.int64), samples._timed_out.min()  # noqa: SLF001
    counts[np.searchsorted(series.start, timeouts.start)] = timeouts.count
    beyond = np.column_stack((series.max, series.values)) >= bound
    beyond &= counts[:, None] > 0
    lows = np.where(beyond, np.maximum(series.lows, bound), series.lows)
    return replace(
        series, count=series.count - counts, lows=lows, beyond=series.beyond | beyond,
        max=np.where(beyond[:, 0], lows[:, 0], series.max),
        values=np.where(beyond[:, 1:], lows[:, 1:], series.values),
    )  # fmt: skip


def stamp_step(samples: Samples) -> float:
    """Return the step of a clock so coarse that several requests share a stamp, seconds; else 0."""
    assert samples.start is not None
    sent = np.asarray(samples.start)
    stamped = (sent, sent + np.asarray(samples.duration, np.int64))
    step = max(float(np.gcd.reduce(at - at[0])) for at in stamped)
    return step / 1e9 if step * sent.size > 2.0 * float(np.ptp(sent)) else 0.0


def in_steps(length: float, step: float) -> float:
    """Return a length that has as many stamps of a clock wherever it begins, at least the given."""
    return math.ceil(length / step - 1e-6) * step if step else length
