"""How cost and memory grow with samples, from 10⁶ to 10⁹: a process each, as Markdown."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_END = (
    "import resource, json, sys\n"
    "u = resource.getrusage(resource.RUSAGE_SELF)\n"
    "print(json.dumps([u.ru_utime + u.ru_stime, u.ru_maxrss * (1 if sys.platform == 'darwin' else "
    "1024) / 1e6]))"
)
SERIES = (
    "from latencykit.core.histogram_log import interval_series\n"
    "s = interval_series(log, [50, 99]); print(s.values.sum())\n"
)
"""A series of percentiles through the API, for the jobs of the benchmark."""
_MADE = (
    "import numpy as np, sys\nsize = int(sys.argv[2])\n"
    "part = np.random.default_rng(1).lognormal(12.5, 0.6, 1_000_000).astype(np.int64)\n"
    "file = np.lib.format.open_memmap(sys.argv[1], 'w+', np.int64, (size,))\n"
    "for at in range(0, size, part.size): file[at : at + part.size] = part[: size - at]\n"
)
_SAMPLES = "import numpy as np, latencykit as lk, sys\nlk.Histogram.of(np.load(sys.argv[1], mmap_mode='r')).percentile(99.9)\n"


def cost(code: str, argument: str) -> tuple[float, float]:
    """Return processor seconds and peak MB of a whole process."""
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, "-c", code + _END, argument],
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    cpu, peak = json.loads(done.stdout)
    return float(cpu), float(peak)


def samples(folder: Path, sizes: tuple[int, ...]) -> list[tuple[int, float, float]]:
    """Return (samples, CPU s, peak MB) of mapped files of N samples of 8 bytes, as far as the disk has room for them."""
    found = []
    for size in sizes:
        if shutil.disk_usage(folder).free < 12 * size:
            break
        path = folder / f"samples-{size}.npy"
        subprocess.run([sys.executable, "-c", _MADE, str(path), str(size)], check=True)
        found.append((size, *cost(_SAMPLES, str(path))))
        path.unlink()
    return found


def table(what: str, unit: str, rows: list[tuple[int, float, float]]) -> str:
    """Return the rows as Markdown; the last column is 1 where cost grows as the size does, start-up left out."""
    scale = 1e9 if unit == "ns" else 1e6
    lines = [
        f"| {what} | CPU s | {unit} each | peak MB | growth exponent |",
        "|--:|--:|--:|--:|--:|",
    ]
    before: tuple[int, float] | None = None
    # what a process takes anyway
    idle = rows[0][1] - rows[0][0] * (rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0])
    for size, cpu, peak in rows:
        net = max(cpu - idle, 1e-9)
        growth = (
            ""
            if before is None
            else f"{math.log(net / before[1]) / math.log(size / before[0]):.2f}"
        )
        lines.append(f"| {size:,} | {cpu:.2f} | {net / size * scale:.1f} | {peak:.0f} | {growth} |")
        before = (size, net)
    return "\n".join(lines)
