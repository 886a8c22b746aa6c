"""JMeter's JTL: outcomes, transactions, other delimiters, dates, corruption."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError
from tests.io.conftest import lost

HEADER = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,allThreads\n"
ROWS = [
    "1795220742902,60,get,200,OK,T 1-1,true,2\n",
    "1795220742950,5,get,503,Busy,T 1-2,false,2\n",
    (
        "1795220743000,2000,put,Non HTTP response code: java.net.SocketTimeoutException,Read timed "
        "out,T 1-1,false,2\n"
    ),
    "1795220743100,7,put,200,OK,T 1-2,true,2\n",
]


def test_outcomes_are_counted_apart(read_text):
    found = read_text(HEADER + "".join(ROWS), "r.jtl")
    assert list(found) == ["all", "get", "put"]
    h = found["all"].histogram()
    assert (h.count, h.run.failed, h.run.timeouts, h.censored, h.censored_at) == (2, 1, 1, 1, 2e9)
    assert found["all"].run.aggregate
    assert not found["get"].run.aggregate
    assert found["all"].run.connections == 2
    assert found["all"].start[0] == 1795220742902 * 10**6


def test_transactions_stay_out_of_the_aggregate(read_text):
    row = '1795220742902,67,login,,"Number of samples in transaction : 2, number of failing samples : 0",T 1-1,true,2\n'
    found = read_text(HEADER + "".join(ROWS) + row, "r.jtl")
    assert len(found["all"]) == 4
    assert len(found["login"]) == 1
    assert any("login" in note for note in found["all"].run.notes)


@pytest.mark.parametrize("sep", [";", "\t"])
def test_other_delimiters(read_text, sep):
    text = (HEADER + ROWS[0]).replace(",", sep)
    assert read_text(text, "r.jtl")["get"].duration.tolist() == [60_000_000]


def test_dates_instead_of_milliseconds(read_text):
    text = HEADER + ROWS[0].replace("1795220742902", "2026/11/21 00:25:42.902")
    assert read_text(text, "r.jtl")["get"].start.tolist() == [1795220742902 * 10**6]


def test_a_file_without_header(read_text):
    row = "1795220742902,60,root,200,OK,Thread Group 1-2,text,true,,119,118,4,4,http://a/,56,0,52\n"
    assert read_text(row * 2, "r.jtl")["root"].duration.tolist() == [60_000_000] * 2


def test_corruption_names_the_line_and_lenient_goes_on(read_text):
    text = (
        HEADER
        + ROWS[0]
        + '1795220742902,"x\ny",get,200,OK,T,true,2\n'
        + ROWS[1].replace(",5,", ",fünf,")
        + ROWS[3]
    )
    with pytest.raises(CorruptInputError, match=r"r\.jtl:3: "):
        read_text(text, "r.jtl")
    seen = []
    found = read_text(text, "r.jtl", lenient=True, report=seen.append)
    assert len(found["all"]) == 2
    assert [one.split("r.jtl:")[1][0] for one in seen] == ["3", "5"]


def test_a_cut_last_line_is_a_note(read_text):
    found = read_text(HEADER + "".join(ROWS) + "1795220743200,2", "r.jtl")
    assert len(found["all"]) == 4
    assert any("truncated" in note for note in found["all"].run.notes)


def test_xml_without_its_end_is_a_note(read_text):
    text = '<?xml version="1.0"?>\n<testResults version="1.2">\n<sample t="3" ts="1" s="true" lb="&lt;a&gt;" tn="t"/>\n'
    found = read_text(text, "r.xml")
    assert list(found) == ["<a>"]
    assert any("</testResults>" in note for note in found["<a>"].run.notes)


def test_the_summary_that_it_prints(read_text):
    line = "summary {} {:6} in 00:01:42 =  100.0/s Avg:    22 Min:     2 Max:   310 Err:     3 (0.07%)\n"
    text = "Starting standalone test\n" + line.format("+", 1200) + line.format("=", 1200)
    text += line.format("+", 3000) + line.format("=", 4200) + "Tidying up ...\n"
    found = read_text(text)["out.txt"]
    assert (found.count, found.run.failed, found.run.duration) == (4197, 3, 102)
    assert found.stats == {"mean": 22e6, "min": 2e6, "max": 310e6}
    old = "2015-03-01 10:00:01,000 INFO Summariser: Generate Summary Results = 9 in 8.5s = 1.1/s Avg: 3 Min: 1 Max: 7 Err: 0"
    assert read_text(old)["out.txt"].run.duration == 8.5
    assert lost(read_text(line.format("=", 3))) == "3 failed"


LINE = "summary {} {:6} in {} =  100.0/s Avg:    22 Min:    {} Max:   {} Err:     {} (0.07%)\n"


def test_summaries_of_several_runs(read_text):
    first = LINE.format("=", 900, "00:00:09", 2, 200, 0) + LINE.format(
        "=", 1200, "00:00:12", 1, 310, 3
    )
    second = LINE.format("=", 1200, "00:00:15", 4, 510, 1200)
    found = read_text(f"Run 1:\n{first}\nRun 2:\n{second}")
    assert [(name, one.count, one.run.failed) for name, one in found.items()] == [
        ("run 1", 1197, 3),
        ("run 2", 0, 1200),
    ]


def test_a_summary_of_intervals_only_and_with_decimal_commas(read_text):
    text = LINE.format("+", 100, "00:00:10", 2, 30, 1) + LINE.format("+", 300, "20,5s", 1, 60, 0)
    found = read_text(text.replace("Avg:    22", "Avg:    10", 1))["out.txt"]
    assert (found.count, found.run.failed, found.run.duration) == (399, 1, 30.5)
    assert found.stats == {"mean": 19e6, "min": 1e6, "max": 60e6}


def test_times_without_a_date(read_text):
    rows = "23:59:58;100;a;true\n23:59:59;200;a;true\n00:00:01;300;a;true\n"
    found = read_text(f"timeStamp;elapsed;label;success\n{rows}", "out.jtl")["a"]
    assert (found.start - found.start[0]).tolist() == [0, 1_000_000_000, 3_000_000_000]
    assert "timeStamp contains times without a date" in found.run.notes
    with pytest.raises(CorruptInputError, match=r"\(noon\)"):
        read_text(f"timeStamp;elapsed;label;success\n{rows}".replace("23:59:58", "noon"), "out.jtl")


def test_two_tests_in_one_log_are_two_runs(read_text):
    text = "".join(
        "Starting standalone test @ 2026 Nov 20\n" + LINE.format("=", count, "00:00:10", 1, 71, 0)
        for count in (1000, 4000)
    )
    assert [data.count for data in read_text(text).values()] == [1000, 4000]
