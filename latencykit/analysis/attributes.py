"""Attributes of requests: each column as a few values, one code per request.

Numbers are cut at quantiles, paths lose their identifiers, rare values are folded into one. Columns
that identify requests, count upwards, or repeat a part of the latency are left out. A column that
reports how a request ended, such as a status, or restates how long it took, such as a flag of those
above a limit, is an outcome: slow requests have it because they were slow.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from latencykit._records import record
from latencykit.core.columns import Words
from latencykit.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from latencykit._typing import Flags, Floats, Ints
    from latencykit.core.samples import Samples


@record()
class AttributeRules:
    """How columns become attributes; chosen on `tests.benchmarks.truth_explain`."""

    # numbers: more are cut at quantiles
    max_distinct: int = 20
    # quantiles at which numbers are cut
    cuts: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9, 0.99)
    # values with fewer are folded into one
    min_requests: int = 5
    # that are tested one by one
    max_values: int = 400
    # times a limit, or less: latencies near it
    beside: float = 1.25
    # of them on either side
    min_beside: int = 5
    # times as many just above a limit as just below: a limit cuts through a crowd
    max_crowd: float = 3.0
    # of the latencies near a limit: clocks of client and server differ
    max_misplaced_share: float = 0.02
    # of the requests with a value, on the wrong side of the limit
    max_astray_share: float = 0.1


RULES = AttributeRules()


OTHERS, NONE = "others", "(none)"
_ID = re.compile(
    r"(?<=/)(?<!//)(?:\d+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[^/?#\s]*\d)(?:[0-9a-fA-F]{8,}|(?=[^/?#\s]*[A-Za-z])[A-Za-z0-9_-]{16,}))(?=[/?#.:;\s]|$)"
)
_QUERY = re.compile(r"[?#][^\s]*")
_PATH = re.compile(r"(?:[A-Z]{3,8} )?(?:\w+://|/)")


@record(eq=False)
class Attribute:
    """An attribute: a code per request, and the value that each code stands for."""

    name: str
    codes: NDArray[np.int32]
    values: list[str]
    looks: int  # values before rare ones were folded
    folded: bool  # the last value stands for all others
    ranges: bool = False  # values are ranges of numbers
    outcome: bool = False  # how requests ended, not why


# Names of outcomes: a word that can mean nothing else, or one that can and whose values decide;
# either with words that only say whose outcome it is, and of what kind.
_ENDED = re.compile(
    r"outcome|err(or)?s?|exception|success(ful)?|succeeded|fail(ure|ed)?|fault|timed?out|aborted|"
    r"cancell?ed|expired|rejected|dropped|late|slow"
)
_MAY_HAVE_ENDED = re.compile(r"status|code|result|state|ok|response")
_WHOSE = re.compile(
    r"is|has|was|did|timed|out|https?|g?rpc|return|exit|final|req(uest)?|call|reply|resp|upstream|"
    r"origin|downstream|backend|server|client|sc|elb|target|edge|proxy|frontend|list|number|class|"
    r"message|msg|reason|text|type|kind|name|family|flag"
)
_END = re.compile(
    r"[1-5]\d\d\b.*|[1-5]xx|-?\d{1,2}|true|false|yes|no|-|.*(?:\bok\b|succe|error|err\b|fail|time|"
    r"cancel|abort|exce|unavail|denied|refus|reset|reject|invalid|not.?found|unauth|exhaust).*",
    re.IGNORECASE,
)


def _is_outcome(name: str, values: Sequence[str]) -> bool:
    """Whether a column reports how requests ended, by its name and values."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    rest = {word for word in words if _ENDED.fullmatch(word) is None}
    unsure = {word for word in rest if _MAY_HAVE_ENDED.fullmatch(word)}
    if any(_WHOSE.fullmatch(word) is None for word in rest - unsure):
        return False
    known = [text for text in values if text not in (OTHERS, NONE)]
    ends = sum(_END.fullmatch(text) is not None for text in known)
    sure = len(rest) < len(words) or {"timed", "out"} <= words
    return sure or (bool(unsure) and ends >= max(0.5 * len(known), 1))


