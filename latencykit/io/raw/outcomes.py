"""Outcomes of requests in a table: a column's name proposes it, its cells decide how it is read.

A name is taken apart into words (``http.response.status_code``, ``grpcStatus``, ``timedout``). Its
last word that is not a mere carrier (``message``, ``type``, ``request``) is its head, as in any
English compound: an ``error_message`` speaks of errors, an ``error_rate`` of a rate. The cells then
have to fit the name: flags, HTTP statuses, gRPC codes, exit codes, or words for success and
failure. What looks like an outcome and does not fit is not guessed at: the caller says so, and how
many requests failed is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from latencykit._records import record
from latencykit._typing import AnyArray
from latencykit.core.columns import Cells, coded
from latencykit.core.samples import OUTCOMES
from latencykit.io.build import word_set, words_in

Sense = Literal["good", "bad", "late", "status", "other"]
Family = Literal["http", "grpc", "exit", ""]
Style = Literal[
    "flags", "counts", "text", "words", "http", "session", "grpc", "exit", "served", "proxied",
    "envoy",
]  # fmt: skip

UNKNOWN = -1
"""Code of a cell that says nothing of its request."""

_OK, _ERROR, _TIMEOUT, _DROPPED, _UNFINISHED = range(len(OUTCOMES))


_GOOD = word_set(
    "success successes successful successfully succeeded succeed ok okay pass passed passes good "
    "valid"
)
_BAD = word_set(
    "error errors errored err errs errno fail fails failed failing failure failures exception "
    "exceptions invalid unsuccessful bad fault faulted ko nok"
)
_LATE = word_set("timeout timeouts timedout")
_STATUS = word_set(
    "status statuses code codes result results outcome outcomes state exit exits rc retcode verdict"
)
_SAID = _GOOD | _BAD | _LATE | _STATUS
_NOT = word_set("not no non never without")
_CARRIERS = word_set(
    "message msg text type class name kind reason detail details description desc string str flag "
    "info cause value category "
    "label number num id count total occurred seen raised thrown happened hit bool boolean is"
)
_MODIFIERS = word_set(
    "http https grpc rpc response resp res reply request req call api server client upstream "
    "backend downstream final last "
    "first test check sample transaction txn operation op query job task step return ret retval "
    "returned sub was has had did is "
    "tcp tls dns connection conn network net curl process proc command cmd sys os elb target edge "
    "proxy gateway health db sql "
    "redis cache span trace otel probe service svc app lb nginx envoy origin sc win"
)
_VOCABULARY = _SAID | _NOT | _CARRIERS | _MODIFIERS | {"timed", "time", "out"}
_LONGEST = 200  # characters of a name, of a cell

_FAMILIES: dict[Family, frozenset[str]] = {
    "grpc": word_set("grpc rpc"),
    "exit": word_set("exit exits return returned ret retval rc retcode"),
    "http": word_set("http https response resp reply"),
}
_TRUE = word_set("true t yes y 1 + ✓ ✔")
_FALSE = word_set("false f no n 0 - ✗ ✘ x")
_EMPTY = word_set("- nan na n/a null none nil nat <na> [] {}") | {""}

_OK_WORDS = _GOOD | word_set(
    "true yes y t done complete completed finished hit miss accepted created answered served "
    "healthy fine none noerror clean"
)
_FILLER = word_set(
    "http https status code statuscode grpc rpc response result request test the a of with"
)
_FAILED_WORDS = _BAD | word_set(
    "false n f ng down broken crash crashed panic denied refused reset unavailable internal "
    "unknown unreachable disconnected "
    "disconnect killed unhealthy unimplemented unauthenticated unauthorized forbidden exhausted "
    "lost loss eof closed overflow overloaded missing rejected"
)
_FAILED_PARTS = words_in("error exception failure econn refus unavail invalid unreach fail errno")
_GRPC_NAMES = words_in(
    "ok cancelled unknown invalidargument deadlineexceeded notfound alreadyexists permissiondenied "
    "resourceexhausted failedprecondition aborted outofrange unimplemented internal unavailable "
    "dataloss unauthenticated"
)
"""Names of the codes 0, 1, … in small letters."""
_GRPC = dict.fromkeys(_GRPC_NAMES, _ERROR) | {
    "ok": _OK,
    "cancelled": _UNFINISHED,
    "canceled": _UNFINISHED,
    "deadlineexceeded": _TIMEOUT,
}
_GRPC_CODES = tuple(_GRPC[name] for name in _GRPC_NAMES)
_HTTP = frozenset(
    (*range(100, 104), *range(200, 209), 226, *range(300, 309), *range(400, 432), 440, 444, 449,
     451, 460, 463, *range(494, 500), *range(500, 512), *range(520, 531), 561, 598, 599)
)  # fmt: skip
_SERVED = {*range(1, 500)} - {408, 499}  # a server has done what it should with a 404
_STATUS_LINE = re.compile(r"(?:http(?:/[\d.]+)?\s*)?([1-5])(\d\d|xx)(?![\w.]).*", re.DOTALL)
_WHOLE = re.compile(r"[-+]?\d+(?:\.0+)?")
_REAL = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?")


@record()
class Candidate:
    """A column whose name speaks of outcomes."""

    column: str
    # whether a true cell is a success, a failure or a timeout, whether cells name a status, or
    # whether the head of the name is another thing (a rate, a size)
    sense: Sense
    family: Family = ""  # which codes the name states
    # whether all words of the name are of this trade: a ``response_status``, not a
    # ``marital_status``
    strong: bool = True
    coded: bool = False  # whether the name is one of a code: a ``status``, not a ``result``


@record()
class OutcomeRule:
    """How the cells of a column are understood."""

    column: str
    style: Style  # what the cells are; ``text`` is a message of a failure, where there is one
    flipped: bool = False  # whether a true flag is a failure
    # position in `OUTCOMES` of a failure that is not named, and of an empty cell
    failure: int = _ERROR
    empty: int = UNKNOWN
    note: str = ""  # what was assumed


def words_of(name: str) -> list[str]:
    """Return the words of a name in small letters."""
    parted = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name[:_LONGEST]
    ).lower()
    words = [part for word in re.findall(r"[^\W\d_]+", parted) for part in _parts(word)]
    text = " ".join(words)
    return re.sub(r"\btimed? out(s?)\b", r"timeout\1", text).replace("timedout", "timeout").split()


def _parts(word: str) -> list[str]:
    """A compound without separators in its parts (``statuscode``), if all of it is known words."""
    if word in _VOCABULARY or len(word) > 30:
        return [word]
    for end in range(len(word) - 1, 1, -1):
        if word[:end] in _VOCABULARY:
            rest = _parts(word[end:])
            if all(part in _VOCABULARY for part in rest):
                return [word[:end], *rest]
    return [word]


def candidate(column: str) -> Candidate | None:
    """Return the kind of outcome that a column's name means; None for other names."""
    words = words_of(column)
    if words in (["response", "flag"], ["response", "flags"]):  # Envoy's: "-" where all went well
        return Candidate(column, "bad")
    every, core = set(words), list(words)
    if not _SAID & every:
        return None
    while core[-1] not in _SAID and core[-1] in _CARRIERS | _MODIFIERS:
        core.pop()
    head, before, strong = core[-1], set(core[:-1]), every <= _VOCABULARY
    if head not in _SAID:
        return Candidate(column, "other", strong=False)
    if head in _GOOD | _BAD:
        good = (head in _GOOD) != bool(before & _NOT)
        return Candidate(column, "good" if good else "bad", strong=strong)
    if head in _LATE or before & _LATE:
        return Candidate(column, "late", strong=strong)
    families = (family for family, names in _FAMILIES.items() if every & names)
    family: Family = next(families, "")
    if before & _BAD:
        return Candidate(column, "bad", family, strong)
    if every & {"count", "total"}:
        return Candidate(column, "other", strong=False)
    coded = family != "" or bool(every & {"status", "statuses", "code", "codes"})
    return Candidate(column, "status", family, strong and head != "state", coded)


