"""Random mutants of real outputs: ``python -m tests.benchmarks.hostile --mutants N``.

N of each of 60 are read and analysed in at most 1 GiB and 10 s of processor time each. Small
hostile files are here, too: ten siblings each of a mechanism that once hung, exhausted memory,
crashed or wrote to the terminal, which tests give to the commands.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import itertools
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import latencykit
from tests.conftest import RAW, python
from tests.fuzz import mutations
from tests.untrusted.test_valid_files import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONG, MANY = "9" * 5000, 1 << 16
MEBIBYTES = 400  # that a command may take of them


def _rows(values: str, head: str = "start_ns,latency_ns,operation") -> str:
    rows = (f"{k * 1000},{1000 + k % 7},{'ab'[k % 2]}" for k in range(500))
    return "\n".join([head, *rows, values, *rows]) + "\n"


def _bomb(path: Path) -> None:
    rows = "".join(f"{k},{1000 + k % 7},a\n" for k in range(20_000))
    text = f"start_ns,latency_ns,operation\n{rows}1,1,{'y' * 100_000}\n"
    path.write_bytes(gzip.compress(text.encode()))


BLANKS = {
    "spaces.txt": " " * MANY,
    "tabs.txt": "\t" * MANY,
    "mixed.txt": " \t" * MANY,
    "ends.txt": " \n" * MANY,
    "numbers.txt": "1 " * MANY,
    "words.txt": "a " * MANY,
    "hey.txt": "Summary:\n  Total:\t1.0 secs\n" + " \n" * MANY + "Response time histogram:\n",
    "wrk.txt": "Running 10s test @ http://a/\n" + " " * MANY + "Requests/sec: 1\n",
    "cassandra.txt": "Results:\nOp rate : 1 op/s" + " " * MANY + "x\nLatency mean : 1 ms\n",
    "quotes.csv": '"' * MANY + "," + "(" * MANY,
}
DIGITS = {
    "value.csv": _rows(f"1,{LONG},a"),
    "start.csv": _rows(f"{LONG},5,a"),
    "name.csv": _rows(f"1,5,{LONG}"),
    "names.csv": _rows(f"1,5,s{LONG}\n2,5,s{LONG}1"),
    "head.csv": _rows("1,5,a", f"start_ns,latency_ns,p{LONG}"),
    "list.json": f"[1.5, {LONG}, 2.5]",
    "lines.jsonl": f'{{"latency_ms": 1}}\n{{"latency_ms": {LONG}}}\n',
    "log.hlog": f"{LONG}.0,1.0,1.0,HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa\n",
    "bench.txt": f"BenchmarkA-8 {LONG} {LONG} ns/op\n",
    "ping.txt": f"64 bytes from 1.1.1.1: icmp_seq={LONG} ttl=57 time=1.5 ms\n" * 5,
}
NAMES = {
    f"name-{k}.csv": _rows(f"1,90000,{name}\n" * 200)
    for k, name in enumerate(
        ("\x1b[31mred", "\x1b]0;t\x07", "\x9b2J", "\u202eevil\u2066", "\ufeffb\u200b",
         "![x](http://a/b.png)", "<img src=x>", "=cmd()", "a\x08\x08b", "\x7f\u2028")
    )
}  # fmt: skip
_PAUSE = "[0.100s][info][gc] GC(0) Pause Young 9M->2M(64M) 1.0ms\n"
EVENTS = {
    "pauses.log": _PAUSE + "[0.1s] Pause " * MANY,
    "stops.log": _PAUSE + 'Safepoint "' * MANY,
    "threads.log": _PAUSE + "[1s] Total time for which " * (MANY // 4),
    "jdk8.log": "1.0: [GC 1K->1K(1K), 0.1 secs]\n" + "1.0: [GC " * MANY,
    "blanks.log": _PAUSE + " " * MANY,
    "digits.log": _PAUSE + f"[{LONG}s] GC(1) Pause Young {LONG}ms\n",
    "gctrace.log": f"gc 1 @{LONG}.0s 1%: {'1+' * MANY}1 ms clock, 1 ms cpu\n",
    "journal.json": f'{{"__REALTIME_TIMESTAMP": "{LONG}", "MESSAGE": "CMD ({"(" * MANY}"}}\n',
    "cluster.json": f'{{"kind": "Event", "count": "{LONG}", "eventTime": "2026-01-01T00:00:00Z"}}',
    "times.csv": f"time,what\n1.5,{'x' * MANY}\n{LONG},\x1b[2J\n",
}


def siblings(folder: Path) -> list[Path]:
    """Write all files; return their paths, sorted by mechanism."""
    texts = {"blanks": BLANKS, "digits": DIGITS, "names": NAMES, "events": EVENTS}
    paths = []
    for kind in ("words", *texts):
        (folder / kind).mkdir()
    for write in TABLES:
        paths.append(folder / "words" / f"calls.{write.__name__}")
        write(paths[-1])
    paths.append(folder / "words" / "bomb.csv.gz")
    _bomb(paths[-1])
    for kind, files in texts.items():
        for name, text in files.items():
            paths.append(folder / kind / name)
            paths[-1].write_text(text, encoding="utf-8", newline="")
    return paths


def commands(path: Path, folder: Path, turn: int) -> list[list[str]]:
    """Return the commands that a file is given to: the first, and by turns a third of the others."""
    if path.parent.name == "events":
        return [["explain", str(RAW), "--events", str(path)]]
    given = [str(path)]
    if path.parent.name == "pages":  # show all columns
        unit = ["--unit", "ms"] if "list" in path.name else []
        return [["report", *given, *unit, "-o", str(folder / "a.html")]]
    others = [
        ["report", *given, "-o", str(folder / "a.html")],
        ["convert", *given, str(folder / "a.csv")],
        ["explain", *given],
        ["explain", *given, "--by", "operation", "--format", "markdown"],
        ["compare", *given, *given],
        ["merge", *given, "-o", str(folder / "a.hlog")],
    ]
    return [["summary", *given], *others[turn % 3 :: 3]]


_CHILD = """
import contextlib, io, json, os, resource, sys, time
from latencykit.cli import main
from tests.benchmarks.hostile import import_all
import_all()
for commands in json.load(sys.stdin):
    if child := os.fork():
        print(json.dumps(os.waitpid(child, 0)[1]), flush=True)
        continue
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    for words in commands:
        out, status, begin = io.StringIO(), 0, time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                main(words)
            except SystemExit as end:
                status = end.code
        took = time.process_time() - begin
        lines = open("/proc/self/status").read().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        print(json.dumps([words[0], status, took, peak / 1024, out.getvalue()]), flush=True)
    os._exit(0)
