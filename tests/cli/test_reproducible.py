"""The same files give the same bytes, on another day and with other hashes."""

from __future__ import annotations

import os

import pytest

from tests.conftest import DATA, RAW, python

ALL = """
import contextlib, hashlib, pathlib, sys
import latencykit as lk
from latencykit.errors import LatencyKitError
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*")):
    if path.is_file() and path.stat().st_size < 200_000 and path.name != "expect.json":
        with contextlib.suppress(LatencyKitError):
            said = [
                (name, repr(one), one.run.notes, one._repr_html_(), list(getattr(one, "columns", ())))
                for name, one in lk.read_all(path).items()
            ]
            print(path, hashlib.sha256(repr(said).encode()).hexdigest())
"""


def output(seed: str, *words: object) -> bytes:
    """What a process of its own prints under a seed of hashes."""
    environment = {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1700000000"}
    return python(*words, env=os.environ | environment, text=False).stdout


def test_a_page_is_the_same_on_another_day_and_with_other_hashes(tmp_path):
    page, made = tmp_path / "page.html", []
    for seed in ("1", "2"):
        output(seed, "-m", "latencykit", "report", RAW, "--slo", "99=1ms", "-o", page)
        made.append(page.read_bytes())
    assert made[0] == made[1]
    assert b"2023-11-14 22:13:20 UTC" in made[0]


@pytest.mark.slow
def test_no_reader_depends_on_the_order_of_hashes():
    first, second = (output(seed, "-c", ALL, DATA / "formats") for seed in ("1", "2"))
    assert first.count(b"\n") > 300
    assert first == second