# ---------------------------------------------------------------- cells


def _texts(cells: Cells) -> tuple[AnyArray, list[str]]:
    """Position of each cell among the texts (-1: missing), and these in small letters."""
    codes, names = coded(cells)
    return codes, [name.strip()[:_LONGEST].lower().removesuffix(".0") for name in names]


def outcome_rule(sample: Cells, column: Candidate) -> OutcomeRule | None:
    """Return how a column is read, judged by its first cells; None where it is not understood."""
    codes, texts = _texts(sample)
    often: Counter[str] = Counter()
    rows = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
    for text, number in zip(texts, rows, strict=True):
        often[text] += number
    empties = bool((codes < 0).any()) or not _EMPTY.isdisjoint(often)
    often = Counter({text: number for text, number in often.items() if text not in _EMPTY})
    if column.sense == "other":
        return None
    if column.sense == "status":
        return _status(column, often)
    failure = _TIMEOUT if column.sense == "late" else _ERROR
    flipped = column.sense != "good"
    fine = _OK if flipped else UNKNOWN
    if not often:
        return OutcomeRule(column.column, "text", True, failure, _OK) if flipped else None
    if set(often) <= _TRUE | _FALSE:
        return OutcomeRule(column.column, "flags", flipped, failure, fine)
    if all(_REAL.fullmatch(text) for text in often):
        if column.sense != "bad" or not all(_WHOLE.fullmatch(text) for text in often):
            return None
        values = {int(float(text)) for text in often}
        if values <= _HTTP | {0, -1} and min(values - {0, -1}, default=400) < 400:
            return OutcomeRule(column.column, "http", empty=_OK)
        if column.family == "grpc" and values <= set(range(len(_GRPC_CODES))):
            return OutcomeRule(column.column, "grpc", empty=_OK)
        return OutcomeRule(column.column, "counts", empty=_OK) if 0 in values or empties else None
    understood = {
        text: _OK if flipped and text in _FALSE else outcome_of_word(text) for text in often
    }
    if None not in understood.values():
        return OutcomeRule(column.column, "words", flipped, failure, fine)
    if flipped and (empties or _OK in understood.values()):
        return OutcomeRule(column.column, "text", flipped, failure, _OK)
    return None


