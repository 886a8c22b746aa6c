"""Pictures and small worlds of single lessons: what would be a wall of code in a cell."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import latencykit as lk
import latencykit.plot  # the percentile scale
from latencykit.analysis import fan_out as fanout
from latencykit.core.histogram_log import interval_series

DATA = Path("data") if Path("data").is_dir() else Path("..") / "data"
# Red marks what a measurement omits, and nothing else.
RED, BLUE, AMBER, INK, GREY, PALE = "#d0312d", "#0b5cbf", "#c77700", "#1a1d23", "#8a909a", "#c9ced6"

pd.set_option("display.max_colwidth", None)
plt.rcParams.update({"figure.figsize": (7.6, 4.0), "figure.dpi": 96, "font.size": 9.5, "axes.titlesize": 10.5})

# ------------------------------------------------------------------ figures


def tidy(ax, title="", x="", y=""):
    """Give a plain matplotlib axes the look of the library's charts; return it."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e6e8eb", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, loc="left", color=INK)
    return ax


def panels(count, height=3.2, **options):
    """Return `count` axes side by side."""
    _, axes = plt.subplots(1, count, figsize=(7.6 if count < 3 else 9.6, height), layout="constrained", **options)
    return np.atleast_1d(axes)


def nearest_rank(values, percentile, axis=None):
    """Return a percentile by the rule of the whole library: a value that was measured, never one in between."""
    ordered = np.sort(values, axis=axis)
    n = ordered.size if axis is None else ordered.shape[axis]
    place = np.ceil(np.asarray(percentile) * n / 100 - 1e-9).astype(int)  # 99.9 * 12,000 / 100 is a little above 11,988
    return np.take(ordered, np.maximum(place, 1) - 1, axis=axis)


# ------------------------------------------------------------------ lesson 1


def six_services(n=1_000_000):
    """Return six sets of `n` latencies in ms, all with mean 10 and standard deviation 5: the quantiles of six shapes."""
    from scipy import special

    u = (np.arange(n) + 0.5) / n
    tail = np.exp(1.2 * special.ndtri(u))
    scale = 5 / np.sqrt((np.exp(1.44) - 1) * np.exp(1.44))
    return {
        "bell curve": 10 + 5 * special.ndtri(u),
        "uniform": 10 + 5 * np.sqrt(3) * (2 * u - 1),
        "two speeds": np.where(u < 0.5, 5.0, 15.0),
        "gamma": special.gammaincinv(4, u) * 2.5,
        "long tail": 10 + scale * (tail - np.exp(0.72)),
        "1 in 1,000 stalls": np.where(u < 0.999, 10 - 5 * np.sqrt(0.001 / 0.999), 10 + 5 * np.sqrt(0.999 / 0.001)),
    }


def bars_with_whiskers(services):
    """What dashboards show: a bar for each mean, a whisker of one standard deviation."""
    _, ax = plt.subplots(figsize=(7.6, 2.8), layout="constrained")
    means, spreads = ([f(services[name]) for name in services] for f in (np.mean, np.std))
    ax.bar(list(services), means, yerr=spreads, width=0.55, color="#c9ced6", capsize=6, ecolor=INK)
    tidy(ax, "Average and standard deviation: which one would you buy?", y="milliseconds")
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, 20)
    plt.show()


def key_statistics(log):
    """Return the key numbers of a log of time, in milliseconds."""
    h = log.histogram().to_unit("ms")
    values = {f"p{p:g}, ms": round(h.percentile(p), 1) for p in (99, 99.9)}
    return {
        "intervals": len(log), "requests": h.count, "mean, ms": round(h.mean, 1), "median, ms": round(h.percentile(50), 3),
        "mean / median": round(h.mean / h.percentile(50)), **values, "max, ms": round(h.max, 1),
    }  # fmt: skip


def nines_wall(ax, n):
    """The same service, measured with `n` requests: where does the sample stop to support its percentiles?"""
    sample = lk.Histogram.of(np.random.default_rng(4).lognormal(0, 1.2, n), unit="ms")
    limit = sample.highest_supported_percentile()
    said = f"grey begins at p{limit:.4g}" if limit < 99.9 else f"grey begins at p{limit:.5g}"
    lk.plot.percentiles(sample, ax=ax, nines=6, confidence=0.95, title=f"{n:,} requests", subtitle=said)
    ax.set_ylim(1e4, 1e9)
    ax.set_xlabel("percentile of requests")


def p99_of_split(share, slow):
    """The p99 (ms) of all traffic when `share` % go to a host that answers `slow` % of its requests in 1 s, else in 10 ms."""
    return np.where(np.asarray(share) * slow / 100 > 1.0, 1000, 10)


def traffic_split(share, slow=1.5, ax=None):
    """Draw the average of two hosts' p99s, and the p99 of both, against the share of traffic of the slow one."""
    ax = ax or plt.figure(figsize=(7.6, 3.4), layout="constrained").add_subplot()
    ax.axhspan(10, 1000, color="#eef0f3", zorder=0)
    ax.plot(share, 10 + 990 * np.asarray(share) / 100, color=AMBER, linestyle=(0, (5, 2)), label="average of the p99s")
    ax.step(share, p99_of_split(share, slow), color=BLUE, where="post", linewidth=2, label="p99 of all requests")
    tidy(ax, f"host A is slow in {slow:g} % of its requests", "share of the traffic that goes to A, %", "p99, ms")
    ax.set_ylim(-60, 1120)
    return ax


def split_panel(ax, slow):
    """One panel of `traffic_split`."""
    traffic_split(np.linspace(0, 100, 401), slow, ax)


def between_parts(rng):
    """Whether the p99 of two random samples together lies between their own."""
    parts = [rng.lognormal(rng.normal(0, 2), rng.uniform(0.1, 2), rng.integers(10, 500)) for _ in range(2)]
    own = [nearest_rank(part, 99) for part in parts]
    return min(own) <= nearest_rank(np.concatenate(parts), 99) <= max(own)


def hour_of_windows():
    """360 windows of 1,000 latencies (ms): exponential around 10 ms, and 5 s more in six of the windows."""
    windows = -10 * np.log(1 - (np.arange(1000) + (np.arange(360)[:, None] + 0.5) / 360) / 1000)
    windows[::60] += 5000
    return windows


def dashboard_line(windows):
    """What a dashboard draws of an hour of windows, and where its average and the truth lie."""
    p95 = nearest_rank(windows, 95, axis=1)
    minutes = np.arange(p95.size) / 6
    _, ax = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    ax.plot(minutes, p95, color=GREY, linewidth=1, label="p95 of each ten-second window")
    for value, colour, dash, name in (
        (p95.mean(), AMBER, (0, (5, 2)), "average of the windows' p95s"),
        (nearest_rank(windows, 95), BLUE, "-", "true p95 of the hour"),
    ):
        ax.axhline(value, color=colour, linestyle=dash, linewidth=2, label=f"{name}: {value:.0f} ms")
    ax.set_yscale("log")
    ax.set_yticks([10, 100, 1000, 10_000], ["10", "100", "1,000", "10,000"])
    ax.set_xlim(0, 60)
    tidy(ax, "An hour of p95s on a dashboard", "minutes", "milliseconds")
    ax.set_ylim(10, 60_000)
    ax.legend(frameon=False, loc="upper left", ncols=1)
    plt.show()


