"""The exercises as multiple choice, and a concept inventory, for learning platforms: GIFT and QTI 2.1.

``python quizzes.py`` writes exercises, inventory and sections, each as .gift and -qti.zip. Each wrong choice is a misconception
that learners have, and its feedback names it. Take the inventory before the first lesson and after the last.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from html import escape
from pathlib import Path
from typing import NamedTuple

from exercises import EXERCISES

HERE = Path(__file__).parent


class Item(NamedTuple):
    """A question, its right choice, and wrong choices with the misconception behind each."""

    name: str
    question: str
    right: str
    wrong: tuple[tuple[str, str], ...]


INVENTORY = tuple(
    Item(f"concept {k:02d}", question, right, tuple(wrong.items()))
    for k, (question, right, wrong) in enumerate([
        ("Two services have the same mean and the same standard deviation. What do you know about their p99s?",
         "Only loose bounds", {"They are equal": "Mean and deviation fix a bell curve, not a distribution.", "Each is the mean plus 2.33 deviations": "That holds for a bell curve only.", "Nothing at all": "Chebyshev's inequality bounds them."}),
        ("Which number adds up when a request calls two services one after the other?",
         "The mean", {"The median": "Percentiles do not add.", "The p99": "Percentiles do not add; both are rarely slow together.", "All of them": "Only means add, whatever the distributions."}),
        ("You measured 1,500 independent requests. What is their p99.99?",
         "The maximum under another name", {"A good estimate of the true p99.99": "One request in 10,000 is slower; the sample has 1,500.", "An upper bound of the true p99.99": "The next run may be slower.", "Zero, for it cannot be computed": "By rank it is the slowest request."}),
        ("The confidence interval of a percentile has no upper end. Why?",
         "Too few requests lie above it to bound it", {"The latency has no upper limit": "It is a matter of the sample, not of the system.", "The program has a defect": "There is no 1,501st request of 1,500.", "The requests were not normal": "The interval assumes no shape."}),
        ("A freeze of 6 s in a run of 20 s makes 3,000 requests slow. How many independent events is the p99 based on?",
         "One", {"3,000": "They have one cause, which occurred once.", "30, one per cent of the slow ones": "Requests of one stall are one event.", "Six, one per second": "One freeze is one event, however long."}),
        ("Which of two maxima may you compare?",
         "Those of runs of equal length and rate", {"Any two": "The maximum grows with the length of the run.", "None, maxima say nothing": "A maximum shows that a stall happened.", "Those of runs with equal medians": "The number of requests decides how large a maximum gets."}),
        ("Host A has a p99 of 1,000 ms, host B of 10 ms, equal traffic. What is the p99 of both?",
         "It lies between the two; the histograms decide", {"505 ms": "The average of two positions in two lists is not a position in the merged list.", "1,000 ms": "That is an upper bound only.", "10 ms": "That is a lower bound only."}),
        ("A dashboard averages p95s of ten-second windows over an hour. The result is",
         "too high or too low, nobody can say which", {"too high": "It can err in either direction.", "too low": "It can err in either direction.", "right if all windows have equal traffic": "Percentiles of equal parts do not average either."}),
        ("A page waits for 100 independent requests. What share of page views meets one above its p99?",
         "63 %", {"1 %": "That is the share of requests.", "99 %": "That is where independence and one bad replica are mixed up.", "100 %": "That adds up 1 % per request."}),
        ("Slow requests of one service come together in stalls. The share of users who meet one is then",
         "smaller, and these users meet many", {"larger": "Together they fall on fewer users.", "unchanged": "Only for independent requests the formula holds.", "zero between stalls, so it does not matter": "The few are hit all the harder."}),
        ("A server freezes for half of a run. A tool that waits for each answer reports a p99 of",
         "what it was before the freeze", {"half of the freeze": "That is what users who arrive evenly see at p75.", "nearly the whole freeze": "Only one request met it.", "nothing, for it stops": "It waits, and goes on."}),
        ("A tool sent exactly as many requests as were due. Is it free of coordinated omission?",
         "No: it may have sent late and timed from the sending", {"Yes, nothing is missing": "The count is right and the clocks are not.", "Yes, if the rate was constant": "It caught up after the stall.", "No, tools never are": "A schedule whose clocks start when due is."}),
        ("When is back-filling (correction) wrong?",
         "When the stall did not stop everything, or its backlog took time", {"Never, it is arithmetic": "It is a model of the server.", "When the stall was long": "Length does not matter, what it delayed does.", "When the tool has a schedule": "A schedule is what it needs."}),
        ("500 connections at full speed get 100,000 answers per second. The mean latency is",
         "5 ms, whatever the server does", {"10 µs": "That is the time between answers.", "unknown": "Little's law: connections = rate × latency.", "0.5 ms": "That is for 50 connections."}),
        ("A report leaves out the 2 % of requests that timed out at 2 s. The true p99 is",
         "at least 2 s", {"below 2 s": "One request in fifty took longer.", "exactly 2 s": "It is known to be at least that.", "the p99 of the rest": "The rest are the fast ones."}),
        ("Service A answers in 1 ms, nine times of ten with an error; B in 50 ms. Which meets p99 ≤ 100 ms?",
         "B only", {"A only": "A failure meets no limit, however fast.", "both": "A failure meets no limit, however fast.", "neither": "All of B's requests are answered in 50 ms."}),
        ("One of two result files has a p99 a thousand times worse, both met the same freeze. Which is suspect?",
         "The good one: a stall casts a shadow of slow requests", {"The bad one": "It recorded who waited.", "Both": "One follows the shadow that the stall must cast.", "Neither: the server was lucky": "A freeze delays all who arrive."}),
        ("A server takes 10 ms per request; 100 requests per second arrive at random. The queue",
         "grows without bound", {"is empty, for it just fits": "At 100 % any irregularity adds up.", "is one request long on average": "There is no average: it grows with the run.", "depends on the percentile": "Utilisation decides."}),
        ("Utilisation rises from 80 to 95 %. The mean wait of a queue with random arrivals grows",
         "nearly five times", {"by a fifth": "It grows like 1 / (1 - utilisation).", "four times exactly": "The idle share falls to a quarter, and more arrive as well.", "not, while there is capacity": "The queue is there long before."}),
        ("A latency at 110 % load is reported. What does it measure?",
         "How long the run lasted", {"The service time": "That is the work alone.", "The capacity": "Throughput measures that.", "The p99 of users": "There is no stationary p99 beyond the pole."}),
        ("Five runs before, five after, 100,000 requests each. The sample size for 'did it get slower?' is",
         "5 per side", {"100,000 per side": "Requests of a run share its conditions.", "500,000 per side": "Requests of a run share its conditions.", "1 per side": "Runs can be compared one by one."}),
        ("Half of the slow requests are for the home page, and so are half of all. The home page",
         "has a lift of 1: nothing points to it", {"causes half of the tail": "It has its share, as of all.", "is the first thing to optimise": "Compare with its share of all requests.", "has a lift of 0.5": "The lift is the ratio of the two shares."}),
        ("Replicas are 70 % busy. You hedge at the idle p95, without a budget. The p99",
         "explodes: hedges lengthen the queue that triggers them", {"falls, for 5 % more requests": "The 5 % hold on an idle system.", "stays, for hedges are cheap": "Each is work for a queue that is long already.", "rises by 5 %": "The loop has no end at this load."}),
        ("After a second's stall every request fails, though the load is normal. Clients retry three times. What helps?",
         "A budget for retries", {"More jitter": "It spreads the retries, it does not make them fewer.", "Waiting": "The failure sustains itself: four tries each.", "A shorter timeout": "Then even more is given up and sent again."}),
    ], 1)
)  # fmt: skip
"""24 concepts, two per lesson or so."""

SECTIONS = tuple(
    Item(f"lesson {name}", question, right, tuple(wrong.items()))
    for name, question, right, wrong in (
        ("8, batches", "500 requests per second arrive in batches of ten at a server that takes 1 ms on average (exponential) and is 50 % busy. Its p99 is",
         "44 ms", {"9 ms": "That is for requests that arrive one at a time.", "10 ms": "Those are ten services; batches meet other batches.", "92 ms": "Ten times the p99 of single requests: a sum of ten varies less than one of them, and waits less."}),
        ("8, batching", "A log writes messages 32 at a time, as soon as 32 are there. At which load is its p99 highest?",
         "At the lowest: the first message waits for 31 others", {"At the highest": "There the batch is full at once.", "It is the same at every load": "The write takes as long at every load; the wait for it does not.", "At half of the highest": "The more messages arrive, the sooner the batch is full."}),
        ("9, warm-up", "A new version is 10 % faster once it is warm, and takes three times as many requests to warm up. The mean of its first 20,000 requests is",
         "a property of the number 20,000: it may rise or fall", {"10 % lower": "That is the warm program.", "the same": "The warm-up is longer, and the rest is faster.", "10 % higher": "It depends on how many warm requests dilute the warm-up."}),
        ("12, clocks", "time.time() is set back by 0.8 s while ten requests of 50 ms are under way. The log says that",
         "ten latencies are negative", {"all later latencies are 0.8 s too low": "Both readings of a later request are shifted alike.", "one request took 0.8 s": "Those under way are all too low; a step forward makes them too high.", "nothing happened": "The end of each of the ten was read from a clock that had been set."}),
        ("12, two machines", "Client and server log each request by their own clocks, whose offset nobody knows. What can you compute?",
         "The round trip, less the time in the server", {"The way there": "It contains the offset.", "Both ways": "Each contains the offset; only their sum does not.", "The offset, from enough exchanges": "Ways of different length look like an offset, however often you ask."}),
        ("12, causes", "A heat map shows columns up to 300 ms every five seconds, of writes only. What fits?",
         "fsync", {"garbage collection": "A collection stops reads, too.", "a CPU quota": "A stopped process answers no reads either.", "a noisy neighbour": "It slows every request for as long as it is there."}),
    )
)  # fmt: skip
"""What lessons 8, 9 and 12 ask between their exercises."""


def exercises():
    """Every exercise with a checked answer as an item; each catalogued wrong answer is a choice."""
    questions = {}
    for path in sorted(HERE.glob("[0-9]*.ipynb")):
        text = "\n\n".join("".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "markdown")
        questions |= {number: " ".join(said.split()) for number, said in re.findall(r"^\*\*(\d+\.\d) \([^)]*\)\*\* (.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)}
    items = []
    for name, one in EXERCISES.items():
        pair = isinstance(one.answer, tuple)
        parts = zip(one.answer, one.usual, strict=True) if pair else [(one.answer, one.usual)]
        for k, (right, usual) in enumerate(parts, 1):
            wrong = tuple((_shown(value, one.unit), text) for value, text in usual.items() if value != "another word")
            question = f"{questions[name]} (Answer {k} of {len(one.answer)}.)" if pair else questions[name]
            items.append(Item(f"exercise {name}" + (f", part {k}" if pair else ""), question, _shown(right, one.unit), wrong))
    return tuple(items)


def _shown(value, unit):
    return str(value) if isinstance(value, str) else f"{value:,.6g} {'' if unit == 'whole' else unit}".strip()


def gift(items):
    """Return the items in GIFT, which Moodle imports; feedback names the misconception."""

    def plain(text):
        return re.sub(r"([~=#{}:\\])", r"\\\1", text)

    blocks = []
    for one in items:
        choices = [f"\t={plain(one.right)}#Right.", *(f"\t~{plain(choice)}#{plain(text)}" for choice, text in one.wrong)]
        blocks.append(f"::{plain(one.name)}::[markdown]{plain(one.question)} {{\n" + "\n".join(choices) + "\n}\n")
    return "\n".join(blocks)


_QTI = 'xmlns="http://www.imsglobal.org/xsd/imsqti_v2p1"'


def qti_item(one):
    """Return an item as a QTI 2.1 document: one choice, shuffled, with feedback per choice."""
    name = re.sub(r"\W+", "-", one.name)
    choices = [("R", one.right, "Right."), *((f"W{k}", choice, text) for k, (choice, text) in enumerate(one.wrong, 1))]
    shown = "".join(f'<simpleChoice identifier="{key}">{escape(choice)}</simpleChoice>' for key, choice, _ in choices)
    said = "".join(f'<modalFeedback outcomeIdentifier="FEEDBACK" identifier="{key}" showHide="show">{escape(text)}</modalFeedback>' for key, _, text in choices)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<assessmentItem {_QTI} identifier="{name}" title="{escape(one.name)}" adaptive="false" timeDependent="false">
<responseDeclaration identifier="RESPONSE" cardinality="single" baseType="identifier"><correctResponse><value>R</value></correctResponse></responseDeclaration>
<outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float"/><outcomeDeclaration identifier="FEEDBACK" cardinality="single" baseType="identifier"/>
<itemBody><choiceInteraction responseIdentifier="RESPONSE" shuffle="true" maxChoices="1"><prompt>{escape(one.question)}</prompt>{shown}</choiceInteraction></itemBody>
<responseProcessing><responseCondition><responseIf><match><variable identifier="RESPONSE"/><correct identifier="RESPONSE"/></match><setOutcomeValue identifier="SCORE"><baseValue baseType="float">1</baseValue></setOutcomeValue></responseIf></responseCondition>
<setOutcomeValue identifier="FEEDBACK"><variable identifier="RESPONSE"/></setOutcomeValue></responseProcessing>{said}
</assessmentItem>
"""


