"""A path in place of data: charts, the page and the explorer read the file."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit.plot.series import as_series, read_paths
from tests.conftest import DATA, needs_package

CTRLZ = DATA / "hlog/hdrhistogram-java-ctrlz-a/uncorrected.hlog"
TAGGED = DATA / "hlog/hdrhistogram-java-tags-basetime/log.hlog"


def test_a_path_is_read_wherever_data_is_taken():
    log = lk.read(CTRLZ)
    assert read_paths(str(CTRLZ)) == read_paths(CTRLZ) == log
    assert as_series({"before": CTRLZ, "after": log}) == {"before": log, "after": log}
    assert list(as_series({"a": CTRLZ, "b": TAGGED})) == ["a", "b:get", "b:set"]
    ax = lk.plot.percentiles(str(CTRLZ), ax=Figure().add_subplot())
    assert ax.get_lines()


def test_a_page_names_the_file_that_it_read(tmp_path):
    page = lk.report(CTRLZ, tmp_path / "page.html").read_text(encoding="utf-8")
    assert CTRLZ.name in page
    copy = tmp_path / "x.html"
    copy.write_bytes(CTRLZ.read_bytes())
    with pytest.raises(lk.LatencyKitError, match="input"):
        lk.report(copy, copy)


@needs_package("anywidget", "lab")
def test_the_explorer_reads_a_file():
    explorer = lk.explore(str(CTRLZ))
    explorer.selection = (1.0, 5.0)
    assert explorer.selected == lk.read(CTRLZ).between(1.0, 5.0)
