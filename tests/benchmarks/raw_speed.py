"""How fast raw samples are counted: ``python -m tests.benchmarks.raw_speed`` prints our reader beside others' in one run.

Each run is a process of its own; medians of three of time, the largest of resident memory, both
without Python and its imports (Linux). ``pyarrow`` and ``pandas`` only parse the file; we count
every latency into a histogram as well.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROWS = 4_000_000
_OURS = """import pandas, latencykit.io.registry
from latencykit.io.reading import read
@run
def job(): read(path, counted=True).histogram().percentile(99)"""
_JOBS = {
    "csv: pyarrow.csv.read_csv": "import pyarrow.csv as m\n@run\ndef job(): m.read_csv(path)",
    "csv: pyarrow.csv.open_csv": "import pyarrow.csv as m\n@run\ndef job():\n    for _ in "
    "m.open_csv(path): pass",
    "csv: pandas.read_csv": "import pandas as m\n@run\ndef job(): m.read_csv(path)",
    "csv: latencykit": _OURS,
    "jsonl: pyarrow.json.read_json": "import pyarrow.json as m\n@run\ndef job(): m.read_json(path)",
    "jsonl: latencykit": _OURS,
}
_FRAME = """
import json, re, sys, time
path = sys.argv[1]
def resident():
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
def run(job):
    begin, before = (time.perf_counter(), time.process_time()), resident()
    job()
    print(json.dumps([time.perf_counter() - begin[0], time.process_time() - begin[1], before, resident()]))
"""


def write_inputs(folder: Path, rows: int) -> dict[str, Path]:
    """Write a table of five columns as CSV and as JSON lines."""
    import pandas as pd

    dice = np.random.default_rng(0)
    paths = {kind: folder / f"samples.{kind}" for kind in ("csv", "jsonl")}
    for at in range(0, rows, 500_000):
        size = min(500_000, rows - at)
        start = 1_795_219_788_779_885_974 + (at + np.arange(size)) * 100_000
        frame = pd.DataFrame({
            "start_ns": start, "latency_ns": dice.lognormal(14, 0.5, size).astype(np.int64),
            "intended_ns": start - 5000,
            "conn": dice.integers(0, 8, size),
            "status": np.where(dice.random(size) < 1e-4, 503, 200),
        })  # fmt: skip
        frame.to_csv(paths["csv"], index=False, header=at == 0, mode="a")
        if at < rows // 4:
            frame.to_json(paths["jsonl"], orient="records", lines=True, mode="a")
    return paths


def measure(code: str, path: Path) -> tuple[float, float, float]:
    """Seconds of wall clock, seconds of CPU, and MiB of resident memory on top of the imports."""
    done = subprocess.run(
        [sys.executable, "-c", _FRAME + code, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    wall, cpu, before, after = json.loads(done.stdout)
    return wall, cpu, after - before


def main() -> None:
    """Print one line a reader; they take turns, so that a busy moment meets all of them."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        paths = write_inputs(Path(folder), rows)
        sizes = {kind: path.stat().st_size / 1e6 for kind, path in paths.items()}
        print(
            f"{rows:,} rows: {sizes['csv']:,.0f} MB of CSV; a quarter of them: "
            f"{sizes['jsonl']:,.0f} MB of JSON"
        )
        rounds = [
            {name: measure(code, paths[name.partition(":")[0]]) for name, code in _JOBS.items()}
            for _ in range(3)
        ]
        for name in _JOBS:
            wall, cpu = (statistics.median(one[name][k] for one in rounds) for k in (0, 1))
            memory, speed = (
                max(one[name][2] for one in rounds),
                sizes[name.partition(":")[0]] / wall,
            )
            print(
                f"{name:32} {wall:7.2f} s {cpu:7.2f} s of CPU {speed:7.0f} MB/s {memory:7.0f} MiB"
            )


if __name__ == "__main__":
    main()
