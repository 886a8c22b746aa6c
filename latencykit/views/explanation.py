"""`explain`, with events from files; and an explanation as a record and as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from latencykit.analysis.explain import Explanation, condition_text, explained
from latencykit.core.events import Events
from latencykit.core.histogram_log import HistogramLog
from latencykit.core.run import require_data
from latencykit.core.samples import Samples
from latencykit.errors import DataNotAvailableError, InvalidArgumentError
from latencykit.io import registry
from latencykit.io.events import read_events
from latencykit.views.page_sections import bullets, esc, table
from latencykit.views.record import number
from latencykit.views.tables import Table
from latencykit.views.text import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from latencykit.core import Data
    from latencykit.core.run import Run
    from latencykit.units import Moment

__all__ = ["explain", "explanation_html", "explanation_record", "explanation_text"]

_KEYS = (
    "attribute", "value", "share", "share_above", "lift", "low", "high", "significant", "explains",
    "outcome",
)  # fmt: skip
_EVENT_KEYS = ("source", "stalls", "coincide", "expected", "p", "lag", "share_above")


def explain(
    data: Samples | HistogramLog,
    above: str | float = "p99",
    by: str | Sequence[str] | None = None,
    between: tuple[Moment, Moment] | None = None,
    events: Iterable[Events | str | Path] | Events | str | Path = (),
) -> Explanation:
    """Find what slow requests have in common, and what happened when they were slow.

    Every attribute and value is compared by the block of time, since a stall makes many requests
    slow at once, and the probabilities are adjusted for the number of comparisons. A value that is
    `significant` goes with slow requests; such data cannot show that it causes them.

    Parameters
    ----------
    data : Samples or HistogramLog
        Requests with columns such as endpoint, host or status. A log has no single requests: only
        events can be compared with it.
    above : str or float, default "p99"
        Requests above it are slow: a percentile, or a latency (``"200ms"``, a number in ns).
    by : str or list of str, optional
        The columns to look at; all without it.
    between : (start, end), optional
        Look at requests with start ≤ t < end only, as in `Samples.between`; the mix is compared
        with that of the other requests.
    events : Events, str, Path, or several, optional
        Events beside the run, such as the log of a garbage collector, or the files that hold them.

    Returns
    -------
    Explanation

    Raises
    ------
    DataNotAvailableError
        For data without single requests and without times.
    InvalidArgumentError
        For a column that is not there, and for a threshold that no request or every one exceeds.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> host = rng.choice(["a", "b", "c", "d"], 20_000)
    >>> slow = (host == "c") & (rng.random(20_000) < 0.05)
    >>> took = rng.lognormal(0, 0.3, 20_000) * np.where(slow, 9, 1)
    >>> s = Samples(start=np.arange(20_000) * 10, duration=took, unit="ms", host=host)
    >>> explain(s).suspects[["attribute", "value"]].values.tolist()
    [['host', 'c']]
    """
    require_data(data, "explain")
    if not isinstance(data, Samples | HistogramLog):
        raise DataNotAvailableError(
            f"{data.run.source or 'the data'}: without single requests and times there is nothing "
            f"to compare; {_hint(data.run)}"
        )
    several = [events] if isinstance(events, str | Path | Events) else events
    read = [read_events(item) if isinstance(item, str | Path) else item for item in several]
    return explained(data, above, by, between, read)


def _hint(run: Run) -> str:
    """The output of the same tool that has single requests, or what has them in any case."""
    stem = (run.format or "").partition("-")[0]
    for entry in registry.all_formats():
        if stem and entry.level == "samples" and entry.name.partition("-")[0] == stem:
            return f"{entry.title} has them: {entry.example}"
    return "the server's access log has them, or a table with one request per row"


def explanation_record(name: str, explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as ``explain --format json`` prints it."""
    events = (
        [] if explanation.coincidence is None else explanation.coincidence.rows.to_dict("records")
    )
    return {
        "name": name,
        "above": explanation.above,
        "threshold": number(explanation.threshold),
        "attributes": [
            {key: row[key] if key in _WORDS else number(row[key]) for key in _KEYS}
            for row in explanation.attributes.to_dict("records")
        ],
        "events": [
            {key: row[key] if key == "source" else number(row[key]) for key in _EVENT_KEYS}
            for row in events
        ],
        "findings": list(explanation.findings),
        "notes": list(explanation.notes),
    }


