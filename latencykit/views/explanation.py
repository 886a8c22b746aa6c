"""Explanations of slow requests: the record, tables, findings, and the page's section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

from latencykit._text import esc, isolated, prose
from latencykit.views.markup import bullets, table
from latencykit.views.tables import MOST_ROWS, Cell, Table
from latencykit.views.values import percent, record_from

if TYPE_CHECKING:
    from latencykit.analysis.explain import Explanation


class AttributeRecord(TypedDict):
    """A value of an attribute, and its share of the slow requests."""

    attribute: str
    """A column."""
    value: str
    share: float | None
    """Of all requests; adds up to one exactly within an attribute."""
    share_above: float | None
    """Of the slow requests; adds up to one exactly within an attribute."""
    lift: float | None
    """share_above divided by share."""
    low: float | None
    """95 % confidence interval of the lift."""
    high: float | None
    significant: bool
    """Goes with slow requests, adjusted for all comparisons."""
    explains: float | None
    """Part by which the threshold would fall if these requests were like the rest of their time."""
    outcome: bool
    """The attribute reports how requests ended, such as a status: never significant."""


class EventsRecord(TypedDict):
    """Events of one source, compared with stalls."""

    source: str
    stalls: int
    coincide: int
    expected: float | None
    """Coincidences by chance."""
    p: float | None
    """Adjusted for all comparisons."""
    lag: float | None
    """From the start of an event to that of the stall, ns."""
    share_above: float | None
    """Of the slow requests."""


class ExplanationRecord(TypedDict):
    """What the slow requests of a series have in common."""

    name: str
    above: str
    """What counts as slow: a percentile or a latency."""
    threshold: float | None
    """That latency, ns."""
    attributes: list[AttributeRecord]
    events: list[EventsRecord]
    findings: list[str]
    notes: list[str]


def explanation_record(name: str, explanation: Explanation) -> ExplanationRecord:
    """Return an explanation as ``explain --format json`` prints it."""
    attributes, coincidence = explanation.attributes, explanation.coincidence
    events = [] if coincidence is None else coincidence.rows.to_dict("records")
    return record_from(
        ExplanationRecord,
        explanation,
        name=name,
        attributes=[record_from(AttributeRecord, row) for row in attributes.to_dict("records")],
        events=[record_from(EventsRecord, row) for row in events],
    )


def explanation_html(explanations: Mapping[str, Explanation], *, several: bool) -> str:
    """Return what slow requests have in common as sentences and tables; empty without findings."""
    names: dict[str, list[str]] = {}  # by what is said of them
    for name, explanation in explanations.items():
        record = explanation_record(name, explanation)
        # The page has its own sections on stalls.
        own = () if explanation.coincidence is None else explanation.coincidence.findings
        texts = [text for text in record["findings"] if text not in own]
        rows = [row for row in record["attributes"] if row["significant"]]
        if not texts:
            continue
        html = bullets(texts)
        if rows:
            cells = [
                [
                    esc(f"{row['attribute']}={row['value']}"),
                    percent(row["share"]),
                    percent(row["share_above"]),
                    f"{row['lift']:.3g} ({row['low']:.3g}–{row['high']:.3g})",
                ]
                for row in rows
            ]
            above = f"of those above {esc(explanation.above)}"
            html += table(("", "of all requests", above, "lift (95 %)"), cells)
        names.setdefault(html, []).append(isolated(esc(name)))
    return "".join(
        (f"<p><b>{', '.join(named)}</b></p>" if several else "") + html
        for html, named in names.items()
    )


def explanation_text(
    records: Sequence[ExplanationRecord], style: str = "table", out_unit: str | None = None
) -> str:
    """Return findings and tables; as CSV the rows of all attributes alone."""
    if style == "csv":
        table = Table(style)
        for record in records:
            for row in record["attributes"]:
                table.add({"series": record["name"], **cast("dict[str, Cell]", row)})
        return table.render()
    texts: dict[str, str] = {}  # heads, by what follows them
    for record in records:
        attributes, threshold = Table(style, out_unit), record["threshold"]
        for row in record["attributes"]:
            lift, explains, without = row["lift"], row["explains"], None
            if threshold is not None and explains is not None:
                without = threshold * (1 - explains)
            span = "" if lift is None else f"{lift:.2f} ({row['low']:.2f}–{row['high']:.2f})"
            attributes.add(
                {
                    "attribute": row["attribute"],
                    "value": ("* " if row["significant"] else "") + row["value"],
                    "of all": percent(row["share"]),
                    f"above {record['above']}": percent(row["share_above"]),
                    "lift (95 %)": span,
                    "without it": "" if without is None else attributes.value(without, "ns"),
                }
            )
        lines = [prose(text, style, listed=True) for text in record["findings"]]
        limit = attributes.value(threshold, "ns")
        head = prose(f"{record['name']}: requests above {record['above']} ({limit})", style)
        parts = ["\n".join(lines)]
        if record["attributes"]:
            most = max(_FEWEST_ROWS, MOST_ROWS + 1 - 3 * len(lines))  # a finding takes three lines
            parts.append(attributes.render(left=2, most=most))
            star = "* goes with slow requests, adjusted for all comparisons; "
            parts.append(
                f"{star if any(row['significant'] for row in record['attributes']) else ''}"
                "without it: the threshold if these requests were like the rest of their time"
            )
        if record["events"]:
            events = Table(style, out_unit)
            for at in record["events"]:
                events.add(
                    {
                        "events": at["source"],
                        "stalls": at["stalls"],
                        "coincide": at["coincide"],
                        "by chance": f"{at['expected']:.1f}",
                        # none for events that lie outside the run, or whose clock is unknown
                        "p": "" if at["p"] is None else f"{at['p']:.3g}",
                        "lag": "" if at["lag"] is None else events.value(at["lag"], "ns"),
                        "of the tail": percent(at["share_above"]),
                    }
                )
            parts.append(events.render())
        rest = "\n\n".join(part for part in parts if part)
        texts[rest] = f"{texts[rest]}\n{head}" if rest in texts else head
    return "\n\n".join(f"{head}\n\n{rest}" if rest else head for rest, head in texts.items())


_FEWEST_ROWS = 4
"""Rows of a table below many findings."""
