"""JMH: modes, NaN, CSV of old and new versions."""

from __future__ import annotations

import json

import pytest

from latencykit.core.histogram import Histogram
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError


def result(mode, unit, metric, threads=1, name="demo.A.run"):
    return {
        "jmhVersion": "1.37", "benchmark": name, "mode": mode, "threads": threads,
        "params": {"n": "1"},
        "primaryMetric": {"scoreUnit": unit, "scoreError": "NaN"} | metric, "secondaryMetrics": {},
    }  # fmt: skip


def test_sample_mode_keeps_every_value(read_text):
    metric = {
        "score": 1.5,
        "rawDataHistogram": [[[[1.0, 98], [3.0, 2]], [[1.0, 100]]]],
        "scorePercentiles": {"50.0": 1.0, "99.9": 2.98},
    }
    found = read_text(json.dumps([result("sample", "us/op", metric)]), "r.json")["demo.A.run n=1"]
    assert isinstance(found, Histogram)
    assert (found.count, found.max, found.mean, found.percentile(99.9)) == (200, 3000, 1500, 2980)


@pytest.mark.parametrize(
    ("mode", "unit", "score", "mean"),
    [("avgt", "ms/op", 2.0, 2e6), ("thrpt", "ops/us", 4.0, 500.0), ("avgt", "min/op", 1.0, 60e9)],
)
def test_means_say_how_to_get_a_distribution(read_text, mode, unit, score, mean):
    found = read_text(
        json.dumps([result(mode, unit, {"score": score, "rawData": [[score, score]]}, threads=2)]),
        "r.json",
    )
    only = found["demo.A.run n=1"]
    assert isinstance(only, Summary)
    assert only.mean == mean
    assert any("-bm sample" in note for note in only.run.notes)


def test_modes_of_one_benchmark_and_scores_that_are_not_time(read_text):
    rows = [result("avgt", "us/op", {"score": 1.0}), result("ss", "us/op", {"score": 9.0, "rawData": [[8.0, 10.0]]}),
            result("avgt", "us/op", {"score": "NaN"}, name="demo.A.broken")]  # fmt: skip
    seen = []
    found = read_text(json.dumps(rows), "r.json", report=seen.append)
    assert list(found) == ["demo.A.run n=1 (avgt)", "demo.A.run n=1 (ss)"]
    assert found["demo.A.run n=1 (ss)"].max == 10_000
    assert "broken" in seen[0]


@pytest.mark.parametrize("mark", [":p", ":run·p"])
def test_csv_percentile_rows(read_text, mark):
    head = (
        '"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit","Param: n"\n'
    )
    row = '"demo.A.run{}","sample",1,{},{},NaN,"us/op",1\n'
    text = head + row.format("", 5000, 2.5)
    for p, value in (("0.00", 1.0), ("0.50", 2.0), ("0.90", 3.0), ("0.99", 8.0), ("1.00", 90.0)):
        text += row.format(mark + p, 1, value)
    found = read_text(text, "r.csv")["demo.A.run n=1"]
    assert (found.count, found.percentile(99), found.max, found.min, found.mean) == (
        5000,
        8000,
        90_000,
        1000,
        2500,
    )


def test_a_throughput_of_zero_in_a_csv_has_no_mean(read_text):
    head = '"Benchmark","Mode","Threads","Samples","Score","Score Error (99.9%)","Unit"\n'
    rows = [
        f'"demo.A.{name}","thrpt",1,5,{score},NaN,"ops/s"\n'
        for name, score in (("slow", 0.0), ("run", 4.0))
    ]
    found = read_text(head + "".join(rows), "r.csv")
    assert (found["demo.A.slow"].stats, found["demo.A.run"].mean) == ({}, 250_000_000)


TABLE = """\
Benchmark                   (n)  (k)    Mode     Cnt     Score     Error  Units
A.run                         1   ab  sample  888579   0,421 ± 500,946  us/op
A.run:p0.00                   1   ab  sample             ≈ 10⁻³          us/op
A.run:run·p0.50               1   ab  sample             0,042          us/op
A.run:run·p0.999              1   ab  sample             3,916          us/op
A.run:run·p1.00               1   ab  sample         95944,704          us/op
A.run                         2   ab   thrpt               4,000         ops/us
A.mean                        2   ab    avgt      10     1,129 ± 0,546  ms/op
"""


