"""Questions, and controls to play with: sliders, a curve drawn by hand, and a live server that you can freeze.

Each is drawn by ``controls.js`` where widgets work, and is a picture everywhere else: on paper, on a
forge, without the packages, or under ``LATENCYKIT_STATIC=1``.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
import time
from base64 import b64encode
from html import escape
from pathlib import Path

import gate
import matplotlib.pyplot as plt
import numpy as np
from gate import skip
from pictures import AMBER, BLUE, GREY, RED, nearest_rank, panels, tidy

import latencykit as lk

try:
    import anywidget
    import traitlets
except ImportError:  # pictures stand for the controls
    anywidget = None

__all__ = ["ask", "draw_prediction", "freeze_it", "play", "skip", "you_said"]

LIVE_HTML = "application/vnd.latencykit.live+html"
"""An output that works in a page without a kernel; a program that does not know it shows the picture."""

_SCRIPT = Path(__file__).with_name("controls.js")
_IN_BROWSER = (
    "nines_wall", "split_panel", "sharing_panel", "connections_panel", "queue_panel",
    "generators_panel", "spread_panel", "pole_panel", "loops_panel",
)  # fmt: skip

_answers = {}
"""Question → what the reader answered, as text with its unit."""


class Answer:
    """What the reader answered to a question; empty until then."""

    def __init__(self, question):
        self.question = question

    def __str__(self):
        return _answers.get(self.question, "")


def ask(question, unit="", choices=(), several=False):
    """Ask the reader for a prediction: a number in `unit`, one of `choices`, or `several` of them.

    The cells below run, and a page shows what is below, once it is given. On paper it is a line.
    """
    options = {"question": question, "unit": unit, "choices": list(choices), "several": several}
    if not _widgets():
        line = " ".join(f"{question} {' / '.join(choices)} ____ {unit}".split())
        _show(line, "ask", options, f"<p>{escape(line)}</p>")
        return Answer(question)
    return _wait(question, "ask", options)


def you_said(answer, truth):
    """Show the reader's answer beside the truth, a sentence."""
    if _widgets():
        print(f"You said {answer}. {truth}" if str(answer) else truth)
        return
    shown = f'<p class="latencykit-said" data-question="{escape(answer.question)}"><span hidden>You said <b></b>. </span>{escape(truth)}</p>'
    _display({LIVE_HTML: shown, "text/plain": truth})


