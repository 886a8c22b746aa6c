"""What the lessons share: pictures, controls, and checks of your answers."""

from __future__ import annotations

import re
import textwrap
from numbers import Real

from controls import *
from pictures import *

# Exercise: answer, tolerance, unit, and three hints, of which only the last gives the solution away.
# An answer whose unit is "whole" is a count and must be exact.
ANSWERS = {
    "1.1": (2.28, 0.05, "%", (
        "A latency below zero is impossible. Count the requests that have one.",
        "A comparison of a column gives True and False; the mean of these is a share.",
        "(services['bell curve'] < 0).mean() * 100",
    )),
    "1.2": (91.55, 0.06, "%", (
        "The question runs backwards: from a latency to a percentile.",
        "pauses.mean and Histogram.percentile_of use the same unit.",
        "pauses.percentile_of(pauses.mean)",
    )),
    "1.3": (9.72, 0.28, "ms", (
        "The p99 must belong to the fast requests. How large may the share of stalls be?",
        "With p below 1 % the stalls lie beyond p99, so the p99 is the fast time.",
        "10 - 5 * sqrt(p / (1 - p)) with p = 0.005",
    )),
    "2.1": (8.32, 0.02, "h", (
        "First find the number of requests in the table of this lesson, one-sided.",
        "It takes 2,995,731 requests.",
        "2,995,731 requests / 100 per second / 3,600 seconds per hour",
    )),
    "2.2": (3, 0, "whole", (
        "Read the log, take its histogram, and ask what as many independent requests support.",
        "quantiles.highest_supported_percentile gives a percentile; h.percentile its latency.",
        "h.count_above(h.percentile(quantiles.highest_supported_percentile(h.count)))",
    )),
    "2.3": (45, 12, "", (
        "Draw 1,500 samples in a loop of 200 turns, and look at the maximum of each.",
        "A turn counts if sample.max() is below 6.908.",
        "sum(rng.exponential(1, 1500).max() < 6.908 for _ in range(200))",
    )),
    "3.1": (400, 0.5, "ms", (
        "Remember the bound: the merged percentile lies between two of the parts.",
        "It lies between the lowest and the highest p99 of the hosts.",
        "max(12, 80, 400)",
    )),
    "3.2": (4143, 6, "us", (
        "An average of the two p99s is not the answer.",
        "Each tag has a histogram; two histograms can be added.",
        "(log.tagged('get').histogram() + log.tagged('set').histogram()).percentile(99) / 1000",
    )),
    "3.3": (50, 1, "%", (
        "The p99 jumps when more than one request in a hundred is slow.",
        "2 % of the requests to A are slow. Which share of the traffic makes that 1 % of all?",
        "1 % / 2 % = 50 %",
    )),
    "4.1": (106, 0, "whole", (
        "A user is lucky if all n requests are below the p99.9.",
        "The probability of that is 0.999 to the power of n.",
        "the smallest n for which 0.999**n is below 0.9",
    )),
    "4.2": (8.35, 0.06, "%", (
        "The lesson has a function that compares both models for one log.",
        "met_by_users(log, 10) returns two shares.",
        "the second value of met_by_users(lk.read(DATA / 'jhiccup-gc.hlog'), 10)",
    )),
    "4.3": (13.6, 0.06, "%", (
        "Slow once in 10,000 requests is the p99.99.",
        "fanout.probability_of_slow takes the percentile, the number of requests and correlation.",
        "100 * fanout.probability_of_slow(99.99, 2000, correlation=0.25)",
    )),
    "5.1": (100, 0, "s", (
        "Write the 9,999 latencies as a list, and sort it in your mind.",
        "99.99 % of 9,999 is 9,998.0001: which place is the first that reaches it?",
        "nearest_rank([0.001] * 9998 + [100], 99.99)",
    )),
    "5.2": (27.5, 0.6, "s", (
        "Copy the definition of the server, and leave one argument out.",
        "Without ideal=True the server answers its backlog one request at a time.",
        "open_loop(Server('1ms', stalls=[Stall(100, 100)]), fixed(100, 200)).values.mean() / 1e9",
    )),
    "5.3": (4020, 20, "ms", (
        "The right interval is the time between two requests of one connection.",
        "500 requests per second are one every 2 ms.",
        "lk.correct(log, '2ms').histogram().percentile(90) / 1e6",
    )),
    "6.1": (98, 0, "whole", (
        "How many of the 1,000 requests were answered?",
        "980 requests took 10 ms; from the 981st on, all that is known is '5 s or more'.",
        "980 of 1,000 is p98",
    )),
    "6.2": (16, 8, "", (
        "Use the same server, and the histogram of what the closed loop recorded.",
        "Histogram.censored counts the requests that timed out.",
        "paced_loop(server, 500, 20, connections=8, timeout='2s').histogram().censored",
    )),
    "6.3": ("met", 0, "", (
        "More than half of all attempts were answered. What does that say about the median?",
        "Parse the limit with lk.SLO.parse, and check the histogram.",
        "lk.SLO.parse('p50=10ms').check(hasty.histogram())[0].outcome",
    )),
    "7.1": (3.33, 0.01, "%", (
        "The lesson gives a formula with d, x and T.",
        "d is 3 s, x is 1 s, T is 60 s.",
        "100 * (3 - 1) / 60",
    )),
    "7.2": (4.26, 0.01, "", (
        "Take the row of the table, and subtract two of its columns.",
        "Divide the difference by 20 ms.",
        "(row['p99.9'] - row['p99']) / 20",
    )),
    "7.3": ("clean", 0, "", (
        "A histogram has lost the times. Has it lost the name of the tool?",
        "The tool sends on a schedule, and the histogram's run says so.",
        "lk.diagnose(suspects['2'].histogram()).verdict",
    )),
    "8.1": (10, 0.05, "ms", (
        "Use the table of multiples of the service time.",
        "The mean response time is S / (1 - busy).",
        "1 / (1 - 0.9)",
    )),
    "8.2": (180, 30, "s", (
        "Repeat the experiment of this lesson with one more argument.",
        "Server(..., servers=2) has one queue for both.",
        "nearest_rank(open_loop(Server(..., servers=2), the same arrivals).values, 99) / 1e9",
    )),
    "8.3": (6500, 10, "/s", (
        "How many requests wait when the stall ends, and how many arrive while they are served?",
        "6 s x 500 per second wait, and 250 more arrive in half a second.",
        "(3000 + 250) / 0.5",
    )),
    "9.1": (5, 0, "whole", (
        "The lesson lists the smallest p-value for 3, 4 and 5 runs per side.",
        "It must be below 0.01.",
        "of_runs.runs_needed(0.01)",
    )),
    "9.2": (78, 12, "%", (
        "Call the function of the experiment with another noise.",
        "false_alarms returns one number per method.",
        "false_alarms(200, 0.10)['all requests together']",
    )),
    "9.3": ("inconclusive", 0, "", (
        "Read both logs, and hand them to lk.compare.",
        "The result has a verdict, which is one word.",
        "lk.compare(base, new).verdict",
    )),
    "10.1": (62, 0.05, "%", (
        "The question asks for the part that is gone, not for the part that remains.",
        "3.8 of 10 remain.",
        "100 * (1 - 3.8 / 10)",
    )),
    "10.2": (5931, 0, "whole", (
        "The tool wrote two files for the same run.",
        "Read latency.txt and uncorrected_latency.txt, and compare their counts.",
        "filled.count - measured.count",
    )),
    "10.3": ("AlreadyCorrectedError", 0, "", (
        "Catch the error, and ask for its type.",
        "All errors of the library derive from lk.LatencyKitError.",
        "type(error).__name__",
    )),
    "11.1": (9.25, 0.05, "", (
        "Lift compares two shares of one page.",
        "Divide one share by the other; a lift above one goes with slow requests.",
        "74 / 8",
    )),
    "11.2": (100, 0.5, "%", (
        "Only the threshold is another one.",
        "lk.explain takes above=, and its suspects have a column share_above.",
        "100 * lk.explain(shop, above='500ms').suspects['share_above'][0]",
    )),
    "11.3": (10, 0, "whole", (
        "It is the same as with a coin.",
        "Multiply one half by itself until the product is below 0.001.",
        "np.ceil(np.log(0.001) / np.log(0.5))",
    )),
    "12.1": (36_887, 0, "whole", (
        "Lesson 2 has a table with this number, two-sided.",
        "fanout.samples_needed takes a percentile.",
        "fanout.samples_needed(99.99)",
    )),
    "12.2": ("omits", 0, "", (
        "Only the first code cell needs a change.",
        "Step 4 prints the verdict in front of the summary.",
        "lk.diagnose(lk.read(DATA / 'ctrlz-uncorrected.hlog')).verdict",
    )),
    "12.3": ("DataNotAvailableError", 0, "", (
        "Catch the error, and ask for its type.",
        "try: lk.find_stalls(h) except lk.LatencyKitError as error: ...",
        "type(error).__name__",
    )),
}  # fmt: skip

