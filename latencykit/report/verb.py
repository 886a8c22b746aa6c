"""``lk.report``: an interactive page in one file, which anybody can open without a server and without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["report"]


def report(
    rungs: Any,
    path: str | Path,
    *,
    title: str | None = None,
    slo: Any = None,
    files: Sequence[str | Path] = (),
    command: str | None = None,
    **diagnosis: Any,
) -> Path:
    """Write an interactive, self-contained HTML page.

    Parameters
    ----------
    rungs : Samples, HistogramLog, Histogram or Summary, or mapping of str to such
        A tagged log gives one series a tag. Of several series the first is the one that others are compared with.
    path : str or Path
    title : str, optional
        By default what was measured.
    slo : SLO or str, optional
        Limits to draw and to check, such as ``"99.9=20ms, max=1s"``.
    files : sequence of paths
        Whose sizes and hashes are told.
    command : str, optional
        The command that made the page, to be told.
    **diagnosis
        ``expected_interval``, ``rate``, ``connections``, ``duration``: what `lk.diagnose` takes.

    Returns
    -------
    Path
        Of the page. It is written whole, or not at all.

    Raises
    ------
    UsageError
        Where there is nothing to show, where the suffix is not ``.html`` or ``.htm``, and where the page would be written
        over one of `files`.
    MixedInputsError
        Where bare numbers and times stand side by side.
    LatencyKitError
        Where the page cannot be written.

    Notes
    -----
    The page fetches nothing: its content security policy forbids all requests, and evaluation of text. Series over time
    are shown in at most some 300 slots and in buckets of two digits; counts and maxima are exact.

    Examples
    --------
    >>> import latencykit as lk, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = lk.report(lk.Histogram.of([1_000_000, 2_000_000]), pathlib.Path(folder) / "report.html")
    ...     "Half of the 2 requests" in page.read_text()
    True
    """
    from latencykit.outputs import checked_page, whole
    from latencykit.report.page import page_html
    from latencykit.report.provenance import input_file

    target = checked_page(Path(path))
    text = page_html(rungs, title=title, slo=slo, files=[input_file(one) for one in files], command=command, **diagnosis)
    with whole(target, files) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target
