"""Criterion.rs: directories, batches, ratios, text."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError
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


def test_ratios_are_refused(read_text, tmp_path):
    estimate = {"point_estimate": 0.1, "confidence_interval": {}, "standard_error": 0.0}
    with pytest.raises(CorruptInputError, match="ratios"):
        read_text(json.dumps({"mean": estimate, "median": estimate}), "estimates.json")


def test_unequal_columns(read_text):
    text = json.dumps({"sampling_mode": "Flat", "iters": [1.0], "times": [1.0, 2.0]})
    with pytest.raises(CorruptInputError, match="2 times and 1 iteration counts"):
        read_text(text, "sample.json")


def test_text_with_a_long_name(read_text):
    text = "a very long benchmark name\n                        time:   [9.5757 µs 9.6958 µs 9.8211 µs]\n"
    assert read_text(text)["a very long benchmark name"].mean == 9695.8


def test_text_in_a_comment_of_rust(read_text):
    text = "enum transfer    time:   [7.1 ms 7.2 ms 7.3 ms]\nchange: [-2% -1% -0%] (p = 0.00 < 0.05)\n\na long id\ntime:   [8.1 ms 8.2 ms 8.3 ms]\n"
    for quote in ("", "//! ", "/// ", "//!     "):
        found = read_text("".join(f"{quote}{line}\n" for line in text.splitlines()))
        assert {name: data.mean for name, data in found.items()} == {
            "enum transfer": 7.2e6,
            "a long id": 8.2e6,
        }


def test_libtest_prints_medians_and_criterion_its_estimate(read_text):
    row = "test a ... bench:      18,149 ns/iter (+/- 755)\ntest b ... bench:    9 MB/s (+/- 1)\n"
    seen = []
    (data,) = read_text(row, report=seen.append).values()
    assert (data.reported_percentiles, data.stats) == ({50: 18149}, {})
    assert "b is in MB" in seen[0]
    (data,) = read_text(f"Gnuplot not found, using plotters backend\n{row}").values()
    assert (data.reported_percentiles, data.stats) == ({}, {"mean": 18149})


def test_raw_csv(read_text):
    text = (
        "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"
        "g,f,1,,,100.0,ns,10\ng,f,1,,,300.0,ns,20\n"
    )
    assert read_text(text, "raw.csv")["g/f/1"].max == 15.0
