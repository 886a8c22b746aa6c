"""Tables of percentiles: Flotilla's, and others with bars."""

from __future__ import annotations

import pytest

from latencykit.errors import DataNotAvailableError

FLOTILLA = """Running benchmark
+----------+----------------+-------+-----+-----+-----+------+------+---------+------+---------+
| CONSUMER |      NODE      | ERROR | MIN | Q1  | Q2  |  Q3  | MAX  |  MEAN   | IQR  | STD DEV |
+----------+----------------+-------+-----+-----+-----+------+------+---------+------+---------+
| 1        | localhost:9000 | false | 0   | 415 | 873 | 1319 | 1795 | 877.406 | 904  | 519.711 |
| 2        | 10.0.0.2:9000  | true  | 0   | 0   | 0   | 0    | 0    | 0.000   | 0    | 0.000   |
+----------+----------------+-------+-----+-----+-----+------+------+---------+------+---------+
"""


@pytest.mark.parametrize("text", [FLOTILLA, FLOTILLA.title(), FLOTILLA.replace("\n", "\r\n")])
def test_quartiles_of_each_consumer(read_text, text):
    found = read_text(text)
    assert [name.lower() for name in found] == ["consumer 1 (localhost:9000)"]
    s = next(iter(found.values()))
    assert (s.percentile(25), s.percentile(50), s.percentile(75)) == (415e6, 873e6, 1319e6)
    assert (s.min, s.max, s.mean, s.std) == (0, 1795e6, 877.406e6, 519.711e6)
    assert any("1 further consumer failed" in note for note in s.run.notes)
    with pytest.raises(DataNotAvailableError, match="full distribution"):
        s.percentile(99)
