"""bpftrace and bcc: edges, powers, units, several reports."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError

MAP = """Attaching 3 probes...

@usecs:
[0]                    2 |@                                                   |
[1]                    5 |@@@                                                 |
[512, 1K)             10 |@                                                   |
[1K, 2K)             426 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
[2K, ...)              3 |                                                    |

@ns[dd, 12]:
(..., 0)               1 |@                                                   |
[0, 100)              20 |@@@                                                 |
"""
TABLE = """Tracing block device I/O... Hit Ctrl-C to end.

disk = b'xvdb'
     usecs               : count     distribution
         0 -> 1          : 0        |                                        |
         2 -> 3          : 12       |****                                    |

disk = b'xvda1'
     usecs               : count     distribution
        16 -> 31         : 4        |**                                      |

disk = b'xvdb'
     usecs               : count     distribution
         2 -> 3          : 1        |****                                    |
"""


def test_powers_of_1024_and_an_open_end(read_text):
    found = read_text(MAP)
    h = found["@usecs"]
    assert h.buckets.low(h.index).tolist() == [0, 1_000, 512_000, 1_024_000]
    assert h.buckets.high(h.index).tolist() == [999, 1_999, 1_023_999, 2_047_999]
    assert (h.count, h.censored, h.censored_at) == (443, 3, 2_048_000)
    other = found["@ns[dd, 12]"]
    assert (other.count, other.max, other.run.unit) == (20, 99, "ns")
    assert any("negative" in note for note in other.run.notes)


def test_a_nameless_map_is_assumed_to_be_microseconds(read_text):
    text = MAP.replace("@usecs", "@")
    assert read_text(text)["@"].run.unit_from == "assumed"
    assert read_text(text, unit="ns")["@"].max == 2047


def test_reports_that_grow_count_once_and_cleared_ones_add_up(read_text):
    more = MAP.replace(" 426 ", " 500 ")
    assert read_text(MAP + "\n" + more)["@usecs"].count == 443 + 74
    fewer = MAP.replace(" 426 ", "   6 ")
    assert read_text(MAP + "\n" + fewer)["@usecs"].count == 443 + 23


def test_corruption(read_text):
    with pytest.raises(CorruptInputError, match=r"out\.txt:6: not a row"):
        read_text(MAP.replace("[512, 1K)", "[512, huh)"))


def test_json(read_text):
    lines = [
        {"type": "attached_probes", "data": {"probes": 1}},
        {
            "type": "hist",
            "data": {"@us": {"read": [{"min": 2, "max": 3, "count": 4}, {"min": 4, "count": 1}]}},
        },
    ]
    h = read_text("\n".join(json.dumps(one) for one in lines))["@us[read]"]
    assert (h.count, h.censored, h.censored_at, h.max) == (4, 1, 4_000, 3_999)


def test_bcc_tables_by_their_labels(read_text):
    found = read_text(TABLE)
    assert list(found) == ["disk = b'xvdb'", "disk = b'xvda1'"]
    assert (found["disk = b'xvdb'"].count, found["disk = b'xvdb'"].max) == (13, 3_999)
    assert any("2 reports" in note for note in found["disk = b'xvdb'"].run.notes)