def layout_widths():
    """How wide the widest range is in which each layout leaves a value, as a share of the value."""
    found = {f"HDR, {d} digits": 2.0 / 2 ** np.ceil(np.log2(2 * 10**d)) for d in (1, 2, 3, 4)}
    found |= {f"OpenTelemetry, scale {scale}": 2 ** (2.0**-scale) - 1 for scale in (3, 4, 5, 6)}
    schema = max(s for s in range(9) if 2 ** (2.0**-s) >= 1.1 - 0.01)  # the finest with this factor or more
    return found | {"Prometheus native, factor 1.1": 2 ** (2.0**-schema) - 1, "DDSketch, 1 %": 1.01 / 0.99 - 1}


def kept_by_layouts(times):
    """Draw in which range each layout leaves the p99 of `times` (ms); return how wide each is, in % of it."""
    p99 = nearest_rank(times, 99)
    ranges = {"Prometheus, default": _around(np.array([5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000.0]), p99)}
    ranges["t-digest, 100 clusters"] = _digest_cluster(np.sort(times), 0.99, 100)
    growth = {"Prometheus, native": 2 ** (1 / 8), "OpenTelemetry, scale 3": 2 ** (1 / 8), "DDSketch, 1 %": 1.01 / 0.99, "HDR, 2 digits": None, "HDR, 3 digits": None}
    for name, base in growth.items():
        if base:
            ranges[name] = tuple(base ** (np.floor(np.log(p99) / np.log(base)) + np.array([0, 1])))
        else:
            h = lk.Histogram.of([p99], digits=int(name[5]), unit="ms")
            ranges[name] = h.to_frame()[["low", "high"]].iloc[0]
    _, ax = plt.subplots(figsize=(7.6, 3.2), layout="constrained")
    for place, (name, (low, high)) in enumerate(ranges.items()):
        ax.barh(place, max(high - low, 1.5), left=low, height=0.5, color=GREY)
        ax.text(high + 6, place, f"{low:.1f} to {high:.1f} ms: {(high - low) / p99:.1%}", va="center", fontsize=8.5)
    ax.axvline(p99, color=BLUE, zorder=0)
    ax.set_yticks(range(len(ranges)), list(ranges))
    ax.invert_yaxis()
    ax.set_xlim(230, 640)
    tidy(ax, f"Where can the p99 lie? (truth: {p99:.0f} ms)", "milliseconds")
    plt.show()
    return {name: round(100 * float(high - low) / p99, 1) for name, (low, high) in ranges.items()}


def _around(edges, value):
    place = np.searchsorted(edges, value)
    return edges[place - 1], edges[place]


def _digest_cluster(ordered, q, delta):
    """Values of the cluster of a t-digest (scale function k1) that holds quantile q."""
    place = delta / (2 * np.pi) * np.arcsin(2 * q - 1)
    ends = (np.sin(2 * np.pi / delta * (np.floor(place) + np.array([0, 1]))) + 1) / 2
    return tuple(ordered[np.clip((ends * ordered.size).astype(int), 0, ordered.size - 1)])


# ------------------------------------------------------------------ lesson 4


def landing_curves(leaves=(99, 99.9, 99.99)):
    """At which percentile of page views a percentile of one request lands."""
    n = np.geomspace(1, 1000, 300)
    _, ax = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
    for p, colour, dash in zip(leaves, (INK, AMBER, BLUE), ("-", (0, (6, 2)), (0, (2, 1.5))), strict=True):
        y = fanout.landing_percentile(p, n)
        ax.plot(n, y, color=colour, linestyle=dash, linewidth=2)
        at, side = {99: (20, "right"), 99.9: (150, "right"), 99.99: (980, "right")}[p]
        rise = -14 if p == 99.99 else -6
        ax.annotate(f"p{p:g} of one request", (at, np.interp(at, n, y)), textcoords="offset points", xytext=(-8, rise), ha=side, va="top", color=colour, weight="bold")
    ax.axhline(50, color=INK, linewidth=0.8)
    ax.plot([69], [50], "o", color=INK)
    ax.annotate("69 requests: half of all page views", (69, 50), textcoords="offset points", xytext=(-10, -6), ha="right", va="top", color=INK)
    ax.set_xscale("log")
    ax.set_xticks([1, 10, 69, 100, 1000], ["1", "10", "69  ", "   100", "1,000"])
    ax.set_xticks([], minor=True)
    tidy(ax, "Where a percentile of one request lands among page views", "requests per page", "percentile of page views")
    ax.set(ylim=(0, 101), xlim=(1, 1000))
    plt.show()


