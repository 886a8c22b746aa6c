"""One run, however it is kept: verdicts never contradict, poorer forms are never surer, all outputs support one percentile.

For every sample file that there is: requests, the log, the histogram and the percentiles made of them.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import pytest

import latencykit as lk
from latencykit.plot.series import as_series
from tests.benchmarks.truth_answers import printed
from tests.io.test_contract import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.io.test_contract import Case

pytestmark = pytest.mark.slow


def forms(data: Any) -> Iterator[tuple[str, Any]]:
    """The same run, from the richest form on."""
    yield "as read", data
    if isinstance(data, lk.Samples) and data.start is not None and data.elapsed >= 4:
        yield "log", data.to_log("1s")
    if isinstance(data, lk.Samples | lk.HistogramLog):
        yield "histogram", data.histogram()
    if isinstance(data, lk.Samples) and data.good.sum() >= 100:
        yield "percentiles", printed(data)


def series(case: Case) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The forms of each series that has any requests, the few largest of a file."""
    read = as_series(case.read())
    counts = {name: data.count or 0 for name, data in read.items()}
    for name in sorted(counts, key=lambda name: -counts[name])[:4]:
        if counts[name] and not isinstance(read[name], lk.Summary):
            yield name, list(forms(read[name]))


def check(name: str, kept: list[tuple[str, Any]]) -> None:
    whole = kept[0][1] if isinstance(kept[0][1], lk.Histogram) else kept[0][1].histogram()
    if not whole.count:
        return
    unit = "" if whole.unit == "none" else whole.unit
    middle = {f"p{p:g}": float(whole.percentile(p)) for p in (50.0, 99.0)}
    limits = [
        limit
        for factor in (0.5, 0.97, 1.03, 2.0)
        for one, value in middle.items()
        if 0 < value < math.inf
        for limit in lk.SLO.parse(f"{one}={factor * value!r}{unit}").limits
    ]
    slo = lk.SLO(limits)  # all at once: a check asks anew what was omitted
    for rows in zip(*(slo.check(data) for _, data in kept), strict=True):
        said = [(row.outcome, row.sure) for row in rows]
        where = (name, rows[0].statistic, rows[0].limit, said)
        assert len({outcome for outcome, _ in said} - {"unknown"}) <= 1, where
        assert all(rich or not poor for (_, rich), (_, poor) in itertools.pairwise(said)), where


def load(name: str, kept: list[tuple[str, Any]]) -> None:
    """A run of a load curve meets its limits where `check` says so."""
    for form, data in kept:
        middle = float(data.histogram().percentile(99.0) if form != "percentiles" else 0.0)
        unit = "" if data.unit == "none" else data.unit
        for factor in (0.5, 2.0) if 0 < middle < float("inf") else ():
            slo = lk.SLO.parse(f"p99={factor * middle!r}{unit}")
            curve = lk.load_curve({"100": data}, slo)
            if not curve.rows[0].saturated:
                (row,) = slo.check(data)
                assert curve.verdict("100")[0] == row.outcome, (name, form, factor)


def diagnose(name: str, kept: list[tuple[str, Any]]) -> None:
    verdicts = {form: lk.diagnose(data).verdict for form, data in kept}
    assert not {"omits", "clean"} <= set(verdicts.values()), (name, verdicts)
    assert not {"omits", "no stall"} <= set(verdicts.values()), (name, verdicts)


def compare(name: str, kept: list[tuple[str, Any]]) -> None:
    """No form of a run differs from itself."""
    for form, data in kept:
        itself = lk.compare(data, data).verdict
        assert itself in ("same", "inconclusive"), (name, form, itself)


@cases()
def test_every_form_of_a_run_gives_one_answer(case: Case) -> None:
    for name, kept in series(case):
        for question in (check, load, diagnose, compare):
            question(name, kept)
