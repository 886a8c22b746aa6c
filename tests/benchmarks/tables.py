"""Tables as Markdown, printed row by row, and jobs that two processes share."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def show(title: str, header: Sequence[str], rows: Iterable[Iterable[Any]], text: int = 1) -> None:
    """Print a table under a heading as its rows come; the first columns are `text`, the others numbers."""
    print(f"\n### {title}\n\n| {' | '.join(header)} |")
    print("|" + "---|" * text + "--:|" * (len(header) - text), flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def in_parallel(job: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return what `job` makes of each item; two processes share them."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(job, items))


def share(part: float, whole: float) -> str:
    """Return a share in percent, a dash for none."""
    return f"{100 * part / whole:.0f}" if whole else "–"
