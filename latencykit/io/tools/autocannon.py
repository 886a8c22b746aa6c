"""autocannon: its JSON and the tables that it prints (on standard error).

Latencies are whole milliseconds, rounded down. With ``-R`` it back-fills by an interval of always
1 ms, whatever the rate: too much. Its JSON shows that by counting more latencies than replies; the
tables do not show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from latencykit.core.run import Run
from latencykit.io import build, json_text
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Source
from latencykit.io.text_reports import certain, fact, has_match, plain, text_of_run
from latencykit.units import format_count, parse_duration

_WHOLE = "autocannon measures in whole milliseconds, rounded down"
_HINT = "autocannon -j (or -l) gives the distribution up to p99.999"
_SNIFF_JSON = has_match('"latency":', '"requests":', '"throughput":', '"non2xx":', '"p99_9')
_CELLS = re.compile(r"[│|]|\s{2,}")
_RUN = (
    r"^Running \S+ test @ "
    r"|^[│| \t]{0,9}Stat\b[^\n]*\n(?:[^\w\n]*\n)?[│| \t]{0,9}Latency\b"
)
_RESULT = r"^[│| \t]{0,9}Latency\b[^\n]*\d"
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?")
_SCALE = {"": 1, "k": 1000, "M": 1_000_000}


def sniff_text(head: Head) -> Confidence:
    """Recognise the row of latencies below its headings."""
    if _SNIFF_JSON(head) or "Latency" not in head.text:
        return Confidence.NO
    return certain(any(_latency_rows(list(_rows(head.text)))))


def read_json(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the result."""
    record: dict[str, Any] = json_text.load(source, after_noise=True)
    latency = json_text.entry(record, "latency", source)
    requests = json_text.entry(record, "requests", source)
    replies, counted = int(requests.get("total") or 0), latency.get("totalCount")
    errors, late, refused = (
        int(record.get(name) or 0) for name in ("errors", "timeouts", "non2xx")
    )
    filled = counted is not None and counted > replies
    run = Run(
        tool="autocannon", loop="paced" if filled else "closed", measure="service", unit="ms",
        corrected="tool" if filled else "unknown" if counted is None else "none",
        unit_from="format", start=build.epoch_seconds(record.get("start")),
        duration=record.get("duration") or None, achieved=requests.get("average") or None,
        # a pipeline has several requests under way per connection
        connections=record.get("connections") if record.get("pipelining", 1) == 1 else None,
        failed=max(errors - late, 0) + refused,
        timeouts=late, notes=(_WHOLE, *build.mixed_note(refused)),
    )  # fmt: skip
    if filled:
        numbers = f"{format_count(counted)} latencies for {format_count(replies)} replies"
        run = run.with_notes(
            f"autocannon -R back-fills by 1 ms whatever the rate: {numbers}; "
            "--ignoreCoordinatedOmission turns it off"
        )
    count = max(int(replies if counted is None else counted) - refused, 0)
    if not replies:
        return {"": build.unanswered(run)}
    return {"": build.data_from_statistics(latency, count, run, "ms")}


def _rows(text: str) -> Iterator[list[str]]:
    """Cells of each line, of tables with bars or with blanks."""
    for line in plain(text).split("\n"):
        if len(line) < 1000 and line.strip():
            apart = re.sub(r"^(Latency \(ms\)|Stat|Req/Sec|Bytes/Sec) ", r"\1  ", line.strip())
            cells = [cell.strip() for cell in _CELLS.split(apart) if cell and cell.strip()]
            if cells[:1] in (["Stat"], ["Latency (ms)"]) and not re.search("[│|]", line):
                cells = [cells[0], *" ".join(cells[1:]).split()]  # of 2018: one blank apart
            if cells:
                yield cells


def _latency_rows(rows: list[list[str]]) -> Iterator[dict[str, str]]:
    """Rows of latencies, by the headings above them."""
    heading: list[str] = []
    for cells in rows:
        if cells[0] == "Stat" and {"Avg", "Stdev"} <= set(cells):
            heading = cells
        elif heading and cells[0] in ("Latency", "Latency (ms)") and len(cells) == len(heading):
            yield dict(zip(heading[1:], cells[1:], strict=True))


def read_text(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read the tables of a run and the lines below them."""
    text = text_of_run(source, _RUN, _RESULT)
    rows = list(_rows(text))
    table = next(_latency_rows(rows), None)
    if table is None:
        seen = "the table of latencies is missing or corrupt"
        raise source.corrupt(None, seen, "2.5%, 50%, …, Avg, Stdev, Max", "run it again")

    def value(cell: str) -> float:
        return round(parse_duration(cell.replace(",", ""), "ms"), 3)

    points: dict[float, float]  # NaN: every reply was bad
    points, stats = build.statistics_in({k: value(v) for k, v in table.items() if v != "NaN"})
    below = False  # in the table that -l adds
    for cells in rows:
        if cells[:2] == ["Percentile", "Latency (ms)"]:
            below = True
        elif below and cells[:2] == ["Code", "Count"]:  # the table of status codes
            break
        elif below and len(cells) == 2:
            points[float(cells[0])] = value(cells[1])
        elif below and re.match(r"[\w]", cells[0]):
            break
    codes = re.search(r"^[ \t]*(\d+) 2xx responses, (\d+) non 2xx responses", text, re.MULTILINE)
    total = re.search(r"^[ \t]*([\d.]+)([kM]?) requests in ([\d.]+)s", text, re.MULTILINE)
    errors = re.search(
        r"^[ \t]*([\d.]+)([kM]?) errors \(([\d.]+)([kM]?) timeouts\)", text, re.MULTILINE
    )
    seconds_sampled = fact(text, r"^[ \t]*# of samples: (\d+)", int)
    refused = int(codes[2]) if codes else 0
    failures, late = (
        (round(float(errors[k]) * _SCALE[errors[k + 1]]) for k in (1, 3)) if errors else (0, 0)
    )
    rates = (cells[-3] for cells in rows if cells[0] == "Req/Sec" and len(cells) > 2)
    rate = next((float(cell.replace(",", "")) for cell in rates if _NUMBER.fullmatch(cell)), None)
    notes = [_WHOLE, *build.mixed_note(refused)]
    if codes:
        count: int | None = int(codes[1])
    elif rate == 0 or (rate is not None and seconds_sampled is not None):
        count = round(rate * (seconds_sampled or 0))
    else:
        count = round(float(total[1]) * _SCALE[total[2]]) if total else None
        if total and total[2]:
            notes.append(f"the number of requests is printed as {total[1]}{total[2]}")
    run = Run(
        tool="autocannon", loop="closed", measure="service", corrected="unknown", unit="ms",
        duration=float(total[3]) if total else None, achieved=rate,
        connections=fact(text, r"^[ \t]*(\d+) connections?(?! with)\b", int),
        failed=max(failures - late, 0) + refused, timeouts=late, notes=tuple(notes),
    )  # fmt: skip
    if not count and not stats.get("max"):
        return {"": build.unanswered(run)}
    run = run if len(points) > 4 else run.with_notes(_HINT)
    return {"": build.data_from_points(points, count, stats, run)}


FORMATS = {"autocannon-json": (_SNIFF_JSON, read_json), "autocannon": (sniff_text, read_text)}
