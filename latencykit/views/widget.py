"""The widget: the engine of the page under a shadow root, with the selection shared with Python."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import anywidget
import traitlets

from latencykit.errors import DataNotAvailableError
from latencykit.views import page

__all__ = ["Explorer"]


class Explorer(anywidget.AnyWidget):
    """Linked views of one or several series; see `latencykit.explore`.

    Attributes
    ----------
    selection : tuple of float or None
        Start and end of the selected span in seconds; None is the whole run.
    """

    _esm = page.script_of("widget")
    _style = traitlets.Unicode().tag(sync=True)
    _html = traitlets.Unicode().tag(sync=True)
    _model = traitlets.Unicode().tag(sync=True)
    _buffers = traitlets.List(traitlets.Bytes()).tag(sync=True)
    selection = traitlets.Tuple(
        traitlets.Float(), traitlets.Float(), default_value=None, allow_none=True
    ).tag(sync=True)

    def __init__(self, data: Any) -> None:
        body, model = page.explorer_parts(data)
        buffers: list[bytes] = []
        for series in model["series"]:
            if "packed" in series:
                packed = series["packed"]
                buffers.append(base64.b64decode(packed["bytes"]))
                series["packed"] = {**packed, "bytes": len(buffers) - 1}
        super().__init__(
            _style=page.asset("page.css"), _html=body, _model=json.dumps(model), _buffers=buffers
        )
        self._data = data

    @property
    def selected(self) -> Any:
        """The data within the selection, in its own type; of several series a mapping."""
        if self.selection is None:
            return self._data
        span: Any = self.selection

        def within(data: Any) -> Any:
            if not hasattr(data, "between"):
                raise DataNotAvailableError(
                    f"a {type(data).__name__} has no times; a selection needs a HistogramLog or "
                    "Samples"
                )
            return data.between(*span)

        if hasattr(self._data, "items"):
            return {name: within(data) for name, data in self._data.items()}
        return within(self._data)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Add what a viewer without widgets shows: the page in a frame, and in it a picture."""
        parent: Any = super()
        bundle, *metadata = parent._repr_mimebundle_(**options)
        from matplotlib.figure import Figure

        from latencykit.plot import percentiles

        picture, figure = io.BytesIO(), Figure(figsize=(8, 4.8), layout="constrained")
        percentiles(self._data, ax=figure.subplots())  # not pyplot's: it would show it, too
        figure.savefig(picture, format="png", dpi=80)
        png = base64.b64encode(picture.getvalue()).decode()
        bundle["image/png"] = png
        bundle["text/html"] = page.frame(page.page_html(self._data), png)
        return (bundle, *metadata)
