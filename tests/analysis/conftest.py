"""Every result that a test asks for keeps the laws of its kind, whatever else the test is about."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import latencykit as lk
from latencykit.views.compare import comparison_record
from latencykit.views.diagnosis import diagnosis_record, diagnosis_text
from latencykit.views.explanation import explanation_record
from latencykit.views.slo import check_record
from tests import laws

MIRROR = {"worse": "better", "better": "worse"}
ORDER = {"missed": 0, "unknown": 1, "met": 2}


def mirrored(ask: Any, found: lk.Comparison, base: Any, new: Any, **given: Any) -> None:
    """What is worse one way is better the other, by the inverse factor."""
    laws.record(comparison_record(found))
    for one in found.changes:  # "no" is an answer about an interval
        assert one.interval_text or one.significance in ("yes", "not judged"), one
    other = ask(new, base, **given)
    assert other.verdict == MIRROR.get(found.verdict, found.verdict)
    for one, back in zip(found.changes, other.changes, strict=True):
        assert one.significant == back.significant, one
        if np.isfinite([one.change, back.change]).all():
            assert (1 + one.change) * (1 + back.change) == pytest.approx(1, rel=1e-6), one


def loosened(ask: Any, found: Any, slo: lk.SLO, data: Any, **given: Any) -> None:
    """A limit that is less strict is met at least as well."""
    laws.record(check_record({"": found}, passed=found.passed))
    timed = [row for row in found if row.statistic != "failed"]
    if timed and getattr(data, "unit", "none") != "none":
        text = ",".join(f"{row.statistic}={2 * row.limit!r}{data.unit}" for row in timed)
        for one, wide in zip(timed, ask(lk.SLO.parse(text), data, **given), strict=True):
            assert ORDER[wide.outcome] >= ORDER[one.outcome], (one, wide)
            assert wide.sure or not (one.sure and one.outcome == "met"), (one, wide)


def worded(ask: Any, found: lk.Diagnosis, data: Any, **given: Any) -> None:
    """A diagnosis in another unit is the same one, and reads well."""
    record = diagnosis_record("", found)
    laws.record(record)
    laws.output([], diagnosis_text([record], "table"))
    if isinstance(data, lk.HistogramLog | lk.Histogram) and data.unit == "ns":
        other = ask(data.to_unit("us"), **given)
        assert other.verdict == found.verdict


def explained(ask: Any, found: lk.Explanation, data: Any, **given: Any) -> None:
    laws.record(explanation_record("", found))


@pytest.fixture(autouse=True)
def contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check each result of these operations as it is returned."""
    operations = ((lk, "compare", mirrored), (lk, "diagnose", worded), (lk, "explain", explained))
    for place, name, law in (*operations, (lk.SLO, "check", loosened)):
        ask = getattr(place, name)

        def asked(*words: Any, ask: Any = ask, law: Any = law, **given: Any) -> Any:
            found = ask(*words, **given)
            law(ask, found, *words, **given)
            return found

        monkeypatch.setattr(place, name, functools.wraps(ask)(asked))
