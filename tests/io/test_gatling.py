"""Gatling: logs of old and new text versions, binary ones, the report's statistics."""

from __future__ import annotations

import json

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


def test_requests_of_a_run(read_text):
    found = read_text(NEW, "simulation.log")
    assert list(found) == ["all", "Get", "login / Post"]
    h = found["all"].histogram()
    assert (h.count, h.run.failed, h.run.timeouts, h.max, h.censored_at) == (1, 1, 1, 183e6, 60e9)
    assert found["Get"].start[0] == 1658765870247_000_000
    assert found["all"].run.version == "3.4.2"


@pytest.mark.parametrize(
    "line",
    [
        "REQUEST\t7\t\tGet\t1658765870247\t1658765870430\tOK\t ",
        "scn\t7\tREQUEST\t\tGet\t1658765870247\t1658765870430\tOK\t ",
    ],
)
def test_older_versions(read_text, line):
    assert read_text("RUN\ta.B\tb\t1658765864198\t \t3.0.0\n" + line + "\n", "simulation.log")[
        "Get"
    ].duration.tolist() == [183_000_000]


def test_unfinished_requests(read_text):
    text = NEW + "REQUEST\t\tGet\t1658765871000\t-9223372036854775808\tKO\t \n"
    assert read_text(text, "simulation.log")["all"].histogram().run.unfinished == 1


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


def test_statistics_of_the_report(read_text):
    def stats(name, ok):
        both = {"total": str(ok + 3), "ok": str(ok), "ko": "3"}
        times = {key: {"total": "9", "ok": value, "ko": "-"} for key, value in (
            ("minResponseTime", "2"), ("maxResponseTime", "1,345"), ("meanResponseTime", "20"),
            ("standardDeviation", "5"),
            ("percentiles1", "15"), ("percentiles2", "25"), ("percentiles3", "95"),
            ("percentiles4", "200"))}  # fmt: skip
        return {"name": name, "numberOfRequests": both} | times

    inner = {"req_1": {"type": "REQUEST", "name": "Get", "path": "Get", "stats": stats("Get", 100)}}
    text = json.dumps(
        {
            "type": "GROUP",
            "name": "All Requests",
            "stats": stats("All Requests", 100),
            "contents": inner,
        }
    )
    found = read_text(text, "stats.json")
    assert list(found) == ["All Requests", "Get"]
    h = found["All Requests"]
    assert (h.count, h.run.failed, h.max, h.percentile(99), h.run.aggregate) == (
        100,
        3,
        1.345e9,
        2e8,
        True,
    )


CONSOLE = """\
---- Global Information --------------------------------------------------------
> request count                                       {:>4} (OK={:<6} KO={:<6})
> min response time                                      0 (OK=2      KO=12    )
> max response time                                   1234 (OK=1234   KO=567   )
> mean response time                                    23 (OK=22     KO=345   )
> response time 50th percentile                         12 (OK=12     KO=234   )
> response time 99th percentile                        123 (OK=120    KO=567   )
> mean requests/sec                                 200.57 (OK=200.00 KO=0.57  )
================================================================================
"""


def test_the_console_of_older_versions_with_a_run_that_failed(read_text):
    done = "Simulation a.B completed in 60 seconds\n"
    found = read_text(f"{done}{CONSOLE.format(1234, 1200, 34)}\n{CONSOLE.format(9, 0, 9)}")
    one, two = found.values()
    assert list(found) == ["run 1", "run 2"]
    assert (one.count, one.run.failed, one.run.duration, one.run.achieved) == (1200, 34, 60, 200.57)
    assert (one.percentile([50, 99]).tolist(), one.max, one.mean) == ([12e6, 120e6], 1.234e9, 22e6)
    assert (two.count, two.run.failed, two.stats) == (0, 9, {})


def test_statistics_as_a_script_and_of_a_request_that_always_failed(read_text):
    def node(name, kind, ok, ko, inner=""):
        both = f'{{"total": "{ok + ko}", "ok": "{ok}", "ko": "{ko}"}}'
        times = ", ".join(
            f'"{key}": {{"total": "9", "ok": "{7 if ok else 0}", "ko": "0"}}'
            for key in ("minResponseTime", "maxResponseTime", "meanResponseTime", "percentiles1",
                        "percentiles2", "percentiles3", "percentiles4")
        )  # fmt: skip
        stats = f'{{"name": "{name}", "numberOfRequests": {both}, {times}}}'
        return (
            f'{{\n    type: "{kind}",\nname: "{name}",\npath: "{name}",\nstats: {stats}{inner}\n}}'
        )

    inner = f',\ncontents: {{\n"req_a": {node("a", "REQUEST", 0, 5)}}}\n'
    text = f"var stats = {node('All', 'GROUP', 40, 5, inner)}\n\nfunction fill(stat){{ }}\n"
    found = read_text(text, "stats.js")
    assert [(name, one.count, one.run.failed) for name, one in found.items()] == [
        ("All", 40, 5),
        ("a", 0, 5),
    ]
    assert (found["All"].percentile(99), found["a"].stats) == (7e6, {})
