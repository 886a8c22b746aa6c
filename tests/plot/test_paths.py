"""A path in place of data: charts, the page and the explorer read the file."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit.plot.series import as_series, read_paths
from tests.conftest import RAW, TAGGED, needs_package


def test_a_path_is_read_wherever_data_is_taken():
    log = lk.read(RAW)
    assert read_paths(str(RAW)) == read_paths(RAW) == log
    assert as_series({"before": RAW, "after": log}) == {"before": log, "after": log}
    assert list(as_series({"a": RAW, "b": TAGGED})) == ["a", "b:get", "b:set"]
    ax = lk.plot.percentiles(str(RAW), ax=Figure().add_subplot())
    assert ax.get_lines()


def test_a_page_names_the_file_that_it_read(tmp_path):
    page = lk.report(RAW, tmp_path / "page.html").read_text(encoding="utf-8")
    assert RAW.name in page
    copy = tmp_path / "x.html"
    copy.write_bytes(RAW.read_bytes())
    with pytest.raises(lk.LatencyKitError, match="input"):
        lk.report(copy, copy)


@needs_package("anywidget", "lab")
def test_the_explorer_reads_a_file():
    explorer = lk.explore(str(RAW))
    explorer.selection = (1.0, 5.0)
    assert explorer.selected == lk.read(RAW).between(1.0, 5.0)
