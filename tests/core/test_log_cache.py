"""Answers from what a log keeps of its first pass equal decoded ones to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import latencykit as lk
from latencykit.cli import cli
from latencykit.core import histogram_log, log_cache
from latencykit.core.blocks import Block, MemoryPart, block_of_rows
from latencykit.core.buckets import HdrBuckets
from latencykit.core.histogram_log import HistogramLog, expect, interval_series, merge_logs
from latencykit.io import hlog
from latencykit.io.parts import for_transfer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUDGETS = {"all intervals": 1 << 30, "none": 0, "none after some": 3000}


class Counting:
    """A part that decodes: it counts the rows that it is asked for."""

    def __init__(self, blocks: list[Block]) -> None:
        self._part = MemoryPart(blocks)
        self.asked = 0

    def blocks(self, rows: Any) -> Iterator[Block]:
        self.asked += rows.size
        yield from self._part.blocks(rows)


def a_log(
    seed: int, rows: int, tags: int = 1, layouts: int = 1, per_block: int = 7
) -> tuple[HistogramLog, list[Counting]]:
    """A log with gaps, empty intervals and layouts, of two parts if it has tags; and its parts."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(min(tags, 2)):
        blocks = []
        for begin in range(0, rows, per_block):
            size = min(per_block, rows - begin)
            buckets = HdrBuckets(int(rng.integers(1, 1 + layouts)))
            of_row = np.sort(rng.integers(0, size, rng.integers(0, 40 * size)))
            values = rng.lognormal(10, 1.5, of_row.size)
            block = block_of_rows(of_row, buckets.index_of(values), size, buckets)
            blocks.append(replace(block, rows=block.rows + begin))
        parts.append(Counting(blocks))
    count = rows * len(parts)
    start = np.sort(rng.choice(5 * count, count, replace=False)) / 10
    order = rng.permutation(count)
    order = order[np.argsort(order % rows, kind="stable")]
    log = HistogramLog(
        start, np.full(count, 0.1), parts, where=(order // rows, order % rows),
        tag_code=rng.integers(0, tags, count), tag_names=[f"t{k}" for k in range(tags)],
    )  # fmt: skip
    return log, parts


def direct(log: HistogramLog) -> HistogramLog:
    """The same log, without what is kept."""
    same = log[:]
    same._shared = log_cache.SharedCache(log._shared.size)
    same._shared.kept = lambda places, blocks: blocks  # type: ignore[method-assign]
    return same


def assert_same(one: Any, other: Any) -> None:
    for name in vars(one):
        a, b = getattr(one, name), getattr(other, name)
        if name == "run":
            assert a == b
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, name)
            assert a.dtype == b.dtype


@pytest.mark.slow
@pytest.mark.parametrize("of_file", [False, True])
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@given(
    seed=st.integers(0, 1 << 20), rows=st.integers(1, 90), tags=st.integers(1, 4),
    layouts=st.integers(1, 2), asked=st.permutations(range(5)),
    low=st.floats(0, 0.5), high=st.floats(0.5, 1),
)  # fmt: skip
@settings(max_examples=3, deadline=None)
def test_answers_from_memory_equal_those_from_the_payloads(
    tmp_path_factory, budget, seed, rows, tags, layouts, asked, of_file, low, high
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_cache, "BUDGET", budget)
        few = {"MOST_BINS": 4, "_LONG_LOG_BINS": 2, "_LEAST_ROWS": 1, "_TURN": 16}.items()
        for name, value in few:
            patch.setattr(histogram_log, name, value)
        log, _ = a_log(seed, rows, tags, layouts)
        if of_file:  # where they stay encoded, as they have fewer buckets than bytes
            patch.setattr(hlog, "KEEP", 0)
            lk.write(log, path := tmp_path_factory.mktemp("log") / "a.hlog")
            log = lk.read(path)
        views = [log.between(low * rows / 2, high * rows / 2), log.to_unit("us"), log]
        views += [log.by_tag()[log.tags[0]]] if log.tags else []

        def ask(log: HistogramLog, question: int) -> None:
            plain = direct(log)
            if question == 0:
                assert_same(log.histogram(), plain.histogram())
                assert_same(*(interval_series(x, (50,)) for x in (for_transfer(log), plain)))
            elif question == 1:
                assert_same(interval_series(log, (50, 99)), interval_series(plain, (50, 99)))
                assert_same(interval_series(log, (10, 100)), interval_series(plain, (10, 100)))
            elif question == 2:
                assert_same(log.evidence(), plain.evidence())
            elif question == 3:
                for width in (0.1, 7):
                    ours, theirs = log.resample(width), plain.resample(width)
                    assert_same(ours, theirs)
                    assert_same(*(interval_series(x, (99,)) for x in (ours, direct(theirs))))
                    assert_same(ours.histogram(), direct(theirs).histogram())
            else:
                assert log.to_frame().equals(plain.to_frame())

        for question in asked:
            for view in views:
                if len(view):
                    ask(view, question)
        if len(log):
            both = merge_logs([log, log.to_unit("us").to_unit("ns")])
            ask(both, 0)
            ask(both, 3)


