"""ping of several systems."""

from __future__ import annotations

import pytest

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