def users_map():
    """Map the share of page views that see worse than a percentile of one request, by requests per page."""
    requests, nines = np.geomspace(1, 1000, 181), np.linspace(np.log10(2), 5, 181)
    share = fanout.probability_of_slow(100 * (1 - 10.0 ** -nines)[:, None], requests)
    _, ax = plt.subplots(figsize=(7.6, 4.0), layout="constrained")
    colours = ax.pcolormesh(requests, nines, 100 * share, cmap="Blues", vmin=0, vmax=100, shading="gouraud", rasterized=True)
    ax.contour(requests, nines, share, levels=[0.5], colors=INK)
    ax.annotate("half of all page views", (110, 2.2), textcoords="offset points", xytext=(-8, 22), ha="right", color=INK, arrowprops={"arrowstyle": "-", "color": INK})
    ax.set_xscale("log")
    ax.set_xticks([1, 10, 69, 100, 1000], ["1", "10", "69", "100", "1,000"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([-np.log10(0.5), 1, 2, 3, 4, 5], ["p50", "p90", "p99", "p99.9", "p99.99", "p99.999"])
    tidy(ax, "Share of page views that see worse than a percentile of one request", "requests per page", "percentile of one request")
    plt.colorbar(colours, ax=ax, label="% of page views")
    plt.show()


def any_slow(shared, own, n):
    """Share of page views with a slow one among `n` requests, which are slow together, or each on its own."""
    return 1 - (1 - shared) * (1 - own) ** np.asarray(n, float)


def sharing_panel(ax, together):
    """Share of page views with a slow request, where one in a hundred is slow and a part of this strikes all together."""
    n = np.geomspace(1, 1000, 200)
    ax.plot(n, 100 * any_slow(0, 0.01, n), color=PALE)
    ax.plot(n, 100 * any_slow(0.01 * together, 0.01 * (1 - together), n), color=BLUE, linewidth=2)
    at = 100 * any_slow(0.01 * together, 0.01 * (1 - together), 100)
    ax.plot([100], [at], "o", color=BLUE)
    ax.annotate(f"{at:.0f} %", (100, at), textcoords="offset points", xytext=(-8, 6), ha="right", color=BLUE)
    ax.set_xscale("log")
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.set_xticks([], minor=True)
    tidy(ax, f"{together:.0%} of slowness shared", "requests per page", "% of page views")
    ax.set_ylim(0, 105)


def page_panel(by_length, lengths):
    """Return a picture of the share of users who meet a slow request, per log, for a page of some seconds."""

    def draw(ax, seconds):
        shares = [of[list(lengths).index(seconds)] for of in by_length.values()]
        bars = ax.barh(list(by_length), shares, color=BLUE, height=0.5)
        ax.bar_label(bars, [f"{share:.0f} %" for share in shares], padding=3, backgroundcolor="white")
        ax.axvline(63, color=GREY, linestyle=(0, (5, 3)))
        tidy(ax, f"a page that takes {seconds} s", "% of users (dashed: independent)")
        ax.set_xlim(0, 80)
        ax.invert_yaxis()

    return draw


def met_by_users(log, n):
    """Share (%) of users with `n` requests of whom one lies above the log's p99: independent, and by its intervals."""
    p99 = log.histogram().percentile(99)
    return [100 * lk.fan_out(log, n, independent=alone).share_above(p99) for alone in (True, False)]


def lognormal_quantiles(n):
    """Return the quantiles of a lognormal distribution (median 1, sigma 1), in ascending order."""
    from scipy import special

    return np.exp(special.ndtri((np.arange(n) + 0.5) / n))


def _lognormal(n=200_000):
    return lognormal_quantiles(n), 1 - np.arange(1, n + 1) / n


def hedging(shared):
    """Draw a service with and without a hedge at its p95, and say what it costs; return p99 and p99.9 of both, in ms."""
    values, above = _lognormal()
    found = fanout.hedged(values, above, values[int(0.95 * values.size) - 1], shared)
    _, ax = plt.subplots(figsize=(7.6, 3.2), layout="constrained")
    ax.set_xscale("percentile", nines=4)
    for v, s, colour, name in ((values, above, INK, "one request"), (found.values, found.survival, BLUE, "with a hedge")):
        ax.plot(100 * (1 - s[s > 2e-4]), v[s > 2e-4], color=colour, label=name)
    ax.set_yscale("log")
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    tidy(ax, f"A hedge at the p95: {found.added_load:.0%} more requests", "percentile of requests", "milliseconds")
    ax.legend(frameon=False, loc="upper left")
    plt.show()
    return [round(float(v[np.searchsorted(-s, -q)]), 1) for q in (0.01, 0.001) for v, s in ((values, above), (found.values, found.survival))]


def hedged_stall(shared):
    """The p99.95 (ms) without and with a hedge, when 0.1 % of all requests meet a stall of 100 ms."""
    values, above = _lognormal()
    values = np.concatenate((values, values + 100))
    order = np.argsort(values)
    weight = np.repeat([0.999, 0.001], values.size // 2)[order] / (values.size // 2)
    values, above = values[order], np.clip(1 - np.cumsum(weight), 0, None)
    found = fanout.hedged(values, above, values[np.searchsorted(-above, -0.05)], shared)
    at = [v[np.searchsorted(-s, -0.0005)] for v, s in ((values, above), (found.values, found.survival))]
    return {"without": round(float(at[0]), 1), "with": round(float(at[1]), 1)}


# ------------------------------------------------------------------ lesson 5


def numbers(data, percentiles=(50, 75, 99.99)):
    """Return mean, percentiles and maximum in ms."""
    values = getattr(data, "values", None)
    if values is None:
        found = [data.mean, *data.percentile(list(percentiles)), data.max]
    else:
        found = [values.mean(), *nearest_rank(values, percentiles), values.max()]
    names = ["mean, ms", *(f"p{p:g}, ms" for p in percentiles), "max, ms"]
    return pd.Series([float(f"{value / 1e6:.5g}") for value in found], index=names)


def report(samples):
    """Print what a load generator prints."""
    mean, p50, p75, p9999, top = numbers(samples)
    print(f"{len(samples):,} requests   mean {mean:,.1f} ms   p50 {p50:,.0f}   p75 {p75:,.0f}   p99.99 {p9999:,.0f}   max {top:,.0f} ms")


def request_lines(worlds, begin=95, end=205, every=250):
    """Draw requests as lines from their sending to their answer (one in `every` of the honest ones), the stall in grey."""
    _, axes = plt.subplots(len(worlds), 1, figsize=(7.6, 3.6), sharex=True, layout="constrained")
    for ax, (name, samples), colour in zip(axes, worlds.items(), (RED, BLUE), strict=True):
        sent, took = samples.start / 1e9, samples.values / 1e9
        shown = (np.arange(len(samples)) % every == 0) | ((took > 1) & (len(samples) < 15_000))
        chosen = np.flatnonzero((sent >= begin) & shown)
        ax.axvspan(100, 200, color="#e7e9ec", zorder=0)
        height = np.linspace(0.95, 0.05, max(chosen.size, 2))[: chosen.size]
        ax.hlines(height, sent[chosen], (sent + took)[chosen], color=colour, linewidth=1.4)
        ax.plot(sent[chosen], height, ".", color=colour, markersize=3)
        tidy(ax, f"{name} (one line in {every})" if len(samples) > 15_000 else name)
        ax.set(yticks=[], ylim=(0, 1), xlim=(begin, end))
        ax.spines["left"].set_visible(False)
    axes[-1].set_xlabel("seconds from the start of the run; grey: the server is stopped")
    plt.show()


def generators_panel(ax, stall):
    """The percentile curves that three generators report of one server, frozen for `stall` seconds."""
    server = lk.simulate.Server("1ms", stalls=[lk.simulate.Stall(100, stall)] if stall else [], ideal=True)
    made = {
        "closed": lk.simulate.paced_loop(server, rate=100, duration=200),
        "catch-up": lk.simulate.catch_up_loop(server, rate=100, duration=200),
        "open": lk.simulate.open_loop(server, lk.simulate.fixed(rate=100, duration=200)),
    }
    _curves(ax, {name: samples.values / 1e9 for name, samples in made.items()}, 4, (RED, AMBER, BLUE), ("-", (0, (5, 3)), "-"))
    ax.set_yscale("log")
    ax.set_ylim(5e-4, 200)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    tidy(ax, f"stall of {stall} s", "percentile of requests", "seconds")


def _curves(ax, worlds, nines, colours, dashes):
    """Percentile curves of samples on the nines axis."""
    ax.set_xscale("percentile", nines=nines)
    p = 100 * (1 - 10.0 ** -np.linspace(0, nines, 600))
    for (name, values), colour, dash in zip(worlds.items(), colours, dashes, strict=True):
        curve = nearest_rank(values, p)
        curve[-1] = values.max()
        ax.plot(p, curve, color=colour, linestyle=dash, linewidth=2, label=name)
    ax.legend(frameon=False, loc="best")


def fixed_mean_and_deviation(slow, even, n=10_000):
    """Latencies (ms) with mean 10 and deviation 5: `slow` % take one long time, the others spread evenly around another."""
    count = round(slow / 100 * n)
    others, p = n - count, count / n
    spread = (5 * even) ** 2 / 3
    gap, step = np.sqrt((25 - (1 - p) * spread) / (p * (1 - p))), np.sqrt(12 * spread / (others**2 - 1))
    return 10 - p * gap + np.r_[step * (np.arange(others) - (others - 1) / 2), np.full(count, gap)]


def spread_panel(ax, slow, even):
    """A service with mean 10 ms and standard deviation 5 ms, and its p99."""
    times = fixed_mean_and_deviation(slow, even)
    _curves(ax, {"latency": times}, 3, (BLUE,), ("-",))
    ax.axhline(times.mean(), color=GREY, linestyle=(0, (5, 3)))
    ax.set_ylim(0, 80)
    tidy(ax, f"{slow:g} % slow: p99 {nearest_rank(times, 99):.1f} ms", "percentile of requests", "milliseconds")
    ax.get_legend().remove()


def pole_panel(ax, rate):
    """Mean and p99 over the arrival rate by the formula, and one minute of a server at `rate` per second."""
    loads = np.arange(0, 996, 5)
    for factor, colour, dash, name in ((1, BLUE, "-", "mean"), (np.log(100), AMBER, (0, (5, 3)), "p99")):
        ax.plot(loads, 1000 * factor / (1000 - loads), color=colour, linestyle=dash, label=name)
    took = exponential_server(rate).values / 1e6
    for value, colour in ((took.mean(), BLUE), (nearest_rank(took, 99), AMBER)):
        ax.plot([rate], [value], "o", color=colour)
    ax.axvline(1000, color=GREY, linestyle=(0, (2, 2)))
    ax.set_yscale("log")
    ax.set(xlim=(0, 1200), ylim=(0.5, 1e5))
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:,g}")
    tidy(ax, f"{rate:,} arrivals per second", "arrivals per second", "milliseconds")
    ax.legend(frameon=False, loc="upper left")


def closed_loop_p99(connections, rate):
    """p99 (ms) of a closed loop that offers `rate` per second to an exponential server of 1 ms (the machine-repair queue)."""
    from scipy import optimize, stats

    others = np.arange(connections)  # requests that one finds under way; then it takes as many services, and its own
    log_weight = np.concatenate([[0], np.cumsum(np.log((connections - others[1:]) * rate / 1000 / connections))])
    weight = np.exp(log_weight - log_weight.max())
    return optimize.brentq(lambda t: weight @ stats.gamma.sf(t, others + 1) / weight.sum() - 0.01, 0, 4 * connections + 20)


def loops_panel(ax, connections):
    """The p99 over the load that is due: of an open loop, and of a closed loop with some connections."""
    loads = np.arange(20, 1601, 20)
    below = loads[loads < 1000]
    ax.plot(below, 1000 * np.log(100) / (1000 - below), color=BLUE, label="open loop")
    ax.plot(loads, [closed_loop_p99(connections, load) for load in loads], color=RED, linestyle=(0, (5, 3)), label="closed loop")
    ax.axvline(1000, color=GREY, linestyle=(0, (2, 2)))
    ax.set_yscale("log")
    ax.set(xlim=(0, 1600), ylim=(1, 1e4))
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:,g}")
    tidy(ax, f"{connections} connection{'s' if connections > 1 else ''}", "requests per second that are due", "p99, milliseconds")
    ax.legend(frameon=False, loc="upper left")


def latency_over_time(worlds, stall, every=25, limit=None):
    """Draw latency against the time of sending, a panel per world; the stall is grey."""
    axes = panels(len(worlds), 3.2, sharey=True)
    for ax, (name, samples), colour in zip(axes, worlds.items(), (RED, BLUE), strict=True):
        sent, took = samples.start / 1e9, samples.values / 1e9
        chosen = (np.arange(len(samples)) % every == 0) | (took >= 0.999 * took.max()) & (took > 1) & (np.arange(len(samples)) % 5 == 0) | (took == took.max())
        ax.axvspan(*stall, color="#e7e9ec", zorder=0)
        ax.plot(sent[chosen], took[chosen], ".", color=colour, markersize=4)
        if limit:
            ax.axhline(limit, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
        tidy(ax, name, "when it was sent, seconds (grey: stall)")
    axes[0].set_ylabel("latency, seconds")
    plt.show()


def connections_panel(ax, digits):
    """The percentile curve that a paced loop reports with 10, 100, 1,000 … connections, and the one that users see."""
    server = lk.simulate.Server("1ms", stalls=[lk.simulate.Stall(100, 100)], ideal=True)
    users = lk.simulate.open_loop(server, lk.simulate.fixed(rate=100, duration=200))
    made = lk.simulate.paced_loop(server, rate=100, duration=200, connections=10**digits)
    p = 100 * (1 - 10.0 ** -np.linspace(0, 4, 400))
    ax.set_xscale("percentile", nines=4)
    ax.plot(p, nearest_rank(users.values, p) / 1e9, color=PALE, linewidth=5, label="users")
    ax.plot(p, nearest_rank(made.values, p) / 1e9, color=RED if digits < 4 else BLUE, label="the tool")
    tidy(ax, f"{10**digits:,} connection{'s' if digits else ''}", "percentile of requests", "seconds")
    ax.set_yscale("log")
    ax.set_ylim(5e-4, 300)
    ax.legend(frameon=False, loc="best")


def league_dumbbells(league):
    """Per tool and mode: the reported p99, the true one, and a line between them."""
    rows = league.reset_index()
    rows = rows.assign(error=np.abs(np.log(rows["p99"] / rows["true p99"]))).sort_values("error", ignore_index=True)
    _, ax = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
    place = np.arange(len(rows))
    ax.hlines(place, rows["p99"], rows["true p99"], color=PALE, linewidth=2.5)
    low = rows["p99"] < rows["true p99"] / 2
    too_high = rows["p50"] > 100 * rows["true p50"]
    for of, colour, label in ((~low & ~too_high, INK, "reported p99"), (low, RED, "reported p99, omits"), (too_high, AMBER, "reported p99, corrects too much")):
        ax.plot(rows["p99"][of], place[of], "o", color=colour, markersize=10, label=label)
    ax.plot(rows["true p99"], place, "D", color=BLUE, markersize=5, markerfacecolor="white", markeredgewidth=1.6, label="true p99")
    ax.set_yticks(place, rows["tool"] + ", " + rows["mode"])
    ax.set_xscale("log")
    ax.set_xticks([0.1, 1, 10, 100, 1000, 10_000], ["0.1", "1", "10", "100", "1,000", "10,000"])
    tidy(ax, "Ten tools in thirteen modes: reported and true p99 of a server that froze", "milliseconds")
    ax.grid(visible=False, axis="y")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.45, 0.02))
    plt.show()


