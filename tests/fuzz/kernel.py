"""The compiled kernel: clean under the sanitizers, and numpy's arrays or a refusal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from latencykit.core import kernel
from latencykit.core.counting import count_values
from latencykit.errors import LatencyKitError
from latencykit.hdr import payload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["numpy_alone", "run", "same"]

_SOURCE = Path(__file__).with_name("kernel.c")
_SANITIZERS = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def run(runs: int, seed: int) -> str:
    """Make wild calls under the sanitizers, and a thirtieth as many comparisons; report both."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    calls = "no C compiler: no wild calls"
    if compiler is not None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "kernel"
            subprocess.run([compiler, *_SANITIZERS, "-o", program, _SOURCE], check=True)
            done = subprocess.run(
                [program, str(runs), str(seed)], check=True, capture_output=True, text=True
            )
            calls = f"{done.stdout.strip()}; {_replayed(compiler, Path(folder) / 'kernel.so')}"
    if kernel.in_use() == "numpy":
        return f"{calls}; no compiled kernel to compare with numpy"
    rng = np.random.default_rng(seed)
    accepted = sum(same(*_payload(rng)) for _ in range(runs // 30))
    return f"{calls}; {runs // 30} mutated payloads alike in C and numpy, {accepted} accepted"


def _replayed(compiler: str, library: Path) -> str:
    """Read the kept corpus and the seeds with a kernel that is under the sanitizers; report that."""
    source = Path(kernel.__file__).with_name("kernel.c")
    subprocess.run([compiler, *_SANITIZERS, "-shared", "-fPIC", "-o", library, source], check=True)
    found = [  # with C++'s library, for Arrow throws exceptions
        subprocess.run(
            [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")
    ]
    given = {"LATENCYKIT_KERNEL": str(library), "LD_PRELOAD": " ".join(found)}
    code = (
        "from tests.fuzz.targets import CORPUS, TARGETS, seeds\n"
        "kept = [(TARGETS[p.parent.name], p.read_bytes()) for p in CORPUS.glob('*/*')"
        " if p.parent.name in TARGETS]\n"
        "kept += [(target, data) for name, target in TARGETS.items() for data in seeds(name)]\n"
        "for target, data in kept: target(data)\n"
        "print(len(kept), 'inputs read with it')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env=os.environ | given | {"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip
    return done.stdout.strip()


numpy_alone = partial(mock.patch.object, kernel, "_C", None)
"""Have numpy do everything for a while."""


def same(bodies: list[bytes], slots: int, values: np.ndarray) -> bool:
    """Decode, tabulate and count by both; return whether the bodies were accepted."""
    fast = _outcome(lambda: _answers(bodies, slots))
    with numpy_alone():
        slow = _outcome(lambda: _answers(bodies, slots))
    _assert_equal(fast, slow)
    fast_counts = _outcome(lambda: count_values(values, 2, "ns")[1:])
    with numpy_alone():
        slow_counts = _outcome(lambda: count_values(values, 2, "ns")[1:])
    _assert_equal(fast_counts, slow_counts)
    return not isinstance(fast, str)


def _answers(bodies: list[bytes], slots: int) -> tuple[np.ndarray, ...]:
    ends = np.cumsum([len(body) for body in bodies])
    if not ends[-1]:
        return ()
    layout = payload._layout(2, 1, 3_600_000_000, 1.0, 0, False)
    layouts = [replace(layout, slots=slots)]
    begins = ends - [len(body) for body in bodies]
    data = b"".join(bodies)
    *arrays, sums = payload._decode(payload.Payloads(layouts, data, begins, ends), 1 << 20)
    width = int(arrays[1].max(initial=0)) + 1
    table, line = np.zeros((3, 7)), np.arange(ends.size) % 3
    kernel.tabulate(table, line, *arrays, np.arange(width) % 7)
    if sums is None:
        sums = np.zeros(width, np.int64)
        np.add.at(sums, arrays[1], arrays[2])
    return *arrays, table, sums[:width]


def _outcome(action: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...] | str:
    try:
        return action()
    except LatencyKitError as error:
        return str(error)


def _assert_equal(a: tuple[np.ndarray, ...] | str, b: tuple[np.ndarray, ...] | str) -> None:
    if isinstance(a, str) or isinstance(b, str):
        assert a == b
        return
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def _payload(rng: np.random.Generator) -> tuple[list[bytes], int, np.ndarray]:
    """Bodies of one to four rows, sound, mutated or noise; the buckets of each; and raw values."""
    bodies = []
    for _ in range(int(rng.integers(1, 5))):
        size, kind = int(rng.integers(0, 40)), rng.random()
        data = rng.integers(0, 256, size, dtype=np.uint8)
        if kind < 0.4:
            data &= 127
        elif kind < 0.6:
            data = rng.choice(np.array([255, 254, 128, 129, 0, 1, 2, 127], np.uint8), size)
        elif kind < 0.8:
            data[rng.random(size) < 0.8] &= 127
        body = data.tobytes()
        bodies.append(body if kind < 0.95 else b"\xff" * int(rng.integers(1, 20)) + body)
    values = rng.integers(0, 1 << int(rng.integers(1, 64)), int(rng.integers(0, 6000)))
    if rng.random() < 0.5:
        values = values * rng.choice([0.5, 1.0, 1e-3])
    if values.size and rng.random() < 0.3:
        values[rng.integers(0, values.size)] *= -1
    return bodies, int(rng.choice([64, 2048, 23552, 1 << 20])), values
