"""One fact, one answer: summary, chart, page, check, compare, diagnose and explain of forty files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import latencykit as lk
from latencykit.analysis.slo import SLO
from latencykit.plot.series import as_series, doubts_from
from latencykit.views.page_series import page_series
from latencykit.views.summary import series_record
from tests.io.test_contract import CASES

if TYPE_CHECKING:
    from tests.io.test_contract import Case

FILES = 40
ASKED = (50.0, 90.0, 99.0, 99.9)


def chosen() -> list[Case]:
    """Forty cases whose evidence has times or many requests: each format once, evenly spread."""
    first: dict[str, Case] = {}
    for case in CASES:
        first.setdefault(case.folder.parent.name, case)
    every = list(first.values())
    return [every[k] for k in np.linspace(0, len(every) - 1, 3 * FILES).astype(int)]


def series_of(case: Case) -> list[tuple[str, Any]]:
    read = as_series(case.read())
    return [
        (name, data)
        for name, data in list(read.items())[:2]
        if not isinstance(data, lk.Summary) and len(data.evidence().whole.counts)
    ]


def agrees(name: str, data: Any) -> None:
    record = series_record(name, data, ASKED)
    rows = {row["percentile"]: row for row in record["percentiles"]}
    counted = data if isinstance(data, lk.Histogram) else data.histogram()
    few = data.evidence().whole.sample_limit()
    drawn = doubts_from({name: data}, {name: counted})[name]
    (shown,) = page_series({name: data})
    paged = {row["percentile"]: row for row in shown.numbers["percentiles"]}
    table = data.percentiles(ASKED)
    for p, row in rows.items():
        dashed = any(one.first < p <= one.last for one in drawn) or p > few
        censored = row["bucket_high"] is None
        assert row["supported"] == (not dashed and not censored), (name, p, row, drawn)
        assert bool(table["supported"][p]) == row["supported"], (name, p)
        if p in paged:
            assert (paged[p]["supported"], paged[p]["cause"]) == (row["supported"], row["cause"])
        unit = "" if counted.unit == "none" else counted.unit
        if record["failed"] or record["timeouts"] or counted.run.dropped or counted.run.unfinished:
            continue  # of which check counts failures, too
        (limit,) = SLO.parse(f"p{p:g}={2 * float(table['value'][p]) + 1!r}{unit}").check(data)
        if limit.outcome != "unknown" and row["low"] is not None and row["high"] is not None:
            assert limit.low <= row["low"] * (1 + 1e-9), (name, p)
            assert limit.high >= row["high"] * (1 - 1e-9), (name, p)
        if limit.sure and limit.outcome == "met":
            assert row["cause"] != "few requests", (name, p, limit)
    if any(row["cause"] == "drift" for row in rows.values()):
        assert any(text.startswith("the run is not steady") for text in record["findings"])
    itself = lk.compare(data, data)
    assert itself.verdict in ("same", "inconclusive"), name
    assert not itself.failed(["p50 > +1%", "p50 < -1%"]) if "p50" in itself.table.index else True
    if isinstance(data, lk.Samples) and data.start is not None and data.good.sum() > 100:
        explains(record, data)
    if any(row["cause"] == "one stall" for row in rows.values()) and data.unit == "ns":
        assert lk.diagnose(data).verdict != "no stall", name


def explains(record: Any, data: lk.Samples) -> None:
    """Explain says of drift what summary says."""
    steady = [text for text in record["findings"] if text.startswith("the run is not steady")]
    try:
        found = lk.explain(data).findings
    except lk.LatencyKitError:
        return
    said = [text for text in found if text.startswith("the run is not steady")]
    assert [text.partition(" (latencykit")[0] for text in steady] == said
    assert math.isfinite(record["supported_up_to"])


def test_forty_files_have_one_answer_each() -> None:
    asked = 0
    for case in chosen():
        if asked >= FILES:
            break
        found = series_of(case)
        for name, data in found:
            agrees(f"{case.folder.parent.name}: {name}", data)
        asked += bool(found)
    assert asked == FILES
