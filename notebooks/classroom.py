"""The class is the load test: a server that phones load, and that the teacher freezes for ten seconds.

``python classroom.py`` prints two addresses: one for the phones, one for the projector, with a button.
Each phone sends two requests per second. Odd ones wait for their answer and time from the send, as most
load generators do; even ones keep a schedule and time from it, as users arrive. The log of the round,
classroom.csv, is a file for the later lessons: ``lk.read("classroom.csv")``. Standard library only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import secrets
import socket
import sys
import time
from pathlib import Path

PERIOD = 0.5
"""Seconds between the requests of a phone."""
MOST_PHONES, MOST_ROWS, MOST_BYTES = 500, 400, 1 << 16
"""Phones per round, results per report, bytes per body: whatever sends more is refused."""
IDLE = 120.0
"""Seconds after which a silent connection is closed."""
HEADER = "start_s,latency_s,client,loop\n"
LOOPS = ("schedule", "waits")

_STYLE = """<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{font:18px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1d23}
button{font:inherit;padding:.6rem 1.4rem}canvas{width:100%;border:1px solid #c9ced6}</style>"""

PHONE = f"""<!doctype html><html lang="en"><title>You are a client</title>{_STYLE}
<h1>You are a client</h1><p id="who" role="status">Joining …</p><p>Sent <b id="sent">0</b>, answered <b id="done">0</b>,
slowest <b id="slow">0</b> s. Leave this page open.</p><script>
const $ = (id) => document.getElementById(id), now = () => performance.now() / 1000;
const post = (path, body) => fetch(path, {{ method: "POST", body: JSON.stringify(body) }}).then((r) => r.json());
const sleep = (s) => new Promise((go) => setTimeout(go, Math.max(0, 1000 * s)));
let rows = [], sent = 0, done = 0, slow = 0;
async function ping(from) {{
  $("sent").textContent = ++sent;
  await fetch("/ping", {{ cache: "no-store" }});
  const took = now() - from;
  rows.push([from, took]);
  $("done").textContent = ++done;
  $("slow").textContent = (slow = Math.max(slow, took)).toFixed(2);
}}
(async () => {{
  const {{ client, loop, period }} = await post("/join", {{}});
  const text = {{ waits: "You send, wait for the answer, and send again.", schedule: "You send twice a second, whatever happens." }};
  $("who").textContent = `You are number ${{client}}. ${{text[loop]}}`;
  setInterval(() => {{ const part = rows.splice(0, {MOST_ROWS}); if (part.length) post("/report", {{ client, now: now(), rows: part }}).catch(() => rows.push(...part)); }}, 1000);
  for (let due = now(); ; due = Math.max(due + period, loop === "waits" ? now() : 0)) {{
    await sleep(due - now());
    const one = ping(loop === "waits" ? now() : due).catch(() => sleep(period));
    if (loop === "waits") await one;
  }}
}})();</script></html>"""

WALL = f"""<!doctype html><html lang="en"><title>The class is the load test</title>{_STYLE}
<h1>The class is the load test</h1><p>Phones: open <b>ADDRESS</b></p>
<p><button id="freeze">Freeze for SECONDS s</button> <span id="said" role="status"></span></p><canvas id="curves" width="1200" height="560"></canvas>
<p id="text" role="status"></p><script>
const canvas = document.getElementById("curves"), c = canvas.getContext("2d"), key = location.search;
const colours = {{ waits: "#d0312d", schedule: "#0b5cbf" }}, names = {{ waits: "phones that wait", schedule: "phones on a schedule" }};
document.getElementById("freeze").onclick = () => fetch("/freeze" + key, {{ method: "POST" }});
setInterval(async () => {{
  const state = await (await fetch("/state" + key)).json(), x = (n) => 90 + (n / 3) * 1080, y = (s) => 500 - (Math.log10(Math.max(s, 1e-3)) + 3) * 110;
  document.getElementById("said").textContent = state.frozen ? "frozen" : `${{state.phones}} phones`;
  c.fillStyle = "#fff"; c.fillRect(0, 0, 1200, 560); c.fillStyle = "#1a1d23"; c.font = "22px system-ui";
  [["1 ms", 1e-3], ["10 ms", 1e-2], ["0.1 s", 0.1], ["1 s", 1], ["10 s", 10]].forEach(([label, s]) => c.fillText(label, 10, y(s) + 8));
  [["p0", 0], ["p90", 1], ["p99", 2], ["p99.9", 3]].forEach(([label, n]) => c.fillText(label, x(n) - 20, 545));
  const said = [];
  for (const [loop, of] of Object.entries(state.loops)) {{
    c.strokeStyle = c.fillStyle = colours[loop]; c.lineWidth = 5; c.setLineDash(loop === "waits" ? [14, 8] : []); c.beginPath();
    of.curve.forEach(([n, s], k) => (k ? c.lineTo(x(n), y(s)) : c.moveTo(x(n), y(s)))); c.stroke();
    said.push(`${{names[loop]}}: ${{of.count}} requests, p50 ${{of.p50.toFixed(3)}} s, p90 ${{of.p90.toFixed(3)}} s, maximum ${{of.max.toFixed(2)}} s`);
    c.fillText(names[loop], 110, loop === "waits" ? 40 : 70);
  }}
  document.getElementById("text").textContent = said.join("; ");
}}, 500);</script></html>"""


class Round:
    """One round: who takes part, what they measured, and whether the server is frozen."""

    def __init__(self, log, freeze=10.0):
        self.began, self.seconds, self.key = time.monotonic(), freeze, secrets.token_urlsafe(9)
        self.clients, self.latencies = 0, {loop: [] for loop in LOOPS}
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._log = Path(log).open("x", encoding="utf-8")  # a log that is there is never overwritten
        self._log.write(HEADER)
        self._tasks = set()

    def close(self):
        """Close the log."""
        self._log.close()

    def join(self):
        """Number a phone: odd ones wait, even ones keep a schedule."""
        if self.clients >= MOST_PHONES:
            raise ValueError("this round is full")
        self.clients += 1
        return {"client": self.clients, "loop": LOOPS[self.clients % 2], "period": PERIOD}

    def report(self, body):
        """Take what a phone measured: its number, its clock now, and rows of (its clock at the start, seconds)."""
        client, now, rows = body["client"], float(body["now"]), body["rows"]
        if not (isinstance(client, int) and 0 < client <= self.clients and len(rows) <= MOST_ROWS):
            raise ValueError("unknown phone")
        rows = [(float(start), float(took)) for start, took in rows]
        if not all(map(math.isfinite, (now, *(value for row in rows for value in row)))) or min(took for _, took in rows) < 0:
            raise ValueError("latencies are seconds, from 0 on")
        loop, offset = LOOPS[client % 2], time.monotonic() - self.began - now
        for start, took in rows:
            self.latencies[loop].append(took)
            self._log.write(f"{max(start + offset, 0.0):.6f},{took:.6f},{client},{loop}\n")
        self._log.flush()
        return {}

    def freeze(self):
        """Answer no ping for the seconds of a freeze; a second press changes nothing."""
        if self._thawed.is_set():
            self._thawed.clear()
            task = asyncio.ensure_future(self._thaw())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return {}

    async def _thaw(self):
        await asyncio.sleep(self.seconds)
        self._thawed.set()

    async def ping(self):
        """Answer, unless the server is frozen."""
        await self._thawed.wait()
        return {}

    def state(self):
        """What the wall shows: percentile curves by nearest rank, in seconds over the number of nines."""
        loops = {}
        for loop, latencies in self.latencies.items():
            ordered = sorted(latencies)
            if ordered:
                at = lambda q: ordered[max(math.ceil(q * len(ordered) - 1e-9), 1) - 1]  # noqa: B023, E731
                curve = [(n / 20, at(1 - 10 ** (-n / 20))) for n in range(60)] + [(3, ordered[-1])]
                loops[loop] = {"count": len(ordered), "p50": at(0.5), "p90": at(0.9), "max": ordered[-1], "curve": curve}
        return {"phones": self.clients, "frozen": not self._thawed.is_set(), "loops": loops}


async def answer(one, method, target, body, host):
    """Return status, content type and text for a request."""
    path, _, query = target.partition("?")
    teacher = secrets.compare_digest(query.encode(), f"key={one.key}".encode())
    if (method, path) == ("GET", "/"):
        return 200, "text/html", PHONE
    if (method, path) == ("GET", "/wall") and teacher:
        return 200, "text/html", WALL.replace("ADDRESS", f"http://{host}/").replace("SECONDS", f"{one.seconds:g}")
    if (method, path) == ("GET", "/ping"):
        return 200, "application/json", json.dumps(await one.ping())
    if path in ("/state", "/freeze") and teacher:
        return 200, "application/json", json.dumps(one.state() if path == "/state" else one.freeze())
    try:
        if (method, path) == ("POST", "/join"):
            return 200, "application/json", json.dumps(one.join())
        if (method, path) == ("POST", "/report"):
            return 200, "application/json", json.dumps(one.report(json.loads(body)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        return 400, "application/json", json.dumps({"problem": str(error)})
    return 404, "text/plain", "not here"


async def converse(one, reader, writer, host):
    """Answer the requests of a connection, one after the other, until it ends, is silent, or makes no sense."""
    try:
        while True:
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE)).decode("latin-1")
            method, target, *_ = head.split(None, 2)
            fields = dict(line.lower().split(":", 1) for line in head.split("\r\n")[1:] if ":" in line)
            length = int(fields.get("content-length", "0"))
            if not 0 <= length <= MOST_BYTES:
                return
            body = await asyncio.wait_for(reader.readexactly(length), IDLE)
            status, kind, text = await answer(one, method, target, body, host)
            content = text.encode()
            writer.write(f"HTTP/1.1 {status} .\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {len(content)}\r\nCache-Control: no-store\r\n\r\n".encode() + content)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError, ConnectionError, ValueError):
        return  # a phone may go away; the round continues
    finally:
        writer.close()


