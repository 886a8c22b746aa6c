"""Charts: every function draws on an `ax`, returns it, and leaves showing and saving to you.

``percentiles``, ``timeline``, ``heatmap``, ``density``, ``ccdf`` and ``dashboard`` take a data type, or a mapping of label to
data type; ``fan_out`` takes one, ``compare`` two sides, and ``load_curve`` runs at different loads; ``diagnosis`` and
``calibration`` a result; ``stall_strip`` samples. This is the only room that imports matplotlib.
"""

from __future__ import annotations

from latencykit.plot import axes as _scale
from latencykit.plot.ccdf_chart import ccdf
from latencykit.plot.comparison_chart import compare
from latencykit.plot.ctrlz_chart import calibration
from latencykit.plot.dashboard_chart import dashboard
from latencykit.plot.density_chart import density
from latencykit.plot.diagnosis_chart import diagnosis
from latencykit.plot.fan_out_chart import fan_out
from latencykit.plot.heatmap_chart import heatmap
from latencykit.plot.load_chart import load_curve
from latencykit.plot.percentile_chart import percentiles
from latencykit.plot.stall_chart import stall_strip
from latencykit.plot.timeline_chart import timeline

__all__ = [
    "calibration",
    "ccdf",
    "compare",
    "dashboard",
    "density",
    "diagnosis",
    "fan_out",
    "heatmap",
    "load_curve",
    "percentiles",
    "stall_strip",
    "timeline",
]

_scale.register()


def __dir__() -> list[str]:
    return __all__
