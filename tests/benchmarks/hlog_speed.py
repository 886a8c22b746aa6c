"""Read a log, sum it, and take per-interval percentiles: ours, the PyPI reader, and the floor of base64 and inflate.

``python -m tests.benchmarks.hlog_speed [DIR] [a d e b]`` makes the corpora in DIR (a temporary one by default) and
prints processor seconds of whole processes (medians of paired runs), ratios, and peak memory, as Markdown.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = {
    "ours, sum": "import latencykit as lk, sys; h = lk.read(sys.argv[1]).histogram(); print(h.count, h.max)",
    "ours, sum and series": (
        "import latencykit as lk, sys; log = lk.read(sys.argv[1]); t, s = log.totals_fold(), log.series_fold([50, 99]);"
        "log.scan(t, s); h = log.histogram_of(t);"
        "print(h.count, h.percentile([50, 90, 99, 99.9, 99.99, 99.9999]).sum(), s.values.sum())"
    ),
    "PyPI, sum": (
        "import sys; from hdrh.histogram import HdrHistogram; from hdrh.log import HistogramLogReader\n"
        "t = HdrHistogram(1, 3600000000000, 3); r = HistogramLogReader(sys.argv[1], t)\n"
        "while r.add_next_interval_histogram(t) is not None: pass\n"
        "print(t.get_total_count(), t.get_max_value())"
    ),
    "PyPI, sum and series": (
        "import sys; from hdrh.histogram import HdrHistogram; from hdrh.log import HistogramLogReader\n"
        "t = HdrHistogram(1, 3600000000000, 3); r = HistogramLogReader(sys.argv[1], t); s = 0\n"
        "while True:\n"
        "    h = r.get_next_interval_histogram()\n"
        "    if h is None: break\n"
        "    s += h.get_value_at_percentile(50) + h.get_value_at_percentile(99) + h.get_max_value(); t.add(h)\n"
        "print(t.get_total_count(), s)"
    ),
    "floor: base64 and inflate": (
        "import sys, zlib, binascii; n = 0\n"
        "for line in open(sys.argv[1], 'rb', 1 << 17):\n"
        "    if line[0] not in b'#\"': n += len(zlib.decompress(binascii.a2b_base64(line[line.rindex(b',') + 1:])[8:]))\n"
        "print(n)"
    ),
    "floor: pybase64 and isal": (
        "import sys; from isal import isal_zlib as zlib; from pybase64 import b64decode; n = 0\n"
        "for line in open(sys.argv[1], 'rb', 1 << 17):\n"
        "    if line[0] not in b'#\"': n += len(zlib.decompress(b64decode(line[line.rindex(b',') + 1:].rstrip())[8:]))\n"
        "print(n)"
    ),
    "bare array operations, sum": Path(__file__).with_name("bare.py").read_text(),
}
JAVA = "Java, sum and series"
PAIRS = (
    ("ours, sum", "PyPI, sum", "as fast as the PyPI reader, sum only"),
    (
        "ours, sum and series",
        "PyPI, sum and series",
        "as fast as the PyPI reader, with the same series",
    ),
    ("ours, sum and series", "floor: base64 and inflate", "of the floor (less is better)"),
    (
        "ours, sum",
        "bare array operations, sum",
        "of the same steps without any check (less is better)",
    ),
)


@functools.cache
def java() -> list[str] | None:
    """Return the command of the reference, where a JDK is installed and Maven has fetched its jar; else None."""
    jars = sorted(
        Path.home().glob(".m2/repository/org/hdrhistogram/HdrHistogram/*/HdrHistogram-*.jar")
    )
    jars = [Path(os.environ["HDRHISTOGRAM_JAR"])] if "HDRHISTOGRAM_JAR" in os.environ else jars
    if not jars or shutil.which("javac") is None:
        return None
    out = tempfile.mkdtemp(prefix="latencykit-java-")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    source = str(Path(__file__).with_name("LogSpeed.java"))
    subprocess.run(
        ["javac", "-cp", str(jars[-1]), "-d", out, source], check=True, capture_output=True
    )
    return ["java", "-cp", f"{jars[-1]}{os.pathsep}{out}", "LogSpeed"]


def jobs() -> list[str]:
    """Return the jobs that can be measured here."""
    return [*JOBS, JAVA] if java() else list(JOBS)


def warm(path: Path) -> dict[str, float]:
    """Return processor seconds of the last of several passes in one process: ours and, if it is here, the reference."""
    ours = JOBS["ours, sum and series"].partition("log = ")
    passes = f"began = time.process_time(); log = {ours[2]}; print(time.process_time() - began)"
    code = f"{ours[0]}import time\nfor _ in range(4):\n    {passes}"
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    commands = {"ours, in process, warm": [sys.executable, "-c", code, str(path)]}
    if java():
        commands["Java, in process, warm"] = [*(java() or []), str(path), "8"]
    texts = {
        who: subprocess.run(one, capture_output=True, text=True, check=True, env=env).stdout
        for who, one in commands.items()
    }
    return {who: float(text.splitlines()[-1].split()[0]) for who, text in texts.items()}


def measure(job: str, path: Path) -> tuple[float, float]:
    """Return processor seconds and peak memory (MB) of a whole process."""
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    command = (
        [*(java() or []), str(path), "1"]
        if job == JAVA
        else [sys.executable, "-c", JOBS[job], str(path)]
    )
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{job} failed on {path}")
    process.returncode = 0
    scale = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale / 1e6


def compare(name: str, path: Path, repeats: int) -> None:
    """Print the table of one corpus; the jobs take turns, so that a slow moment hits all."""
    taken: dict[str, list[tuple[float, float]]] = {job: [] for job in JOBS}
    for _ in range(repeats):
        for job in JOBS:
            if name == "b" and job == "PyPI, sum and series":
                continue  # minutes
            taken[job].append(measure(job, path))
    median = {job: statistics.median(cpu for cpu, _ in runs) for job, runs in taken.items() if runs}
    print(
        f"\n### corpus {name} ({path.stat().st_size / 1e6:.1f} MB)\n\n| job | CPU s | peak MB |\n|---|--:|--:|"
    )
    for job, runs in taken.items():
        if runs:
            print(f"| {job} | {median[job]:.2f} | {max(peak for _, peak in runs):.0f} |")
    for ours, theirs, words in PAIRS:
        if theirs in median:
            ratio = (
                median[ours] / median[theirs] if "less" in words else median[theirs] / median[ours]
            )
            print(f"\n{ratio:.2f} × {words}")


def main() -> None:
    """Run."""
    arguments = sys.argv[1:]
    folder = (
        Path(arguments.pop(0)) if arguments and len(arguments[0]) > 1 else Path(tempfile.mkdtemp())
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments or ["a", "d", "e"]:
        path = folder / f"{name}.hlog"
        # In a process of its own: a child's peak memory begins with that of the process it was forked from.
        subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.corpora", str(folder), name],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        compare(name, path, 1 if name == "b" else 3)


if __name__ == "__main__":
    main()