MODEL_ANSWERS = {
    "1.4": "A mean and a standard deviation are two numbers, and very different distributions share "
    "them. A buyer cares about the slow requests, and these two numbers do not describe the slow "
    "requests. I would ask for the percentiles up to the maximum, and for the number of requests "
    "behind them.",
    "2.4": "The two runs have 1,500 requests each, so their p99.99 is their maximum: one request per "
    "run decides the comparison. The interval of each has no upper end. I would compare p99, which "
    "15 requests support, or measure for longer.",
    "3.4": "A percentile is a position in the sorted list of all requests. The average of two "
    "positions in two lists is not a position in the merged list. The dashboard should store a "
    "histogram per host and per window, add the histograms, and compute the percentile last.",
    "4.4": "A page waits for its slowest request. Of 100 requests, one is expected to be slower than "
    "the p99, so most page views meet such a request if the requests are independent. The share of "
    "unlucky users is therefore up to 63 %, not 1 %. A log with times shows how much stalls reduce "
    "it.",
    "5.4": "The tool waits for each answer before it sends the next request. During the stall it sent "
    "nothing, so the stall appears in its data once instead of 10,000 times. I would repeat the test "
    "with an open loop, which sends on a schedule and times each request from when it was due.",
    "6.4": "The percentiles of answered requests leave out exactly the requests that waited longest. "
    "Each of them took at least as long as the timeout, so the true p99 is at least 2 s. The report "
    "should count them, or print 'p99: 2 s or more'.",
    "7.4": "A stall of d seconds must delay every request that was due during it, and so a share "
    "(d - x) / T of all requests must be slower than x. File 1 has the slow request and not the "
    "others, so they were never sent. File 2 has all of them. Its numbers are worse because it "
    "recorded what happened.",
    "8.4": "Response time is service time plus waiting time, and the waiting time grows like "
    "1 / (1 - utilisation). From 80 to 95 % busy the idle share falls from 20 to 5 %, so customers "
    "wait about four times as long, although each of them is served as fast as before.",
    "9.4": "Requests of one run share its conditions, so they are not independent of each other. A "
    "hundred thousand requests from five runs are five observations of what varies between runs. A "
    "test that treats them as independent finds differences between equal sides.",
    "10.4": "The two runs differ in rate and there is one run per side, so the difference of the "
    "medians has three possible causes: the system, the load, or chance. I would measure both at the "
    "same rate, five times each and in turn, with an open loop.",
    "11.4": "One pause is one piece of evidence, however many requests it delayed. Somebody was "
    "active in those ten seconds, and that user has nearly all of the slow requests. I would "
    "wait until several pauses, at different times, hit this user far more often than the user's "
    "share of the requests at those times.",
    "12.4": "For example: 'We measured 10,217 requests in 11 s, on an open loop. They support p99.96; "
    "p99 was 38 ms. Four stalls of up to 70 ms caused nearly all of the tail, so p99.9 is based on "
    "few events. We do not know how often such stalls occur in an hour.'",
}

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_SPELLED = {"seconds": "s", "second": "s", "sec": "s", "hours": "h", "hour": "h", "percent": "%", "per cent": "%",
            "minutes": "min", "milliseconds": "ms", "microseconds": "us", "requests": "", "per second": "/s",
            "requests per second": "/s", "rps": "/s", "th": "", "st": "", "nd": "", "rd": ""}  # fmt: skip
