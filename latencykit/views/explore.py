"""``lk.explore``: the page's linked views as a widget of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.errors import MissingPackageError
from latencykit.plot.series import Drawable, read_paths

if TYPE_CHECKING:
    from latencykit.views.widget import Explorer


def explore(data: Drawable) -> Explorer:
    """Show a distribution over time and by percentile, linked: a dragged span updates the curve.

    Parameters
    ----------
    data : Samples, HistogramLog, Histogram or Summary, a path, or mapping of str to these
        One series, or several by name; a tagged log gives one series per tag. A path is read.

    Returns
    -------
    Explorer
        A widget. ``selection`` is the selected span, (start, end) in seconds or None, and can be
        set and observed; ``selected`` is the data within it.

    Raises
    ------
    MissingPackageError
        If anywidget is not installed: ``pip install anywidget``.
    DataNotAvailableError
        If there is nothing to show.

    Examples
    --------
    >>> import latencykit as lk
    >>> log = lk.Samples(start=[0, 1_000_000_000], duration=[2_000_000, 9_000_000]).to_log("1s")
    >>> explorer = lk.explore(log)
    >>> explorer.selection = (1.0, 2.0)
    >>> explorer.selected.histogram().count
    1
    """
    try:
        from latencykit.views.widget import Explorer
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        raise MissingPackageError("anywidget", "lk.explore", "lab") from None
    return Explorer(read_paths(data))
