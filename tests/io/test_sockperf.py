"""sockperf: packets with and without a latency column, percentiles in colour."""

from __future__ import annotations

HEAD = "sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m\n"
PREFACE = "------------------------------\nsockperf: [Valid Duration] RunTime=2.548 sec; SentMessages=2\n{what}\n"
ROWS = "packet, txTime(sec), rxTime(sec){column}\n0, 2.404985609, 2.405023175{a}\n1, 2.406985603, 2.407031844{b}\n------\n"


def test_the_latency_column_is_taken_as_it_is(read_text):
    text = PREFACE.format(what="====> avg-rtt=41.9") + ROWS.format(
        column=", rtt(usec)", a=", 37.566", b=", 46.241"
    )
    found = read_text(text)["out.txt"]
    assert found.duration.tolist() == [37_566, 46_241]
    assert found.start.tolist() == [2_404_985_609, 2_406_985_603]


def test_without_it_the_trip_is_halved_unless_full(read_text):
    rows = ROWS.format(column="", a="", b="")
    assert read_text(PREFACE.format(what="avg-rtt=41.9") + rows)["out.txt"].duration.tolist() == [
        37_566,
        46_241,
    ]
    half = read_text(PREFACE.format(what="avg-latency=20.9") + rows)["out.txt"]
    assert half.duration.tolist() == [18_783, 23_120]
    assert any("half" in note for note in half.run.notes)


def test_text(read_text):
    text = HEAD + (
        "sockperf: \x1b[2;35mTotal 1275 observations\x1b[0m; each percentile contains 12.75 "
        "observations\n"
        "sockperf: ---> <MAX> observation = 1827.267\nsockperf: ---> percentile 99.000 =  140.948\n"
        "sockperf: ---> percentile 50.000 =   56.090\nsockperf: ---> <MIN> observation =   29.055\n"
        "sockperf: # dropped messages = 4;\n"
    )
    found = read_text(text)["out.txt"]
    assert (found.count, found.max, found.percentile(99), found.run.dropped) == (
        1275,
        1_827_267,
        140_948,
        4,
    )
    assert found.run.version == "3.7-no.git"
