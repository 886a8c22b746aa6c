"""redis-benchmark: two lists of cumulative counts, the clip at 3 s, old versions, quiet lines, CSV."""

from __future__ import annotations

import json
from pathlib import Path

from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source
from latencykit.views.series import series_record

DATA = Path(__file__).parents[1] / "data" / "formats"


def test_the_clip_becomes_at_least_three_seconds():
    found = read_source(Source(DATA / "redis-benchmark/clipped/stdout.txt"), ReadOptions())["GET"]
    assert (found.count, found.censored, found.censored_at, found.requests) == (
        359_996,
        4,
        3e9,
        360_000,
    )
    assert (found.percentile(99.9), found.max) == (575_000, 3_000_319_000)
    assert any("4 requests took 3 s or more" in note for note in found.run.notes)
    record = series_record("GET", found)
    assert (record["count"], record["max"]) == (360_000, 3_000_319_000)
    assert json.dumps(record["percentiles"][-1]["high"]) == "null"