"""


def import_all() -> None:
    """Import what commands need, before a process is forked for each file."""
    ours = pkgutil.walk_packages(latencykit.__path__, "latencykit.")
    asked = (one.name for one in ours if one.name.split(".")[1] in ("cli", "io", "views"))
    for module in ("pandas", "pyarrow.parquet", "asyncio", *asked):
        importlib.import_module(module)


def measure(paths: Sequence[Path]) -> Iterator[tuple[Path, str, int | None, float, float, str]]:
    """Yield path, command, status, seconds of the processor, MiB at the peak and output of each.

    All commands of a file run in one process of at most a minute; where it dies, its command has none.
    """
    with tempfile.TemporaryDirectory() as folder:
        every = [commands(path, Path(folder), turn) for turn, path in enumerate(paths)]
        done = python("-c", _CHILD, input=json.dumps(every))
    lines = map(json.loads, done.stdout.splitlines())
    for path, words in zip(paths, every, strict=True):
        rows = list(itertools.takewhile(lambda line: isinstance(line, list), lines))
        for row in rows:
            yield path, *row
        if len(rows) < len(words):
            yield path, words[len(rows)][0], None, 60.0, 0.0, done.stderr[-300:]


def unsafe(text: str) -> list[str]:
    """Return the characters that a terminal takes for commands, or that reorder what it shows."""
    bad = (c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co"))
    return [repr(c) for c in dict.fromkeys(bad)]


def mutants(each: int, fixtures: int = 60, seed: int = 0) -> tuple[int, int]:
    """Read mutants of real outputs and give them to commands; return how many, and how many fell.

    Each has a process of its own, a fork of this one, which has imported what they need.
    """
    import_all()
    sources = mutations.samples()
    chosen = sources[:: max(len(sources) // fixtures, 1)][:fixtures]
    total, cores = each * len(chosen), len(os.sched_getaffinity(0))
    running, fell = dict[int, int](), 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # nobody else's freeze is thawed by a command
        for number in range(total + cores):
            if number < total:
                place = Path(folder, str(number))
                if not (child := os.fork()):
                    _read(place, seed * 10**6 + number, chosen[number % len(chosen)])
                running[child] = number
            if running and (len(running) == cores or number >= total):
                child, status = os.wait()
                ended = running.pop(child)
                shutil.rmtree(Path(folder, str(ended)))
                fell += status != 0
                if os.WIFSIGNALED(status):
                    print(f"{ended}: {signal.strsignal(os.WTERMSIG(status))}", flush=True)
    return total, fell


def _read(place: Path, number: int, source: tuple[str, str, bytes]) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    signal.alarm(100)  # for one that waits
    try:
        place.mkdir()
        name, suffix, data = mutations.mutated(number, [source])
        path = place / f"input{suffix}"
        path.write_bytes(data)
        mutations.library(path, number)
        mutations.command_line(path, number)
    except BaseException:  # noqa: BLE001 - whatever it is, it is a finding
        print(f"{number} {name}: {traceback.format_exc()}", flush=True)
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Print how many mutants fell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    number, fell = mutants(options.mutants, seed=options.seed)
    print(f"{number:,} mutants, {fell} fell")
    sys.exit(min(fell, 1))


if __name__ == "__main__":
    main()
