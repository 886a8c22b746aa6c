"""Criterion.rs: directories, batches, ratios, text."""

from __future__ import annotations

import json

from latencykit.io.reading import detect, read_source
from latencykit.io.source import Confidence, ReadOptions, Source


def write(folder, name, times, iters, full_id=None):
    (folder / "new").mkdir(parents=True)
    (folder / "new" / "sample.json").write_text(
        json.dumps({"sampling_mode": "Linear", "iters": iters, "times": times})
    )
    if full_id:
        (folder / "new" / "benchmark.json").write_text(json.dumps({"full_id": full_id}))


def test_a_directory_gives_one_series_a_benchmark(tmp_path):
    write(tmp_path / "group" / "fast", "fast", [23.1, 46.2], [10.0, 20.0], "group/fast")
    write(tmp_path / "plain", "plain", [2e6, 4e6], [1.0, 2.0])
    source = Source(tmp_path)
    assert detect(source).name == "criterion"
    found = read_source(source, ReadOptions())
    assert set(found) == {"group/fast", "plain"}
    assert found["group/fast"].max == 2.31
    assert found["plain"].duration.tolist() == [2_000_000, 2_000_000]


def test_another_directory_is_not_claimed(tmp_path):
    (tmp_path / "x").mkdir()
    from latencykit.io.tools.criterion import sniff_directory

    assert sniff_directory(Source(tmp_path).head) is Confidence.NO
