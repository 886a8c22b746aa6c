"""On a Dask cluster: what one process gives, bit for bit, also when a worker is killed on the way."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import socketserver
import textwrap
import threading
import time
import warnings
from pathlib import Path

import pytest

from latencykit import distributed
from latencykit.cli import inputs as spread
from latencykit.distributed import executors as engines
from latencykit.distributed.executors import Task, dask_executor, read_each
from latencykit.distributed.results import totals_of
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.io import parts
from latencykit.io.reading import Selection
from tests.conftest import RAW, needs_package, python
from tests.distributed.conftest import bins_of, rows_of, same, total_of

pytestmark = [
    needs_package("distributed", "cluster"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Client(
            n_workers=2, threads_per_worker=1, dashboard_address=None, set_as_default=False
        ) as made:
            yield made


class Talker(socketserver.BaseRequestHandler):
    """A server that is none of Dask's."""

    def handle(self):
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def slowly(*arguments, **options):
    """Reading that takes long enough to be interrupted."""
    time.sleep(0.1)
    return parts.read_part(*arguments, **options)  # in a worker, whose modules nobody patched


def test_a_killed_worker_changes_nothing(client, logs, monkeypatch):
    alone = total_of(logs * 2)
    victims = []

    def kill_one(done: int, of: int) -> None:
        if 4 <= done < of and not victims:
            victims.extend(client.run(os.getpid).values())
            os.kill(victims[0], signal.SIGKILL)

    monkeypatch.setattr(engines, "TASK_FILES", 1)
    monkeypatch.setattr(spread, "counted_files", lambda: contextlib.nullcontext(kill_one))
    monkeypatch.setattr(parts, "read_part", slowly)
    total = total_of(logs * 2, dask=client.scheduler.address)
    assert victims  # not asked which live: the scheduler may still list the dead one, and raise
    assert same(total, alone)


def test_a_worker_that_has_just_died_is_left_out(client):
    for _ in range(3):  # at once: the scheduler may not know it yet
        os.kill(next(iter(client.run(os.getpid, on_error="ignore").values())), signal.SIGKILL)
        with dask_executor(client.scheduler.address) as executor:
            assert executor.submit(sum, [1, 2]).result(60) == 3


def test_time_bins(client, logs):
    address = client.scheduler.address
    assert rows_of(bins_of(logs, 2.0, dask=address)) == rows_of(bins_of(logs, 2.0))


def test_an_unreadable_file_is_named_and_others_go_on(client, logs, tmp_path, capsys):
    gone = str(tmp_path / "gone.hlog")
    address = client.scheduler.address
    with pytest.raises(LatencyKitError, match=r"gone\.hlog: cannot be read"):
        total_of([*logs, gone], dask=address)
    capsys.readouterr()
    assert same(total_of([gone, *logs], dask=address, lenient=True), total_of(logs))
    assert "gone.hlog" in capsys.readouterr().err


def test_only_small_results_travel(client, logs):
    """One histogram comes back from eighteen files."""
    read = functools.partial(parts.read_part, selection=Selection(), ask=totals_of, key="tag")
    jobs = [Task(path) for path in logs[:6] * 3]
    seen = []
    executor = client.get_executor(pure=False, retries=2)
    count = lambda *done: seen.append(done)  # noqa: E731
    (answer,) = read_each(executor, read, jobs, count, lenient=False, add=True)
    assert seen == [(18, 18)]
    assert [len(totals.parts) for _, totals in answer.series] == [1]
    assert sum(totals.intervals for _, totals in answer.series) == 18 * 24


