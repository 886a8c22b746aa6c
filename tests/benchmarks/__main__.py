"""The whole benchmark: ours, the peers that are installed, and the physical floor, side by side in one run, as Markdown.

``python -m tests.benchmarks`` takes some minutes; ``--quick`` shows in one what comes out, on sizes too small to quote;
``--only logs,raw,scaling,commands`` picks sections; ``--folder DIR`` keeps the corpora for the next time.

Processor seconds are user and system time; logs and commands are whole processes, with the start of Python. All are
medians of runs that take turns, so that a slow moment of the machine hits all alike. Quote ratios, not seconds.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from tests.benchmarks import hlog_speed, samples_speed, scaling
from tests.benchmarks.targets import Found, table_of_targets

SECTIONS = ("logs", "raw", "scaling", "commands")
SLOW = {("b", "PyPI, sum and series"), ("e", "PyPI, sum and series")}  # minutes


def machine() -> str:
    """Return what this runs on, in one line."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        names = [
            line.partition(":")[2]
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ]
        processor = names[0].strip() if names else processor
    load = f", load {os.getloadavg()[0]:.1f} when it began" if hasattr(os, "getloadavg") else ""
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}{load}"


def packages() -> str:
    """Return the versions of what takes part."""
    names = (
        "numpy",
        "isal",
        "pybase64",
        "hdrhistogram",
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
        "datasketches",
        "fastdigest",
        "ddsketch",
    )
    found = []
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def logs(folder: Path, names: list[str], repeats: int, found: Found) -> None:
    """Print one table a corpus."""
    for name in names:
        subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.corpora", str(folder), name],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        path = folder / f"{name}.hlog"
        intervals = sum(1 for line in path.open("rb") if line[:1] not in b'#"')
        jobs = [job for job in hlog_speed.jobs() if (name, job) not in SLOW]
        taken: dict[str, list[tuple[float, float]]] = {job: [] for job in jobs}
        for _ in range(1 if name == "b" else repeats):
            for job in jobs:
                taken[job].append(hlog_speed.measure(job, path))
        cpu = {job: statistics.median(one for one, _ in runs) for job, runs in taken.items()}
        peak = {job: max(one for _, one in runs) for job, runs in taken.items()}
        print(f"\n### Log {name}: {intervals:,} intervals, {path.stat().st_size / 1e6:.0f} MB\n")
        print("| whole process | CPU s | × ours, same work | peak MB |\n|---|--:|--:|--:|")
        for job in jobs:
            ours = cpu["ours, sum" if job.endswith("sum") else "ours, sum and series"]
            print(
                f"| {job} | {cpu[job]:.2f} | {cpu[job] / ours:.2f} | {peak[job]:.0f} |", flush=True
            )
            found[name, job] = cpu[job]
        found[name, "peak"], found[name, "intervals"] = (
            max(peak["ours, sum"], peak["ours, sum and series"]),
            float(intervals),
        )
        if name != "b":
            warm = hlog_speed.warm(path)
            for who, seconds in warm.items():
                print(
                    f"| {who} | {seconds:.2f} | {seconds / warm['ours, in process, warm']:.2f} | |"
                )
                found[name, who] = seconds


def raw(folder: Path, size: int, repeats: int, found: Found) -> None:
    """Print the table of raw samples."""
    measured = samples_speed.measure(samples_speed.made(folder, size), size, repeats)
    print(f"\n### Raw samples\n\n{samples_speed.table(measured)}", flush=True)
    ours, whole = measured[samples_speed.OURS], measured["ours: Histogram.of, int64"]
    found["raw", "floor"], found["raw", "numpy"] = (
        ours.cpu / measured[samples_speed.SUM].cpu,
        measured[samples_speed.NUMPY].cpu / ours.cpu,
    )
    found["raw", "floor of int64"] = whole.cpu / measured[samples_speed.SUM].cpu
    found["raw", "extra"] = max(ours.extra, whole.extra)


def growth(folder: Path, log_sizes: tuple[int, ...], sample_sizes: tuple[int, ...]) -> None:
    """Print how cost grows."""
    print("\n### Growth\n")
    print(
        scaling.table("busy intervals", "µs", scaling.logs(folder, log_sizes)),
        end="\n\n",
        flush=True,
    )
    print(scaling.table("samples", "ns", scaling.samples(folder, sample_sizes)), flush=True)


def commands(folder: Path, repeats: int, found: Found) -> None:
    """Print what small commands take."""
    sample = Path(__file__).parents[2] / "data/ctrlz-uncorrected.hlog"
    figure = "from matplotlib.figure import Figure; from matplotlib.backends.backend_agg import FigureCanvasAgg"
    own = [sys.executable, "-m", "latencykit", "-q"]
    jobs = {
        "python alone": [sys.executable, "-c", ""],
        "importing numpy": [
            sys.executable,
            "-c",
            "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import numpy",
        ],
        "latencykit --help": [*own, "--help"],
        "latencykit summary of a small log": [*own, "summary", str(sample)],
        "importing Figure and Agg": [sys.executable, "-c", figure],
        "latencykit chart of a small log": [
            *own,
            "chart",
            str(sample),
            "-o",
            str(folder / "chart.png"),
        ],
    }
    print("\n### Commands\n\n| whole process | CPU s | wall ms |\n|---|--:|--:|")
    taken: dict[str, list[tuple[float, float]]] = {job: [] for job in jobs}
    for _ in range(repeats + 2):
        for job, command in jobs.items():
            began = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            taken[job].append(
                (usage.ru_utime + usage.ru_stime, 1000 * (time.perf_counter() - began))
            )
    for job, runs in taken.items():
        cpu, wall = (statistics.median(column) for column in zip(*runs, strict=True))
        found["command", job], found["CPU of command", job] = wall, cpu
        print(f"| {job} | {cpu:.2f} | {wall:.0f} |", flush=True)


@click.command()
@click.option("--quick", is_flag=True, help="A minute's worth, too small to quote.")
@click.option("--only", default=",".join(SECTIONS), show_default=True, help="Sections.")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Keeps the corpora here."
)
@click.option("--repeats", default=3, show_default=True, help="Runs of each; their median counts.")
def main(*, quick: bool, only: str, folder: Path | None, repeats: int) -> None:
    """Measure and print everything."""
    chosen, repeats = only.split(","), 1 if quick else repeats
    # What is installed comes with its byte code; without it every process would compile the sources anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", str(Path(__file__).parents[2] / "latencykit")],
        check=True,
    )
    found: Found = {}
    with tempfile.TemporaryDirectory() as made:
        place = folder or Path(made)
        place.mkdir(parents=True, exist_ok=True)
        today = dt.datetime.now(dt.UTC).date()
        print(f"Measured on {today}: {machine()}.\n\n{packages()}.", flush=True)
        if "logs" in chosen:
            logs(place, ["a-300", "e-3000"] if quick else ["a", "d", "e", "b"], repeats, found)
        if "scaling" in chosen:
            most = 2 if quick else 4
            growth(place, (100, 1_000, 10_000, 100_000)[:most], (10**6, 10**7, 10**8, 10**9)[:most])
        if "raw" in chosen:
            raw(place, 2_000_000 if quick else 20_000_000, repeats, found)
        if "commands" in chosen:
            commands(place, repeats, found)
    if not quick:
        print(f"\n### Targets\n\n{table_of_targets(found)}")


if __name__ == "__main__":
    main()
