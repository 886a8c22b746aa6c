"""nats latency and nats bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from latencykit.errors import CorruptInputError

DATA = Path(__file__).parents[1] / "data" / "formats"
TEXT = (DATA / "nats-latency/paced/stderr.txt").read_text()


@pytest.mark.parametrize(
    "change",
    [
        str,
        lambda t: t.replace("00:24:22 ", ""),
        lambda t: ("$ nats latency\n" + t).replace("\n", "\r\n"),
    ],
)
def test_percentiles(read_text, change):
    h = read_text(change(TEXT))["out.txt"]
    assert (h.count, h.min, h.max) == (6000, 26_000, 3_811_000)
    assert h.percentile([10, 50, 90, 99, 99.99]).tolist() == [58e3, 101e3, 164e3, 238e3, 1.049e6]
    assert (h.run.loop, h.run.rate, h.run.achieved, h.run.duration) == ("open", 1000, 999, 6.001293)


def test_cut_and_corrupt(read_text):
    with pytest.raises(CorruptInputError, match="end before 100"):
        read_text(TEXT[: TEXT.index("99.9: ")])
    with pytest.raises(CorruptInputError, match="cannot be read"):
        read_text(TEXT.replace("238µs", "2x8µs"))


def test_raw_values(read_text):
    s = read_text("0.087313\n0.098963\n12.000000\n", "hist.raw")["hist.raw"]
    assert (s.count if hasattr(s, "count") else len(s)) == 3
    assert s.histogram().max == 12e6
    assert s.run.unit == "ms"


def test_bench_prints_means(read_text):
    text = " NATS Core NATS subscriber aggregated stats: 4,015,923 msgs/sec ~ 490 MiB/sec\n"
    text += " message rates min 1 | avg 2 | max 3 | stddev 1 msgs\n"
    text += " avg latencies min 0.99us | avg 1.20us | max 1.40us | stddev 0.01us\n"
    s = read_text(text)["NATS Core NATS subscriber aggregated"]
    assert (s.mean, s.run.achieved) == (1200, 4_015_923)
    assert any("distribution" in note for note in s.run.notes)
    assert read_text(
        "NATS Core NATS service requester stats: 24,389 msgs/sec ~ 3.0 MiB/sec ~ 40.88us\n"
    )


def test_a_clients_run_is_not_latency(read_text):
    with pytest.raises(CorruptInputError, match=r"out\.csv:1: .*throughput only"):
        read_text(
            "#RunID,ClientID,MsgCount,MsgBytes,MsgsPerSec,BytesPerSec,DurationSecs\nvt2,S0,50000,6400000,1,1.0,0.06\n",
            "out.csv",
        )


def test_older_bench_prints_throughput_only(read_text):
    with pytest.raises(CorruptInputError, match="throughput only"):
        read_text(
            "\nNATS Pub/Sub stats: 1,278,881 msgs/sec ~ 156.11 MB/sec\n Pub stats: 460,328 "
            "msgs/sec ~ 56.19 MB/sec\n"
        )
