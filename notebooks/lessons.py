"""What the lessons share: controls that also read well on paper, checks of your answers, and the pictures."""

from __future__ import annotations

import os

from pictures import *

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
    "3.1": (106, 0, "0.999**n must fall below 0.9."),
    "3.2": (8.35, 0.06, "met_by_users(log, 10) gives both models; the second is by intervals."),
    "3.3": (13.6, 0.06, "100 * fanout.probability_of_slow(99.99, 2000, correlation=0.25)"),
    "4.1": (100, 0, "nearest_rank([0.001] * 9998 + [100], 99.99)"),
    "4.2": (27.5, 0.6, "open_loop(Server('1ms', stalls=[Stall(100, 100)]), fixed(100, 200)).values.mean() / 1e9"),
    "4.3": (4020, 20, "One connection at 500/s: lk.correct(log, '2ms').histogram().percentile(90) / 1e6"),
    "5b.1": (98, 0, "980 of 1,000 were answered."),
    "5b.2": (16, 8, "paced_loop(server, 500, 20, connections=8, timeout='2s').histogram().censored"),
    "5b.3": ("met", 0, "lk.SLO.parse('p50=10ms').check(hasty.histogram())[0].outcome"),
    "6.1": (10, 0.05, "The mean response time is S / (1 - busy)."),
    "6.2": (180, 30, "Server(..., servers=2), with the arrivals of the lesson."),
    "6.3": (6500, 10, "3,000 wait, and more come meanwhile."),
    "7.1": (5, 0, "of_runs.runs_needed(0.01)"),
    "7.2": (78, 12, "false_alarms(200, 0.10)['all requests together']"),
    "7.3": ("inconclusive", 0, "lk.compare(base, new).verdict"),
    "8.1": (62, 0.05, "One minus 3.8 over 10."),
    "8.2": (5931, 0, "Compare the counts of latency.txt and uncorrected_latency.txt."),
    "8.3": ("AlreadyCorrectedError", 0, "type(error).__name__"),
    "5.1": (3.33, 0.01, "(d - x) / T, with d = 3, x = 1, T = 60."),
    "5.2": (4.26, 0.01, "The difference of the two columns, divided by 20."),
    "5.3": ("clean", 0, "lk.diagnose(suspects['2'].histogram()).verdict"),
    "9.1": (36_887, 0, "fanout.samples_needed(99.99)"),
    "9.2": ("omits", 0, "lk.diagnose(lk.read(DATA / 'ctrlz-uncorrected.hlog')).verdict"),
    "9.3": ("DataNotAvailableError", 0, "type(error).__name__"),
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
