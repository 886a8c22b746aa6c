"""What the lessons share: one look for figures, controls that also read well on paper, and checks of your answers."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import latencykit as lk

DATA = Path("data") if Path("data").is_dir() else Path("..") / "data"
RED, BLUE, AMBER, INK, GREY = "#d0312d", "#0b5cbf", "#c77700", "#1a1d23", "#8a909a"

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
    return np.percentile(values, percentile, axis=axis, method="inverted_cdf")


# ------------------------------------------------------------------ worlds and pictures of single lessons


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


def key_numbers(log):
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


def p99_of_split(share, slow):
    """The p99 (ms) of all traffic when `share` % go to a host that answers `slow` % of its requests in 1 s, else in 10 ms."""
    return np.where(np.asarray(share) * slow / 100 > 1.0, 1000, 10)


def traffic_split(share, slow=1.5, ax=None):
    """Draw the average of two hosts' p99s, and the p99 of both, against the share of traffic of the slow one."""
    ax = ax or plt.figure(figsize=(7.6, 3.4), layout="constrained").add_subplot()
    ax.axhspan(10, 1000, color="#eef0f3", zorder=0)
    ax.plot(share, 10 + 990 * np.asarray(share) / 100, color=RED, linestyle=(0, (5, 2)), label="average of the p99s")
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


def layout_widths():
    """How far a value can be from what each layout says of it, as a share of the value."""
    found = {f"HDR, {d} digits": 2.0 / 2 ** np.ceil(np.log2(2 * 10**d)) for d in (1, 2, 3, 4)}
    for scale in (3, 4, 5, 6):
        base = 2 ** (2.0**-scale)
        found[f"OpenTelemetry scale {scale}"] = (base - 1) / (base + 1)
    return found | {"DDSketch, 1 %": 0.01}


def kept_by_layouts(times):
    """Draw in which range each layout leaves the p99 of `times` (ms), and print it."""
    p99 = nearest_rank(times, 99)
    ranges = {"Prometheus, default": _around(np.array([5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000.0]), p99)}
    ranges["t-digest, 100 clusters"] = _digest_cluster(np.sort(times), 0.99, 100)
    growth = {"OpenTelemetry, scale 3": 2 ** (1 / 8), "DDSketch, 1 %": 1.01 / 0.99, "HDR, 2 digits": None, "HDR, 3 digits": None}
    for k, (name, base) in enumerate(growth.items()):
        if base:
            ranges[name] = tuple(base ** (np.floor(np.log(p99) / np.log(base)) + np.array([0, 1])))
        else:
            h = lk.Histogram.of([p99], digits=k, unit="ms")
            ranges[name] = h.to_frame()[["low", "high"]].iloc[0]
    _, ax = plt.subplots(figsize=(7.6, 2.9), layout="constrained")
    for place, (name, (low, high)) in enumerate(ranges.items()):
        ax.barh(place, max(high - low, 1.5), left=low, height=0.5, color=GREY)
        ax.text(high + 6, place, f"{low:.1f} to {high:.1f} ms: {(high - low) / p99:.1%}", va="center", fontsize=8.5)
    ax.axvline(p99, color=BLUE, zorder=0)
    ax.set_yticks(range(len(ranges)), list(ranges))
    ax.invert_yaxis()
    ax.set_xlim(230, 640)
    tidy(ax, f"Where can the p99 lie? (truth: {p99:.0f} ms)", "milliseconds")
    plt.show()


def _around(edges, value):
    place = np.searchsorted(edges, value)
    return edges[place - 1], edges[place]


def _digest_cluster(ordered, q, delta):
    """Values of the cluster of a t-digest (scale function k1) that holds quantile q."""
    place = delta / (2 * np.pi) * np.arcsin(2 * q - 1)
    ends = (np.sin(2 * np.pi / delta * (np.floor(place) + np.array([0, 1]))) + 1) / 2
    return tuple(ordered[np.clip((ends * ordered.size).astype(int), 0, ordered.size - 1)])


# ------------------------------------------------------------------ controls


def play(draw, shown, **choices):
    """Let the reader drag: ``draw(ax, **values)`` is drawn anew for every choice.

    Without ipywidgets, on paper, on a forge or under ``LATENCYKIT_STATIC=1``, the cases in `shown` stand side by side
    instead.
    """
    if not os.environ.get("LATENCYKIT_STATIC"):
        try:
            import ipywidgets as widgets
        except ImportError:
            pass
        else:
            sliders = {
                name: widgets.SelectionSlider(options=list(values), value=_nearest(values, shown[1][name]), continuous_update=False)
                for name, values in choices.items()
            }
            widgets.interact(lambda **values: (draw(plt.figure().add_subplot(), **values), plt.show())[1], **sliders)
            return
    for ax, values in zip(panels(len(shown), sharey=True), shown, strict=True):
        draw(ax, **values)
    plt.show()


def _nearest(values, wanted):
    return wanted if wanted in values else list(values)[len(values) // 2]


# ------------------------------------------------------------------ answers

ANSWERS = {
    # exercise: the answer, how far off it may be, and what to think of when it is
    "0.1": (2.28, 0.05, "Latencies below zero: (times < 0).mean() * 100."),
    "0.2": (91.55, 0.06, "pauses.percentile_of(pauses.mean) is a share in per cent."),
    "0.3": (9.72, 0.28, "With p below 1 % the stall lies beyond p99, and p99 is the quick time, just below 10."),
    "2.1": (400, 0.5, "The merged percentile lies between the lowest and the highest of the parts."),
    "2.2": (4143, 6, "Add the two histograms, ask for p99, and divide by 1,000."),
    "2.3": (50, 1, "All slow requests together must be more than 1 % of all."),
    "1.1": (8.32, 0.02, "2,995,731 requests, 100 a second, 3,600 seconds an hour."),
    "1.2": (3, 0, "h.count_above(h.percentile(h.highest_supported_percentile()))"),
    "1.3": (45, 12, "Count in how many of the 200 draws sample.max() < 6.908."),
}


def check(exercise, answer):
    """Say whether an answer is right; an answer that is still ``...`` is not judged."""
    wanted, slack, hint = ANSWERS[exercise]
    if answer is ...:
        print(f"Exercise {exercise}: not answered yet.")
        return None
    right = answer == wanted if isinstance(wanted, str | bool) else abs(answer - wanted) <= slack
    print(f"Exercise {exercise}: " + ("right." if right else f"not yet. {hint}"))
    return bool(right)
