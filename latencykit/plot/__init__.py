"""Charts: every function draws on an `ax`, returns it, and leaves showing and saving to you.

``percentiles``, ``timeline``, ``heatmap``, ``density``, ``ccdf`` and ``dashboard`` take a rung, or a mapping of label to
rung; ``fan_out`` takes one, ``compare`` two sides, and ``load_curve`` runs at different loads; ``diagnosis`` and
``calibration`` a result; ``stall_strip`` samples. This is the only room that imports matplotlib.
"""

from __future__ import annotations

from latencykit.plot import scale as _scale
from latencykit.plot.calibration import calibration
from latencykit.plot.ccdf import ccdf
from latencykit.plot.compare import compare
from latencykit.plot.dashboard import dashboard
from latencykit.plot.density import density
from latencykit.plot.diagnosis import diagnosis
from latencykit.plot.fanout import fan_out
from latencykit.plot.heatmap import heatmap
from latencykit.plot.load import load_curve
from latencykit.plot.percentiles import percentiles
from latencykit.plot.stall_strip import stall_strip
from latencykit.plot.timeline import timeline

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
