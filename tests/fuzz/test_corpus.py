"""Replay the fuzzing corpus: only our own errors, in bounded time and memory."""

from __future__ import annotations

import signal
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from latencykit.io.registry import builtin_formats
from latencykit.io.source import HEAD_SIZE, Confidence, Head
from tests.fuzz.targets import CORPUS, TARGETS, seeds

if TYPE_CHECKING:
    from collections.abc import Iterator

HARD = 10.0  # seconds; what is slow, or never ends, fails instead of holding everything up
MOST = 256 << 20
KEPT = sorted(path for path in CORPUS.glob("*/*") if path.parent.name in TARGETS)


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Interrupt a test that takes too long."""

    def stop(*_: object) -> None:
        raise AssertionError(f"not done within {HARD:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HARD * 6)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in KEPT]
)
def test_what_once_broke_something_breaks_nothing(path):
    signal.setitimer(signal.ITIMER_REAL, HARD)
    tracemalloc.start()
    try:
        TARGETS[path.parent.name](path.read_bytes())
        assert tracemalloc.get_traced_memory()[1] <= MOST
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_real_outputs_pass(target):
    begin_with = list(seeds(target))
    assert len(begin_with) > 10
    for data in begin_with:
        TARGETS[target](data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "9 ",
        "\n",
        " ",
        "\t",
        "a ",
        "a\n",
        ",",
        "1,",
        "1 ",
        '"',
        "[",
        '{"a":',
        "<",
        "-",
        "a: ",
        "#\n",
    ],
    ids=repr,
)
def test_no_head_takes_a_pattern_long(unit):
    """Repetition costs every format time linear in its length; backtracking would take minutes."""
    signal.setitimer(signal.ITIMER_REAL, HARD)
    for begin in ("", "a"):
        head = Head("x.txt", (begin + unit * HEAD_SIZE).encode()[:HEAD_SIZE])
        assert all(one.sniff(head) in Confidence for one in builtin_formats())
