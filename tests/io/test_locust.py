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


def test_the_console(read_text):
    h = read_text("$ locust\n" + TEXT + "\x1b[0m")["Aggregated"]
    assert (h.count, h.run.failed, h.percentile(95), h.max, h.mean) == (769, 3, 7e6, 42e6, 5e6)
    text = TEXT.replace(" Aggregated  ", "GET /x      ")
    assert list(read_text(text)) == ["GET /x"]
