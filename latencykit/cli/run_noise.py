"""The run noise that a history shows, for ``check`` and ``compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from latencykit.analysis.judge import RunVerdict
    from latencykit.history.history import History


def noise_of(
    history: History, name: str, statistics: Iterable[str]
) -> tuple[str, dict[str, RunVerdict]]:
    """Return the series of a history, and level, band and noise of the statistics that show some.

    The series is the only one where none has the name; the runs are those of the latest one's
    labels.
    """
    known = list(dict.fromkeys(series for run in history.runs for series in run.series))
    series = name if name in known or len(known) != 1 else known[0]
    labels = history.runs[-1].labels if history.runs else None
    found = {word: history.latest(series, word, labels) for word in statistics}
    return series, {word: verdict for word, verdict in found.items() if verdict is not None}
