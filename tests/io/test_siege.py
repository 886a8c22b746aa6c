"""siege's table in both spellings."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError, DataNotAvailableError
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


def test_a_mean_printed_as_nothing_is_worked_out(read_text):
    found = read_text(TEXT.replace("        0.25 secs", "        0.00 secs"))["out.txt"]
    assert found.mean == pytest.approx(32.89 * 9.12 / 1200 * 1e9, abs=1)
    assert any("concurrency" in note for note in found.run.notes)


def test_json_after_a_notice(read_text):
    record = (
        'New configuration template added to .siege\n{\t"transactions":\t10,\n"availability": '
        "100.0,"
        '"response_time": 0.5,"longest_transaction": 0.9,"shortest_transaction": '
        '0.1,"failed_transactions": 0}\n'
    )
    assert read_text(record)["out.txt"].mean == 5e8
    with pytest.raises(CorruptInputError, match=r"out\.txt:3: the JSON ends in the middle"):
        read_text(record[:-3])


def test_lines_of_a_log_above_and_no_request_answered(read_text):
    record = (
        "[\x1b[1;33merror\x1b[0m] socket: unable to connect sock.c:282: Connection refused\n\n"
        '{\t"transactions":\t0,\n"availability": 0.00,"response_time": '
        '0.00,"longest_transaction": 0.00,'
        '"shortest_transaction": 0.00,"failed_transactions": 10}\n'
    )
    assert lost(read_text(record)) == "10 failed"


def test_json_of_several_runs_with_text_between(read_text):
    one = (
        '{{\t"transactions":\t\t{},\n"availability":\t100.00,\n"elapsed_time":\t9.5,\n'
        '"response_time":\t0.5,\n"concurrency":\t4.0,\n"transaction_rate":\t8.0,\n'
        '"failed_transactions":\t{},\n"longest_transaction":\t1.5\n}}\n'
    )
    found = read_text(f"# one\n{one.format(76, 0)}\n# two\n{one.format(0, 12)}")
    assert [(one.count, one.run.failed) for one in found.values()] == [(76, 0), (0, 12)]
