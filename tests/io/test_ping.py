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


LANGUAGES = {
    "German": (
        (
            "PING a.de (192.0.2.1) 56(84) Bytes an Daten.\n"
            "64 Bytes von a.de (192.0.2.1): icmp_seq=1 ttl=247 Zeit=12.3 ms\n"
            "64 Bytes von a.de (192.0.2.1): icmp_seq=2 ttl=247 Zeit=14.9 ms\n\n"
            "--- a.de ping-Statistiken ---\n"
            "3 Pakete übertragen, 2 empfangen, 33.3333% packet loss, time 2003ms\n"
            "rtt min/avg/max/mdev = 12.300/13.600/14.900/1.300 ms\n"
        ),
        [12.3, 14.9],
    ),
    "French": (
        (
            "PING a.fr (192.0.2.1) 56(84) octets de données.\n"
            "64 octets de a.fr (192.0.2.1) : icmp_seq=1 ttl=52 temps=9,85 ms\n"
            "64 octets de a.fr (192.0.2.1) : icmp_seq=3 ttl=52 temps=11,4 ms\n\n"
            "--- statistiques ping a.fr ---\n"
            "3 paquets transmis, 2 reçus, 33,3% packet loss, time 2003ms\n"
            "rtt min/avg/max/mdev = 9,850/10,625/11,400/0,660 ms\n"
        ),
        [9.85, 11.4],
    ),
    "German Windows": (
        (
            "\r\nPing wird ausgeführt für a.de [192.0.2.1] mit 32 Bytes Daten:\r\n"
            "Antwort von 192.0.2.1: Bytes=32 Zeit=12ms TTL=247\r\n"
            "Antwort von 192.0.2.1: Bytes=32 Zeit<1ms TTL=247\r\n"
            "Zeitüberschreitung der Anforderung.\r\n\r\n"
            "Ping-Statistik für 192.0.2.1:\r\n"
            "    Pakete: Gesendet = 3, Empfangen = 2, Verloren = 1\r\n"
        ),
        [12, 1],
    ),
    "Spanish Windows": (
        (
            "\r\nHaciendo ping a a.es [192.0.2.1] con 32 bytes de datos:\r\n"
            "Respuesta desde 192.0.2.1: bytes=32 tiempo=10ms TTL=56\r\n"
            "Respuesta desde 192.0.2.1: bytes=32 tiempo=21ms TTL=56\r\n\r\n"
            "Estadísticas de ping para 192.0.2.1:\r\n"
            "    Paquetes: enviados = 3, recibidos = 2, perdidos = 1\r\n"
        ),
        [10, 21],
    ),
    "Chinese Windows": (
        (
            "\r\n正在 Ping a.cn [192.0.2.1] 具有 32 字节的数据:\r\n"
            "来自 192.0.2.1 的回复: 字节=32 时间=31ms TTL=52\r\n"
            "来自 192.0.2.1 的回复: 字节=32 时间=30ms TTL=52\r\n\r\n"
            "192.0.2.1 的 Ping 统计信息:\r\n"
            "    数据包: 已发送 = 3, 已接收 = 2, 丢失 = 1\r\n"
        ),
        [31, 30],
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_replies_are_read_in_any_language(read_text, language):
    text, milliseconds = LANGUAGES[language]
    (data,) = read_text(text, "ping.txt").values()
    assert (data.duration / 1e6).tolist() == pytest.approx(milliseconds)
    assert data.run.timeouts == 1


ONE_TARGET = """PING {0} ({0}) 56(84) bytes of data.
64 bytes from {0}: icmp_seq=1 ttl=64 time={1} ms
64 bytes from {0}: icmp_seq=2 ttl=64 time={1} ms

--- {0} ping statistics ---
3 packets transmitted, 2 received, 33% packet loss, time 2003ms
rtt min/avg/max/mdev = 1.000/1.000/1.000/0.000 ms
"""


def test_each_target_is_a_series(read_text):
    hosts = ("192.0.2.1", 1.0), ("192.0.2.2", 50.0), ("192.0.2.1", 2.0)
    found = read_text("\n".join(ONE_TARGET.format(*host) for host in hosts))
    assert {name: (data.duration / 1e6).tolist() for name, data in found.items()} == {
        "192.0.2.1": [1, 1, 2, 2],
        "192.0.2.2": [50, 50],
    }
    assert [data.run.timeouts for data in found.values()] == [2, 1]
    windows = "".join(LANGUAGES["German Windows"][0].replace(".1", f".{k}") for k in (7, 8))
    assert list(read_text(windows)) == ["192.0.2.7", "192.0.2.8"]


def test_all_that_were_lost_are_counted(read_text):
    lost = (
        "Ping wird ausgeführt für 192.0.2.1 mit 32 Bytes Daten:\n"
        "Zeitüberschreitung der Anforderung.\n\nPing-Statistik für 192.0.2.1:\n"
        "    Pakete: Gesendet = 4, Empfangen = 0, Verloren = 4\n"
    )
    quiet = (
        "HPING 192.0.2.1 (eth0 192.0.2.1): S set, 40 headers + 0 data bytes\n"
        "--- 192.0.2.1 hping statistic ---\n"
        "4 packets transmitted, 0 packets received, 100% packet loss\n"
        "round-trip min/avg/max = 0.0/0.0/0.0 ms\n"
    )
    for text in (lost, quiet):
        (data,) = read_text(text).values()
        assert (data.count, data.run.timeouts) == (0, 4)


def test_spanish_windows_leaves_out_a_letter(read_text):
    text = LANGUAGES["Spanish Windows"][0].replace("tiempo=10ms", "tiempo<1m")
    (data,) = read_text(text).values()
    assert (data.duration / 1e6).tolist() == [1, 21]


def test_duplicates_that_macos_does_not_mark(read_text):
    text = (
        "PING 192.0.2.255 (192.0.2.255): 56 data bytes\n"
        "64 bytes from 192.0.2.1: icmp_seq=0 ttl=64 time=0.2 ms\n"
        "64 bytes from 192.0.2.7: icmp_seq=0 ttl=64 time=62.7 ms\n"
        "64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.3 ms\n\n"
        "--- 192.0.2.255 ping statistics ---\n"
        "2 packets transmitted, 2 packets received, +1 duplicates, 0.0% packet loss\n"
    )
    (data,) = read_text(text).values()
    assert (data.duration / 1e6).tolist() == [0.2, 0.3]
    assert "1 duplicate reply left out" in data.run.notes


def test_statistics_of_ioping_are_not_those_of_ping(read_text):
    text = (
        "4.0 kb from . (ext4 /dev/sda1): request=1 time=0.2 ms\n"
        "4.0 kb from . (ext4 /dev/sda1): request=2 time=12.1 ms\n\n"
        "--- . (ext4 /dev/sda1) ioping statistics ---\n"
        "2 requests completed in 2013.2 ms, 238 iops, 0.9 mb/s\n"
        "min/avg/max/mdev = 0.2/6.2/12.1/5.6 ms\n"
    )
    (data,) = read_text(text).values()
    assert (data.run.tool, data.count, data.max) == ("ioping", 2, 12.1e6)
