"""wrk and wrk2: what they print, whatever stands around it."""

from __future__ import annotations

import re

import pytest

from latencykit.errors import CorruptInputError, DataNotAvailableError
from tests.io.conftest import lost

WRK = """Running 20s test @ http://127.0.0.1:18080/
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   692.81ms    1.51s    6.00s    85.42%
    Req/Sec     3.19k   304.43     3.56k    97.16%
  Latency Distribution
     50%    1.26ms
     75%    1.50ms
     90%    3.40s
     99%    5.74s
  44838 requests in 20.02s, 5.09MB read
Requests/sec:   2239.33
Transfer/sec:    260.23KB
"""
WRK2 = """Running 28s test @ http://127.0.0.1:18080/
  1 threads and 4 connections
  Thread calibration: mean lat.: 1.984ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.15s     1.81s    6.00s    80.58%
    Req/Sec   425.56    689.03     4.00k    95.12%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    2.38ms
 99.000%    5.84s
100.000%    6.00s

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       1.110     0.000000            1         1.00
       2.375     0.500000         3600         2.00
    5857.279     0.990625         7124       106.67
    6000.639     0.999756         7190      4096.00
    6000.639     1.000000         7190          inf
#[Mean    =     1150.052, StdDeviation   =     1808.748]
#[Max     =     5996.544, Total count    =         7190]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  11198 requests in 28.00s, 1.27MB read
Requests/sec:    399.92
Transfer/sec:     46.48KB
"""


def test_wrk_is_corrected_by_itself(read_text):
    found = read_text(WRK)["out.txt"]
    assert found.count == 44838
    assert found.percentile([50, 75, 90, 99, 100]).tolist() == [1.26e6, 1.5e6, 3.4e9, 5.74e9, 6e9]
    assert (found.mean, found.std) == (692.81e6, 1.51e9)
    run = found.run
    assert (run.loop, run.corrected, run.connections, run.duration, run.achieved) == (
        "closed",
        "tool",
        4,
        20.02,
        2239.33,
    )


def test_late_replies_are_censored_and_errors_are_not_good_requests(read_text):
    text = WRK.replace("3.40s", "1.40ms").replace("5.74s", "2.89ms").replace("6.00s", "11.90ms")
    closing = "  Socket errors: connect 1, read 2, write 3, timeout 800\n  Non-2xx or 3xx responses: 38\nRequests/sec"
    found = read_text(text.replace("Requests/sec", closing))["out.txt"]
    assert found.count == 44838 - 800 - 38
    assert (found.run.failed, found.run.timeouts, found.censored, found.censored_at) == (
        44,
        800,
        800,
        2e9,
    )
    assert found.percentile([50, 99.9]).tolist() == [1.26e6, 2e9]
    assert any("38 failed requests" in note for note in found.run.notes)
    assert any("--timeout (2 s" in note for note in found.run.notes)


def test_without_latency_no_distribution_is_read(read_text):
    head, rest = WRK.split("  Latency Distribution\n")
    found = read_text(head + rest[rest.index("  44838") :])["out.txt"]
    assert (found.count, found.mean, found.max) == (44838, 692.81e6, 6e9)
    with pytest.raises(DataNotAvailableError, match="--latency prints the distribution"):
        found.percentile(99)


def test_a_terminal_s_copy_with_prompt_colours_and_several_runs(read_text):
    second = (
        WRK.replace(":18080/", ":18080/b")
        .replace("1.26ms", "\x1b[31m260.00us\x1b[0m")
        .replace("6.00s", "1.20m")
    )
    found = read_text(
        "$ wrk -t1 -c4 --latency --timeout 30s http://x/\r\n"
        + (WRK + "\n" + second).replace("\n", "\r\n")
    )
    assert list(found) == ["http://127.0.0.1:18080/", "http://127.0.0.1:18080/b"]
    first, last = found.values()
    assert (first.run.timeout, last.percentile(50), last.max) == (30e9, 260e3, 72e9)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("     75%    1.50ms", "     75%    1.?0ms", 8),
        ("  44838 requests in", "  44x38 requests in", 12),
        ("3.40s", "3.40", 9),
    ],
)
def test_corruption_is_named(read_text, old, new, line):
    with pytest.raises(CorruptInputError, match=rf"out\.txt:{line}: "):
        read_text(WRK.replace(old, new))


def test_a_cut_report_is_taken_as_far_as_it_goes(read_text):
    found = read_text(WRK[: WRK.index("90%") + 4])["out.txt"]
    assert (found.percentile(75), found.count) == (1.5e6, None)
    assert any("truncated" in note for note in found.run.notes)
    whole = read_text(WRK[: WRK.index("Transfer")])["out.txt"]
    assert whole.count == 44838


def test_nothing_answered(read_text):
    rows = {
        "692.81ms": "0.00us",
        "1.51s": "0.00us",
        "6.00s": "0.00us",
        "85.42%": "-nan%",
        "44838": "0",
        "2239.33": "0.00",
    }
    text = WRK
    for old, new in rows.items():
        text = text.replace(old, new)
    text = text.replace(
        "Requests/sec", "  Socket errors: connect 0, read 0, write 0, timeout 12\nRequests/sec"
    )
    assert lost(read_text(text)) == "12 timed out"


