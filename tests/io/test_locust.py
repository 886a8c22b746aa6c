"""Locust: its tables as CSV, JSON and text."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError
from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "locust/console/stderr.txt").read_text()


def test_failures_beside_it(tmp_path):
    shutil.copy(DATA / "locust-csv/throughput/out_stats.csv", tmp_path)
    (tmp_path / "out_failures.csv").write_text(
        "Method,Name,Error,Occurrences,First Seen,Last Seen\nGET,/var,HTTPError('503'),3,a,b\n"
    )
    run = read_source(Source(tmp_path / "out_stats.csv"), ReadOptions())["Aggregated"].run
    assert "3 requests failed: GET /var HTTPError('503')" in run.notes
    with pytest.raises(CorruptInputError, match=r"without latencies; expected NAME_stats\.csv"):
        read_source(Source(tmp_path / "out_failures.csv"), ReadOptions())
