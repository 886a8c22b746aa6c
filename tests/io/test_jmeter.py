"""JMeter's JTL: outcomes, transactions, other delimiters, dates, corruption."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

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