_tries: dict[str, int] = {}


def check(exercise, answer):
    """Say whether an answer is right: True, False, or None where there is nothing to judge yet.

    Takes numbers, texts such as "400 ms" or "2.3 %", and lists of one; two significant digits are
    enough unless a count is asked for. A wrong answer shows one more hint; `hint` does so, too.
    """
    if exercise not in ANSWERS:
        print(f"Exercise {exercise} is unknown. The exercises are {', '.join(ANSWERS)}.")
        return None
    wanted, tolerance, unit, _ = ANSWERS[exercise]
    given = _single(answer)
    if given is None:
        print(f"Exercise {exercise}: not answered yet.")
        return None
    if isinstance(wanted, str):
        word = given.__name__ if isinstance(given, type) else type(given).__name__ if isinstance(given, Exception) else str(given)
        right, remark = word.strip().strip("'\"").casefold() == wanted.casefold(), ""
    else:
        right, remark = _judged(given, wanted, tolerance, unit)
    if right:
        _tries.pop(exercise, None)
        print(f"Exercise {exercise}: right.")
    else:
        print(f"Exercise {exercise}: not yet. {remark}".rstrip())
        if not remark:
            hint(exercise)
    return right


def hint(exercise):
    """Print the next of the three hints; the last one is the solution."""
    step = min(_tries.get(exercise, 0), 2)
    _tries[exercise] = step + 1
    print(f"Hint {step + 1} of 3: {ANSWERS[exercise][3][step]}")


