"""latencykit: see the full latency distribution in the output your tools already produce.

Every public name is imported when it is first used: ``import latencykit`` itself loads nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not imported: until `__main__` runs, Ctrl+C is Python's own
if TYPE_CHECKING:
    from typing import Any

    from latencykit import plot as plot
    from latencykit import simulate as simulate
    from latencykit._limits import limits as limits
    from latencykit.analysis.capacity import LoadCurve as LoadCurve
    from latencykit.analysis.capacity import load_curve as load_curve
    from latencykit.analysis.change_points import change_points as change_points
    from latencykit.analysis.compare import Comparison as Comparison
    from latencykit.analysis.compare import compare as compare
    from latencykit.analysis.correct import correct as correct
    from latencykit.analysis.diagnosis import Diagnosis as Diagnosis
    from latencykit.analysis.explain import Explanation as Explanation
    from latencykit.analysis.explain import explain as explain
    from latencykit.analysis.fan_out import FanOut as FanOut
    from latencykit.analysis.fan_out import fan_out as fan_out
    from latencykit.analysis.fan_out import sequential as sequential
    from latencykit.analysis.judge import judge as judge
    from latencykit.analysis.omission import diagnose as diagnose
    from latencykit.analysis.omission import find_stalls as find_stalls
    from latencykit.analysis.retime import retime as retime
    from latencykit.analysis.slo import SLO as SLO
    from latencykit.assertions import assert_latency as assert_latency
    from latencykit.core.addition import merge as merge
    from latencykit.core.buckets import Buckets as Buckets
    from latencykit.core.buckets import EdgeBuckets as EdgeBuckets
    from latencykit.core.buckets import HdrBuckets as HdrBuckets
    from latencykit.core.distribution import Distribution as Distribution
    from latencykit.core.events import Events as Events
    from latencykit.core.histogram import Histogram as Histogram
    from latencykit.core.histogram_log import HistogramLog as HistogramLog
    from latencykit.core.run import Run as Run
    from latencykit.core.samples import Samples as Samples
    from latencykit.core.summary import Summary as Summary
    from latencykit.ctrlz.sweep import Sweep as Sweep
    from latencykit.ctrlz.sweep import sweep as sweep
    from latencykit.errors import AlreadyCorrectedError as AlreadyCorrectedError
    from latencykit.errors import CorruptInputError as CorruptInputError
    from latencykit.errors import DataNotAvailableError as DataNotAvailableError
    from latencykit.errors import IncompatibleDataError as IncompatibleDataError
    from latencykit.errors import InputError as InputError
    from latencykit.errors import InputTooLargeError as InputTooLargeError
    from latencykit.errors import InvalidArgumentError as InvalidArgumentError
    from latencykit.errors import LatencyKitError as LatencyKitError
    from latencykit.errors import MissingPackageError as MissingPackageError
    from latencykit.errors import UnknownFormatError as UnknownFormatError
    from latencykit.history.history import History as History
    from latencykit.io.events import read_events as read_events
    from latencykit.io.parts import read_all as read_all
    from latencykit.io.reading import formats as formats
    from latencykit.io.reading import read as read
    from latencykit.io.writing import write as write
    from latencykit.record.recorder import Recorder as Recorder
    from latencykit.views.explore import explore as explore
    from latencykit.views.report import Report as Report
    from latencykit.views.report import report as report

__version__ = "0.1.0"

# The same names for the interpreter; a test compares both lists.
_MODULE_OF = {
    "plot": "",
    "simulate": "",
    "limits": "_limits",
    "LoadCurve": "analysis.capacity",
    "load_curve": "analysis.capacity",
    "change_points": "analysis.change_points",
    "Comparison": "analysis.compare",
    "compare": "analysis.compare",
    "correct": "analysis.correct",
    "Explanation": "analysis.explain",
    "FanOut": "analysis.fan_out",
    "fan_out": "analysis.fan_out",
    "sequential": "analysis.fan_out",
    "judge": "analysis.judge",
    "Diagnosis": "analysis.diagnosis",
    "diagnose": "analysis.omission",
    "retime": "analysis.retime",
    "SLO": "analysis.slo",
    "find_stalls": "analysis.omission",
    "assert_latency": "assertions",
    "Buckets": "core.buckets",
    "EdgeBuckets": "core.buckets",
    "HdrBuckets": "core.buckets",
    "Distribution": "core.distribution",
    "Events": "core.events",
    "Histogram": "core.histogram",
    "HistogramLog": "core.histogram_log",
    "merge": "core.addition",
    "Run": "core.run",
    "Samples": "core.samples",
    "Summary": "core.summary",
    "Sweep": "ctrlz.sweep",
    "sweep": "ctrlz.sweep",
    "AlreadyCorrectedError": "errors",
    "CorruptInputError": "errors",
    "DataNotAvailableError": "errors",
    "IncompatibleDataError": "errors",
    "InputError": "errors",
    "InputTooLargeError": "errors",
    "InvalidArgumentError": "errors",
    "LatencyKitError": "errors",
    "MissingPackageError": "errors",
    "UnknownFormatError": "errors",
    "History": "history.history",
    "read_events": "io.events",
    "formats": "io.reading",
    "read": "io.reading",
    "read_all": "io.parts",
    "write": "io.writing",
    "Recorder": "record.recorder",
    "explain": "analysis.explain",
    "explore": "views.explore",
    "Report": "views.report",
    "report": "views.report",
}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - the table above is the list


def __getattr__(name: str) -> Any:
    import importlib

    where = "" if name in ("errors", "units") else _MODULE_OF.get(name)  # `import` asks for them
    if where is None:
        from latencykit._text import did_you_mean

        hint = "" if name.startswith("_") else did_you_mean(name, __all__)
        raise AttributeError(f"module 'latencykit' has no attribute {name!r}{hint}")
    module = importlib.import_module(f"latencykit.{where or name}")
    if not where:
        return module
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def load_ipython_extension(shell: Any) -> None:
    """Register the magics ``%latency`` and ``%%latency``; called by ``%load_ext latencykit``."""
    from latencykit.record.magic import load

    load(shell)
