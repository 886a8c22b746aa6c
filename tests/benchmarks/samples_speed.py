"""Percentiles of raw samples: ours, the libraries that people use, the sketches, and the floor of one sum over the array.

``python -m tests.benchmarks --only raw`` prints processor nanoseconds a sample, memory on
top of the array, and how far p99.9 is off, as Markdown. Every job runs in a process of its own; the
jobs take turns, so that a slow moment hits all.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.processes import answered, python
from tests.benchmarks.tables import show

PERCENTILES = [50, 75, 90, 95, 99, 99.9, 99.99]
SUM, OURS, NUMPY = "floor: x.sum()", "ours: Histogram.of, float64", "numpy: percentile"
_QUANTILES = [p / 100 for p in PERCENTILES]
_HARNESS = """
import json, resource, sys, time
import numpy as np
x = np.load(sys.argv[1])[: int(sys.argv[2])]
ps, qs = {ps}, {qs}
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
{setup}
{warm}
before, began = peak(), time.process_time()
{job}
took = time.process_time() - began
print(json.dumps([took / len(x) * 1e9, peak() - before, float(p999)]))
"""


_LOAD = "import latencykit as lk"
_COUNT = "p999 = lk.Histogram.of(x).percentile(ps)[5]"
_WARM = "lk.Histogram.of(x[:100]).percentile(ps)"
_ARROW = "import pyarrow as pa, pyarrow.compute as pc; a = pa.array(x)"


@dataclass(frozen=True)
class Peer:
    """One way to percentiles: statements before, and those that are measured; `most` samples, for the slow ones."""

    setup: str
    job: str
    most: int = 1 << 40
    warm: str = ""  # what loads modules that are loaded when they are first used


PEERS = {
    SUM: Peer("", "x.sum(); p999 = float('nan')"),
    OURS: Peer(_LOAD, _COUNT, warm=_WARM),
    "ours: Histogram.of, int64": Peer(f"{_LOAD}; x = x.astype(np.int64)", _COUNT, warm=_WARM),
    "ours: from a mapped .npy": Peer(f"{_LOAD}; x = np.load(sys.argv[1], mmap_mode='r')[: len(x)]", _COUNT, warm=_WARM),
    NUMPY: Peer("", "p999 = np.percentile(x, ps)[5]"),
    "pandas: quantile": Peer("import pandas as pd; s = pd.Series(x)", "p999 = s.quantile(qs).iloc[5]"),
    "polars: quantile, 7 times": Peer("import polars as pl; s = pl.Series(x)", "p999 = [s.quantile(q) for q in qs][5]"),
    "pyarrow: quantile": Peer(_ARROW, "p999 = pc.quantile(a, qs)[5].as_py()"),
    "pyarrow: tdigest": Peer(_ARROW, "p999 = pc.tdigest(a, qs)[5].as_py()"),
    "duckdb: quantile_cont": Peer(
        "import duckdb, pyarrow as pa; t = pa.table({'v': x})",
        "p999 = duckdb.sql(f'SELECT quantile_cont(v, {qs}) FROM t').fetchall()[0][0][5]",
    ),
    "duckdb: approx_quantile": Peer(
        "import duckdb, pyarrow as pa; t = pa.table({'v': x})",
        "p999 = duckdb.sql(f'SELECT approx_quantile(v, {qs}) FROM t').fetchall()[0][0][5]",
    ),
    "datasketches: KLL": Peer(
        "from datasketches import kll_doubles_sketch as S",
        "s = S(200); s.update(x); p999 = s.get_quantiles(qs)[5]"
    ),
    "datasketches: t-digest": Peer(
        "from datasketches import tdigest_double as S",
        "s = S(100); s.update(x); p999 = s.get_quantile(qs[5])"
    ),
    "fastdigest: t-digest": Peer(
        "from fastdigest import TDigest", "p999 = TDigest.from_values(x).quantile(qs[5])", 1_000_000
    ),
    "ddsketch": Peer(
        "from ddsketch import DDSketch; x = x.tolist()",
        "s = DDSketch(0.001)\nfor v in x: s.add(v)\np999 = s.get_quantile_value(qs[5])",
        200_000,
    ),
    "PyPI hdrhistogram: record_value": Peer(
        "from hdrh.histogram import HdrHistogram; x = x.astype(int).tolist()",
        "h = HdrHistogram(1, 10**12, 3)\nfor v in x: h.record_value(v)\np999 = "
        "h.get_value_at_percentile(99.9)",
        200_000,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """What a peer took: ns of processor time per sample, MB on top of the array, and how far p99.9 is off, as a share."""

    cpu: float
    extra: float
    error: float
    samples: int


def make(folder: Path, size: int) -> Path:
    """Write latencies of a server with a fast and a slow mode and a long tail, in nanoseconds."""
    import numpy as np

    path = folder / f"samples-{size}.npy"
    if not path.exists():
        rng = np.random.default_rng(20_260_102)
        file = np.lib.format.open_memmap(path, "w+", np.float64, (size,))
        for at in range(0, size, 1_000_000):
            part = rng.lognormal(12.5, 0.6, min(1_000_000, size - at))
            file[at : at + 1_000_000] = np.where(rng.random(part.size) < 0.01, part * 40, part)
        file.flush()
    return path


def measure(path: Path, size: int, repeats: int) -> dict[str, Measured]:
    """Return medians of every peer that is installed; numpy comes last, for a child's peak begins with ours."""
    taken: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(repeats):
        for name, peer in PEERS.items():
            code = _HARNESS.format(
                ps=PERCENTILES, qs=_QUANTILES, setup=peer.setup, warm=peer.warm, job=peer.job
            )
            command = [sys.executable, "-c", code, str(path), str(min(size, peer.most))]
            env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
            done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
            if done.returncode == 0:  # the last line: DuckDB draws a progress bar first
                taken.setdefault(name, []).append(tuple(json.loads(done.stdout.splitlines()[-1])))
            elif "ModuleNotFoundError" not in done.stderr:
                raise SystemExit(f"{name} failed:\n{done.stderr}")
    import numpy as np

    x = np.load(path, mmap_mode="r")
    exact = {
        n: float(np.percentile(x[:n], 99.9, method="inverted_cdf"))
        for n in {min(size, peer.most) for peer in PEERS.values()}
    }
    found = {}
    for name, runs in taken.items():
        cpu, extra, value = (statistics.median(column) for column in zip(*runs, strict=True))
        samples = min(size, PEERS[name].most)
        found[name] = Measured(cpu, extra, value / exact[samples] - 1, samples)
    return found


def table(found: dict[str, Measured]) -> None:
    """Print the measurements, each beside ours and the floor."""
    ours, floor, rows = found[OURS].cpu, found[SUM].cpu, []
    for name, one in found.items():
        off = "" if math.isnan(one.error) else f"{100 * one.error:+.2f} %"
        ratios = f"{one.cpu:.2f}", f"{one.cpu / floor:.1f}", f"{one.cpu / ours:.2f}"
        rows.append([name, f"{one.samples:,}", *ratios, f"{one.extra:.0f}", off])
    header = ["samples", "CPU ns a sample", "× the floor", "× ours", "MB on top", "p99.9 is off by"]
    show("Raw samples", ["percentiles of raw samples", *header], rows)


def made(folder: Path, size: int) -> Path:
    """Do as `make` does, in a process of its own."""
    code = f"from pathlib import Path; from tests.benchmarks.samples_speed import make; print(make(Path({str(folder)!r}), {size}))"
    return Path(answered(python(code)).strip())
