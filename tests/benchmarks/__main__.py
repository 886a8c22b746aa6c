"""The benchmark: ours and its peers side by side in one run, as ratios, printed as Markdown.

``python -m tests.benchmarks`` takes about half an hour; ``--quick`` shows in a minute or two what
comes out, on sizes too small to quote; ``--only logs,commands,start`` picks sections; ``--folder
DIR`` keeps corpora and built peers.

Processor seconds are user and system time of whole processes, with the start of the interpreter.
Quote ratios, not seconds.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from tests.benchmarks import peers, samples_speed
from tests.benchmarks.corpora import table_paths
from tests.benchmarks.processes import Cost, answered, measure, python
from tests.benchmarks.tables import show

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "data" / "ctrlz-uncorrected.hlog"
OWN = [sys.executable, "-m", "latencykit", "-q"]
READ = "import sys, latencykit as lk; log = lk.read(sys.argv[1])\n"
SERIES_CODE = (
    "from latencykit.core.histogram_log import interval_series\n"
    "s = interval_series(log, [50, 99]); print(s.values.sum())\n"
)
TOTAL = "h = log.histogram(); print(h.count, h.percentile([50, 90, 99, 99.9, 99.99, 99.9999]))\n"
PYPI = """
import sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
total = HdrHistogram(1, 3600000000000, 3)
reader = HistogramLogReader(sys.argv[1], total)
"""
INFLATE = """
import sys
from isal.isal_zlib import decompress
from pybase64 import b64decode
size = 0
for line in open(sys.argv[1], "rb", 1 << 17):
    if line[0] not in b'#"':
        size += len(decompress(b64decode(line[line.rindex(b",") + 1 :].rstrip())[8:]))
"""
SUM, SERIES = "latencykit, sum", "latencykit, sum and series"
FLOOR = "pybase64 and isal"
API = {
    SUM: READ + TOTAL,
    SERIES: READ + SERIES_CODE + TOTAL,
    "PyPI hdrhistogram, sum": PYPI
    + "while reader.add_next_interval_histogram(total) is not None: pass\n",
    FLOOR: INFLATE,
    "the same after import numpy": "import numpy" + INFLATE,
}
COMMANDS = {
    "summary": "summary {log}",
    "summary --interval 1s --format json": "summary {log} --interval 1s --percentiles 50,99 --format json",
    "diagnose": "diagnose {log}",
    "check": "check {log} --unit ns --slo 99.9=1s",
    "chart": "chart {log} -o {folder}/out.png",
    "chart --kind dashboard": "chart {log} --kind dashboard -o {folder}/out.png",
    "report": "report {log} -o {folder}/out.html",
    "convert to hgrm": "convert {log} {folder}/out.hgrm",
}


def machine() -> str:
    """Return the machine and the packages that take part."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    names = []
    for name in ("numpy", "isal", "pybase64", "hdrhistogram", "pandas", "pyarrow", "polars"):
        with contextlib.suppress(PackageNotFoundError):
            names.append(f"{name} {version(name)}")
    about = f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, {load}"
    return f"{about}\n\n{answered([*OWN, '--version']).strip()}; {', '.join(names)}"


def own(words: str, path: object, folder: Path) -> list[str]:
    """Return the command line of these words about a log."""
    return [*OWN, *(word.format(log=path, folder=folder) for word in words.split())]


def made_elsewhere(folder: Path, name: str) -> None:
    """Make a corpus in a process of its own: a child's peak memory begins with its parent's."""
    answered([sys.executable, "-m", "tests.benchmarks.corpora", str(folder), name])


def corpus(folder: Path, name: str) -> Path:
    """Make a log, and read it once, so that the first job does not wait for the disk."""
    made_elsewhere(folder, name)
    path = folder / f"{name}.hlog"
    with path.open("rb") as stream:
        while stream.read(1 << 20):
            pass
    return path


def compare(title: str, costs: dict[str, Cost], base: str) -> None:
    """Print a table; ratios are to the processor time of `base`."""
    least = costs[base].cpu
    rows = (
        [name, f"{cpu:.2f}", f"{cpu / least:.2f}", f"{wall:.2f}", f"{peak:.0f}"]
        for name, (cpu, wall, peak) in costs.items()
    )
    show(title, ["process", "CPU s", f"× {base}", "wall s", "peak MB"], rows)


