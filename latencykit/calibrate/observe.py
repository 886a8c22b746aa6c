"""Freezing the server in time, and what its side shows of the load generator meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latencykit.calibrate.clients import loopback
from latencykit.calibrate.targets import OwnTarget
from latencykit.calibrate.truth import Stall
from latencykit.calibrate.waiting import Waiting, waiting_requests
from latencykit.errors import LatencyKitError

if TYPE_CHECKING:
    from latencykit.calibrate.freeze import Freezer
    from latencykit.calibrate.plan import Plan
    from latencykit.calibrate.targets import Target
    from latencykit.calibrate.tool import Tool

__all__ = ["Observed", "observe"]

_GRACE = 30.0
_PATIENCE = 20.0
_AROUND = 0.9


@dataclass(frozen=True)
class Observed:
    """What was seen from the server's side.

    Attributes
    ----------
    begin : int
        First request, by ``perf_counter_ns``.
    stall : Stall
    elapsed : float
        Seconds from the first request to the tool's end.
    base : float
        Usual time of a request, ns; 0 where it could not be asked.
    waiting : tuple of two Waiting or None
        Early and late in the stall.
    around : bool
        Whether requests went to processes that were not frozen instead.
    before : float or None
        Requests per second before the stall.
    busy : float or None
        CPU share of the server while it was not frozen.
    drain : float
        Seconds after the thaw until the backlog was read; 0 where it cannot be seen.
    requests : int or None
        All that came.
    notes : tuple of str
    """

    begin: int
    stall: Stall
    elapsed: float
    base: float
    waiting: tuple[Waiting | None, Waiting | None]
    around: bool
    before: float | None
    busy: float | None
    drain: float
    requests: int | None
    notes: tuple[str, ...]


def observe(plan: Plan, target: Target, freezer: Freezer, tool: Tool, base: float | None) -> Observed:
    """Freeze in time, and note what the server's side shows."""
    begin = _first_request(target, tool)
    opening = target.stats()
    early_end = f"{tool.command[0]} ended before the server was frozen, {plan.stop_after:g} s after its first request; "
    if not tool.sleep_until(begin + round(plan.stop_after * 1e9)):
        raise LatencyKitError(f"{early_end}it must run for {plan.duration:g} s; it said: {tool.said()}")
    before = target.stats()
    plan.progress(f"the server stands still for {plan.stall:g} s")
    started = freezer.stop(plan.stall)
    waiting, sent = _during(plan, target, tool, started)
    window = freezer.wait()
    plan.progress("the server goes on")
    drain = _drain(target, tool, window.end, waiting[1])
    limit = max(0.0, plan.duration - (window.end - begin) / 1e9) + plan.stall + _GRACE
    notes = () if tool.wait(limit) else (f"it had not ended {limit:g} s after the thaw, and was ended",)
    ended = time.perf_counter_ns()
    after = target.stats()
    if notes:
        tool.__exit__()
    stall = Stall((window.start - begin) / 1e9, (window.end - begin) / 1e9, float(plan.partial or 1))
    awake = max((ended - begin) / 1e9 - plan.stall, 0.1)
    rate = None if before is None else before["requests"] / plan.stop_after
    return Observed(
        begin, stall, (ended - begin) / 1e9, base or 0.0, waiting, before=rate,
        around=sent is not None and rate is not None and sent > _AROUND * rate,
        busy=None if opening is None or after is None else (after["cpu"] - opening["cpu"]) / awake,
        drain=drain, requests=None if after is None else after["requests"], notes=notes,
    )  # fmt: skip


def _drain(target: Target, tool: Tool, thaw: int, late: Waiting | None) -> float:
    """Seconds until the server has read all but a twentieth of what had waited."""
    if late is None:
        return 0.0
    port = loopback(target.url)[1]
    while tool.sleep_until(time.perf_counter_ns() + 10_000_000):
        left = waiting_requests(port)
        if left is None or left.octets <= 0.05 * late.octets:
            break
    return (time.perf_counter_ns() - thaw) / 1e9


def _first_request(target: Target, tool: Tool) -> int:
    """When the first request came, as our own server says; when the tool was started, for others."""
    if target.stats() is None:
        return tool.started
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        said = target.stats()
        if said is not None and said["first"] is not None:
            return int(said["first"])
        if tool.code is not None:
            raise LatencyKitError(f"{tool.command[0]} ended without a request to {target.url}; it said: {tool.said()}")
        time.sleep(0.01)
    raise LatencyKitError(f"{tool.command[0]} sent no request to {target.url} within {_PATIENCE:g} s; does it take {{url}}?")


def _during(plan: Plan, target: Target, tool: Tool, started: int) -> tuple[tuple[Waiting | None, Waiting | None], float | None]:
    """What waits for the frozen server early and late in the stall; requests per second to its other processes."""
    port = loopback(target.url)[1] if target.url else None
    seen, counts, times = [], [], []
    for part in (0.35, 0.85):
        tool.sleep_until(started + round(part * plan.stall * 1e9))
        seen.append(None if port is None else waiting_requests(port))
        times.append(time.perf_counter_ns())
        counts.append(target.live_requests() if isinstance(target, OwnTarget) else 0)
    rate = (counts[1] - counts[0]) / (times[1] - times[0]) * 1e9
    return (seen[0], seen[1]), rate if plan.partial is not None and plan.partial < 1 else None
