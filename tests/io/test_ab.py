"""ApacheBench's text, rows and percentiles."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError, DataNotAvailableError

TEXT = """This is ApacheBench, Version 2.3 <$Revision: 1913912 $>
Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/

Benchmarking 127.0.0.1 (be patient).....done


Server Software:
Server Hostname:        127.0.0.1
Server Port:            18080

Document Path:          /
Document Length:        3 bytes

Concurrency Level:      4
Time taken for tests:   8.000 seconds
Complete requests:      25605
Failed requests:        0
Total transferred:      3661515 bytes
Requests per second:    3200.62 [#/sec] (mean)
Time per request:       1.250 [ms] (mean)
Time per request:       0.312 [ms] (mean, across all concurrent requests)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.0      0       1
Processing:     1    1   0.2      1      10
Waiting:        1    1   0.2      1       9
Total:          1    1   0.2      1      10

Percentage of the requests served within a certain time (ms)
  50%      1
  66%      1
  90%      1
  99%      2
 100%     10 (longest request)
"""


def test_text(read_text):
    found = read_text("$ ab -k -c 4 http://127.0.0.1/\n" + TEXT)["out.txt"]
    assert (found.count, found.min, found.max, found.mean, found.std) == (
        25605,
        1e6,
        10e6,
        1.25e6,
        0.2e6,
    )
    assert found.percentile([50, 99, 100]).tolist() == [1e6, 2e6, 10e6]
    run = found.run
    assert (run.version, run.command, run.duration, run.connections) == (
        "2.3",
        "ab -k -c 4 http://127.0.0.1/",
        8.0,
        4,
    )


def test_failures_are_reported_as_far_as_ab_does(read_text):
    failing = TEXT.replace(
        "Failed requests:        0\n",
        "Failed requests:        15\n   (Connect: 3, Receive: 0, Length: 12, Exceptions: "
        "0)\nNon-2xx responses:      20\n",
    )
    found = read_text(failing)["out.txt"]
    assert (found.count, found.run.failed) == (25585, 23)
    assert any("20 failed requests" in note for note in found.run.notes)
    assert any("12 replies of another length" in note for note in found.run.notes)


def test_pages_that_vary_in_length_have_not_failed(read_text):
    varying = TEXT.replace(
        "Failed requests:        0\n",
        "Failed requests:        25604\n   (Connect: 0, Receive: 0, Length: 25604, Exceptions: 0)\n",
    )
    found = read_text(varying)["out.txt"]
    assert (found.count, found.run.failed) == (25605, 0)


def test_fewer_tables(read_text):
    shorter = TEXT[: TEXT.index("\nPercentage")]
    found = read_text(shorter)["out.txt"]
    assert (found.count, found.max, found.mean) == (25605, 10e6, 1.25e6)
    with pytest.raises(DataNotAvailableError, match="distribution"):
        found.percentile(99)
    simple = TEXT.replace("mean[+/-sd] median   max", "avg   max").replace(
        "1    1   0.2      1      10\n\nP", "1    1    10\n\nP"
    )
    assert read_text(simple)["out.txt"].max == 10e6
    none = read_text(TEXT[: TEXT.index("\nConnection")])["out.txt"]
    assert (none.mean, none.count) == (1.25e6, 25605)


def test_several_cut_corrupt_and_stopped(read_text):
    assert list(read_text(TEXT + "\n" + TEXT)) == ["run 1", "run 2"]
    cut = read_text(TEXT[: TEXT.index("99%") + 2])["out.txt"]
    assert any("truncated" in note for note in cut.run.notes)
    with pytest.raises(CorruptInputError, match=r"out\.txt:34: "):
        read_text(TEXT.replace("  99%      2", "  99%      x"))
    with pytest.raises(CorruptInputError, match=r"out\.txt:25: the row Total"):
        read_text(
            TEXT.replace("Total:          1    1   0.2      1      10", "Total:          1    1")
        )
    stopped = (
        TEXT[: TEXT.index("....done")]
        + "\napr_pollset_poll: The timeout specified has expired (70007)\nTotal of 88 requests "
        "completed\n"
    )
    with pytest.raises(CorruptInputError, match="did ab run to its end"):
        read_text(stopped)
    with pytest.raises(CorruptInputError, match="no request was answered"):
        read_text(TEXT.replace("Complete requests:      25605", "Complete requests:      0"))


def test_rows(read_text):
    rows = [f"Sat Nov 21 00:16:2{k} 2026\t179522018{k}\t0\t{k}\t{k}\t{k}" for k in (4, 3, 0)]
    text = "starttime\tseconds\tctime\tdtime\tttime\twait\n" + "\n".join(rows) + "\n"
    found = read_text(text, "plot.tsv")["plot.tsv"]
    assert found.duration.tolist() == [4_000_000, 3_000_000, 0]
    assert found.start.tolist() == [
        1_795_220_184_000_000_000,
        1_795_220_183_000_000_000,
        1_795_220_180_000_000_000,
    ]
    with pytest.raises(CorruptInputError, match=r"plot\.tsv:3: "):
        read_text(text.replace("\t3\t3\t3", "\t3\tx\t3"), "plot.tsv")


def test_percentiles(read_text):
    text = "Percentage served,Time in ms\n0,1.046\n50,1.232\n99,1.604\n"
    found = read_text(text, "p.csv")["p.csv"]
    assert (found.count, found.min, found.percentile(50), found.percentile(99)) == (
        None,
        1_046_000,
        1_232_000,
        1_604_000,
    )
    with pytest.raises(CorruptInputError, match=r"p\.csv:3: "):
        read_text(text.replace("1.232", "1.x"), "p.csv")
    cut = read_text(text[:-3], "p.csv")["p.csv"]
    assert 99 not in cut.reported_percentiles
    assert any("truncated" in note for note in cut.run.notes)


def test_a_run_that_failed_completely_has_no_good_request(read_text):
    text = TEXT.replace("Failed requests:", "Non-2xx responses:      25605\nFailed requests:")
    found = read_text(text)["out.txt"]
    assert (found.count, found.run.failed) == (0, 25605)
    assert list(read_text(TEXT + text)) == ["run 1", "run 2"]


@pytest.mark.parametrize("end", ["```\n", "</pre>\n<h3>Next</h3>\n", "----------\nNext run\n"])
def test_what_follows_the_table_without_a_blank_line(read_text, end):
    found = read_text(TEXT.rstrip() + "\n" + end)["out.txt"]
    assert found.percentile(99) == read_text(TEXT)["out.txt"].percentile(99)
    inside = TEXT.rstrip().replace("(longest request)", "(last request)</pre>")
    assert read_text(inside + "\n")["out.txt"].max == found.max
