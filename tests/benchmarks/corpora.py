"""Interval logs to measure with, made by a seeded generator and our own writer.

* a: an hour of a busy server: 3,600 intervals of 10,000 values, six modes and hiccups, about 3,900
buckets each
* b: a day of the same: 86,400 intervals, about 300 MB
* d: 300 dense intervals of 2 million values, most counts of two bytes
* e: a day of an idle server: 86,400 intervals of some tens of values
* t: four seconds of 16,000 tags that take turns, some tens of values each

``python -m tests.benchmarks.corpora DIR [a b d e t]`` writes them, ``a-100`` 100 intervals of
one, ``t-100000`` as many tags, ``requests-1000000`` as many requests as tables.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from latencykit.core.buckets import HdrBuckets
from latencykit.hdr.write import encode
from latencykit.io.hlog import HlogWriter

Maker = Any


def _busy(rng: np.random.Generator) -> np.ndarray:
    modes = rng.choice(
        [180e3, 240e3, 410e3, 900e3, 2.4e6, 11e6], 10_000, p=[0.36, 0.33, 0.2, 0.07, 0.03, 0.01]
    )
    values = modes * rng.lognormal(0, 0.45, modes.size)
    late = rng.random(modes.size) < 0.002
    return np.where(late, values + rng.exponential(40e6, modes.size), values)


def _dense(rng: np.random.Generator) -> np.ndarray:
    return np.exp(rng.uniform(np.log(2e3), np.log(5e8), 2_000_000))


def _idle(rng: np.random.Generator) -> np.ndarray:
    return 50e3 + rng.exponential(9e3, int(rng.integers(8, 24)))


CORPORA: dict[str, tuple[Maker, int]] = {
    "a": (_busy, 3_600),
    "b": (_busy, 86_400),
    "d": (_dense, 300),
    "e": (_idle, 86_400),
    "t": (_idle, 16_000),
}
_SECONDS = 4  # of every tag


def make(name: str, folder: Path, intervals: int | None = None) -> Path:
    """Write one corpus, unless it is there; a day of busy intervals repeats ten minutes of different ones.

    With `intervals`, that number instead of the corpus's own.
    """
    maker, size = CORPORA[name]
    size = intervals or size
    path = folder / (f"{name}.hlog" if intervals is None else f"{name}-{size}.hlog")
    if path.exists():
        return path
    rng, layout = np.random.default_rng(20_260_101), HdrBuckets(3)
    distinct = min(size, 600 if maker is _busy else 30 if maker is _dense else size)
    tags, lines = (size, size * _SECONDS) if name == "t" else (0, size)
    held = []
    for _ in range(distinct):
        counts = np.bincount(layout.index_of(maker(rng)))
        index = np.flatnonzero(counts)
        held.append((index, counts[index]))
    with path.with_suffix(".part").open("wb") as stream:
        writer = HlogWriter(stream, 1_700_000_000.0, "ns", ["made for measuring"])
        writer.header()
        payloads: dict[int, bytes] = {}
        for number in range(lines):
            key = number % distinct
            # compressing takes longest, so intervals that come again are copied
            if key not in payloads:
                payloads[key] = encode(layout, *held[key], highest=3_600_000_000_000)
            second, tag = divmod(number, tags) if tags else (number, None)
            front = "" if tag is None else f"Tag=/item/{tag},"
            stream.write(f"{front}{second}.000,1.000,1.000,".encode() + payloads[key] + b"\n")
    path.with_suffix(".part").replace(path)
    return path


TABLES = {
    "one column": ["duration_ms"],
    "with starts": ["start", "duration_ms"],
    "with tags": ["start", "duration_ms", "tag"],
}


def table_paths(folder: Path, rows: int) -> dict[str, Path]:
    """Name → file of requests as tables of one to three columns, in three formats."""
    return {
        f"{name}, {suffix}": folder / f"{name.replace(' ', '-')}-{rows}.{suffix}"
        for suffix in ("csv", "parquet", "jsonl")
        for name in TABLES
    }


def make_tables(folder: Path, rows: int) -> None:
    """Write these files."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    paths = table_paths(folder, rows)
    rng = np.random.default_rng(20_260_102)
    start = np.sort(rng.uniform(0, 3600, rows)).round(6)
    took = np.round(5 * rng.lognormal(0, 1, rows), 3)
    tags = rng.choice(["/cart", "/home", "/item", "/pay", "/search"], rows)
    whole = pa.table({"start": start, "duration_ms": took, "tag": tags})
    for name, columns in TABLES.items():
        table = whole.select(columns)
        csv.write_csv(table, paths[f"{name}, csv"])
        parquet.write_table(table, paths[f"{name}, parquet"])
        with paths[f"{name}, jsonl"].open("wb") as stream:
            for batch in table.to_batches(1 << 17):
                frame = batch.to_pandas()
                stream.write(frame.to_json(orient="records", lines=True).encode())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or ["a", "d", "e"]:
        kind, _, wanted = name.partition("-")
        if kind == "requests":
            make_tables(target, int(wanted))
        else:
            print(make(kind, target, int(wanted) if wanted else None))