def logs(folder: Path, names: list[str], rounds: int) -> None:
    """Reading a log: ours with and without the kernel, the peers, and base64 and inflate alone."""
    others, missing = peers.build(folder / "peers")
    for line in missing:
        print(f"\nnot here: {line}")
    for name in names:
        path = corpus(folder, name)
        jobs = {job: python(code, path) for job, code in API.items()}
        bare = "import os; os.environ['LATENCYKIT_KERNEL'] = 'no'\n"
        jobs["latencykit without kernel, sum and series"] = python(bare + API[SERIES], path)
        jobs |= {peer: [*command, str(path)] for peer, command in others.items()}
        costs = measure(jobs, 1 if name == "b" else rounds)
        compare(f"Log {name}, {path.stat().st_size / 1e6:.0f} MB", costs, SERIES)


def commands(folder: Path, names: list[str], rounds: int) -> None:
    """Whole commands beside the same job through the API."""
    for name in names:
        path = corpus(folder, name)
        jobs = {SERIES: python(API[SERIES], path)}
        jobs |= {job: own(words, path, folder) for job, words in COMMANDS.items()}
        costs = measure(jobs, 1 if name == "b" else rounds)
        compare(f"Commands on {name}", costs, SERIES)


def many_tags(folder: Path, names: list[str]) -> None:
    """Commands on logs of very many tags."""
    every = {
        "summary": COMMANDS["summary"],
        "check --by tag": f"{COMMANDS['check']} --by tag",
        "fanout": "fanout {log}",
        "diagnose": COMMANDS["diagnose"],
        "report": COMMANDS["report"],
        "summary --format json": "summary {log} --format json",
    }
    for name in names:
        path = corpus(folder, name)
        jobs = every if name == names[0] else {"summary": every["summary"]}
        costs = measure({job: own(words, path, folder) for job, words in jobs.items()}, 1)
        compare(f"{name}, {path.stat().st_size / 1e6:.0f} MB", costs, "summary")


def start(folder: Path, rounds: int) -> None:
    """Small commands beside the imports that they cannot do without."""
    figure = "from matplotlib.figure import Figure; from matplotlib.backends.backend_agg import "
    jobs = {
        "python": python(""),
        "numpy": python("import numpy"),
        "Figure and Agg": python(f"{figure}FigureCanvasAgg"),
        "--help": [*OWN, "--help"],
        **{job: own(COMMANDS[job], SMALL, folder) for job in ("summary", "chart")},
    }
    compare("Start", measure(jobs, 2 * rounds + 1), "numpy")


def files(folder: Path, count: int, rounds: int) -> None:
    """Many small logs: the default against one job."""
    place = folder / f"many-{count}"
    if not place.exists():
        place.mkdir()
        small = SMALL.read_bytes()
        for number in range(count):
            (place / f"{number:05}.hlog").write_bytes(small)
    merge = [*OWN, "summary", f"{place}/*.hlog", "--merge"]
    costs = measure({"default": merge, "--jobs 1": [*merge, "--jobs", "1"]}, rounds)
    compare(f"{count:,} small logs, summary --merge", costs, "--jobs 1")


NOTEBOOK = """
import json, resource, time
import pandas  # a notebook has it
def peak():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6
def timed(question):
    began = time.perf_counter(); question(); return 1e3 * (time.perf_counter() - began)
lk.plot.percentiles({"small": lk.read(sys.argv[2])}); lk.read(sys.argv[2]).by_interval([50, 99])
before = peak()
first = timed(lambda: log.histogram())
kept = peak() - before
span = log.duration
questions = {
    "histogram again": lambda: log.histogram(),
    "between(a quarter, three quarters).histogram()": lambda: log.between(span / 4, 3 * span / 4).histogram(),
    "by_interval([50, 99])": lambda: log.by_interval([50, 99]),
    'resample("10m").by_interval([50, 99])': lambda: log.resample("10m").by_interval([50, 99]),
    "plot.timeline": lambda: lk.plot.timeline(log),
}
print(json.dumps({"first": first, "kept": kept, "later": {n: timed(q) for n, q in questions.items()}}))
"""


def notebook(folder: Path, name: str) -> None:
    """Questions about one log in one process: the first, and those after it."""
    record = json.loads(answered(python(READ + NOTEBOOK, corpus(folder, name), SMALL)))
    rows = ([f"`{question}`", f"{taken:,.1f}"] for question, taken in record["later"].items())
    title = f"A notebook on {name}: first question {record['first']:,.0f} ms"
    show(title, ["later question", "ms"], rows)
    print(f"\n{record['kept']:.0f} MB are kept for them.", flush=True)


def parquet(folder: Path, name: str, rounds: int) -> None:
    """The size of a log as Parquet, and the time to write it."""
    path, out = corpus(folder, name), folder / "out.parquet"
    jobs = {SERIES: python(API[SERIES], path), "convert": [*OWN, "convert", str(path), str(out)]}
    costs = measure(jobs, rounds)
    compare(f"{name} as Parquet: {out.stat().st_size / 1e6:.0f} MB", costs, SERIES)