def _status(candidate: Candidate, often: dict[str, int]) -> OutcomeRule | None:
    """Codes or words in a column that is named as a status."""
    column, total = candidate.column, sum(often.values())
    if not total:
        return None
    if all(_WHOLE.fullmatch(text) for text in often):
        values = {int(float(text)): number for text, number in often.items()}
        codes = set(values) - {0, -1}
        if candidate.family == "grpc" and set(values) <= set(range(len(_GRPC_CODES))):
            return OutcomeRule(column, "grpc")
        if candidate.family == "exit" and not (codes and codes <= _HTTP and 200 in codes):
            return OutcomeRule(column, "exit")
        sure = candidate.strong and candidate.coded
        good = sum(values[code] for code in codes if code < 400)
        if codes and codes <= _HTTP and (sure or 2 * good > total):
            return OutcomeRule(column, "http")
        usual = sum(values[code] for code in codes & _HTTP)
        if sure and min(codes, default=0) >= 100 and max(codes) < 1000 and usual > 0.9 * total:
            return OutcomeRule(column, "http")
        if candidate.strong and codes - {1} and 2 * values.get(0, 0) > total:
            note = f"column {column!r}: 0 is taken as a success, other numbers as failures"
            return OutcomeRule(column, "exit", note=note)
        return None
    understood = {text: outcome_of_word(text) for text in often}
    good = sum(number for text, number in often.items() if understood[text] == _OK)
    strange = sum(number for text, number in often.items() if understood[text] is None)
    if strange and (not candidate.strong or 2 * (total - strange) <= total):
        return None
    if not good and not candidate.strong:
        return None
    return OutcomeRule(column, "words", empty=UNKNOWN if good else _OK)