def write_qti(items, path):
    """Write the items as a QTI 2.1 package, a zip with a manifest."""
    names = [f"item-{k:03d}.xml" for k in range(1, len(items) + 1)]
    resources = "".join(f'<resource identifier="{name[:-4]}" type="imsqti_item_xmlv2p1" href="{name}"><file href="{name}"/></resource>' for name in names)
    manifest = f"""<?xml version="1.0" encoding="UTF-8"?>
<manifest xmlns="http://www.imsglobal.org/xsd/imscp_v1p1" identifier="latencykit"><metadata><schema>QTIv2.1 Package</schema><schemaversion>1.0.0</schemaversion></metadata>
<organizations/><resources>{resources}</resources></manifest>
"""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("imsmanifest.xml", manifest)
        for name, one in zip(names, items, strict=True):
            package.writestr(name, qti_item(one))


def main(folder="."):
    """Write all six files into a folder."""
    for name, items in (("exercises", exercises()), ("inventory", INVENTORY), ("sections", SECTIONS)):
        (Path(folder) / f"{name}.gift").write_text(gift(items), "utf-8")
        write_qti(items, Path(folder) / f"{name}-qti.zip")
        print(f"{name}: {len(items)} questions, {sum(len(one.wrong) for one in items)} wrong choices")


if __name__ == "__main__":
    main(*sys.argv[1:])
