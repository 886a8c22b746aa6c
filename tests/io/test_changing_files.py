"""Logs that are cut, removed or added to after their scan: one clear line, or what they were."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError

HLOG = Path(__file__).parents[2] / "data/jhiccup-v2.hlog"


def vanish(path: Path) -> None:
    os.truncate(path, 0)


def disappear(path: Path) -> None:
    path.unlink()


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def log(request, tmp_path, monkeypatch):
    """A log that keeps nothing in memory, and where it lies."""
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    monkeypatch.setattr("latencykit.io.hlog.CHUNK", 1)
    path = tmp_path / "growing.hlog"
    filler = b"#" + bytes(range(65, 91)) * 4 + b"\n"  # a small file is in memory
    text = HLOG.read_bytes() + filler * 1000
    path.write_bytes(gzip.compress(text) if request.param else text)
    return lk.read(path, unit="ns"), path


@pytest.mark.parametrize("change", [vanish, disappear])
def test_a_log_that_is_gone_between_its_scan_and_its_decoding(change, log):
    read, path = log
    change(path)
    with pytest.raises(CorruptInputError) as caught:
        read.histogram()
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_log_that_grows_is_what_it_was(log):
    read, path = log
    count = lk.read(path, unit="ns").histogram().count
    more = b"Tag=new,1,2,3,HISTF" * 1000
    with path.open("ab") as end:
        end.write(gzip.compress(more) if path.read_bytes()[:1] == b"\x1f" else more)
    assert read.histogram().count == count