# ------------------------------------------------------------------ lesson 6


def outcomes(made):
    """Draw what became of every attempt: answered, or failed."""
    _, ax = plt.subplots(figsize=(7.6, 1.9), layout="constrained")
    for place, (name, samples) in enumerate(made.items()):
        good, count = int(samples.good.sum()), len(samples)
        ax.barh(place, good, height=0.55, color=BLUE)
        ax.barh(place, count - good, left=good, height=0.55, color="white", edgecolor=GREY, hatch="////")
        ax.text(good / 2, place, f"{good:,} answered", color="white" if good > 1500 else INK, va="center", ha="center" if good > 1500 else "left", weight="bold") if good > 1500 else ax.text(
            count / 2, place, f"{good:,} answered, {count - good:,} failed", va="center", ha="center", color=INK, weight="bold", bbox={"facecolor": "white", "edgecolor": "none", "pad": 2}
        )
    ax.set_yticks(range(len(made)), list(made))
    tidy(ax, "What became of 6,000 attempts to pay", "attempts")
    ax.grid(visible=False, axis="y")
    plt.show()


def answered_only(samples):
    """What a tool reports that leaves out every request without a good answer."""
    return lk.Histogram.of(samples.values[samples.good])


# ------------------------------------------------------------------ lesson 8