def own_address():
    """The address of this machine in its network; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


async def serve(log, port=8000, freeze=10.0, bind="0.0.0.0", said=print):  # noqa: S104
    """Serve a round until it is cancelled; `said` gets the addresses of the phones and of the projector."""
    one = Round(log, freeze)
    host = own_address() if bind == "0.0.0.0" else bind  # noqa: S104
    try:
        server = await asyncio.start_server(lambda reader, writer: converse(one, reader, writer, at), bind, port, limit=1 << 14)
        at = f"{host}:{server.sockets[0].getsockname()[1]}"
        said(f"phones:    http://{at}/\nprojector: http://{at}/wall?key={one.key}\nlog:       {log}")
        try:
            await asyncio.Event().wait()
        finally:
            server.close()  # the connections end with the loop; to wait for them is to wait for every phone
    finally:
        one.close()


def main():
    """Serve a round on the local network, and write its log."""
    parser = argparse.ArgumentParser(description="A server that phones load and the teacher freezes.")
    parser.add_argument("--log", default="classroom.csv", help="the log of the round; a new file")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--freeze", type=float, default=10.0, metavar="SECONDS", help="how long a freeze lasts")
    parser.add_argument("--bind", default="0.0.0.0", help="address to listen on")  # noqa: S104
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.log, given.port, given.freeze, given.bind, lambda text: print(text, flush=True)))
    except KeyboardInterrupt:
        print(f"the round is over; its log: {given.log}")
    except OSError as error:
        sys.exit(f"error: {error}; --log or --port takes another")


if __name__ == "__main__":
    main()