@pytest.mark.parametrize("address", ["nonsense", "http://localhost:1", "tcp://127.0.0.1:1", ""])
def test_nobody_answers_or_another_server(address, monkeypatch):
    monkeypatch.setattr(engines, "_PATIENCE", 0.5)
    with socketserver.TCPServer(("127.0.0.1", 0), Talker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked = dask_executor(address or f"tcp://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(InvalidArgumentError, match="no Dask scheduler answers"), asked:
            pass
        server.shutdown()


TWICE = """
import gc
import distributed
from latencykit.distributed.executors import dask_executor
from latencykit.errors import InvalidArgumentError
gc.disable()
thread, collect = distributed.utils._CollectErrorThread, gc.collect
start = thread.__init__
thread.__init__ = lambda *words, **how: (collect(), start(*words, **how))[-1]  # under the library's lock
for address in ("nonsense", "tcp://127.0.0.1:1"):
    try:
        dask_executor(address).__enter__()
    except InvalidArgumentError as error:
        kept = [error]
        kept.append(kept)
        del kept
"""


def test_a_second_wrong_address_in_one_process_does_not_wait_for_ever():
    """Of the first one's client only the garbage collector knows, and it may come at any time."""
    python("-c", TWICE, timeout=60)


@pytest.mark.parametrize(
    "words", [[], ["--merge"], ["--interval", "3s"], ["--merge", "--interval", "3s"], ["--tag", ""]]
)
def test_summary_prints_the_same(client, logs, say, words):
    shown = ("summary", *logs[:5], *words, "--format", "json")
    there = say(*shown, "--dask", client.scheduler.address)
    assert there == say(*shown, "--jobs", 1) == say(*shown, "--jobs", 4)


def test_diagnose_says_and_draws_the_same(client, say, tmp_path):
    shown = ("diagnose", RAW, "--rate", 500, "--format", "json")
    there = ("--dask", client.scheduler.address)
    assert say(*shown, *there) == say(*shown)
    for how, out in (((), "here.png"), (there, "there.png")):
        assert say(*shown, *how, "-o", tmp_path / out)[0] == 0
    assert (tmp_path / "here.png").read_bytes() == (tmp_path / "there.png").read_bytes()


def test_standard_input_does_not_reach_a_cluster(client, run):
    assert "standard input" in run.refused("summary", "-", "--dask", client.scheduler.address)


def test_merge_and_chart_write_the_same(client, logs, say, tmp_path):
    bins = ["--interval", "2s"]
    for suffix, words in (
        ("hlog", ["merge", *logs[:4]]),
        ("hlog", ["merge", *logs[:4], *bins]),
        ("hlog", ["merge", *logs[:4], "--tag-by-file", *bins]),
        ("svg", ["chart", *logs[:2], "--kind", "timeline"]),
    ):
        here, there = (tmp_path / f"{where}.{suffix}" for where in ("here", "there"))
        assert say(*words, "-o", here)[0] == 0
        assert say(*words, "-o", there, "--dask", client.scheduler.address)[0] == 0
        assert here.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("interval", [[], ["--interval", "2s"]])
def test_large_files_are_summed_where_they_are_read(client, logs, say, monkeypatch, interval):
    words = ("summary", *logs, "--merge", *interval, "--format", "json")
    together = json.loads(say(*words)[1])["series"][0]
    monkeypatch.setattr(spread, "TOGETHER", 0)
    apart, there = (
        json.loads(say(*words, *how)[1])["series"][0]
        for how in ([], ["--dask", client.scheduler.address])
    )
    assert apart == there
    values = [[row["value"] for row in one["percentiles"]] for one in (apart, together)]
    assert values[0] == values[1]
    shown = ("name", "rung", "count", "min", "max", "mean", "std", "start", "duration", "tags")
    for key in (*shown, "intervals"):
        assert apart.get(key) == together.get(key), key


def test_the_documented_example_runs(tmp_path):
    example = r"(?s)::\n\n(    import latencykit as lk.*?)\n\nFor a real cluster"
    text = re.search(example, distributed.__doc__ or "")
    script = tmp_path / "example.py"
    script.write_text(textwrap.dedent(text[1]))
    root = Path(__file__).parents[2]
    env = dict(os.environ, PYTHONPATH=str(root))
    done = python(script, cwd=root, env=env, timeout=120)
    assert done.stdout.startswith("Histogram("), done.stdout
