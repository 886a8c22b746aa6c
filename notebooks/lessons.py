"""What the lessons share: pictures, controls, and checks of your answers."""

from __future__ import annotations

import re
import textwrap
from numbers import Real

from controls import *
from exercises import EXERCISES
from pictures import *

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
    "unlucky users is then 63 %, not 1 %. Stalls that strike whole pages make it smaller, a bad replica in "
    "a rotation makes it larger; a log with times shows which.",
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
    "1 / (1 - utilisation). From 80 to 95 % busy the idle share falls to a quarter and more customers arrive, so they "
    "wait nearly five times as long, although each of them is served as fast as before.",
    "9.4": "Requests of one run share its conditions, so they are not independent of each other. A "
    "hundred thousand requests from five runs are five observations of what varies between runs. A "
    "test that treats them as independent finds differences between equal sides.",
    "10.4": "'Better' is a word about two systems, and the files are about two runs. They differ in rate, "
    "and there is one run per side, so the difference of the medians has three possible causes: the "
    "system, the load, or chance. A tool that prints 'worse' says so of these requests. I would measure "
    "both at the same rate, five times each and in turn, with an open loop.",
    "11.4": "One pause is one piece of evidence, however many requests it delayed. Somebody was "
    "active in those ten seconds, and that user has nearly all of the slow requests. I would "
    "wait until several pauses, at different times, hit this user far more often than the user's "
    "share of the requests at those times.",
    "12.4": "For example: 'We recorded how late a Java program woke up, 10,217 times in 11 s. The "
    "median was 0.05 ms. p99 was 38 ms. The tail comes from pauses of up to 70 ms: the five stalls that "
    "the log shows contain 87 % of what lies above p99, and a pause in the second after the first of "
    "them the rest. So p99 is based on few moments, and nothing above the median is certain. We do not "
    "know how often such pauses occur in an hour.'",
    "13.4": "It can be a metastable failure: something overloaded the service for a moment, the clients timed "
    "out and tried again, and these retries kept it overloaded after the load was back to normal. It "
    "answered all the time, but always requests that were given up. The restart emptied the queue. I would "
    "give retries a budget and jitter, drop requests whose deadline has passed, refuse what would wait too "
    "long, and test that the service recovers from a stall at the load of its worst hour.",
}

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_SPELLED = {"seconds": "s", "second": "s", "sec": "s", "hours": "h", "hour": "h", "percent": "%", "per cent": "%",
            "minutes": "min", "milliseconds": "ms", "microseconds": "us", "requests": "", "per second": "/s",
            "requests per second": "/s", "rps": "/s", "th": "", "st": "", "nd": "", "rd": ""}  # fmt: skip
_hints: dict[str, int] = {}
"""Exercise → hints given."""
_wrong: dict[str, set[str]] = {}
"""Exercise → wrong answers given."""


def check(exercise, *answers):
    """Say whether an answer is right: True, False, or None where there is nothing to judge yet.

    Takes numbers, texts such as "400 ms" or "2.3 %", and lists of one; two significant digits are
    enough unless a count is asked for. A usual wrong answer is named for what it is; for another one
    `check` says why it is too low or too high, and shows the next hint, as `hint` does. An exercise
    with two questions takes two answers.
    """
    if exercise not in EXERCISES:
        print(f"Exercise {exercise} is unknown. The exercises are {', '.join(EXERCISES)}.")
        return None
    wanted, tolerance, unit, _, usual, too = EXERCISES[exercise]
    pair = isinstance(wanted, tuple)
    if pair and len(answers) == 1 and np.ndim(answers[0]) == 1 and not isinstance(answers[0], str):
        answers = tuple(answers[0])
    given = [_single(answer) for answer in answers]
    if not given or any(answer is None for answer in given):
        print(f"Exercise {exercise}: not answered yet.")
        return None
    if len(given) != (len(wanted) if pair else 1):
        print(f"Exercise {exercise}: not yet. {len(wanted) if pair else 1} answers are expected, not {len(given)}.")
        return False
    parts = zip(given, wanted if pair else (wanted,), usual if pair else (usual,), strict=True)
    judged = [_judged(answer, right, tolerance, unit, known) for answer, right, known in parts]
    if all(right for right, _ in judged):
        _hints.pop(exercise, None)
        print(f"Exercise {exercise}: right.")
        return True
    _wrong.setdefault(exercise, set()).add(repr(given)[:200])
    remarks = [f"{f'Answer {k}: ' if pair else ''}{remark}" for k, (right, remark) in enumerate(judged, 1) if not right and remark]
    print(f"Exercise {exercise}: not yet. {' '.join(remarks)}".rstrip())
    if not remarks:
        if too:
            print(too[_number(given[0], unit)[0] > wanted])
        hint(exercise)
    return False


def hint(exercise):
    """Print the next of the three hints; the last one, the solution, after two answers of your own."""
    step = min(_hints.get(exercise, 0), 2)
    if step == 2 and len(_wrong.get(exercise, ())) < 2:
        print("Hint 3 of 3 shows the code. Try two answers of your own first; they are checked.")
        return
    _hints[exercise] = step + 1
    print(f"Hint {step + 1} of 3: {EXERCISES[exercise].hints[step]}")


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


def _judged(given, wanted, tolerance, unit, usual):
    """Whether an answer is right, and what a wrong one means."""
    if isinstance(wanted, str):
        word = given.__name__ if isinstance(given, type) else str(given)
        word = word.strip().strip("'\"").casefold()
        return word.rstrip("s") == wanted.rstrip("s"), usual.get(word, usual.get("another word", ""))
    value, digits, problem = _number(given, unit)
    if problem:
        return False, problem
    if _same(value, digits, wanted, tolerance, unit):
        return True, ""
    near = 0.002 if unit == "whole" else 0.015
    known = [(abs(value - wrong), text) for wrong, text in usual.items() if _same(value, digits, wrong, near * abs(wrong), unit)]
    if known:
        return False, min(known)[1]
    if unit == "whole" and abs(value - wanted) <= 0.01 * wanted:
        return False, "That is close; the exact count is asked for."
    if unit == "%" and abs(100 * value - wanted) <= max(tolerance, 0.01 * wanted):
        return False, "That is the share; the question asks for per cent."
    if unit == "%" and abs(100 - value - wanted) <= max(tolerance, 0.01 * wanted):
        return False, "That is the rest: 100 % less what is asked for."
    if unit in _SECONDS and any(abs(value * f / wanted - 1) < 0.01 for f in (1e-9, 1e-6, 1e-3, 1 / 60, 60, 1e3, 1e6, 1e9)):
        return False, f"The digits are right; the unit is not: the question asks for {unit}."
    if _same(-value, digits, wanted, tolerance, unit):
        return False, "The number is right; it needs no sign."
    factors = (1e-6, 1e-3, 1e3, 1e6) if unit in _SECONDS else (100,) if unit == "%" else ()
    other = [text for wrong, text in usual.items() for f in factors if wrong and abs(value * f / wrong - 1) < 0.006]
    return False, f"{other[0]} (And the question asks for {'per cent' if unit == '%' else unit}.)" if other else ""


def _same(value, digits, wanted, tolerance, unit):
    """Whether a value is the wanted one, within the tolerance or as rounded to two digits or more."""
    exact = abs(value - wanted) <= tolerance * (1 + 1e-9)
    return exact or (unit != "whole" and digits >= 2 and abs(float(f"{wanted:.{digits}g}") - value) < 1e-9 * abs(wanted))


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
