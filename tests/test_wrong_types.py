"""Every public function answers an argument of a wrong type in one line, which names the way."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import latencykit as lk

DATA = lk.Histogram.of([1, 2, 3])
WRONG = {
    "None": None, "int": 3, "str": "no-such-file.csv", "list": [1.0, 2.0, 3.0], "bytes": b"x",
    "array": np.arange(3.0), "frame": pd.DataFrame({"latency_ms": np.arange(1.0, 300.0)}),
    "empty": lk.Samples(start=[], duration=[]), "object": object(), "dict": {}, "Histogram": DATA,
    "Summary": lk.Summary({"mean": 3.0}), "Run": lk.Run(),
}  # fmt: skip
SLO = lk.SLO.parse("99=5ms")
CALLS = {
    "read": lk.read,
    "read_all": lk.read_all,
    "read_all of several": lambda given: lk.read_all([given]),
    "read_events": lk.read_events,
    "write": lambda given: lk.write(given, "x.json"),
    "write to": lambda given: lk.write(DATA, given),
    "merge": lk.merge,
    "merge of several": lambda given: lk.merge([given, given]),
    "fan_out": lambda given: lk.fan_out(given, 10),
    "fan_out of n": lambda given: lk.fan_out(DATA, given),
    "sequential": lambda given: lk.sequential(given, 3),
    "correct": lambda given: lk.correct(given, "1ms"),
    "correct by": lambda given: lk.correct(DATA, given),
    "retime": lambda given: lk.retime(given, rate=10),
    "find_stalls": lk.find_stalls,
    "diagnose": lk.diagnose,
    "compare": lambda given: lk.compare(given, given),
    "compare with": lambda given: lk.compare(DATA, given),
    "change_points": lk.change_points,
    "load_curve": lk.load_curve,
    "load_curve of runs": lambda given: lk.load_curve({"a": given}),
    "judge": lambda given: lk.judge(given, given),
    "SLO.parse": lk.SLO.parse,
    "SLO.check": SLO.check,
    "explain": lk.explain,
    "report": lambda given: lk.report(given, "x.html"),
    "explore": lk.explore,
    "History": lk.History,
    "History.add": lambda given: lk.History("store").add(given),
    "History.judge": lambda given: lk.History("store").judge(given),
    "Histogram.of": lk.Histogram.of,
    "Histogram.from_hdrh": lk.Histogram.from_hdrh,
    "Samples": lambda given: lk.Samples(start=given, duration=given),
    "Samples.from_frame": lambda given: lk.Samples.from_frame(given, start="a", duration="b"),
    "percentile": DATA.percentile,
    "percentiles": DATA.percentiles,
    "trimmed_mean": DATA.trimmed_mean,
    "percentile_of": DATA.percentile_of,
    "count_above": DATA.count_above,
    "to_unit": DATA.to_unit,
    "+": lambda given: DATA + given,
    "-": lambda given: DATA - given,
    "Recorder": lk.Recorder,
    "sweep": lambda given: lk.sweep(given, "99=5ms"),
} | {f"plot.{name}": getattr(lk.plot, name) for name in lk.plot.__all__}


def test_every_function_is_in_the_table():
    named = {name.partition(".")[0].partition(" ")[0] for name in CALLS}
    public = {name for name in lk.__all__ if name[0].islower()}
    assert public - named == {"assert_latency", "formats", "limits", "simulate"}


TAKES = "write fan_out sequential correct retime find_stalls diagnose compare explain SLO.check"


@pytest.mark.parametrize("name", TAKES.split())
def test_what_takes_data_says_how_a_file_or_a_frame_becomes_it(name):
    for kind, way in (("str", "path"), ("frame", "frame, column=..., unit='ms'")):
        with pytest.raises(lk.InvalidArgumentError, match=re.escape(f"; lk.read({way}) makes it")):
            CALLS[name](WRONG[kind])


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_wrong_type_is_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind, value in WRONG.items():
        try:
            CALLS[name](value)
        except (lk.LatencyKitError, FileNotFoundError) as error:
            text = str(error)
            assert len(text) > 15, kind
            assert "\n" not in text, kind
    plt.close("all")
