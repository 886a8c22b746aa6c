"""tylertreat/bench and nats latency: distribution files, and who corrected them."""

from __future__ import annotations

from latencykit.io.reading import read_source
from latencykit.io.source import ReadOptions, Source

HEADER = "Value    Percentile    TotalCount    1/(1-Percentile)\n\n"


def row(value, share, count):
    return f"{value:.6f}    {share:.6f}        {count}            {1 / (1 - share) if share < 1 else 1e7:.6f}\n"


ROWS = [
    (0, 0, 0),
    (0.5, 0.5, 500),
    (0.9, 0.9, 900),
    (2, 0.99, 990),
    (40, 0.999, 999),
    (41.5, 1, 1000),
]
TEXT = HEADER + "".join(row(*one) for one in ROWS)


def test_the_file_beside_it_tells_who_corrected(tmp_path):
    for name in ("redis.txt", "uncorrected_redis.txt", "alone.txt"):
        (tmp_path / name).write_text(TEXT)

    def run(name):
        return next(iter(read_source(Source(tmp_path / name), ReadOptions()).values())).run

    assert (run("redis.txt").corrected, run("redis.txt").loop) == ("tool", "paced")
    assert (run("uncorrected_redis.txt").corrected, run("uncorrected_redis.txt").loop) == (
        "none",
        "paced",
    )
    assert (run("alone.txt").corrected, run("alone.txt").loop) == ("unknown", "unknown")
    assert any("without a rate" in note for note in run("alone.txt").notes)
