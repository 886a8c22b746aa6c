"""The widget: the engine of the page under a shadow root, with the selection shared with Python."""

from __future__ import annotations

import json
from typing import Any

import anywidget
import traitlets

from latencykit.errors import DataNotAvailableError
from latencykit.plot.series import as_series
from latencykit.views import document, page
from latencykit.views.page import explanations, has_columns
from latencykit.views.page_series import finer

_UNLINKED = (
    "<p style='font: 13px sans-serif'>This viewer shows no live widgets: what is selected here "
    "does not reach Python.</p>"
)
"""Above the page, where it is shown in place of the widget."""


class Explorer(anywidget.AnyWidget):
    """Linked views of one or several series; see `latencykit.explore`.

    Attributes
    ----------
    selection : tuple of float or None
        Start and end of the selected span in seconds; None is the whole run.
    """

    _esm = document.script_of("widget")
    _style = traitlets.Unicode().tag(sync=True)
    _html = traitlets.Unicode().tag(sync=True)
    _model = traitlets.Unicode().tag(sync=True)
    selection = traitlets.Tuple(
        traitlets.Float(), traitlets.Float(), default_value=None, allow_none=True
    ).tag(sync=True)

    def __init__(self, data: Any) -> None:
        heading, body, model = page.explorer_parts(data)
        explains = has_columns(as_series(data))
        super().__init__(
            _style=document.asset("page.css"),
            _html=body + document.SPOKEN,
            _model=json.dumps({**model, "explains": explains}),
        )
        self._data, self._page = data, (heading + body, model)

        def answer(_: object, message: Any, __: object) -> None:
            """The engine asks for narrower time bins, or for slow requests to be explained."""
            named = as_series(data)
            if "explain" not in message:
                start, end = map(float, message["finer"])
                self.send({"finer": finer(named, start, end)})
                return
            from latencykit.views.explanation import explanation_html

            span = message["explain"]
            between = (float(span[0]), float(span[1])) if span else None
            html = explanation_html(explanations(named, between), several=len(named) > 1)
            self.send({"explained": html})

        self.on_msg(answer)

    @property
    def selected(self) -> object:
        """The data within the selection, in its own type; of several series a mapping."""
        if self.selection is None:
            return self._data
        span: Any = self.selection

        def within(data: object) -> object:
            if not hasattr(data, "between"):
                raise DataNotAvailableError(
                    f"a {type(data).__name__} has no times; a selection needs a HistogramLog or "
                    "Samples"
                )
            return data.between(*span)

        if hasattr(self._data, "items"):
            return {name: within(data) for name, data in self._data.items()}
        return within(self._data)

    def __repr__(self) -> str:
        return f"Explorer(selection={self.selection}): notebooks show it; lk.report writes a page"

    def _repr_mimebundle_(self, **options: object) -> Any:
        """Add what a viewer without widgets shows: the page in a frame, and in it a picture."""
        parent: Any = super()
        own, *metadata = parent._repr_mimebundle_(**options)
        text = document.document("latencykit", *self._page)
        bundle, about = document.bundle(self._data, text)
        bundle = bundle | {"text/html": _UNLINKED + bundle["text/html"]}
        return own | bundle, (metadata[0] if metadata else {}) | about
