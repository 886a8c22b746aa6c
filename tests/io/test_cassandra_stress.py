"""cassandra-stress: one operation, several, old and new spelling."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

NEW = """Rate:
  Auto: false
  Thread Count: 50
  OpsPer Sec: {ops}
type                                               total ops,    op/s,    pk/s
total,                                                 41684,   41684,   41684,
total,                                               1000000,   41684,   41684,

Results:
Op rate                   :   50,123 op/s  [READ: 25,000 op/s, WRITE: 25,123 op/s]
Latency mean              :    3.9 ms [READ: 3.8 ms, WRITE: 4.0 ms]
Latency median            :    3.0 ms [READ: 2.9 ms, WRITE: 3.1 ms]
Latency 95th percentile   :    8.9 ms [READ: 8.8 ms, WRITE: 9.0 ms]
Latency 99th percentile   :   15.5 ms [READ: 15.0 ms, WRITE: 16.0 ms]
Latency 99.9th percentile :   66.8 ms [READ: 60.0 ms, WRITE: 70.0 ms]
Latency max               : 1,193.3 ms [READ: 100.0 ms, WRITE: 1,193.3 ms]
Total partitions          :  1,000,000 [READ: 400,000, WRITE: 600,000]
Total errors              :          7 [READ: 7, WRITE: 0]
Total operation time      : 00:00:20
"""


def test_operations_and_their_sum(read_text):
    found = read_text(NEW.format(ops=0))
    assert list(found) == ["total", "READ", "WRITE"]
    total = found["total"]
    assert (total.count, total.percentile(99), total.max, total.run.failed) == (
        1_000_000,
        15.5e6,
        1193.3e6,
        7,
    )
    assert (total.run.aggregate, total.run.duration, total.run.connections, total.run.loop) == (
        True,
        20.0,
        50,
        "closed",
    )
    assert (found["READ"].count, found["WRITE"].max, found["WRITE"].percentile(50)) == (
        400_000,
        1193.3e6,
        3.1e6,
    )


@pytest.mark.parametrize(
    ("command", "measure"),
    [("", "unknown"), ("fixed=1000/s", "response"), ("throttle=1000/s", "service")],
)
def test_a_rate_alone_does_not_tell_the_measure(read_text, command, measure):
    run = read_text(f"cassandra-stress write -rate threads=50 {command}\n" + NEW.format(ops=1000))[
        "total"
    ].run
    assert (run.rate, run.measure) == (1000.0, measure)


def test_one_operation_in_the_old_spelling(read_text):
    text = """Results:
op rate                   : 50123 [WRITE:50123]
latency mean              : 3.9 [WRITE:3.9]
latency median            : 3.0 [WRITE:3.0]
latency 95th percentile   : 8.9 [WRITE:8.9]
latency 99th percentile   : 15.5 [WRITE:15.5]
latency 99.9th percentile : 66.8 [WRITE:66.8]
latency max               : 193.3 [WRITE:193.3]
Total partitions          : 1000000 [WRITE:1000000]
Total operation time      : 00:01:02
"""
    found = read_text(text)
    assert list(found) == ["WRITE"]
    assert (found["WRITE"].count, found["WRITE"].mean, found["WRITE"].run.duration) == (
        1_000_000,
        3.9e6,
        62.0,
    )


def test_a_run_that_never_ended(read_text):
    with pytest.raises(CorruptInputError, match="results at the end"):
        read_text(NEW.split("Results")[0].format(ops=0))


def test_runs_with_more_and_more_threads_are_runs(read_text):
    results = NEW[NEW.index("Results:") :].format(ops=0)
    threads = "### Running with {} threadCount\nRunning WRITE with {} threads for 9 iteration\n"
    indented = "".join(f"  {line}\n" for line in results.splitlines())
    found = read_text("".join(threads.format(n, n) + indented for n in (4, 8)))
    assert list(found)[:2] == ["run 1 total", "run 1 READ"]
    assert [found[f"run {n} total"].run.connections for n in (1, 2)] == [4, 8]
    assert found["run 2 total"].run.failed == 7


def test_what_is_not_counted_is_unknown(read_text):
    text = NEW[NEW.index("Results:") :].format(ops=0)
    lines = [line for line in text.splitlines() if not line.startswith("Total partitions")]
    assert read_text("\n".join(lines))["total"].count is None
    lines.append("Total operations          :   20000000")
    assert read_text("\n".join(lines))["total"].count == 20_000_000


def test_a_run_that_was_stopped_does_not_change_the_one_before(read_text):
    whole = NEW.format(ops=0)
    stopped = (
        "$ cassandra-stress mixed\n" + whole[: whole.index("total,   ")] + "total,  5,  5,  5,\n"
    )
    assert read_text(whole + stopped)["total"].count == 1_000_000