def till_at(busy, customers=200_000, slow=0.01):
    """Simulated response times (s) at a till that is busy for a share of the time."""
    work = 30 + 150 * slow
    server = lk.simulate.Server(lk.simulate.mixture((1 - slow, "30s"), (slow, "180s")))
    return lk.simulate.open_loop(server, lk.simulate.poisson(busy / work, customers * work / busy, seed=5)).values / 1e9


class till_curve:
    """The response time (s) at a till that is busy for a share of the time: mean and percentiles, exact to half a second.

    The wait is a geometric sum of residual service times (Pollaczek and Khinchine), here on a grid.
    """

    def __init__(self, busy, slow=0.01, step=0.5, n=1 << 16):
        left = np.where(np.arange(n) * step < 30, 1.0, np.where(np.arange(n) * step < 180, slow, 0.0))
        residual = (left + np.roll(left, 1)) / 2 * step / (30 + 150 * slow)  # each cell to its two ends
        residual[0] = 0.5 * step / (30 + 150 * slow)
        wait = np.fft.irfft((1 - busy) / (1 - busy * np.fft.rfft(residual)), n)
        response = (1 - slow) * np.roll(wait, round(30 / step)) + slow * np.roll(wait, round(180 / step))
        self._step, self._below = step, np.cumsum(response)
        self.mean = float(response @ (np.arange(n) * step))

    def percentile(self, p):
        """Return the response time at percentile p, a number or an array."""
        return self._step * np.searchsorted(self._below, np.asarray(p) / 100 - 1e-12)


def cashier_service(n=10_000):
    """Service times (s) at the till."""
    return lk.simulate.mixture((0.99, "30s"), (0.01, "180s"))(np.random.default_rng(0), n) / 1e9


def pole(times, limit):
    """Draw mean and p99 of response times against how busy the server is."""
    _, ax = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
    share = 100 * np.array(list(times))
    for values, colour, name in (
        ([t.percentile(99) for t in times.values()], AMBER, "p99"),
        ([t.mean for t in times.values()], BLUE, "mean"),
    ):
        ax.plot(share, values, color=colour, marker=".", label=name)
        ax.text(share[-1] - 2, values[-1], name, color=colour, va="center", ha="right", weight="bold")
    ax.axhline(limit, color=GREY, linestyle=(0, (4, 2)))
    ax.text(10, limit * 1.03, "ten minutes", color=GREY)
    ax.axvline(100, color=INK, linewidth=3)
    ax.text(99.4, limit * 1.5, "the pole", rotation=90, ha="right", color=INK)
    ax.set_xlim(8, 102)
    tidy(ax, "Response time at the till", "share of the time that the cashier is busy, %", "seconds")
    plt.show()


def queue_panel(ax, busy, slow):
    """Percentile curves of service and response time at the till."""
    p = 100 * (1 - 10.0 ** -np.linspace(0, 3, 300))
    ax.set_xscale("percentile", nines=3)
    ax.plot(p, till_curve(busy, slow / 100).percentile(p), color=BLUE, linewidth=2, label="response time")
    ax.plot(p, np.where(p <= 100 - slow, 30, 180), color=GREY, linewidth=2, label="service time")
    tidy(ax, f"{busy:.0%} busy, {slow} % slow customers", "percentile of customers", "seconds")
    ax.set_yscale("log")
    ax.set_ylim(20, 5000)
    ax.legend(frameon=False, loc="upper left")


def exponential_server(rate, seconds=60):
    """Samples of an exponential server of 1 ms at a rate of random arrivals."""
    arrivals = lk.simulate.poisson(rate, seconds, seed=rate)
    return lk.simulate.open_loop(lk.simulate.Server(lk.simulate.exponential("1ms")), arrivals, duration=seconds)


def knee_of(loads, capacity=1000):
    """The load at which a curve of response times lies farthest below the straight line between its ends."""
    response = 1 / (1 - loads / capacity)
    line = response[0] + (response[-1] - response[0]) * (loads - loads[0]) / (loads[-1] - loads[0])
    return int(loads[np.argmax((line - response) / (response[-1] - response[0]))])


def moving_knee(ends=(950, 800)):
    """Draw one curve of response times as two people measured it, and the knee that each reads off."""
    _, ax = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    loads = np.arange(50, max(ends) + 1, 5)
    ax.plot(loads, 1 / (1 - loads / 1000), color=PALE, linewidth=6, label="the system, in both cases")
    for end, colour, dash, mark in zip(ends, (BLUE, AMBER), ("-", (0, (5, 3))), ("o", "s"), strict=True):
        measured = np.arange(50, end + 1, 50)
        knee = knee_of(measured)
        response = 1 / (1 - measured / 1000)
        ax.plot(measured, response, color=colour, linestyle=dash, linewidth=1.4)
        ax.plot(measured[[0, -1]], response[[0, -1]], color=colour, linewidth=0.8, linestyle=(0, (1, 2)))
        ax.plot([knee], [1 / (1 - knee / 1000)], mark, color=colour, markersize=9, label=f"measured up to {end}/s: knee at {knee}/s")
    tidy(ax, "One curve, two knees", "arrival rate, requests per second", "mean response time, ms")
    ax.legend(frameon=False, loc="upper left")
    plt.show()


