"""latencykit: the whole latency distribution, from what your tools already print.

Every name below is loaded when it is first used, so that ``import latencykit`` costs nothing.
"""

from __future__ import annotations

# Nothing is imported here: until `__main__` runs, an early Ctrl+C is Python's own, and ends in a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "Buckets": "latencykit.buckets",
    "EdgeBuckets": "latencykit.buckets",
    "HdrBuckets": "latencykit.buckets",
    "Comparison": "latencykit.comparing",
    "Distribution": "latencykit.distribution",
    "Histogram": "latencykit.histogram",
    "HistogramLog": "latencykit.log",
    "Recorder": "latencykit.record.recorder",
    "Run": "latencykit.run",
    "SLO": "latencykit.stats.slo",
    "Samples": "latencykit.samples",
    "Summary": "latencykit.summary",
    "change_points": "latencykit.changing",
    "compare": "latencykit.comparing",
    "fan_out": "latencykit.fanning",
    "in_series": "latencykit.fanning",
    "load_curve": "latencykit.loading",
    "explore": "latencykit.report.explore",
    "merge": "latencykit.merging",
    "LatencyKitError": "latencykit.errors",
    "correct": "latencykit.diagnose.backfill",
    "retime": "latencykit.diagnose.retiming",
    "find_stalls": "latencykit.diagnose.stalls",
    "read": "latencykit.formats.reading",
    "read_all": "latencykit.formats.reading",
}
_ROOMS = ("cluster", "diagnose", "formats", "limits", "plot", "report", "simulate")

__all__ = sorted((*_NAMES, *_ROOMS))  # noqa: PLE0605 - the table above is the list


def __getattr__(name: str) -> Any:
    import importlib

    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"latencykit.{name}")
    else:
        raise AttributeError(f"module 'latencykit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def load_ipython_extension(shell: Any) -> None:
    """Make ``%latency`` and ``%%latency`` known to a notebook; IPython calls this on ``%load_ext latencykit``."""
    from latencykit.record.magic import load

    load(shell)