def test_a_fork_with_a_percentile_in_place_of_the_maximum(read_text):
    found = read_text(WRK.replace("Max   +/-", "99%   +/-").replace("6.00s", "5.74s"))["out.txt"]
    assert "max" not in found.reported_stats
    assert found.censored_at == 5.74e9


def test_wrk2_s_spectrum_and_its_short_table(read_text):
    found = read_text("$ wrk2 -t1 -c4 -R 400 --latency http://x/\n" + WRK2)["corrected"]
    assert (found.count, found.max) == (7190, 6000.639e6)
    assert found.percentile([50, 50.1, 99, 100]).tolist() == [2.38e6, 5840e6, 5840e6, 6000.639e6]
    run = found.run
    assert (run.tool, run.loop, run.measure, run.corrected) == (
        "wrk2",
        "open",
        "response",
        "schedule",
    )
    assert (run.rate, run.expected_interval, run.duration) == (400.0, 1e7, 18.0)


def test_wrk2_s_uncorrected_spectrum_is_a_series_of_its_own(read_text):
    spectrum = WRK2[WRK2.index("  Latency Distribution") : WRK2.index("  11198")]
    more = spectrum.replace(
        "Recorded Latency)",
        "Uncorrected Latency (measured without taking delayed starts into account))",
    )
    more = (
        more.replace("2.38ms", "1.27ms")
        .replace("2.375 ", "1.268 ")
        .replace("5.84s", "1.99ms")
        .replace("5857.279", "   1.991")
    )
    found = read_text(WRK2.replace("  11198", "\n" + more + "  11198"))
    assert list(found) == ["corrected", "uncorrected"]
    assert found["uncorrected"].percentile([50, 99]).tolist() == [1.27e6, 1.99e6]
    assert (found["uncorrected"].run.measure, found["uncorrected"].run.corrected) == (
        "service",
        "none",
    )


def test_wrk2_without_latency_corrupt_and_cut(read_text):
    head, rest = WRK2[: WRK2.index("  Latency Distribution")], WRK2[WRK2.index("  11198") :]
    plain = read_text(head + rest)["corrected"]
    assert (plain.mean, plain.count, plain.run.tool) == (1.15e9, 11198, "wrk2")
    with pytest.raises(CorruptInputError, match=r"out\.txt:17: "):
        read_text(WRK2.replace("    5857.279     0.990625", "    58?7.279     0.990625"))
    with pytest.raises(CorruptInputError, match="ascend"):
        read_text(WRK2.replace("    5857.279     0.990625", "    9857.279     0.990625"))
    cut = read_text(WRK2[: WRK2.index("5857.279")])["corrected"]
    assert (cut.percentile(99), cut.max) == (5.84e9, 6e9)
    assert any("truncated" in note for note in cut.run.notes)


def test_wrk2_counts_timeouts_that_it_keeps(read_text):
    found = read_text(
        WRK2.replace(
            "Requests/sec", "  Socket errors: connect 0, read 0, write 0, timeout 8\nRequests/sec"
        )
    )["corrected"]
    assert (found.run.timeouts, found.censored, found.count) == (8, 0, 7190)


def test_wrk2_that_got_no_answer_says_so(read_text):
    """It prints ``-nan`` for the mean of nothing."""
    nothing = re.sub(r"(?m)^ +\d+\.\d+ +\d\.\d{6} .*\n", "", WRK2)
    nothing = re.sub(
        r"#\[Mean .*", "#[Mean    =         -nan, StdDeviation   =         -nan]", nothing
    )
    with pytest.raises(CorruptInputError, match="no request was answered"):
        read_text(nothing)


def test_failed_requests_in_the_histogram_of_wrk2_are_counted_once(read_text):
    refused = "  Non-2xx or 3xx responses: {}\nRequests/sec"
    some = read_text(WRK2.replace("Requests/sec", refused.format(198)))["corrected"]
    assert (some.count, some.run.failed, some.percentile(50)) == (11_000, 198, 2.375e6)
    none = read_text(WRK2.replace("Requests/sec", refused.format(11_198)))["corrected"]
    assert (none.count, none.run.failed) == (0, 11_198)


def test_runs_without_their_first_line_and_one_that_failed(read_text):
    bare = WRK[WRK.index("  Thread Stats") :]
    failed = bare.replace("Requests/sec", "  Non-2xx or 3xx responses: 44838\nRequests/sec")
    found = read_text(f"## one\n{bare}\n## two\n{failed}")
    assert [(name, one.count, one.run.failed) for name, one in found.items()] == [
        ("run 1", 44_838, 0),
        ("run 2", 0, 44_838),
    ]
    assert list(read_text(f"{WRK}\n{bare}")) == ["http://127.0.0.1:18080/", "run 2"]


@pytest.mark.parametrize("text", [WRK, WRK2])
def test_a_copy_without_leading_blanks(read_text, text):
    flat = re.sub(r"(?m)^ +| +(?= )", "", text)
    (found,), (whole,) = read_text(flat).values(), read_text(text).values()
    assert found == whole


def test_wrk2_without_its_details(read_text):
    begin, end = WRK2.index("  Detailed"), WRK2.index("#[Mean")
    found = read_text(WRK2[:begin] + WRK2[end:])["corrected"]
    assert (found.count, found.percentile(99), found.max) == (7190, 5.84e9, 6e9)