def scalability(workers, measured, law, best):
    """Draw measured throughput against workers, the fitted law, and its best number of workers."""
    grid = np.linspace(1, workers.max(), 300)
    _, ax = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    ax.plot(grid, measured[0] * grid, color=GREY, linestyle=(0, (4, 2)), linewidth=1.2)
    ax.text(13.4, measured[0] * 13, "if nothing were shared", color="#5b626d", va="center")
    ax.plot(grid, law(grid), color=BLUE, linewidth=2)
    ax.plot(workers, measured, "o", color=INK, label="measured")
    ax.axvline(best, color=INK, linewidth=1)
    ax.text(best + 0.8, 400, f"best: {best:.0f} workers", color=INK)
    tidy(ax, "More workers, less throughput: the Universal Scalability Law", "workers", "requests per second")
    ax.set_ylim(0, 1.9 * measured.max())
    ax.legend(frameon=False, loc="upper right")
    plt.show()


def throughput_of(workers, contention=0.05, coherence=8e-4):
    """Throughput of workers who share data, measured with 1 % noise."""
    law = 1000 * workers / (1 + contention * (workers - 1) + coherence * workers * (workers - 1))
    return law * (1 + 0.01 * np.random.default_rng(6).standard_normal(workers.size))


def tails_over_rate(p99s, stable):
    """Draw the p99 (ms) over the arrivals per second, a line per column; `stable` has the pole of those that end at one."""
    _, ax = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
    for (name, of), colour in zip(p99s.items(), (INK, AMBER, BLUE), strict=True):
        of = of[of.index < stable.get(name, np.inf)]
        ax.plot(of.index, of, color=colour, marker="o", markersize=4, label=name)
    ax.vlines(list(stable.values()), 5, 1000, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    ax.set(xscale="log", yscale="log", ylim=(5, 1000))
    ax.set_xticks([50, 100, 200, 500, 1000, 2000, 5000], ["50", "100", "200", "500", "1,000", "2,000", "5,000"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    tidy(ax, "The p99 of a log that writes in batches", "messages per second", "milliseconds")
    ax.legend(frameon=False, loc="upper right")
    plt.show()


# ------------------------------------------------------------------ lesson 9


def make_run(rng, factor=1.0, n=20_000, noise=0.03):
    """One run of a service whose runs differ by `noise`, all its times multiplied by `factor`."""
    return lk.Histogram.of(factor * np.exp(noise * rng.standard_normal()) * rng.lognormal(0, 0.5, n), unit="ms")


def _rank_sum(base, new):
    """Two-sided p-value of the rank-sum test, by its normal approximation."""
    from scipy import special

    n, m = base.shape[-1], new.shape[-1]
    order = np.concatenate([base, new], axis=-1).argsort(axis=-1).argsort(axis=-1) + 1
    z = (order[..., :n].sum(axis=-1, dtype=np.int64) - n * (n + m + 1) / 2) / np.sqrt(n * m * (n + m + 1) / 12)
    return 2 * special.ndtr(-np.abs(z))


def equal_sides(comparisons, noise, runs=5, n=700, seed=11):
    """P-values of comparisons of equal sides: of all requests together, and of one p90 a run."""
    from latencykit.analysis.compare import compare_runs

    rng = np.random.default_rng(seed)
    together, single = [], []
    for _ in range(comparisons):
        luck = np.exp(noise * rng.standard_normal((2, runs, 1)))
        sides = luck * rng.lognormal(0, 0.25, (2, runs, n))
        together.append(_rank_sum(sides[0].reshape(-1), sides[1].reshape(-1)))
        each = np.log(nearest_rank(sides, 90, axis=2))
        found = compare_runs(each[0][:, None] + 10, each[1][:, None] + 10, ["p90"])
        single.append(found.changes[0].p_value)
    return np.array(together), np.array(single)


def false_alarms(comparisons, noise):
    """Share (%) of comparisons of equal sides that are significant at 5 %."""
    together, single = equal_sides(comparisons, noise)
    names = {"all requests together": together, "one number per run": single}
    return pd.Series({name: 100 * (p < 0.05).mean() for name, p in names.items()}, name="% false alarms")


def p_values():
    """Draw the p-values of comparisons of equal sides."""
    axes = panels(2, 2.8, sharey=True)
    for ax, p, colour, name in zip(axes, equal_sides(200, 0.03), (AMBER, BLUE), ("all requests together", "one number per run"), strict=True):
        bars = ax.hist(p, bins=np.linspace(0, 1, 21), color=colour, alpha=0.45)[2]
        bars[0].set_alpha(1)
        ax.axhline(10, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
        ax.annotate(f"{(p < 0.05).sum()} false alarms", (0.05, (p < 0.05).sum()), textcoords="offset points", xytext=(8, 48 if (p < 0.05).sum() < 10 else -4), color=colour, weight="bold")
        tidy(ax, name, "p-value of a comparison of equal sides", "comparisons of 200")
    plt.show()


def nights(values, changes):
    """Draw one number per night, and the level before and after each change point."""
    _, ax = plt.subplots(figsize=(7.6, 3.2), layout="constrained")
    ax.plot(values, "o", color=GREY, markersize=4)
    ends = [0, *(change.position for change in changes), len(values)]
    for start, end in zip(ends, ends[1:], strict=False):
        ax.hlines(np.median(values[start:end]), start - 0.5, end - 0.5, color=BLUE, linewidth=2.5)
    for change in changes:
        ax.axvline(change.position - 0.5, color=INK, linestyle=(0, (5, 2)))
        ax.text(change.position, 1.62, f"night {change.position}: {change.change:+.0%}", color=INK)
    top = int(np.argmax(values))
    ax.annotate(f"one night at {values[top]:.1f} ms", (top, 1.75), textcoords="offset points", xytext=(8, -4), color=INK)
    ax.plot([top], [1.75], "^", color=INK)
    tidy(ax, "Sixty nightly runs", "night", "p99, ms")
    ax.set_ylim(0.85, 1.82)
    plt.show()


def exact_size(runs, sides, level=0.05):
    """How often (0..1) an exact test of ranks fires at `level` where the sides are equal: less, for its p-values have steps."""
    from itertools import combinations

    sums = np.array([sum(chosen) for chosen in combinations(range(1, 2 * runs + 1), runs)])
    away = sums - runs * (2 * runs + 1) / 2
    away = np.abs(away) if sides == 2 else away
    p = (away[None, :] >= away[:, None] - 1e-9).mean(axis=1)
    return float((p <= level + 1e-12).mean())


def detection(runs, change, trials=300, noise=0.041, seed=21):
    """How often (0..1) the exact test finds a true change from one number per run.

    The noise is what the p99 of a run varies by: 3 % from run to run, and its own sampling error.
    """
    from itertools import combinations

    rng = np.random.default_rng(seed)
    n = 2 * runs
    values = noise * rng.standard_normal((trials, n))
    values[:, runs:] += np.log1p(change)
    sums = (values.argsort(axis=1).argsort(axis=1) + 1)[:, :runs].sum(axis=1)
    every = np.array([sum(chosen) for chosen in combinations(range(1, n + 1), runs)])
    middle = runs * (n + 1) / 2
    p = (np.abs(every[None, :] - middle) >= np.abs(sums[:, None] - middle) - 1e-9).mean(axis=1)
    return float((p < 0.05).mean())


def warming(sides, every):
    """Draw the median of each `every` requests of a process per side, and the mean of all its requests."""
    _, ax = plt.subplots(figsize=(7.6, 3.2), layout="constrained")
    for (name, run), colour in zip(sides.items(), (INK, BLUE), strict=True):
        ax.plot(np.arange(0, run.size, every), np.median(run.reshape(-1, every), axis=1), color=colour, linewidth=2, label=name)
        ax.axhline(run.mean(), color=colour, linewidth=1, linestyle=(0, (5, 2)), label=f"mean of all: {run.mean():.1f} ms")
    ax.set_yscale("log")
    ax.set_yticks([1, 2, 5], ["1", "2", "5"])
    ax.yaxis.set_minor_formatter("")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    tidy(ax, f"The median of every {every} requests since the start of the process", "requests since the start", "milliseconds")
    ax.legend(frameon=False, loc="upper right")
    plt.show()


def mix_shift(n=400_000):
    """Mean and p99 (ms) before and after: both kinds 10 % faster, the slow kind from 10 to 30 % of the traffic."""
    rng, rows = np.random.default_rng(9), {}
    for name, share, factor in (("before", 0.1, 1.0), ("after", 0.3, 0.9)):
        slow = rng.random(n) < share
        times = factor * np.where(slow, rng.exponential(100, n), rng.exponential(10, n))
        rows[name] = {"slow kind, %": 100 * share, "mean, ms": times.mean(), "p99, ms": nearest_rank(times, 99)}
    return rows


# ------------------------------------------------------------------ lesson 10


def what_we_have(h):
    """The conditions of a run, and how far its percentiles hold."""
    return {
        "requests": h.count,
        "loop": h.run.loop,
        "time": h.run.measure,
        "p50, µs": round(h.percentile(50) / 1e3, 1),
        "max, ms": round(h.max / 1e6, 2),
        "up to": round(h.highest_supported_percentile(), 3),
    }


def invented(measured, filled):
    """How many values back-filling made up, and their share among the values above the filled p99."""
    edge = filled.percentile(99)
    beyond = filled.count_above(edge)
    more = beyond - measured.count_above(edge)
    return {"measured": measured.count, "made up": filled.count - measured.count, "% of the values above p99": round(100 * more / beyond)}


def throughput_and_tails(runs, rates):
    """Draw a bar of throughput per run, and above it what its slowest requests took."""
    _, (top, ax) = plt.subplots(2, 1, figsize=(7.6, 4.2), height_ratios=(3, 2), sharex=True, layout="constrained")
    place = np.arange(len(runs))
    ax.bar(place, rates, width=0.5, color=PALE)
    for x, rate in zip(place, rates, strict=True):
        ax.text(x, rate, f"{rate:,.0f}", ha="center", va="bottom")
    for p, mark, colour in ((50, "o", BLUE), (99, "s", AMBER), (100, "^", INK)):
        values = [(h.max if p == 100 else h.percentile(p)) / 1e6 for h in runs.values()]
        top.plot(place, values, mark, color=colour, markersize=8, label="maximum" if p == 100 else f"p{p}")
    top.vlines(place, [h.percentile(50) / 1e6 for h in runs.values()], [h.max / 1e6 for h in runs.values()], color=PALE, zorder=0, linewidth=2)
    top.set_yscale("log")
    top.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ax.set_xticks(place, list(runs))
    ax.set_ylim(0, 1.25 * max(rates))
    tidy(top, "Throughput, with the tail on top", y="latency, ms")
    tidy(ax, y="requests per second")
    for one in (top, ax):
        one.grid(visible=False, axis="x")
    top.legend(frameon=False, ncols=3, loc="upper center")
    top.set_ylim(0.01, 40)
    plt.show()


# ------------------------------------------------------------------ lesson 7


def steps_on_a_grid(worst, step=20.0):
    """Draw the upper percentiles of each row as steps below its maximum; lines are whole steps apart."""
    _, axes = plt.subplots(len(worst), 1, figsize=(7.6, 3.6), sharex=True, layout="constrained")
    for ax, (name, row) in zip(axes, worst.iterrows(), strict=True):
        below = (row.max() - row) / step
        exact = bool((np.abs(below - below.round()) < 0.01).all())
        ax.vlines(np.arange(0, 17), 0, 1, color="#dfe2e6", linewidth=0.8)
        ax.vlines(below, 0, 1, color=AMBER if exact else INK, linewidth=3)
        colour = AMBER if exact else INK
        if row.max() - row.min() < 20:
            ax.text(below.max() + 0.15, 0.5, "p99, p99.9 and p99.99 within a sixth of a step", ha="right", va="center", color=colour)
        else:
            for p, x in below.items():
                last = p == "p99.99"
                ax.text(x - 0.12 if last else x + 0.12, 0.5, p, ha="left" if last else "right", va="center", color=colour)
        ax.tick_params(length=0)
        ax.set(yticks=[], xlim=(17, -1.4))
        ax.set_ylabel(name.replace(" ", "\n", 1), rotation=0, ha="right", va="center")
        ax.spines[:].set_visible(False)
    axes[0].set_title("Where the upper percentiles lie below the maximum (amber: on whole steps)", loc="left", color=INK)
    axes[-1].set_xticks(range(0, 17, 2))
    axes[-1].set_xlabel("steps of 20 ms below the maximum")
    plt.show()


def mugshot(data):
    """What a report shows of a run: how many, and the usual numbers in ms."""
    h = data.histogram()
    p50, p99 = h.percentile([50, 99]) / 1e6
    return {"requests": f"{h.count:,}", "p50, ms": round(p50, 2), "p99, ms": round(p99, 1), "max, ms": round(h.max / 1e6)}


def shadows(suspects, names, seconds):
    """Draw the share of requests above x, and the share that a stall as long as the slowest request must have held up."""
    for ax, name, colour in zip(panels(len(names), 3.2, sharey=True), names, (RED, BLUE), strict=True):
        h = suspects[name].histogram()
        x = np.linspace(0.02, h.max / 1e9, 300)
        share = np.array([h.count_above(at * 1e9) for at in x]) / h.count
        floor = (x[-1] - x) / seconds
        ax.plot(x, 100 * floor, color=INK, linewidth=1.2)
        ax.plot(x, 100 * share, color=colour, linewidth=2)
        ax.fill_between(x, 100 * share, 100 * floor, where=share < 0.9 * floor, color=RED, alpha=0.15, linewidth=0)
        ax.text(0.46 * x[-1], 100 * floor[0] * 0.72, "shadow of the stall", color=INK)
        tidy(ax, f"suspect {name}", "x, seconds", "% of requests slower than x")
    plt.show()


def before_and_after(diagnosis):
    """p50, p90 and p99 in ms, as measured and with what was left out."""
    raw, corrected = (h.percentile([90, 99]) / 1e6 for h in (diagnosis.raw, diagnosis.corrected))
    return {
        "p90 raw": round(raw[0], 2), "p90 corrected": round(corrected[0]),
        "p99 raw": round(raw[1], 2), "p99 corrected": round(corrected[1]), "by": diagnosis.method,
    }  # fmt: skip


def lonely_slow_request():
    """An open loop against 64 workers, one request in 10,000 of which takes 3 s and holds up nobody."""
    service = lk.simulate.mixture((0.9999, "1ms"), (0.0001, "3s"))
    return lk.simulate.open_loop(lk.simulate.Server(service, servers=64), lk.simulate.poisson(200, 100, seed=2))


# ------------------------------------------------------------------ lesson 12


def chart_crimes():
    """Three crimes (left) beside better charts of the same data."""
    log = lk.read(DATA / "ctrlz-scheduled.hlog")
    series, h = interval_series(log, (50,)), log.histogram()
    _, axes = plt.subplots(3, 2, figsize=(8.4, 7.4), layout="constrained")
    smooth = np.convolve(np.nan_to_num(series.values[:, 0]) / 1e6, np.ones(7) / 7, "same")
    axes[0, 0].plot(series.start, smooth, color=AMBER)
    tidy(axes[0, 0], "Crime: a smoothed median over time", "seconds", "ms")
    axes[0, 0].set_ylim(0, 800)
    lk.plot.timeline(log, ax=axes[0, 1], title="Better: every second's maximum", subtitle="")
    p = np.linspace(0, 68, 200)
    axes[1, 0].plot(p, h.percentile(p) / 1e6, color=AMBER)
    tidy(axes[1, 0], "Crime: a curve that ends where it is pretty", "percentile", "ms")
    lk.plot.percentiles({"honest": h}, ax=axes[1, 1], nines=4, title="Better: up to the maximum", subtitle="", color=BLUE)
    axes[2, 0].bar(["A", "B"], [505, 505], color=AMBER, width=0.5)
    tidy(axes[2, 0], "Crime: averages of two hosts' p99s", y="ms")
    hosts = {
        "A: 10 and 1,000": lk.Histogram.of([10] * 985 + [1000] * 15 + [10] * 1000, unit="ms"),
        "B: 505 and 505": lk.Histogram.of(np.linspace(400, 507, 2000), unit="ms"),
    }
    lk.plot.percentiles(hosts, ax=axes[2, 1], nines=3, title="Better: merge, then ask", subtitle="")
    plt.show()


def signatures(at, causes):
    """Draw a heat map per cause, of latencies (ms) at some seconds."""
    _, axes = plt.subplots(2, 2, figsize=(9.6, 6.4), layout="constrained")
    for ax, (name, ms) in zip(axes.ravel(), causes.items(), strict=True):
        log = lk.Samples(start=at, duration=ms / 1e3, unit="s").to_log("500ms")
        lk.plot.heatmap(log, ax=ax, title=name, subtitle="").set_ylim(3e5, 6e8)
    plt.show()


def real_heat_maps():
    """Draw six logs of the course as they are."""
    logs = {name: lk.read(DATA / f"{name}.hlog", unit="us" if name == "ycsb" else "ns")
            for name in ("ctrlz-uncorrected", "ctrlz-scheduled", "jhiccup-gc", "jhiccup-v2", "ycsb")}  # fmt: skip
    logs["redis-tagged, SETs"] = lk.read(DATA / "redis-tagged.hlog", tag="set")
    _, axes = plt.subplots(3, 2, figsize=(9.6, 9.6), layout="constrained")
    for k, (ax, (name, log)) in enumerate(zip(axes.ravel(), logs.items(), strict=True), 1):
        lk.plot.heatmap(log, ax=ax, title=f"{k} · {name}", subtitle="").set_xlabel("time from the start")
    plt.show()


# ------------------------------------------------------------------ lesson 13


def hedge_over_load(hedges):
    """Draw the p99 over the load of the replicas: without a hedge, with one, and with a budget for it."""
    p99 = hedges["p99, ms"].unstack()
    _, ax = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
    for name, colour, dash, label in (("none", INK, "-", "no hedge"), ("hedge", AMBER, "-", "hedge"), ("budget", BLUE, (0, (5, 3)), "hedge, budget of 5 %")):
        ax.plot(100 * p99.index, p99[name], color=colour, linestyle=dash, marker="o", markersize=4, label=label)
    ax.set_yscale("log")
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    tidy(ax, "The p99 of ten replicas", "load without hedges, % of what the replicas can do", "milliseconds")
    ax.legend(frameon=False, loc="upper left")
    plt.show()


def answered_over_time(worlds):
    """Draw the share of each second's requests that is answered in time, a panel per (due times, answered)."""
    rows = -(-len(worlds) // 2)
    _, axes = plt.subplots(rows, 2, figsize=(7.6, 0.6 + 1.7 * rows), sharex=True, sharey=True, layout="constrained", squeeze=False)
    for ax, (name, (due, done)) in zip(axes.ravel(), worlds.items(), strict=True):
        second = due.astype(int)
        share = 100 * np.bincount(second, done) / np.bincount(second)
        ax.stairs(share, np.arange(share.size + 1), baseline=None, color=BLUE, linewidth=1.8)
        tidy(ax, name)
        ax.set(xlim=(0, share.size), ylim=(-4, 104))
    for ax in axes[-1]:
        ax.set_xlabel("seconds")
    for ax in axes[:, 0]:
        ax.set_ylabel("answered, %")
    plt.show()


def sends_over_time(worlds):
    """Draw how many requests are sent in each tenth of a second, a panel per way to wait."""
    for ax, (name, sent), colour in zip(panels(len(worlds), 2.8, sharey=True), worlds.items(), (AMBER, BLUE), strict=True):
        tenths = np.bincount((10 * sent).astype(int), minlength=150)[40:150]
        ax.stairs(tenths, np.arange(40, 151) / 10, color=colour, fill=True)
        tidy(ax, name, "seconds", "sent per tenth of a second")
    plt.show()
