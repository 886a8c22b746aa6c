"""What a file of a few hundred kilobytes may take, measured on processes of their own."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import struct
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.benchmarks.hostile import MEBIBYTES, measure, siblings, unsafe

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Commands


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the bounds are those of Linux"),
]
SECONDS = 10.0  # 5 s of a quiet machine
SMALL = 1 << 20


def xz_of_a_long_memory(path: Path) -> None:
    """An xz stream whose header claims a dictionary of 4 GiB - 1."""
    data = bytearray(lzma.compress(b"latency_ms\n" + b"1.5\n" * 10_000_000, preset=1))
    end = 12 + (data[12] + 1) * 4
    data[data.index(b"\x21\x01", 12, end) + 2] = 40
    data[end - 4 : end] = struct.pack("<I", zlib.crc32(bytes(data[12 : end - 4])))
    path.write_bytes(data)


def zstd_of_repeated_rows(path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path.write_bytes(zstandard.compress(b"latency_ms\n" + b"1\n" * 40_000_000, 1))


def zstd_message_that_claims_much(path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    good = zstandard.compress(b'{"resourceSpans":[]}')
    begin = struct.pack(">I", len(good)) + good
    path.write_bytes(begin + struct.pack(">I", 4_000_000_000) + random.Random(1).randbytes(200_000))


def list_in_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(b"[" + b"1," * 40_000_000))


def one_wide_row(path: Path) -> None:
    head, row = "timeStamp,elapsed,label,responseCode,success\n", "1700000000000,12,a,200,true\n"
    if path.name == "hey.csv":
        head = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
        row = "0.0042,0.0001,0.0000,0.0000,0.0040,0.0001,200,0.0001\n"
    path.write_text(head + row * 5 + "3," * 100_000 + "4\n" + row * 4_000)


def objects_of_unlike_keys(path: Path) -> None:
    rows = [{"latency_ms": k} | {f"k{k}_{j}": 1 for j in range(30)} for k in range(2_000)]
    path.write_text("\n".join(map(json.dumps, rows)))


def one_object_of_many_keys(path: Path) -> None:
    wide = {f"k{j}": 1 for j in range(12_000)}
    rows = [{"latency_ms": k} | (wide if k == 2_000 else {}) for k in range(4_000)]
    path.write_text("\n".join(map(json.dumps, rows)))


def many_lists(path: Path) -> None:
    lists = {f"k{j}": [1] * 20 for j in range(8_000)}
    path.write_text(json.dumps(lists | {"latency_ms": [1] * 20}))


def many_documents(path: Path) -> None:
    rows = [{"latency_ms": k, "endpoint": "x", "s": "y"} for k in range(3)]
    path.write_text("\n".join([json.dumps(rows, indent=1)] * 5_000))


def table_of_long_words(path: Path) -> None:
    """A table with a column that repeats one long word, which nobody asks for."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    body = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), ["x" * 100_000])
    table = pa.table({"latency_ms": np.arange(20_000) % 100 + 1.0, "body": body})
    if path.suffix == ".parquet":  # without its schema a reader gets the long words, not the codes
        parquet.write_table(table, path, store_schema=False)
    else:
        feather.write_feather(table, path, compression="zstd")


def table_of_many_columns(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    cells = [1.0, 2.0, 3.0]
    names = ["latency_ms", *(f"c{k}" for k in range(3_000))]
    write_table(pa.table(dict.fromkeys(names, cells)), path, compression="none")


def rows_that_are_claimed(path: Path) -> None:
    """A hundred million equal rows, which a dictionary keeps in a few kilobytes."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(pa.table({"latency_ms": np.ones(30_000_000)}), path)


FILES = {
    "dictionary.csv.xz": xz_of_a_long_memory,
    "rows.csv.zst": zstd_of_repeated_rows,
    "message.bin": zstd_message_that_claims_much,
    "list.json.gz": list_in_gzip,
    "wide.jtl": one_wide_row,
    "hey.csv": one_wide_row,
    "keys.jsonl": objects_of_unlike_keys,
    "key.jsonl": one_object_of_many_keys,
    "lists.json": many_lists,
    "documents.json": many_documents,
    "unused.parquet": table_of_long_words,
    "unused.feather": table_of_long_words,
    "columns.parquet": table_of_many_columns,
    "claimed.parquet": rows_that_are_claimed,
}


def test_a_limit_is_raised_by_its_name(run: Commands, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"latency_ms\n" + b"1\n" * 2_000_000))
    assert "--limit unpacked=SIZE" in run.refused("summary", path, "--limit", "unpacked=3MiB")
    assert run("summary", path, "--limit", "unpacked=5MiB")[0] == 0


def test_no_small_file_takes_much_or_reaches_the_terminal(tmp_path: Path) -> None:
    """Of those above, and of siblings of files that once hung, exhausted memory, crashed or wrote to the terminal.

    A command that takes a minute is ended, and has no status; times of siblings are the benchmark's.
    """
    (tmp_path / "pages").mkdir()
    pages = [tmp_path / "pages" / name for name in FILES]
    for path in pages:
        FILES[path.name](path)
        assert path.stat().st_size <= SMALL
    for path, command, status, seconds, mebibytes, text in measure([*siblings(tmp_path), *pages]):
        assert status in (0, 2), (path.name, command, status, text)
        assert mebibytes <= MEBIBYTES + 60 * (path in pages), (path.name, command)
        assert seconds < SECONDS or path not in pages, (path.name, command)
        assert not unsafe(text), (path.name, command)
        line = (text.splitlines() or [""])[-1]
        assert status == 0 or (line.startswith("latencykit: ") and len(line) < 1_000), (path, line)


def test_no_mutant_of_a_real_output_falls() -> None:
    """One of each of 60; ``python -m tests.benchmarks.hostile --mutants 500`` is the whole run."""
    command = [sys.executable, "-m", "tests.benchmarks.hostile", "--mutants", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "60 mutants, 0 fell\n"