def restates_latency(values: Ints, marked: Flags) -> bool:
    """Return whether some requests are those above a limit, as a flag of slow requests marks them.

    Latencies of a cause overlap with the others; where it has a least latency of its own, there are
    many above it and few below. A limit cuts through a crowd.
    """
    order = np.argsort(values, kind="stable")
    ordered, flagged = values[order], marked[order]
    # Misplaced requests for a limit below each position: flagged ones before it, others after it.
    before = np.concatenate(([0], np.cumsum(flagged)))
    misplaced = before + (~flagged).sum() - (np.arange(before.size) - before)
    at = int(np.argmin(misplaced))
    if not 0 < at < values.size or misplaced[at] > RULES.max_astray_share * flagged.sum():
        return False
    limit = float(ordered[at])
    first, last = np.searchsorted(ordered, (limit / RULES.beside, limit * RULES.beside))
    below, above = flagged[first:at], flagged[at:last]
    wrong = int(below.sum()) + int((~above).sum())
    crowd = (
        below.size >= RULES.min_beside
        and RULES.min_beside <= above.size <= RULES.max_crowd * below.size
    )
    return crowd and wrong <= RULES.max_misplaced_share * (below.size + above.size)


def attributes_of(
    samples: Samples, values: Ints, by: Sequence[str] | None, notes: list[str]
) -> list[Attribute]:
    """Return the columns of samples, all or those of `by`; what is left out is noted."""
    names = list(samples.columns)
    own = [name for name in ("tag", "connection") if getattr(samples, name) is not None]
    if by is not None:
        by = [_meant(name, (*names, *own)) for name in by]
        unknown = [name for name in by if name not in (*names, *own)]
        if unknown:
            raise InvalidArgumentError(
                f"no column {unknown[0]!r}; the columns are {', '.join([*names, *own]) or 'none'}"
            )
        names = list(dict.fromkeys(by))
    else:
        names += [name for name in own if not _is_copy(samples, name)]
    attributes = []
    phases = _phases(samples, values) if by is None else set()
    for name in names:
        if name in phases:
            notes.append(_PART.format(name))
            continue
        cells: Any = getattr(samples, name) if name in own else samples.columns.cells(name)
        if name == "tag":
            kinds, codes = np.unique(cells, return_inverse=True)
            cells = Words(codes.reshape(-1).astype(np.int32), kinds.astype(object))
        text = None
        if isinstance(cells, Words):
            attribute, text = _of_words(name, cells)
        elif cells.dtype.kind in "iuf":
            attribute, text = _of_numbers(name, cells, values, name == "connection", by is not None)
        else:
            attribute, text = None, f"column {name!r} contains times and is left out"
        if text:
            notes.append(text)
        if attribute is not None and len(attribute.values) > 1:
            attributes.append(attribute)
    return attributes


_SYNONYMS = {
    "endpoint": (
        "path", "uri", "url", "route", "request.uri", "RequestPath", "label", "name", "request",
        "operation",
    ),
    "host": ("hostname", "server", "backend", "upstream", "node", "instance", "Hostname", "client"),
}  # fmt: skip
"""Columns that tools have in place of those that people ask for, the best first."""


def _meant(name: str, columns: Sequence[str]) -> str:
    """The column of a name, which may be written in another case, or be the tool's own word."""
    alike = {column.lower(): column for column in columns}
    others = (other for other in _SYNONYMS.get(name.lower(), ()) if other in columns)
    return name if name in columns else alike.get(name.lower()) or next(others, name)


def _is_copy(samples: Samples, name: str) -> bool:
    """Whether a tag or connection is also among the further columns, under its own name."""
    own = getattr(samples, name)[:2000].astype(str)
    for other in samples.columns:
        cells = samples.columns.cells(other)
        if isinstance(cells, Words):
            few = np.append(cells.names, "")[cells.codes[:2000]].astype(str)
        else:
            few = cells[:2000].astype(str)
        first, second = (
            np.unique(array, return_inverse=True)[1].reshape(-1) for array in (own, few)
        )
        pairs = np.unique(first * (second.max() + 1) + second).size if first.size else 0
        if pairs == first.max() + 1 == second.max() + 1:
            return True
    return False


def _of_words(name: str, cells: Words) -> tuple[Attribute | None, str | None]:
    names, codes = cells.names, cells.codes
    texts: list[str] = names.tolist()
    if len(texts) > 1 and sum(_PATH.match(text) is not None for text in texts[:1000]) >= 0.5 * min(
        len(texts), 1000
    ):
        grouped = [_ID.sub("{id}", _QUERY.sub("", text)) for text in texts]
        place = {text: k for k, text in enumerate(dict.fromkeys(grouped))}
        table = np.array([*(place[text] for text in grouped), -1], np.int32)
        codes, texts = np.asarray(table[codes], np.int32), list(place)
    if (codes < 0).any():
        codes = np.where(codes < 0, np.int32(len(texts)), codes)
        texts = [*texts, NONE]
    counts = np.bincount(codes, minlength=len(texts))
    if int((counts > 0).sum()) > 0.5 * codes.size and codes.size > 20:
        return None, f"column {name!r} identifies requests (nearly every value is unique)"
    return _folded(name, codes, texts, counts), None


