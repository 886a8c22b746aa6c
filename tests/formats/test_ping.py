"""ping of several systems."""

from __future__ import annotations

import pytest

from latencykit.core.summary import Summary

LINUX = """PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.
[1795220647.896608] 64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.040 ms
[1795220647.918379] no answer yet for icmp_seq=2
[1795220647.942311] 64 bytes from 127.0.0.1: icmp_seq=3 ttl=64 time=5.47 ms
[1795220647.942411] 64 bytes from 127.0.0.1: icmp_seq=3 ttl=64 time=5.57 ms (DUP!)
[1795220647.966579] From 10.0.0.1 icmp_seq=4 Destination Host Unreachable
[1795220647.990380] 64 bytes from 127.0.0.1: icmp_seq=5 ttl=64 time=12 ms

--- 127.0.0.1 ping statistics ---
5 packets transmitted, 3 received, 40% packet loss, time 4782ms
rtt min/avg/max/mdev = 0.040/5.836/12.000/4.9 ms
"""
WINDOWS = """
Pinging 10.0.0.1 with 32 bytes of data:
Reply from 10.0.0.1: bytes=32 time<1ms TTL=128
Request timed out.
Reply from 10.0.0.1: bytes=32 time=14ms TTL=128

Ping statistics for 10.0.0.1:
    Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),
"""
MAC = """PING example (10.0.0.1): 56 data bytes
64 bytes from 10.0.0.1: icmp_seq=0 ttl=57 time=14.311 ms
Request timeout for icmp_seq 1
"""


def test_replies_and_what_was_lost(read_text):
    found = read_text(LINUX)["out.txt"]
    assert found.duration.tolist() == [40_000, 5_470_000, 12_000_000]
    assert found.start[0] == 1795220647_896608_000 - 40_000
    assert (found.run.timeouts, found.run.failed, found.run.duration) == (1, 1, 4.782)
    assert any("1 duplicate reply" in note for note in found.run.notes)


@pytest.mark.parametrize(
    ("text", "expected"), [(WINDOWS, [1_000_000, 14_000_000]), (MAC, [14_311_000])]
)
def test_other_systems(read_text, text, expected):
    found = read_text(text)["out.txt"]
    assert found.duration.tolist() == expected
    assert found.run.timeouts == 1
    assert found.start is None


def test_quiet_output_is_a_summary(read_text):
    lines = LINUX.splitlines(keepends=True)
    found = read_text(lines[0] + "".join(lines[-3:]))["out.txt"]
    assert isinstance(found, Summary)
    assert (found.count, found.max) == (3, 12e6)
