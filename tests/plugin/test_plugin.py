"""A third party's format: it passes the contract, and is found by its entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

import latencykit as lk
from latencykit.io import registry
from latencykit.testing import FormatContract
from tests.plugin.acme import FORMAT

SAMPLE = Path(__file__).with_name("run.acme")


class TestAcme(FormatContract):
    format = FORMAT
    samples = (SAMPLE,)


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Pretend that a package with these entry points is installed."""

    def install(*values: str) -> None:
        folder = tmp_path / "acme-1.0.dist-info"
        folder.mkdir()
        points = "".join(f"p{k} = {value}\n" for k, value in enumerate(values))
        (folder / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\n{points}")
        monkeypatch.syspath_prepend(tmp_path)
        registry.plugin_formats.cache_clear()

    yield install
    registry.plugin_formats.cache_clear()


def test_an_installed_format_is_read_and_listed(installed):
    installed("tests.plugin.acme:FORMAT")
    data = lk.read(SAMPLE)
    assert (data.count if isinstance(data, lk.Histogram) else data.histogram().count) == 3
    assert data.run.format == "acme"
    assert lk.read(SAMPLE, format="acme").run.tool == "acme"
    assert "acme" in lk.formats().index


def test_a_plug_in_that_cannot_be_imported_is_one_warning(installed):
    installed("tests.plugin.missing:FORMAT")
    with pytest.warns(UserWarning, match="'p0' cannot be imported: ModuleNotFoundError"):
        assert registry.plugin_formats() == ()
