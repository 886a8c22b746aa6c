"""Runs the commands of a how-to page as a reader would, in 80 columns and a folder that has the files which the page speaks of.

A block ``console`` holds commands behind ``$`` and what they print; ``...`` stands for anything, and
``\\`` continues a command. A block with a caption is a file of that name. ``python -m tests.book.commands``
writes what the commands print into the pages, wherever no ``...`` stands.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import latencykit as lk
from latencykit.simulate import Server, Stall, fixed, open_loop, paced_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = ROOT / "notebooks" / "book" / "how-to"
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


class Step(NamedTuple):
    """A command, and what the page says that it prints."""

    command: str
    expected: str


def pages() -> list[Path]:
    """Return the pages with commands."""
    return [path for path in sorted(HOW_TO.glob("*.md")) if "```console" in path.read_text("utf-8")]


def steps(text: str) -> list[list[Step]]:
    """Return the commands of each block."""
    found = []
    for block in _CONSOLE.findall(text):
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        block_steps = []
        for part in parts:
            command, expected = re.fullmatch(
                r"((?:[^\n]*\\\n)*[^\n]*)\n(.*)", part, re.DOTALL
            ).groups()  # type: ignore[union-attr]
            block_steps.append(Step(command, expected))
        found.append(block_steps)
    return found


def agrees(expected: str, printed: str) -> bool:
    """Compare line by line; ``...`` stands for any text, on a line of its own for any lines."""
    lines = _plain(expected).splitlines()
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n"
        for line in lines
    )
    return re.fullmatch(pattern or r"\n", _plain(printed) + "\n") is not None


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run(path: Path, folder: Path) -> Iterator[tuple[Step, str]]:
    """Run the commands of a page in order in `folder`; yield each with what it prints."""
    text = path.read_text("utf-8")
    _FILES.get(path.stem, lambda _: None)(folder)
    for name, content in _FILE.findall(text):
        (folder / name).write_text(content, "utf-8")
    programs = folder / ".bin"
    programs.mkdir()
    for name, words in (
        ("latencykit", "-m latencykit"),
        ("python", ""),
        ("pytest", "-m pytest -p no:cacheprovider"),
    ):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        program.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
        "COLUMNS": "80",
    }  # fmt: skip
    for block in steps(text):
        for step in block:
            done = subprocess.run(
                ["bash", "-c", step.command], cwd=folder, env=environment, check=False, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            yield step, done.stdout


# ------------------------------------------------------------ the files that pages speak of
def _wrk(folder: Path) -> None:
    shutil.copy(ROOT / "data" / "suspects" / "6.txt", folder / "wrk.txt")
    shutil.copy(
        ROOT / "tests" / "data" / "formats" / "wrk2" / "ctrlz" / "stdout.txt", folder / "wrk2.txt"
    )


def _freezes(folder: Path) -> None:
    """The textbook freeze as a loop that waits and one on schedule measure it; a run of ab."""
    server = Server("1ms", stalls=[Stall(100, 100)])
    waited = paced_loop(server, 100, "200s", connections=1)
    for name, samples in (
        ("waited", waited),
        ("on-schedule", open_loop(server, fixed(100, "200s"))),
    ):
        lk.write(samples.to_log("1s"), folder / f"{name}.hlog")
    lk.write(waited.histogram(), folder / "waited.hgrm")
    shutil.copy(
        ROOT / "tests" / "data" / "formats" / "ab" / "keepalive" / "stdout.txt", folder / "ab.txt"
    )


def _runs(folder: Path) -> None:
    """Five runs per side of 20,000 requests; the new side is 0.3 ms slower."""
    random = np.random.default_rng(1)
    for side, slower in (("base", 0.0), ("new", 0.3)):
        for number in range(1, 6):
            values = random.normal(1, 0.02) * random.lognormal(0.7, 0.4, 20_000) + slower
            rows = "".join(f"{value:.3f}\n" for value in values)
            (folder / f"{side}-{number}.csv").write_text(f"latency_ms\n{rows}")


def _hosts(folder: Path) -> None:
    """Forty hosts for a minute, 100 requests per second each; one of them stops for two seconds."""
    (folder / "logs").mkdir()
    for number in range(40):
        random = np.random.default_rng(number)
        start = np.sort(random.integers(0, 60_000_000_000, 6000))
        start[0] = 0
        duration = random.lognormal(14, 0.5, start.size)
        if number == 17:
            stalled = (start > 30e9) & (start < 32e9)
            duration[stalled] += 32e9 - start[stalled]
        samples = lk.Samples(
            start=1_760_000_000_000_000_000 + start, duration=duration.astype(np.int64)
        )
        lk.write(samples.to_log("1s"), folder / "logs" / f"host-{number:02}.hlog")


def _acme(folder: Path) -> None:
    for name in ("acme.py", "run.acme"):
        shutil.copy(ROOT / "tests" / "plugin" / name, folder / name)


def _history(folder: Path) -> None:
    """Twenty runs of a benchmark as they came from CI, and four new ones: the last three are slower."""
    random = np.random.default_rng(4)
    (folder / "results").mkdir()
    for number in range(1, 25):
        factor = 1.25 if number > 21 else 1.0
        values = factor * random.normal(1, 0.02) * random.lognormal(0.7, 0.4, 5_000)
        rows = "".join(f"{value:.3f}\n" for value in values)
        (folder / "results" / f"{number:02}.csv").write_text(f"latency_ms\n{rows}")


_FILES: dict[str, Callable[[Path], None]] = {
    "from-wrk-to-p99.99": _wrk,
    "find-omission": _freezes,
    "gate-a-pull-request": _runs,
    "gate-your-repository": _history,
    "ten-thousand-logs": _hosts,
    "add-a-format": _acme,
}


def main() -> None:
    """Write what the commands print into the pages."""
    for path in pages():
        text = path.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for step, printed in run(path, Path(folder)):
                if "..." not in step.expected:
                    old = f"$ {step.command}\n{step.expected}"
                    assert text.count(old) >= 1, old
                    blank = "\n" if step.expected.endswith("\n\n") else ""
                    body = _plain(printed)
                    new = "".join(f"{part}\n" for part in (f"$ {step.command}", body) if part)
                    text = text.replace(old, new + blank, 1)
        path.write_text(text, "utf-8")
        sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
