"""Which percentiles a run supports: every output of every sample gives one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import latencykit as lk
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_percentiles import highest_pinned_down
from latencykit.plot.series import as_series
from latencykit.views.page_series import page_series
from latencykit.views.summary import series_record
from tests.io.test_contract import cases

if TYPE_CHECKING:
    from pathlib import Path

    from tests.io.test_contract import Case

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]


@cases()
def test_every_output_supports_the_same_percentiles(case: Case, tmp_path: Path) -> None:
    for name, data in as_series(case.read()).items():
        if isinstance(data, lk.Summary) or not len(data.evidence().whole.counts):
            continue
        record = series_record(name, data)
        plain = [row["percentile"] for row in record["percentiles"] if row["supported"]]
        limit = data.evidence().solid_up_to()[0]
        total = data if isinstance(data, lk.Histogram) else data.histogram()
        assert record["supported_up_to"] == pytest.approx(limit)
        highest = record["highest_supported_percentile"]
        assert total.highest_supported_percentile() == highest
        assert highest == highest_pinned_down(total, limit)

        (shown, *_) = page_series({name: data})
        rows = shown.numbers["percentiles"]
        assert [row["percentile"] for row in rows if row["supported"]] == plain

        # An .hgrm needs such buckets, and has no line for requests of which only a bound is known.
        if total.censored or not isinstance(total.buckets, HdrBuckets):
            continue
        path = tmp_path / "total.hgrm"
        path.unlink(missing_ok=True)
        lk.write(data, path)
        again = series_record(name, lk.read(path))
        assert again["supported_up_to"] == pytest.approx(limit, rel=1e-5)
