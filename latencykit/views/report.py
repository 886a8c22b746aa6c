"""``lk.report``: the interactive page as a file, or as an object that a notebook shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from latencykit._files import checked_page, whole
from latencykit._records import record
from latencykit.analysis.slo import SLO
from latencykit.plot.series import Drawable, read_paths
from latencykit.views.document import bundle, frame
from latencykit.views.page import page_html
from latencykit.views.provenance import input_file


@record()
class Report:
    """An interactive page, which a notebook shows in a frame.

    Attributes
    ----------
    html : str
        The page: one file that needs no server and no network.
    """

    html: str = field(repr=False)
    _data: Any = field(default=None, repr=False, compare=False)

    def save(self, path: str | Path, *, replacing: Sequence[str | Path] = ()) -> Path:
        """Write the page.

        Parameters
        ----------
        path : str or Path
            A file named ``.html`` or ``.htm``.
        replacing : sequence of paths
            Inputs, which are never written over.

        Returns
        -------
        Path
            The page. It appears complete, or not at all.
        """
        target = checked_page(Path(path))
        with whole(target, replacing) as temporary:
            temporary.write_text(self.html, encoding="utf-8")
        return target

    def __reduce__(self) -> Any:
        return Report, (self.html,)

    def _repr_mimebundle_(self, **_: object) -> object:
        return ({"text/html": frame(self.html)}, {}) if self._data is None else self._bundle

    @cached_property
    def _bundle(self) -> tuple[dict[str, str], dict[str, object]]:
        return bundle(self._data, self.html)


@overload
def report(
    series: Drawable,
    path: str | Path,
    *,
    title: str | None = None,
    slo: SLO | str | None = None,
    files: Sequence[str | Path] = (),
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
    page_size: int | str = "2MB",
) -> Path: ...
@overload
def report(
    series: Drawable,
    path: None = None,
    *,
    title: str | None = None,
    slo: SLO | str | None = None,
    files: Sequence[str | Path] = (),
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
    page_size: int | str = "2MB",
) -> Report: ...
def report(
    series: Drawable,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    slo: SLO | str | None = None,
    files: Sequence[str | Path] = (),
    expected_interval: str | float | None = None,
    rate: float | None = None,
    connections: int | None = None,
    duration: str | float | None = None,
    page_size: int | str = "2MB",
) -> Path | Report:
    """Write an interactive, self-contained HTML page, or show it in a notebook.

    Parameters
    ----------
    series : Samples, HistogramLog, Histogram or Summary, a path, or mapping of str to these
        A tagged log gives one series per tag; series that have names are shown as they are. The
        others are compared with the first series. A path is read; a single one is among `files`.
    path : str or Path, optional
        Without it, the page is returned as an object that a notebook shows.
    title : str, optional
        By default the names of the series and what was measured.
    slo : SLO or str, optional
        Limits to draw and to check, such as ``"99.9=20ms, max=1s"``.
    files : sequence of paths
        Files whose sizes and hashes are shown.
    expected_interval, rate, connections, duration
        See `lk.diagnose`.
    page_size : int or str, default: "2MB"
        Bytes that the page should not exceed. A longer one has narrower time bins.

    Returns
    -------
    Path or Report
        The page's path: it appears complete, or not at all. Without a path, the page itself.

    Raises
    ------
    InvalidArgumentError
        If there is nothing to show, if the suffix is not ``.html`` or ``.htm``, or if the page
        would replace one of `files`.
    IncompatibleDataError
        If some series have bare numbers and others times.
    LatencyKitError
        If the page cannot be written.

    Notes
    -----
    The page fetches nothing: its content security policy forbids all requests, and evaluation of
    text. Series over time are shown in about 300 time bins, more on pages above 2 MB, and in
    buckets of two digits; counts and maxima are exact. Around the longest stalls the page also
    has the single intervals.

    Examples
    --------
    >>> import latencykit as lk, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = lk.Histogram.of([1_000_000, 2_000_000])
    ...     page = lk.report(data, pathlib.Path(folder) / "report.html")
    ...     "2 requests: p50" in page.read_text()
    True
    """
    if path is not None:
        checked_page(Path(path))
    if isinstance(series, str | os.PathLike):
        files = files or (Path(series),)
    series = read_paths(series)
    page = Report(
        page_html(
            series,
            title=title,
            slo=slo,
            files=[input_file(file) for file in files],
            expected_interval=expected_interval,
            rate=rate,
            connections=connections,
            duration=duration,
            page_size=page_size,
        ),
        series if path is None else None,
    )
    return page if path is None else page.save(path, replacing=files)
