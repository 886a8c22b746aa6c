"""Files that are cut, replaced or added to while they are read: one clear line, never half of one and half of another."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import latencykit as lk
from latencykit.errors import CorruptInputError
from latencykit.io.files import FileRange, source_of
from latencykit.io.rows import line_chunks
from latencykit.io.source import FileWatch, Source, Watched

HLOG = Path(__file__).parents[2] / "data/jhiccup-v2.hlog"
AT_REST = "expected a file at rest; read a copy, or read it when its writer is done"


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def vanish(path: Path) -> None:
    os.truncate(path, 0)


def rotate(path: Path) -> None:
    path.rename(f"{path}.1")
    shutil.copy(f"{path}.1", path)


def disappear(path: Path) -> None:
    path.unlink()


CHANGES = {
    shrink: "the file shrank from",
    vanish: "the file shrank from",
    rotate: "another file took its place while it was read",
    disappear: "cannot be read: No such file or directory",
}


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


@pytest.mark.parametrize("change", CHANGES)
def test_a_log_that_changes_between_its_scan_and_its_decoding(change, log):
    read, path = log
    change(path)
    with pytest.raises(CorruptInputError, match=CHANGES[change]) as caught:
        read.histogram()
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_log_that_grows_is_what_it_was(log):
    read, path = log
    count = lk.read(path, unit="ns").histogram().count
    more = b"Tag=new,1,2,3,HISTF" * 1000
    with path.open("ab") as end:
        end.write(gzip.compress(more) if path.read_bytes()[:1] == b"\x1f" else more)
    assert read.histogram().count == count


def test_a_file_that_only_got_another_number_is_the_same(log):
    read, path = log
    count = lk.read(path, unit="ns").histogram().count
    path.rename(f"{path}.1")
    shutil.copy2(f"{path}.1", path)
    assert read.histogram().count == count


def changing(monkeypatch, change, path, after=1):
    """Let the file change after N looks at it."""
    left = [after]
    readinto = Watched.readinto

    def changed(self, buffer):
        size = readinto(self, buffer)
        left[0] -= 1
        if left[0] == 0:
            change(path)
        return size

    monkeypatch.setattr(Watched, "readinto", changed)


def test_a_log_that_is_cut_while_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr("latencykit.io.hlog.KEEP", 0)
    path = tmp_path / "long.hlog"
    path.write_bytes(HLOG.read_bytes() * 20)
    read = lk.read(path, unit="ns")
    changing(monkeypatch, vanish, path)
    with pytest.raises(
        CorruptInputError, match=f"the file shrank from .* to 0 bytes while it was read; {AT_REST}"
    ):
        read.histogram()


def rows(path, number=400_000):
    path.write_text(
        "start_s,latency_ms\n" + "".join(f"{k / 100},{k % 97 + 1}.5\n" for k in range(number))
    )


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 3])
def test_a_table_that_is_cut_between_two_pieces_of_it(after, tmp_path, monkeypatch, run):
    path = tmp_path / "a.csv"
    rows(path)
    changing(monkeypatch, shrink, path, after)
    status, out, err = run("-q", "summary", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"latencykit: {path}: the file shrank from ")
    assert err.endswith(f"{AT_REST}\n")


def test_every_look_tells(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1\n" * 1_000_000)
    source = Source(path)
    chunks = line_chunks(source, 4096)
    assert next(chunks)[0] == 1
    shrink(path)
    with pytest.raises(CorruptInputError, match="shrank"):
        list(chunks)
    with pytest.raises(CorruptInputError, match="shrank"):
        source.bytes()


ARRAYS = {
    "rows": lambda n: np.arange(1, n + 1, dtype=">i4"),
    "columns": lambda n: np.stack([np.arange(n), np.arange(1, n + 1)], 1).astype(float),
    "columns first": lambda n: np.asfortranarray(np.stack([np.arange(n), np.arange(1, n + 1)], 1)),
    "records": lambda n: pd.DataFrame(
        {"at_s": np.arange(n), "latency_us": np.arange(1, n + 1)}
    ).to_records(index=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_a_stored_array_is_read_where_it_lies_and_a_cut_one_ends_nothing(
    make, tmp_path, monkeypatch
):
    path = tmp_path / "a.npy"
    array = make(50_000)
    np.save(path, array)
    options = {"column": None if array.dtype.names or array.ndim == 1 else "2", "unit": "us"}
    monkeypatch.setattr("latencykit.io.raw.binary._PIECE", 1 << 12)
    read = lk.read(path, **options)
    assert read.duration.tolist() == (np.arange(1, 50_001) * 1000).tolist()
    changing(monkeypatch, shrink, path, after=2)
    # mapped into memory, this would be the end of the process
    with pytest.raises(CorruptInputError, match="shrank"):
        lk.read(path, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "feather", "npz"])
def test_other_tables_that_are_cut_while_they_are_read(kind, tmp_path, monkeypatch):
    path = tmp_path / f"a.{kind}"
    frame = pd.DataFrame(
        {"start_s": np.arange(100_000) / 10, "latency_ms": np.random.default_rng(1).random(100_000)}
    )
    if kind == "npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    else:
        getattr(frame, f"to_{kind}")(path)
    assert len(lk.read(path)) == 100_000
    changing(monkeypatch, shrink, path, after=2)
    with pytest.raises(CorruptInputError) as caught:
        lk.read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_ranges_of_a_log_that_was_cut(tmp_path):
    path = tmp_path / "a.hlog"
    shutil.copy(HLOG, path)
    size = path.stat().st_size
    place = FileRange(str(path), size // 2, size, 100)
    assert source_of(place).size > 100
    for cut in (shrink, vanish):
        cut(path)
        with pytest.raises(CorruptInputError, match="less is there now; expected a file at rest"):
            source_of(place)


def test_what_is_not_a_regular_file_is_not_watched(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with (tmp_path / "pipe").open("wb") as writer:
        writer.write(b"a\n")
        writer.flush()
        watch = FileWatch()
        assert [watch.look(reader), watch.look(reader)] == [None, None]
    os.close(reader)
