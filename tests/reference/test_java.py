"""Against the reference in Java, where a JDK is installed and Maven has fetched it: what each writes, the other reads alike.

``mvn dependency:get -Dartifact=org.hdrhistogram:HdrHistogram:2.2.2`` fetches it;
``HDRHISTOGRAM_JAR`` names another place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from latencykit.core.histogram import Histogram
from latencykit.hdr.payload import Payload, decode_rows, open_payload
from latencykit.hdr.write import encode
from latencykit.io.hgrm import hgrm_lines
from latencykit.io.reading import read

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]
PERCENTILES = [0, 1, 25, 50, 90, 99, 99.9, 100]
CLOSE = 1e-12


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """Run the peer: its lines for an argument and standard input."""
    maven = Path.home() / ".m2/repository/org/hdrhistogram/HdrHistogram"
    jars = [os.environ.get("HDRHISTOGRAM_JAR"), *sorted(maven.glob("*/HdrHistogram-*.jar"))[::-1]]
    jar = next(filter(None, jars), None)
    if jar is None or shutil.which("javac") is None:
        pytest.skip("no JDK here, or Maven has not fetched HdrHistogram")
    out = tmp_path_factory.mktemp("peer")
    subprocess.run(
        ["javac", "-cp", jar, "-d", out, Path(__file__).with_name("Peer.java")],
        check=True,
        capture_output=True,
    )

    def run(*what: str, given: str = "") -> list[str]:
        command = ["java", "-Xmx512m", "-cp", f"{jar}{os.pathsep}{out}", "Peer", *what]
        return subprocess.run(
            command, input=given, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    return run


@pytest.fixture(scope="module")
def written(reference) -> list[tuple[str, list[float], Payload]]:
    """What the reference wrote: configuration, its numbers, the payload."""
    rows = [line.split("\t") for line in reference("write")]
    return [
        (name, list(map(float, numbers.split())), open_payload(text.encode()))
        for name, numbers, text in rows
    ]


def numbers_of(payload: Payload) -> tuple[Histogram, list[float]]:
    """The same numbers, ours."""
    _, index, counts = decode_rows([payload])
    h = Histogram(payload.buckets, index, counts)
    return h, [h.count, h.min, h.max, h.mean, *h.percentile([float(p) for p in PERCENTILES])]


def test_we_read_what_the_reference_writes(written):
    assert len(written) > 400
    for name, theirs, payload in written:
        h, ours = numbers_of(payload)
        assert ours[0] == theirs[0], name
        assert ours[3:] == pytest.approx(theirs[3:], rel=CLOSE, abs=0), name
        # The reference's extremes are values as recorded; in a payload only their buckets are left.
        assert h.buckets.low(h.index[0]) <= theirs[1] <= h.buckets.high(h.index[0]) * (1 + CLOSE), (
            name
        )
        # A DoubleHistogram's own maximum reaches to the next bucket.
        assert theirs[2] == pytest.approx(
            ours[2], rel=2.0 ** (1 - h.buckets.half_magnitude) if payload.layout.double else CLOSE
        ), name


def test_the_reference_reads_what_we_write(reference, written):
    texts = []
    for _, _, payload in written:
        _, index, counts = decode_rows([payload])
        like = {"double": payload.layout.double, "highest": payload.layout.highest}
        texts.append(encode(payload.buckets, index, counts, **like).decode())
    read = [
        list(map(float, line.split())) for line in reference("read", given="\n".join(texts) + "\n")
    ]
    assert len(read) == len(written)
    for again, (name, theirs, _) in zip(read, written, strict=True):
        assert again[0] == theirs[0], name
        assert np.array(again[3:]) == pytest.approx(np.array(theirs[3:]), rel=CLOSE, abs=0), name


def test_sums_of_double_histograms_equal_the_reference_in_every_row(reference, tmp_path):
    """Every interval has its own ratio; idle ones have a far larger one, and empty ones have the largest of all."""
    lines = [line.split("\t") for line in reference("logs", str(tmp_path), "60")]
    assert len(lines) > 80
    for name, tag, numbers in lines:
        count, least, most, mean, *values, std = map(float, numbers.split())
        h = read(tmp_path / f"{name}.hlog", unit="none", tag=tag).histogram()
        assert h.count == count, name
        if not h.count:
            continue
        ours = [h.min, h.mean, h.std, *h.percentile([float(p) for p in PERCENTILES])]
        assert ours == pytest.approx([least, mean, std, *values], rel=CLOSE, abs=0), (name, tag)
        assert h.max <= most  # it reaches to the next bucket there
        assert h.run.notes == ()
        theirs = (tmp_path / f"{name}.{tag}.hgrm").read_text().splitlines()
        rows = [
            [line for line in text if line and not line.startswith("#")]
            for text in (hgrm_lines(h, 1.0), theirs)
        ]
        assert rows[0] == rows[1], (name, tag)