def test_the_table_that_it_prints(read_text):
    found = read_text(
        "# JMH version: 1.37\n# Threads: 2 threads, will synchronize iterations\n" + TABLE
    )
    run, pace, mean = (found[f"A.{name} k=ab"] for name in ("run n=1", "run n=2", "mean n=2"))
    assert (run.count + run.censored, run.mean, run.max, run.run.version) == (
        888579,
        421,
        95944704,
        "1.37",
    )
    assert run.percentile([50, 99.9]).tolist() == [42, 3916]
    assert any("p0 ≈ 10⁻³ us/op" in note for note in run.run.notes)  # not a number
    assert (pace.mean, mean.mean, mean.count) == (500, 1_129_000, 10)  # two threads


def test_a_run_that_did_not_end_and_a_corrupt_row(read_text):
    with pytest.raises(CorruptInputError, match="the table of results is missing"):
        read_text("# JMH version: 1.37\n# Warmup Iteration   1: 420.956 ns/op\n")
    with pytest.raises(CorruptInputError, match=r"out\.txt:4: 'A\.run:run·p0\.50"):
        read_text(TABLE.replace("0,042 ", "fast "))


def means(found):
    return {name: (data.stats.get("mean"), data.count) for name, data in found.items()}


@pytest.mark.parametrize(
    ("heading", "row", "expected"),
    [
        ("Mode   Samples        Score  Score error    Units", "avgt         9       15.405        0.481    ns/op", (15.405, 9)),
        ("Mode   Samples         Mean   Mean error    Units", "avgt         9       15.405          NaN    ns/op", (15.405, 9)),
        ("Mode Thr    Count  Sec         Mean   Mean error    Units", "avgt   1        9    1       15.405        0.481    ns/op", (15.405, 9)),
        ("Mode Cnt Score Error Units", "avgt 15.405 ns/op", (15.405, None)),
        ("Mode  Score  Error  Units", "avgt  15.405  0.481  ns/op", (15.405, None)),
        ("Mode  Cnt  Score  Error  Units", "avgt  9  15,405 ± 0,481  ns/op", (15.405, 9)),
        ("Mode  Cnt  Score  Error  Units", "avgt  9  2.015,405 ± 0,481  ns/op", (2015.405, 9)),
        ("Mode  Cnt  Score  Error  Units", "avgt  9  2,015.405 ?  0.481  ns/op", (2015.405, 9)),
    ],
)  # fmt: skip
def test_columns_of_all_versions_and_marks_of_decimals(read_text, heading, row, expected):
    """A row without ± has the count before the score, and the error behind it."""
    assert means(read_text(f"Benchmark {heading}\nA.run {row}\n")) == {"A.run": expected}


def test_thousands_with_blanks_are_not_guessed(read_text):
    for row in ("avgt 5 10 512.959 ± 2.1 ns/op", "avgt 5 10 512.959 ns/op"):
        with pytest.raises(CorruptInputError, match=r"out\.txt:2: 'A\.run"):
            read_text(f"Benchmark Mode Cnt Score Error Units\nA.run {row}\n")


def test_marks_of_decimals_are_those_of_the_column(read_text):
    rows = "A.short avgt 5 937.815 ± 4.736 ns/op\nA.long avgt 5 10,512 ± 3.1 ns/op\n"
    found = read_text("Benchmark Mode Cnt Score Error Units\n" + rows)
    assert means(found) == {"A.short": (937.815, 5), "A.long": (10512, 5)}
    with pytest.raises(CorruptInputError, match=r"A\.short"):  # thousands, or decimals?
        read_text("Benchmark Mode Cnt Score Error Units\n" + rows.replace("3.1", "3,123"))


PROFILED = """\
Benchmark                        (n)   Mode  Cnt     Score    Error   Units
A.run                              1   avgt    5    12.345 ±  0.123   ns/op
A.run:+c2k.gc.maximumUsedAfterGc   1   avgt    5  5125.000            bytes
A.run:·gc.alloc.rate               1   avgt    5   234.567 ± 12.345  MB/sec
A.run:gc.alloc.rate.norm           1   avgt    5    ≈ 10⁻⁵             B/op
A.run:·gc.count                    1   avgt    5       ≈ 0           counts
A.run:gc.time                      1   avgt    5    33.000               ms
A.run:·stack                       1   avgt            NaN              ---

A.walk                             1   avgt    5     8.000 ±  0.123   ns/op
"""


