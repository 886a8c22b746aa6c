"""perf-gauge: blocks of text, and its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError
from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source
from tests.io.conftest import lost

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "perf-gauge/stalled/stdout.txt").read_text()
FAILING = (DATA / "perf-gauge/failures/stdout.txt").read_text()


def test_one_block(read_text):
    h = read_text(TEXT)["out.txt"]
    assert (h.count, h.min, h.mean, h.std, h.max) == (1664, 1.1e6, 13.68e6, 243.4e6, 4972.54e6)
    assert h.percentile([50, 90, 95, 99, 99.9]).tolist() == [
        1.42e6,
        1.69e6,
        2.06e6,
        6.22e6,
        4972.54e6,
    ]
    assert (h.run.loop, h.run.corrected, h.run.achieved, round(h.run.duration)) == (
        "closed",
        "none",
        92.248,
        18,
    )
    assert any("tm99 1.51ms" in note for note in h.run.notes)


def test_failures_are_counted_apart(read_text):
    run = read_text(FAILING)["out.txt"].run
    assert run.failed == 16
    assert "16 × 503 Service Unavailable" in run.notes


def test_a_ramp_prints_one_block_a_rate(read_text):
    second = TEXT[TEXT.index("Test: ") :].replace("92.248", "184.5").replace("6.22ms", "7000µs")
    found = read_text(TEXT + second)
    assert list(found) == ["perf-gauge at 92.248/s", "perf-gauge at 184.5/s"]
    assert found["perf-gauge at 184.5/s"].percentile(99) == 7e6


@pytest.mark.parametrize(
    "change",
    [lambda t: t.replace("\n", "\r\n"), lambda t: "$ perf-gauge\n\x1b[31mERROR\x1b[0m\n" + t],
)
def test_other_surroundings(read_text, change):
    assert read_text(change(TEXT))["out.txt"].percentile(99) == 6.22e6


def test_nothing_was_answered(read_text):
    assert lost(read_text(TEXT.replace("100.000%", "0.000%")))


def test_corruption_is_named(read_text):
    with pytest.raises(CorruptInputError, match=r"out\.txt:2: .*corrupt, or cut"):
        read_text(TEXT[: TEXT.index("p99.9 ")])
    with pytest.raises(CorruptInputError, match=r"out\.txt:15: 'p5x    :    1\.42ms'"):
        read_text(TEXT.replace("p50 ", "p5x "))


def test_metrics_are_microseconds():
    found = read_source(
        Source(DATA / "perf-gauge-prometheus/pushed/pushgateway.txt.gz"), ReadOptions()
    )
    assert list(found) == ["latency", "success_latency", "error_latency"]
    good = found["success_latency"]
    assert (good.count, good.percentile(50), good.percentile(99), good.max, good.mean) == (
        706,
        1.502e6,
        7.604e6,
        17.856e6,
        2.048e6,
    )
    assert (good.run.failed, good.run.unit, good.run.aggregate, found["latency"].run.aggregate) == (
        16,
        "us",
        False,
        True,
    )
    assert found["error_latency"].max == 2.968e6


def test_metrics_after_the_end_are_zero(read_text):
    text = '# HELP error_latency Latency of failed requests\n# TYPE latency_tm99 gauge\nlatency_tm99{a=""} 0\n'
    text += '# TYPE success_latency histogram\nsuccess_latency_bucket{a="",le="+Inf"} 0\nsuccess_latency_count{a=""} 0\n'
    with pytest.raises(CorruptInputError, match="--continuous"):
        read_text(text)


def test_a_run_that_was_refused_is_beside_the_others(read_text):
    refused = TEXT[TEXT.index("Test: ") :].replace("100.000%", "0.000%").replace("92.248", "20")
    good, failed = read_text(TEXT + refused).values()
    assert (good.count, failed.count) == (1664, 0)