COMMANDS = {
    "summary": [],
    "summary by interval": ["--interval", "10s"],
    "check": ["--slo", "99=20ms"],
    "diagnose": [],
    "compare": [],
    "report": ["-o", "out.html"],
    "convert": ["out.hgrm"],
    **{f"chart as {kind}": ["--kind", kind, "-o", "out.svg"] for kind in (
        "percentiles", "timeline", "heatmap", "density", "ccdf", "dashboard",
    )},
}  # fmt: skip


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "long.hlog"
    rng, layout = np.random.default_rng(1), HdrBuckets(3)
    with path.open("wb") as stream:
        writer = hlog.HlogWriter(stream, 1_700_000_000.0, "ns", [])
        writer.header()
        for number in range(1200):
            index, counts = np.unique(layout.index_of(rng.lognormal(13, 1, 50)), return_counts=True)
            writer.interval(number, 1.0, layout, index, counts)
    return path


# over a log that is too large to be kept, where it is more than one
PASSES = {"summary by interval": 2, "chart as timeline": 2, "report": 2, "chart as dashboard": 3}


@pytest.mark.slow
@pytest.mark.parametrize("budget", [log_cache.BUDGET, 0])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_decodes_a_log_once(long_log, tmp_path, monkeypatch, command, budget):
    monkeypatch.setattr(log_cache, "BUDGET", budget)
    decoded = 0
    blocks_of = hlog.HlogPart.blocks

    def blocks(self: hlog.HlogPart, rows: Any) -> Iterator[Block]:
        nonlocal decoded
        for block in blocks_of(self, rows):
            decoded += block.rows.size
            yield block

    monkeypatch.setattr(hlog.HlogPart, "blocks", blocks)
    monkeypatch.setattr(hlog, "KEEP", 0)
    monkeypatch.chdir(tmp_path)
    files = [str(long_log)] * (2 if command == "compare" else 1)
    done = CliRunner().invoke(cli, [command.split()[0], *files, *COMMANDS[command]])
    assert done.exit_code in (0, 1), done.output
    passes = 1 if budget else PASSES.get(command, 1)
    assert 0 <= decoded / len(files) - 1200 * passes <= 600  # rows that show its size and unit


def test_a_log_that_is_asked_once_keeps_little(monkeypatch):
    log, parts = a_log(3, 90)
    kept, _ = a_log(3, 90)
    monkeypatch.setattr(log_cache, "LITTLE", 0)
    expect(log, keep=False)
    assert log.histogram() == kept.histogram()
    asked = sum(part.asked for part in parts)
    np.testing.assert_array_equal(
        interval_series(log, [50]).values, interval_series(kept, [50]).values
    )
    assert sum(part.asked for part in parts) == 2 * asked == 2 * len(log)