@pytest.mark.parametrize(
    "wrap",
    [
        str,
        lambda text: text.replace("Units\n", "Units\n\n"),
        lambda text: "".join(f"[INFO] {line}\n" for line in text.splitlines()) + "[INFO] ----\n",
        lambda text: "/**\n" + "".join(f" * {line}\n" for line in text.splitlines()) + " */\n",
        lambda text: "class A {\n" + "".join(f"  // {line}\n" for line in text.splitlines()),
        lambda text: (
            "".join(f"|{'|'.join(line.split())}|\n" if line else "\n" for line in text.splitlines())
            .replace("|", " | ")
            .replace("Units |\n", "Units |\n |---|---|\n")
        ),
        lambda text: f"$ java -jar b.jar\n{text}$ cat avgt\n",
        lambda text: f"<pre>\n{text}</pre>\nThe sample is small.\n",
        lambda text: f"# Results\n\n```\n{text}```\nand avgt is the mode\n",
        lambda text: text.replace(" (n) ", "|(n)|").replace("|", " | ").replace("Units", "Units |"),
    ],
)
def test_profilers_and_what_is_around_a_table(read_text, wrap):
    found = read_text(wrap(PROFILED))
    assert means(found) == {"A.run n=1": (12.345, 5), "A.walk n=1": (8, 5)}


def test_orders_of_magnitude_are_not_numbers(read_text):
    head = "Benchmark Mode Cnt Score Error Units\n"
    rough = "A.run sample 500 ≈ 10⁻⁴ s/op\nA.run:p0.50 sample ? 10?? s/op\n"
    with pytest.raises(CorruptInputError, match=r"too small to be printed.*-tu ns"):
        read_text(head + rough)
    found = read_text(head + rough + "A.run:p0.00 sample ? 0 s/op\nA.run:p1.00 sample 0.001 s/op\n")
    data = found["A.run"]
    assert (data.stats, data.reported_percentiles, data.count) == ({"min": 0, "max": 1e6}, {}, 500)
    assert any("mean ≈ 10⁻⁴ s/op, p50 ≈ 10?? s/op" in note for note in data.run.notes)


def test_tables_of_several_runs_and_of_equal_names(read_text):
    log = "# Threads: {} threads, will synchronize iterations\n# Benchmark mode: x\n# Benchmark: d.A.run\n"
    text = log.format(2) + "Benchmark Mode Cnt Score Units\nA.run thrpt 5 1.0 ops/us\n\nDone.\n"
    found = read_text(text + text.replace("2 threads", "4 threads"))
    assert means(found) == {"run 1 A.run": (2000, 5), "run 2 A.run": (4000, 5)}
    with pytest.raises(CorruptInputError, match=r"out\.txt:12: a row"):
        read_text(text + text.replace("1.0", "fast"))
    rows = "A.run avgt 5 1.0 ns/op\nA.run avgt 5 2.0 ns/op  cached\n"
    assert means(read_text("Benchmark Mode Cnt Score Units\n" + rows)) == {
        "A.run": (1, 5),
        "A.run (2)": (2, 5),
    }


def test_rows_without_their_heading(read_text):
    found = read_text("A.run          sample  5000  2.500 ± 0.100  us/op\nA.run:p0.50    sample        2.000          us/op\nA.run:p1.00    sample       90.000          us/op\n")  # fmt: skip
    data = found["A.run"]
    assert (data.count, data.stats["max"], data.reported_percentiles) == (5000, 90_000, {50: 2000})


def test_results_of_a_run_that_was_cut(read_text):
    found = read_text("""\
# JMH version: 1.21
# Threads: 2 threads, will synchronize iterations
# Benchmark mode: Sampling time
# Benchmark: demo.A.run
# Parameters: (n = 1, kind = ab)

Result "demo.A.run":
  N = 5000
  mean =      2.500 ±(99.9%) 0.100 us/op

  Percentiles, us/op:
      p(0.0000) =      1.000 us/op
     p(50.0000) =      2.000 us/op
     p(99.0000) =      8.000 us/op
    p(100.0000) =     90.000 us/op

# Threads: 2 threads, will synchronize iterations
# Benchmark mode: Throughput, ops/time
# Benchmark: demo.A.walk

Iteration   1: 4.000 ops/us
Result "demo.A.walk":
  4.000 ±(99.9%) 1.000 ops/us [Average]
  (min, avg, max) = (3.900, 4.000, 4.100), stdev = 0.078

# Benchmark: demo.A.late
""")
    run, walk = found["demo.A.run n=1 kind=ab"], found["demo.A.walk"]
    assert (run.count, run.percentile(99), run.max, run.mean) == (5000, 8000, 90_000, 2500)
    assert (walk.mean, walk.count) == (500, None)