def _of_numbers(
    name: str, cells: NDArray[Any], values: Ints, identity: bool, chosen: bool
) -> tuple[Attribute | None, str | None]:
    import pandas as pd

    some = slice(None, None, max(1, cells.size // 20_000))
    known = np.isfinite(cells) if cells.dtype.kind == "f" else np.ones(cells.size, np.bool_)
    sample, took = cells[some][known[some]].astype(np.float64), values[some][known[some]]
    few = np.unique(sample)
    if not identity and sample.size > 20 and sample.size >= 0.9 * cells[some].size:
        if (np.diff(sample) >= 0).all() and few.size > 0.9 * sample.size:
            return None, f"column {name!r} only counts upwards and is left out"
        if not chosen and _is_part(sample, took.astype(np.float64)):
            return None, _PART.format(name)
    if identity or few.size <= RULES.max_distinct:
        codes, distinct = pd.factorize(cells, use_na_sentinel=True)
        if identity or distinct.size <= RULES.max_distinct:
            texts = [_number(number) for number in distinct.tolist()]
            if (codes < 0).any():
                codes = np.where(codes < 0, len(texts), codes)
                texts = [*texts, NONE]
            counts = np.bincount(codes, minlength=len(texts))
            return _folded(name, codes.astype(np.int32), texts, counts), None
    if not sample.size:
        return None, None
    edges = np.unique(np.quantile(sample, RULES.cuts, method="higher"))
    edges = edges[edges > sample.min()]
    if not edges.size:
        return None, None
    cuts: NDArray[np.int32] = np.searchsorted(edges, cells, "right").astype(np.int32)
    shown = [_number(edge) for edge in edges.tolist()]
    texts = [f"< {shown[0]}"]
    texts += [f"{low} – {high}" for low, high in pairwise(shown)]
    texts.append(f"≥ {shown[-1]}")
    if not known.all():
        cuts[~known] = len(texts)
        texts.append(NONE)
    return Attribute(name, cuts, texts, len(texts), folded=False, ranges=True), None


_PART = "column {!r} is a part of the latency and is left out; ask for it by name"


def _phases(samples: Samples, values: Ints) -> set[str]:
    """Columns that add up to the latency, in some unit."""
    took, columns = values.astype(np.float64), {}
    for name in samples.columns:
        cells: Any = samples.columns.cells(name)
        if not isinstance(cells, Words) and cells.dtype.kind == "f" and (cells >= 0).all():
            columns[name] = cells
    for unit in (1.0, 1e-3, 1e-6, 1e-9):
        parts = {
            name: cells
            for name, cells in columns.items()
            if bool((cells <= took * unit * 1.01 + 2e3 * unit).mean() > 0.99)
        }
        total = sum(parts.values(), np.zeros(took.size))
        if len(parts) > 1 and 0.8 < float(total.sum()) / (unit * float(took.sum())) < 1.2:
            return set(parts)
    return set()


def _is_part(cells: Floats, took: Floats) -> bool:
    """Whether numbers are the latency or a part of it: never more, in some unit, and in step."""
    if not np.ptp(cells) > 0 or not np.ptp(took) > 0 or np.corrcoef(cells, took)[0, 1] < 0.8:
        return False
    return any(
        bool((cells <= took * unit * 1.001 + step).mean() > 0.99)
        and float(cells.sum()) > 0.2 * unit * float(took.sum())
        for unit, step in ((1.0, 1.0), (1e-3, 1.0), (1e-6, 1.0), (1e-9, 0.002))
    )


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _folded(name: str, codes: NDArray[np.int32], texts: list[str], counts: Ints) -> Attribute:
    """Values with too few requests to be evidence, or too many values, as others."""
    frequent = counts >= RULES.min_requests
    looks = int(frequent.sum())
    if looks > RULES.max_values:
        frequent &= counts >= np.sort(counts)[-RULES.max_values]
    used = np.flatnonzero(frequent)
    rest = bool((counts[~frequent] > 0).any())
    table = np.full(len(texts), used.size, np.int32)
    table[used] = np.arange(used.size)
    values = [texts[k] for k in used.tolist()] + ([OTHERS] if rest else [])
    return Attribute(
        name, table[codes], values, max(looks, 1), folded=rest, outcome=_is_outcome(name, values)
    )