def explanation_html(
    series: Mapping[str, Data], between: tuple[Moment, Moment] | None = None
) -> str:
    """Return what slow requests have in common as sentences and tables; empty without columns."""
    parts = []
    for name, data in series.items():
        if not isinstance(data, Samples) or not len(data.columns):
            continue
        try:
            explanation = explained(data, between=between)
        except (InvalidArgumentError, DataNotAvailableError):  # all requests are equally fast
            continue
        record = explanation_record(name, explanation)
        # The page has its own sections on stalls.
        own = () if explanation.coincidence is None else explanation.coincidence.findings
        texts = [text for text in record["findings"] if text not in own]
        rows = [row for row in record["attributes"] if row["significant"]]
        if not texts:
            continue
        parts.append(f"<p><b>{esc(name)}</b></p>" if len(series) > 1 else "")
        parts.append(bullets(texts))
        if rows:
            cells = [
                [
                    esc(condition_text(row["attribute"], row["value"])),
                    percent(row["share"]),
                    percent(row["share_above"]),
                    f"{row['lift']:.3g} ({row['low']:.3g}–{row['high']:.3g})",
                ]
                for row in rows
            ]
            header = (
                "",
                "of all requests",
                f"of those above {esc(explanation.above)}",
                "lift (95 %)",
            )
            parts.append(table(header, cells))
    return "".join(parts)


_WORDS = ("attribute", "value", "significant", "outcome")


def _attribute_table(record: dict[str, Any], style: str, out_unit: str | None) -> Table:
    table = Table(style, out_unit)
    for row in record["attributes"]:
        explains = row["explains"]
        without = None if explains is None else record["threshold"] * (1 - explains)
        lift = row["lift"]
        span = "" if lift is None else f"{lift:.2f} ({row['low']:.2f}–{row['high']:.2f})"
        table.add(
            {
                "attribute": row["attribute"],
                "value": ("* " if row["significant"] else "") + row["value"],
                "of all": percent(row["share"]),
                f"above {record['above']}": percent(row["share_above"]),
                "lift (95 %)": span,
                "without it": "" if without is None else table.value(without, "ns"),
            }
        )
    return table


def explanation_text(
    records: Sequence[dict[str, Any]], style: str = "table", out_unit: str | None = None
) -> str:
    """Return findings and tables; as CSV the rows of all attributes alone."""
    blocks: list[str] = []
    rows = Table(style, out_unit)
    for record in records:
        if style == "csv":
            for row in record["attributes"]:
                rows.add({"series": record["name"]} | row)
            continue
        rows = _attribute_table(record, style, out_unit)
        mark = "- " if style == "markdown" else ""
        lines = [f"{mark}{text}" for text in record["findings"]]
        limit = rows.value(record["threshold"], "ns")
        head = f"{record['name']}: requests above {record['above']} ({limit})"
        parts = [head, "\n".join(lines)]
        if record["attributes"]:
            parts.append(rows.render(left=2))
            star = "* goes with slow requests, adjusted for all comparisons; "
            parts.append(
                f"{star if any(row['significant'] for row in record['attributes']) else ''}"
                "without it: the threshold if these requests were like the rest of their time"
            )
        if record["events"]:
            events = Table(style, out_unit)
            for row in record["events"]:
                events.add(
                    {
                        "events": row["source"],
                        "stalls": row["stalls"],
                        "coincide": row["coincide"],
                        "by chance": f"{row['expected']:.1f}",
                        "p": f"{row['p']:.3g}",
                        "lag": "" if row["lag"] is None else events.value(row["lag"], "ns"),
                        "of the tail": percent(row["share_above"]),
                    }
                )
            parts.append(events.render())
        blocks.append("\n\n".join(part for part in parts if part))
    return rows.render() if style == "csv" else "\n\n".join(blocks)