def raw(folder: Path, size: int, rounds: int) -> None:
    """Percentiles of raw samples beside libraries and sketches."""
    samples_speed.table(samples_speed.measure(samples_speed.made(folder, size), size, rounds))


ARROW = {
    "csv": "import sys, pyarrow.csv as c; c.read_csv(sys.argv[1])",
    "jsonl": "import sys, pyarrow.json as c; c.read_json(sys.argv[1])",
    "parquet": "import sys, pyarrow.parquet as c; c.read_table(sys.argv[1])",
}


def tables(folder: Path, rows: int, rounds: int) -> None:
    """Tables of requests, beside pyarrow's bare reader of the same file on the same cores."""
    paths, cells = table_paths(folder, rows), []
    if not all(path.exists() for path in paths.values()):
        made_elsewhere(folder, f"requests-{rows}")
    for name, path in paths.items():
        jobs = {"ours": own(COMMANDS["summary"], path, folder)}
        jobs |= {"pyarrow": python(ARROW[path.suffix[1:]], path)}
        ours, bare = measure(jobs, rounds).values()
        numbers = ours.cpu, ours.cpu / bare.cpu, ours.wall, ours.wall / bare.wall
        peaks = f"{ours.peak:.0f}", f"{bare.peak:.0f}"
        cells.append([name, *(f"{number:.2f}" for number in numbers), *peaks])
    header = ["CPU s", "× pyarrow's reader", "wall s", "×", "peak MB", "pyarrow's"]
    show(f"{rows:,} requests as tables", ["summary of", *header], cells)


RECORDER = """
import time, json, sys
import latencykit as lk
from hdrh.histogram import HdrHistogram
calls = int(sys.argv[1])
def each(record):
    began = time.process_time()
    for _ in range(calls): record(123456)
    return (time.process_time() - began) / calls * 1e9
recorder, hdr, plain = lk.Recorder(), HdrHistogram(1, 3600000000000, 3), [].append
def measured(_):
    with recorder.measure(): pass
rounds = [{"empty call": each(int.bit_length), "list.append": each(plain), "Recorder.record": each(recorder.record),
           "with Recorder.measure()": each(measured), "PyPI record_value": each(hdr.record_value)} for _ in range(3)]
print(json.dumps({name: sorted(one[name] for one in rounds)[1] for name in rounds[0]}))
"""


def recorder(calls: int) -> None:
    """Nanoseconds per recorded value."""
    each = json.loads(answered(python(RECORDER, calls)))
    rows = ([f"`{name}`", f"{taken:.0f}"] for name, taken in each.items())
    show("Recording", ["call", "ns"], rows)


@click.command()
@click.option("--quick", is_flag=True, help="Sizes too small to quote.")
@click.option("--only", default="", help="Sections, with commas; all by default.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keeps corpora.")
@click.option("--rounds", default=3, show_default=True, help="Runs per job; the quickest counts.")
@click.option("--corpora", default="a,d,e,b", show_default=True, help="Logs to measure.")
def main(*, quick: bool, only: str, folder: Path | None, rounds: int, corpora: str) -> None:
    """Measure and print."""
    rounds = 1 if quick else rounds
    # An installation comes with byte code; without it every process would compile the sources anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compiling = [sys.executable, "-m", "compileall", "-q", str(ROOT / "latencykit")]
    subprocess.run(compiling, check=True)
    with tempfile.TemporaryDirectory() as temporary:
        place = (folder or Path(temporary)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        print(f"Measured on {dt.datetime.now(dt.UTC).date()}: {machine()}.", flush=True)
        a, b, d, e = ("a-300", "a-600", "d-20", "e-3000") if quick else ("a", "b", "d", "e")
        every = [a, d, e] if quick else corpora.split(",")
        sections = {
            "logs": lambda: logs(place, every, rounds),
            "commands": lambda: commands(place, every, rounds),
            "tags": lambda: many_tags(place, ["t-300"] if quick else ["t", "t-100000"]),
            "start": lambda: start(place, rounds),
            "files": lambda: files(place, 300 if quick else 10_000, 1),
            "notebook": lambda: notebook(place, b),
            "parquet": lambda: parquet(place, a, 1),
            "tables": lambda: tables(place, 100_000 if quick else 10**7, rounds),
            "raw": lambda: raw(place, 2_000_000 if quick else 20_000_000, rounds),
            "recorder": lambda: recorder(20_000 if quick else 500_000),
        }
        for name in only.split(",") if only else sections:
            sections[name]()


if __name__ == "__main__":
    main()
