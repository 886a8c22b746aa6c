"""The class's server: sixty simulated phones, two in real browsers, one that goes away, and a script that clicks."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import latencykit as lk

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SERVER = Path(__file__).resolve().parents[2] / "notebooks" / "classroom.py"
FREEZE, PHONES = 10.0, 60


@pytest.fixture
def classroom(tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """The addresses of the phones and of the projector, and the log."""
    log = tmp_path / "classroom.csv"
    options = ["--bind", "127.0.0.1", "--port", "0", "--freeze", str(FREEZE), "--log", str(log)]
    server = subprocess.Popen([sys.executable, str(SERVER), *options], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    phones, wall = (server.stdout.readline().split()[1] for _ in range(2))
    yield phones, wall, log
    server.terminate()
    server.wait(20)
    server.stdout.close()


async def _call(port: int, method: str, target: str, body: object = None) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = b"" if body is None else json.dumps(body).encode()
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
    head = await reader.readuntil(b"\r\n\r\n")
    text = await reader.readexactly(int(re.search(rb"Content-Length: (\d+)", head)[1]))  # type: ignore[index]
    writer.close()
    return json.loads(text)


async def _phone(port: int, until: threading.Event, leave: asyncio.Event | None = None) -> None:
    """One phone, as the page's script is one; it goes away when `leave` says so, with requests under way."""
    given = await _call(port, "POST", "/join", {})
    rows: list[tuple[float, float]] = []
    tasks = []

    async def ping(start: float) -> None:
        await _call(port, "GET", "/ping")
        rows.append((start, time.monotonic() - start))

    due = time.monotonic()
    while not until.is_set() and not (leave and leave.is_set()):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if given["loop"] == "waits":
            await ping(time.monotonic())
        else:
            tasks.append(asyncio.ensure_future(ping(due)))
        due = max(due + given["period"], time.monotonic() if given["loop"] == "waits" else 0.0)
    if leave and leave.is_set():
        for task in tasks:
            task.cancel()
        return
    await asyncio.gather(*tasks)
    await _call(port, "POST", "/report", {"client": given["client"], "now": time.monotonic(), "rows": rows})


def _run(coroutine: Any) -> Any:
    """Run a coroutine in a thread of its own: the browser's loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@pytest.mark.needs_tool
def test_a_round_with_sixty_phones_two_browsers_and_one_that_goes_away(
    classroom: tuple[str, str, Path], browser: Any
) -> None:
    phones, wall_address, log = classroom
    port, over, frozen = int(phones.rstrip("/").rsplit(":", 1)[1]), threading.Event(), threading.Event()

    async def everyone() -> None:
        leave = asyncio.Event()

        async def leaver() -> None:
            while not frozen.is_set():
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)
            leave.set()

        await asyncio.gather(leaver(), _phone(port, over, leave), *(_phone(port, over) for _ in range(PHONES - 1)))

    crowd = threading.Thread(target=lambda: asyncio.run(everyone()))
    crowd.start()
    pages = [browser.new_page() for _ in range(2)]
    for page in pages:
        page.goto(phones)
        page.get_by_text("You are number").wait_for()
    wall = browser.new_page()
    wall.goto(wall_address)
    wall.get_by_text(f"{PHONES + 2} phones").wait_for()
    wall.wait_for_timeout(4000)
    wall.get_by_role("button", name="Freeze").click()
    wall.get_by_text("frozen", exact=True).wait_for()
    frozen.set()
    wall.get_by_text("frozen", exact=True).wait_for(state="hidden", timeout=60_000)
    wall.wait_for_timeout(3000)
    over.set()
    crowd.join(60)
    assert not crowd.is_alive()
    wall.get_by_text(re.compile("phones on a schedule: .*; phones that wait|phones that wait: .*; phones on a schedule")).wait_for()
    for page in pages:
        page.wait_for_timeout(1500)
        assert float(page.locator("#slow").inner_text()) > FREEZE / 2  # both met the freeze
        page.close()
    samples = lk.read(log)
    assert isinstance(samples, lk.Samples)
    frame = samples.to_frame()
    frame["end"] = frame["start"] + frame["duration"]
    phones_of = {loop: [of.sort_values("start") for _, of in rows.groupby("client")] for loop, rows in frame.groupby("loop")}
    assert sum(map(len, phones_of.values())) == PHONES + 1  # the one that went away reported nothing
    slow = {loop: [(of["duration"] > 1e9 * FREEZE / 2).sum() for of in every] for loop, every in phones_of.items()}
    assert {1} <= set(slow["waits"]) <= {1, 2}  # each met the freeze, with one request under way,
    assert min(slow["schedule"]) >= 7  # and those on a schedule all through it: every half second of its first half
    for of in phones_of["schedule"]:
        assert of["start"].diff().median() == pytest.approx(0.5e9, rel=0.05)
        assert (of["start"].iloc[1:].to_numpy() < of["end"].iloc[:-1].to_numpy()).any()


def test_what_no_phone_sends_is_refused_and_the_round_goes_on(classroom: tuple[str, str, Path]) -> None:
    phones, wall, log = classroom
    port = int(phones.rstrip("/").rsplit(":", 1)[1])

    async def refused() -> list[Any]:
        await _call(port, "POST", "/join", {})
        bodies = ({}, [], {"client": 7, "now": 0, "rows": []}, {"client": 1, "now": 0, "rows": [[0, "=1+1"]]},
                  {"client": 1, "now": 1e400, "rows": [[0, 1]]}, {"client": 1, "now": 0, "rows": [[0, -1]]},
                  {"client": 1, "now": 0, "rows": [[0, 1]] * 500})  # fmt: skip
        answers = [await _call(port, "POST", "/report", body) for body in bodies]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01 no HTTP\r\n\r\n")
        writer.write_eof()  # the server would wait for a further request
        assert (await reader.read()).startswith(b"HTTP/1.1 404")
        writer.close()
        await _call(port, "POST", "/report", {"client": 1, "now": 5.0, "rows": [[4.5, 0.25]]})
        return answers

    assert all("problem" in one for one in _run(refused()))
    assert log.read_text().count("\n") == 2
    for guess in ("/freeze", "/state", "/wall", "/wall?key=", "/freeze?key=x"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(phones.rstrip("/") + guess)
    assert json.load(urllib.request.urlopen(wall.replace("/wall", "/state")))["loops"]["waits"]["count"] == 1


def test_the_server_is_small_and_needs_the_standard_library_alone() -> None:
    text = SERVER.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert imported <= set(sys.stdlib_module_names)
