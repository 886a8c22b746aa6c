"""siege's table in both spellings."""

from __future__ import annotations

import pytest

from latencykit.errors import DataNotAvailableError
from tests.io.conftest import lost

TEXT = """** SIEGE 4.0.4
Lifting the server siege...
Transactions:		        1200 hits
Availability:		       99.50 %
Elapsed time:		        9.12 secs
Data transferred:	        0.40 MB
Response time:		        0.25 secs
Transaction rate:	      131.58 trans/sec
Throughput:		        0.04 MB/sec
Concurrency:		       32.89
Successful transactions:        1200
Failed transactions:	           6
Longest transaction:	        1.23
Shortest transaction:	        0.05
"""


def test_text(read_text):
    found = read_text(TEXT)["out.txt"]
    assert (found.count, found.run.failed) == (1200, 6)
    assert (found.mean, found.min, found.max) == (250e6, 50e6, 1.23e9)
    with pytest.raises(DataNotAvailableError, match="distribution"):
        found.percentile(99)


def test_every_run_of_a_file(read_text):
    runs = read_text(
        "@ Try 1\n"
        + TEXT
        + "\n@ Try 2\n"
        + TEXT.replace("Longest transaction:", "Longest transaction: 9")
    )
    assert list(runs) == ["run 1", "run 2"]
    assert runs["run 2"].max > runs["run 1"].max == read_text(TEXT)["out.txt"].max


def test_lines_of_a_log_above_and_no_request_answered(read_text):
    record = (
        "[\x1b[1;33merror\x1b[0m] socket: unable to connect sock.c:282: Connection refused\n\n"
        '{\t"transactions":\t0,\n"availability": 0.00,"response_time": '
        '0.00,"longest_transaction": 0.00,'
        '"shortest_transaction": 0.00,"failed_transactions": 10}\n'
    )
    assert lost(read_text(record)) == "10 failed"
