"""siege's table in both spellings."""

from __future__ import annotations

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


def test_every_run_of_a_file(read_text):
    runs = read_text(
        "@ Try 1\n"
        + TEXT
        + "\n@ Try 2\n"
        + TEXT.replace("Longest transaction:", "Longest transaction: 9")
    )
    assert list(runs) == ["run 1", "run 2"]
    assert runs["run 2"].max > runs["run 1"].max == read_text(TEXT)["out.txt"].max
