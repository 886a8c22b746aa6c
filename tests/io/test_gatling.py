"""Gatling: logs of old and new text versions, binary ones, the report's statistics."""

from __future__ import annotations

import pytest

from latencykit.errors import CorruptInputError

NEW = (
    "ASSERTION\tAAECAAMB\nRUN\ta.B\tb\t1658765864198\t \t3.4.2\nUSER\tscn\tSTART\t1658765870186\n"
    "REQUEST\t\tGet\t1658765870247\t1658765870430\tOK\t \n"
    "REQUEST\tlogin\tPost\t1658765870500\t1658765870600\tKO\tstatus.find.is(200), but actually "
    "found 503\n"
    "REQUEST\t\tGet\t1658765871000\t1658765931000\tKO\tRequest timeout to h/1.2.3.4:80 after "
    "60000 ms\n"
    "GROUP\tlogin\t1658765870186\t1658765870731\t100\tOK\n"
)


def test_corruption(read_text):
    with pytest.raises(CorruptInputError, match=r"simulation\.log:5: not a valid record"):
        read_text(NEW.replace("1658765870600", "soon"), "simulation.log")
    assert (
        len(read_text(NEW.replace("1658765870600", "soon"), "simulation.log", lenient=True)["Get"])
        == 2
    )
    assert any(
        "truncated" in note
        for note in read_text(NEW + "REQUEST\t\tGe", "simulation.log")["all"].run.notes
    )
    # A cut record of another kind costs no request.
    user = read_text(NEW + "USER\t12\tBro", "simulation.log")["all"]
    assert not any("truncated" in note for note in user.run.notes)
    with pytest.raises(CorruptInputError, match=r"binary simulation\.log"):
        read_text(b"\x00\x00\x00\x00\x063.12.0" + bytes(range(200)), "simulation.log")