def play(draw, shown, **choices):
    """Let the reader drag: ``draw(ax, **values)`` is drawn anew for every choice.

    The pictures of the lessons follow the hand, for their arithmetic runs in the browser; any other
    `draw` runs in the kernel. Without widgets the cases in `shown` are drawn side by side.
    """
    if _widgets() and draw.__name__ in _IN_BROWSER:
        return _control("play", {"picture": draw.__name__, "choices": _ranges(shown, choices)})
    if _widgets():
        import ipywidgets as widgets

        def slider(name, values):
            start = shown[len(shown) // 2][name]
            start = start if start in values else list(values)[len(values) // 2]
            return widgets.SelectionSlider(options=list(values), value=start, continuous_update=False)

        sliders = {name: slider(name, values) for name, values in choices.items()}
        widgets.interact(lambda **values: (draw(plt.figure().add_subplot(), **values), plt.show())[1], **sliders)
        return None
    axes = panels(len(shown), sharey=True)
    for ax, values in zip(axes, shown, strict=True):
        draw(ax, **values)
    if draw.__name__ in _IN_BROWSER:
        _picture(axes[0].figure, "play", {"picture": draw.__name__, "choices": _ranges(shown, choices)})
    else:
        plt.show()
    return None


def _ranges(shown, choices):
    """The choices for the browser: words, or first, last, step and start of a slider."""
    ranges = {}
    for name, values in choices.items():
        if isinstance(values[0], str):
            ranges[name] = list(values)
        else:
            whole = all(float(value).is_integer() for value in values) and max(values) > 1
            step = 1 if whole else (max(values) - min(values)) / 400
            ranges[name] = [min(values), max(values), step, shown[len(shown) // 2][name]]
    return ranges


def draw_prediction(asked, truths, example=(), given=None, nines=4, low=0.1, high=1000.0):
    """Let the reader draw the percentile curve `asked`, and then show it with the others in `truths`.

    `truths` maps names to histograms; those that `given` names are visible while drawing, up to the
    percentile that it gives. `low` and `high` bound the axis in ms. On paper, `example`, a list of
    (percentile, ms), is what somebody might draw. The cells below run once it is drawn.
    """
    given = given or {}
    grid = np.linspace(0, nines, 161)
    p = 100 * (1 - 10.0**-grid)
    truths = {name: h.to_unit("ms") for name, h in truths.items()}
    curves = [
        {"name": name, "points": [[round(float(x), 4), float(f"{v:.4g}")] for x, v in zip(grid, np.atleast_1d(h.percentile(p)), strict=True)] + [[nines, float(h.max)]]}
        for name, h in truths.items()
    ]
    ends = {name: float(-np.log10(max(1 - upto / 100, 1e-12))) for name, upto in given.items()}
    options = {"asked": asked, "truths": curves, "given": ends, "nines": nines, "low": low, "high": high, "example": list(example)}
    if _widgets():
        _wait(asked, "predict", options)
        return
    _, ax = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    ax.set_xscale("percentile", nines=nines)
    for name, end in ends.items():
        shown = grid <= end
        ax.plot(p[shown], np.atleast_1d(truths[name].percentile(p[shown])), color=GREY, linewidth=2, label=f"{name}, as known")
    ax.plot(*zip(*example, strict=True), color=BLUE, linewidth=2, linestyle=(0, (4, 3)), label="an example of a prediction")
    tidy(ax, f"Draw {asked}", "percentile of requests", "milliseconds")
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.legend(frameon=False, loc="upper left")
    _picture(ax.figure, "predict", options)


def freeze_it():
    """Show a live server with a button that freezes it, and the percentiles that three clients report.

    In a web page, which cannot start a server, it is simulated there.
    """
    if _widgets():
        return _control("freeze", {}) if sys.platform == "emscripten" else _Live()
    server = lk.simulate.Server("1ms", stalls=[lk.simulate.Stall(10, 6)], ideal=True)
    made = {
        "closed": lk.simulate.paced_loop(server, rate=50, duration=30),
        "catch-up": lk.simulate.catch_up_loop(server, rate=50, duration=30),
        "open": lk.simulate.open_loop(server, lk.simulate.fixed(rate=50, duration=30)),
    }
    _, ax = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    ax.set_xscale("percentile", nines=3)
    p = 100 * (1 - 10.0 ** -np.linspace(0, 3, 600))
    for (name, samples), colour, dash in zip(made.items(), (RED, AMBER, BLUE), ("-", (0, (6, 3)), "-"), strict=True):
        ax.plot(p, nearest_rank(samples.values, p) / 1e6, color=colour, linestyle=dash, linewidth=2.4 if dash == "-" else 1.6,
                label=f"{name}: p99 {nearest_rank(samples.values, 99) / 1e6:,.0f} ms")  # fmt: skip
    tidy(ax, "One server, frozen for 6 of 30 s, and three clients", "percentile of requests", "milliseconds")
    ax.set_yscale("log")
    ax.set_ylim(0.3, 20_000)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:,g}")
    ax.legend(frameon=False, loc="center right")
    _picture(ax.figure, "freeze", {})
    return None


# ------------------------------------------------------------------ widget or picture


def _widgets():
    """Whether a widget can be shown."""
    return anywidget is not None and not os.environ.get("LATENCYKIT_STATIC")


def _control(kind, options):
    return Control(_kind=kind, _options=json.dumps(options))


def _wait(question, kind, options):
    """Show a control whose answer the cells below wait for."""
    from IPython.display import display

    control = _control(kind, options)
    control.answer = _answers.get(question, "")

    def take(change):
        _answers[question] = change["new"]
        gate.answered(question)

    control.observe(take, "answer")
    if not control.answer:
        gate.close(question, lambda: control.set_trait("_skipped", True))
    display(control)
    return Answer(question)


def _picture(figure, kind, options):
    """Show a figure, and beside it the control for a page without a kernel."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=96)
    plt.close(figure)
    png = b64encode(out.getvalue()).decode()
    _show(f"<{kind}>", kind, options, f'<img alt="" src="data:image/png;base64,{png}">', png)


def _show(text, kind, options, fallback, png=None):
    """Show a control for pages without a kernel, which load ``controls.js``; `fallback` stands without it."""
    live = f'<div class="latencykit-live" data-kind="{kind}" data-options="{escape(json.dumps(options))}">{fallback}</div>'
    _display(({"image/png": png} if png else {}) | {LIVE_HTML: live, "text/plain": text})


def _display(data):
    from IPython.display import display

    display(data, raw=True)


if anywidget is not None:

    class Control(anywidget.AnyWidget):
        """A control that ``controls.js`` draws; `answer` is what the reader typed, chose or drew."""

        _esm = _SCRIPT.read_text("utf-8")
        _kind = traitlets.Unicode().tag(sync=True)
        _options = traitlets.Unicode().tag(sync=True)
        _skipped = traitlets.Bool().tag(sync=True)
        answer = traitlets.Unicode().tag(sync=True)

    class _Live(Control):
        """The control of a live server: passes the button on, and sends what the clients measure."""

        def __init__(self):
            super().__init__(_kind="freeze", _options='{"live": true}')
            self._session = None
            self.on_msg(self._receive)

        def _receive(self, _, message, __):
            if "freeze" in message and self._session:
                problem = self._session.freeze(message["freeze"])
                if problem:
                    self.send({"said": problem})
            elif "again" in message or "stop" in message:
                if self._session:
                    self._session.close()
                self._session = Session(self.send) if "again" in message else None


# ------------------------------------------------------------------ the live server

_SERVER = """
import asyncio, os, sys, threading
async def serve(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
asyncio.run(main())
"""


class Session:
    """A server process, and three clients of it that send `rate` requests per second each.

    `report` is called five times per second with their percentile curves (ms). The session ends
    with `close`, with the kernel, or after ten minutes.
    """

    def __init__(self, report, rate=50, longest=600):
        self._server = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._port = int(self._server.stdout.readline())
        self._report, self._period, self._end = report, 1 / rate, time.monotonic() + longest
        self.times = {"closed": [], "catch-up": [], "open": []}
        self._since = {"closed": [], "catch-up": [], "open": []}  # requests that wait, by when their clock began
        self._freezer, self._frozen, self._running = None, False, True
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()

    def freeze(self, on):
        """Stop or continue the server, as Ctrl+Z and `fg` do; return what is wrong, if anything."""
        from latencykit.ctrlz.freeze import Freezer

        try:
            if on and not self._frozen:
                self._freezer = Freezer([self._server.pid])  # a watchdog, which also thaws if the kernel dies
                self._freezer.stop(60)
            elif not on and self._frozen:
                self._freezer.close()
        except lk.LatencyKitError as error:
            return str(error)
        self._frozen = bool(on)
        return ""

    def close(self):
        """End the clients and the server."""
        self.freeze(False)
        self._running = False
        self._thread.join(5)
        self._server.stdin.close()
        self._server.wait(5)
        self._server.stdout.close()

    async def _run(self):
        clients = [self._waiting("closed"), self._waiting("catch-up"), self._open()]
        tasks = [asyncio.ensure_future(client) for client in clients]
        while self._running and time.monotonic() < self._end:
            await asyncio.sleep(0.2)
            self._report(self.state())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _waiting(self, name):
        """Send one request at a time; a closed loop then waits for its turn, the other catches up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        due, since = time.perf_counter(), self._since[name]
        while True:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            since.append(time.perf_counter())
            writer.write(b".")
            await reader.readexactly(1)
            sent = since.pop()
            self.times[name].append(time.perf_counter() - sent)
            due = (due if name == "catch-up" else max(due, time.perf_counter() - self._period)) + self._period

    async def _open(self):
        """Send on a schedule, whatever the server does, and time from the schedule."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        since = self._since["open"]

        async def receive():
            while answers := await reader.read(4096):
                now = time.perf_counter()
                self.times["open"] += [now - due for due in since[: len(answers)]]
                del since[: len(answers)]

        receiving, due = asyncio.ensure_future(receive()), time.perf_counter()
        try:
            while True:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                since.append(due)
                writer.write(b".")
                due += self._period
        finally:
            receiving.cancel()

    def state(self):
        """Counts and percentile curves (ms) of the three, with the requests that still wait."""
        now, grid, clients = time.perf_counter(), np.linspace(0, 3, 121), {}
        for name, times in self.times.items():
            values = 1e3 * np.array(times + [now - since for since in self._since[name]])
            if not values.size:
                continue
            curve = nearest_rank(values, 100 * (1 - 10.0**-grid))
            curve[-1] = values.max()
            points = [[round(float(x), 3), float(f"{v:.4g}")] for x, v in zip(grid, curve, strict=True)]
            clients[name] = {"n": values.size, "p99": float(nearest_rank(values, 99)), "max": float(values.max()), "points": points}
        return {"clients": clients, "frozen": self._frozen}