def explain(exercise, text):
    """Show a model answer beside your own explanation, once you have written one."""
    if not isinstance(text, str) or len(text.split()) < 8:
        print(f"Exercise {exercise}: write two or three sentences first, then compare them with the model answer.")
        return
    model_answer(exercise)


def model_answer(exercise):
    """Show the model answer to an exercise that asks for an explanation."""
    print(f"A model answer to {exercise}; yours may say it differently:\n")
    print(textwrap.fill(MODEL_ANSWERS[exercise], 88))


def _single(answer):
    """The answer itself, out of a list of one; None where nothing was answered."""
    if answer is ... or answer is None or (isinstance(answer, str) and not answer.strip()):
        return None
    if not isinstance(answer, str) and np.ndim(answer) == 1 and np.size(answer) == 1:
        return _single(list(answer)[0])
    return answer


def _judged(given, wanted, tolerance, unit):
    """Whether a number is right, and what to say if it is not."""
    value, digits, problem = _number(given, unit)
    if problem:
        return False, problem
    exact = abs(value - wanted) <= tolerance * (1 + 1e-9)
    rounded = unit != "whole" and digits >= 2 and abs(float(f"{wanted:.{digits}g}") - value) < 1e-9 * abs(wanted)
    if exact or rounded:
        return True, ""
    if unit == "whole" and abs(value - wanted) <= 0.01 * wanted:
        return False, "That is close; the exact count is asked for."
    if unit == "%" and abs(100 * value - wanted) <= max(tolerance, 0.01 * wanted):
        return False, "That is the share; the question asks for per cent."
    if unit in _SECONDS and any(abs(value * f / wanted - 1) < 0.01 for f in (1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9)):
        return False, f"The digits are right; the unit is not: the question asks for {unit}."
    return False, ""


def _number(given, unit):
    """A number in the unit of the question, its significant digits, and what is wrong with it."""
    name = {"": "a number", "whole": "a whole number", "%": "a number in per cent", "/s": "a number per second"}.get(unit, f"a number in {unit}")
    shape = np.shape(given) if not isinstance(given, str | dict | set) else ()
    if shape:
        return 0.0, 0, f"One number is expected, not {int(np.prod(shape))} of them."
    if not isinstance(given, str | Real | np.generic):
        return 0.0, 0, f"A value of type {type(given).__name__} is not a number; expected {name}, for example 12.5."
    text = given if isinstance(given, str) else repr(given.item() if hasattr(given, "item") else given)
    found = re.fullmatch(r"\s*[<>≥≤~≈]?\s*p?([+-]?[\d_,]*\.?\d+(?:e[+-]?\d+)?|[+-]?[\d_,]+\.)\s*(.*?)\s*", text, re.IGNORECASE)
    said = _SPELLED.get(found[2].lower(), found[2].lower()) if found else ""
    if not found or isinstance(given, bool | np.bool_):
        return 0.0, 0, f"{text[:40]!r} is not a number; expected {name}, for example 12.5."
    value = float(found[1].replace(",", "").replace("_", ""))
    digits = len(re.sub(r"e.*", "", found[1].lower()).replace(",", "").replace("_", "").replace(".", "").lstrip("+-0").rstrip("0"))
    digits = max(digits, 2) if "." not in found[1] and abs(value) >= 10 else digits
    if said and said != unit:
        if said in _SECONDS and unit in _SECONDS:
            value = float(f"{value * _SECONDS[said] / _SECONDS[unit]:.12g}")
        else:
            return 0.0, 0, f"The unit {found[2]!r} does not fit; expected {name}."
    return value, digits, ""