def outcome_of_word(text: str) -> int | None:
    """Return the position in `OUTCOMES` of a word, phrase or status line; None for other text."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text[:_LONGEST]).strip().lower()
    if parted in OUTCOMES:
        return OUTCOMES.index(parted)
    line = _STATUS_LINE.fullmatch(parted)
    if line is not None:
        return _ERROR * (line[1] in "45") if line[2] == "xx" else _of_http(int(line[1] + line[2]))
    words = re.findall(r"[^\W\d_]+", parted)
    joined = "".join(words)
    bare = joined.removeprefix("statuscode").removeprefix("status") or joined
    if bare in _GRPC:
        return _GRPC[bare]
    if re.search(r"timed?out", joined) or "deadline" in joined:
        return _TIMEOUT
    if _WHOLE.fullmatch(parted):
        # among words and statuses: no reply
        return _ERROR if int(float(parted)) in (0, -1) else None
    if not words:
        return {"+": _OK, "✓": _OK, "✔": _OK, "✗": _ERROR, "✘": _ERROR}.get(parted)
    if words[0] in _NOT and len(words) > 1:
        return _OK if set(words[1:]) & (_BAD | {"problem", "problems", "issues"}) else _ERROR
    if any(word.startswith(("drop", "skip", "shed", "abandon")) for word in words):
        return _DROPPED
    unfinished = ("cancel", "abort", "unfinish", "incomplete", "pending")
    if any(word.startswith(unfinished) for word in words) or "inflight" in joined:
        return _UNFINISHED
    if len(words) == 1 and words[0] in ("no", "x"):
        return _ERROR
    if set(words) & _FAILED_WORDS or any(part in word for word in words for part in _FAILED_PARTS):
        return _ERROR
    within = re.search(r"(?<![\w.])[1-5]\d\d(?![\w.])", parted)
    if set(words) <= _OK_WORDS | _FILLER and (within or set(words) & _OK_WORDS):
        return _of_http(int(within[0])) if within else _OK
    return None


def failure_in(text: str) -> int:
    """Return the position in `OUTCOMES` of a failure that stands in place of a latency, else 0."""
    word = text.strip().lower()
    return 0 if word in _TRUE | _FALSE else outcome_of_word(word) or 0


def _of_http(status: int) -> int:
    """408 and 504 are timeouts; the client gave up on a 499; 0 and below: no reply."""
    if status in (408, 504):
        return _TIMEOUT
    if status == 499:
        return _UNFINISHED
    return _OK if 100 <= status < 400 else _ERROR


def outcome_of(cells: Cells, reading: OutcomeRule) -> tuple[NDArray[np.int8], list[str]]:
    """Return positions in `OUTCOMES` (`UNKNOWN`: empty), and unknown words, which are failures."""
    codes, texts = _texts(cells)
    style, strange = reading.style, list[str]()
    by_flags = style == "flags" or (reading.flipped and style in ("text", "words"))

    def one(text: str) -> int:
        number = int(float(text)) if _WHOLE.fullmatch(text) else None
        if text in _EMPTY:
            return reading.empty
        if by_flags and text in _TRUE | _FALSE:
            return reading.failure if (text in _TRUE) == reading.flipped else _OK
        if style == "envoy":  # its flags say how a request failed, whatever its status is
            late, left = {"ut", "dt", "si"} & set(text.split(",")), text == "dc"
            return _TIMEOUT if late else _UNFINISHED if left else _ERROR
        if number is not None and style in ("counts", "exit"):
            return reading.failure if number else _OK
        if number is not None and style == "grpc" and 0 <= number < len(_GRPC_CODES):
            return _GRPC_CODES[number]
        if number == 0 and style in ("session", "proxied"):
            return _OK
        if number in _SERVED and style in ("served", "proxied"):
            return _OK
        if number is not None and style in ("http", "session", "served", "proxied"):
            return _of_http(number)
        understood = outcome_of_word(text)
        if style == "text" and understood in (None, _ERROR):
            return reading.failure
        if understood is None:
            strange.append(text)
        return _ERROR if understood is None else understood

    return np.array([*map(one, texts), reading.empty], np.int8)[codes], strange


def combined(columns: Sequence[NDArray[np.int8]]) -> tuple[NDArray[np.int8], int]:
    """Return the outcome of each request by all columns together, and how many have none."""
    # A timeout outranks an error, a failure a success, and any of them nothing; a request without
    # an outcome counts as failed.
    outcome = np.array(columns[0], np.int8)
    for other in columns[1:]:
        better = ((outcome <= _OK) & (other > outcome)) | ((outcome == _ERROR) & (other > _ERROR))
        outcome = np.where(better, other, outcome).astype(np.int8)
    silent = outcome == UNKNOWN
    outcome[silent] = _ERROR
    return outcome, int(silent.sum())
