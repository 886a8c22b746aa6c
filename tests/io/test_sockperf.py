"""sockperf: packets with and without a latency column, percentiles in colour."""

from __future__ import annotations

HEAD = "sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m\n"


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
