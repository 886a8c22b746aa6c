"""Charts: every function draws on an `ax`, returns it, and leaves showing and saving to you.

``percentiles``, ``timeline``, ``heatmap``, ``density``, ``ccdf`` and ``dashboard`` take a data
type, a path, or a mapping of label to these; ``fan_out`` takes one, ``compare`` two sides, and
``load_curve`` runs at different loads; ``diagnosis``, ``explanation``, ``coincidence``, ``ctrlz``
and ``sweep`` a result. Each is imported, and matplotlib with it, when it is first used. This is
the only package that imports matplotlib. ``import latencykit.plot`` after matplotlib, or the first
chart, makes ``ax.set_xscale("percentile")`` known.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latencykit.plot.comparison_chart import compare as compare
    from latencykit.plot.dashboard_chart import dashboard as dashboard
    from latencykit.plot.density_chart import density as density
    from latencykit.plot.diagnosis_chart import ctrlz as ctrlz
    from latencykit.plot.diagnosis_chart import diagnosis as diagnosis
    from latencykit.plot.explain_chart import coincidence as coincidence
    from latencykit.plot.explain_chart import explanation as explanation
    from latencykit.plot.fan_out_chart import fan_out as fan_out
    from latencykit.plot.heatmap_chart import heatmap as heatmap
    from latencykit.plot.load_chart import load_curve as load_curve
    from latencykit.plot.load_chart import sweep as sweep
    from latencykit.plot.percentile_chart import ccdf as ccdf
    from latencykit.plot.percentile_chart import percentiles as percentiles
    from latencykit.plot.timeline_chart import timeline as timeline

_MODULE_OF = {
    **{name: f"{name}_chart" for name in ("dashboard", "density", "fan_out", "heatmap")},
    "timeline": "timeline_chart",
    **dict.fromkeys(("ccdf", "percentiles"), "percentile_chart"),
    **dict.fromkeys(("ctrlz", "diagnosis"), "diagnosis_chart"),
    **dict.fromkeys(("coincidence", "explanation"), "explain_chart"),
    **dict.fromkeys(("load_curve", "sweep"), "load_chart"),
    "compare": "comparison_chart",
}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - the table above is the list

if "matplotlib.scale" in sys.modules:  # `set_xscale("percentile")`; else the first chart does it
    import_module("latencykit.plot.axes")


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        from latencykit._text import did_you_mean

        hint = did_you_mean(name, __all__)
        raise AttributeError(f"module 'latencykit.plot' has no attribute {name!r}{hint}")
    value = getattr(import_module(f"latencykit.plot.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
