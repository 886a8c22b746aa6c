"""The finest histogram that printed percentiles and coarse buckets allow together."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from latencykit.core.run import Run
from latencykit.errors import CorruptInputError
from latencykit.io.build import histogram_of_both, unique_name
from latencykit.io.text_reports import command_of

DATA = Path(__file__).parents[1] / "data" / "formats"


@pytest.mark.parametrize("seed", range(5))
def test_it_never_flatters_and_gives_back_what_was_printed(seed):
    dice = np.random.default_rng(seed)
    values = np.sort(np.rint(dice.lognormal(14, 1.5, 997)))
    points = {
        p: float(values[int(np.ceil(p / 100 * values.size)) - 1])
        for p in (10, 25, 50, 75, 90, 95, 99, 99.9)
    }
    edges = np.linspace(values[0], values[-1], 11)
    counts = np.diff(np.searchsorted(values, edges, "right"), prepend=0)
    both = histogram_of_both(
        points, edges.tolist(), counts.tolist(), {"min": values[0], "max": values[-1]}, Run()
    )
    assert both.count == values.size
    assert both.percentile(list(points)).tolist() == list(points.values())
    shares = (np.arange(values.size) + 1) / values.size * 100
    assert (both.percentile(shares) >= values).all()
    assert (both.buckets.low(both.index) <= values[np.cumsum(both.counts) - both.counts]).all()
    assert all(both.count_above(edge) == (values > edge).sum() for edge in edges)


def test_a_percentile_that_names_the_last_rank_does_not_lower_the_maximum():
    both = histogram_of_both(
        {50.0: 2.0, 99.99: 80.0}, [1, 10, 100], [1, 98, 1], {"min": 1, "max": 90}, Run()
    )
    assert both.percentile([99.99, 100]).tolist() == [80.0, 90.0]
    assert both.buckets.high(both.index[-1]) == 90.0


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("$ wrk -t2 http://x/", "wrk -t2 http://x/"),
        ("root@host:/tmp# ./bin/wrk -t2 http://x/", "./bin/wrk -t2 http://x/"),
        ("+ wrk -t2 http://x/", "wrk -t2 http://x/"),
        ("wrk -t2 http://x/", "wrk -t2 http://x/"),
        ("I ran wrk -t2 for you", None),
        ("wrkx -t2", None),
    ],
)
def test_a_command_after_a_prompt(line, command):
    assert command_of(f"{line}\nRunning 10s test", "wrk") == command


@pytest.mark.parametrize(
    ("folder", "old", "new"),
    [
        ("hey/ctrlz", "[200]\t5596", "[200]\t55x6"),
        ("oha/text", "[4] aborted", "[x] aborted"),
        ("vegeta-report/ctrlz", "200:6000", "200:6x00"),
        ("vegeta-report/ctrlz", "100.00%", "1x0.00%"),
        ("vegeta-report/ctrlz", "20s,", "2xs,"),
        ("wrk2/ctrlz", "#[Max     =     5996", "#[Max     =     59x6"),
        ("wrk2/ctrlz", "timeout 8", "timeout x"),
        ("ab/keepalive", "Failed requests:        0", "Failed requests:        x"),
        ("k6/ctrlz", "http_req_failed................: 0.00%", ""),
        ("k6/ctrlz", "dropped_iterations.............: 86", ""),
    ],
)
def test_what_failed_is_not_forgotten_where_its_line_is_corrupt(read_text, folder, old, new):
    path = next(one for one in (DATA / folder).iterdir() if one.name != "expect.json")
    text = path.read_text()
    assert old in text
    corrupt = "\n".join(
        re.sub(r"\d", "x", line)
        if folder.startswith("k6") and old in line
        else line.replace(old, new)
        for line in text.split("\n")
    )
    line = text[: text.index(old)].count("\n") + 1
    with pytest.raises(CorruptInputError, match=rf"out\.txt:{line}: "):
        read_text(corrupt)


def test_equal_names_are_numbered_in_order():
    taken: dict[str, None] = {}
    for _ in range(20_000):
        taken[unique_name("a", taken)] = None
    assert list(taken) == ["a", *(f"a ({number})" for number in range(2, 20_001))]
    assert unique_name("b", {"b": None, "b (3)": None}) == "b (2)"
