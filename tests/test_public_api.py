"""The public surface: what it is, what it takes, and how it says what it does not take."""

from __future__ import annotations

import ast
import functools
import inspect
import pickle
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import latencykit as lk
import latencykit.testing
from latencykit.core.histogram_log import interval_series
from latencykit.plot.series import as_series
from tests.conftest import RAW
from tests.snapshots.surface import snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator


FACE = Path(lk.__file__)
SURFACE = snapshots()  # before any command runs: click keeps the help option that it makes first


def test_the_surface_is_as_recorded():
    recorded = {path: path.read_text("utf-8") for path in next(iter(SURFACE)).parent.glob("*.txt")}
    every = SURFACE.keys() | recorded
    changed = sorted(path.name for path in every if SURFACE.get(path) != recorded.get(path))
    assert changed == [], (
        "the public surface changed; if that is meant, run `python -m tests.snapshots`"
    )


def static_names() -> dict[str, str]:
    """The names that type checkers see: name → module."""
    tree = ast.parse(FACE.read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.module]
    ours = [node for node in imports if str(node.module).startswith("latencykit")]
    return {alias.name: str(node.module) for node in ours for alias in node.names}


def test_static_and_lazy_names_are_the_same():
    lazy = {name: f"latencykit.{at}".strip(".") for name, at in lk._MODULE_OF.items()}
    assert static_names() == lazy
    assert sorted(lazy) == lk.__all__


def test_every_name_is_defined_where_it_says():
    for name, module in static_names().items():
        value = getattr(lk, name)
        if not inspect.ismodule(value):
            assert value.__module__ == module, name


def test_no_module_is_callable():
    lk.read("data/jhiccup-v2.hlog") if Path("data/jhiccup-v2.hlog").exists() else None
    ours = {name: module for name, module in sys.modules.items() if name.startswith("latencykit")}
    assert not [name for name, module in ours.items() if callable(module)]


@pytest.mark.parametrize("space", [lk, lk.plot, lk.simulate, lk.testing, lk.errors])
def test_everything_public_pickles(space):
    own = [name for name, value in vars(space).items() if inspect.isclass(value)]
    for name in getattr(space, "__all__", own):
        value = getattr(space, name)
        if not inspect.ismodule(value):
            assert pickle.loads(pickle.dumps(value)) is value


@functools.cache
def values(_copy: int = 0) -> dict[str, object]:
    """Each data type, in each variety, and the results of the analyses; another copy on demand."""
    rng = np.random.default_rng(5)
    start = np.sort(rng.integers(0, 60_000_000_000, 3000))
    columns = {
        "intended": start,
        "outcome": np.where(rng.random(3000) < 0.01, "timeout", "ok"),
        "connection": rng.integers(0, 4, 3000),
        "tag": rng.choice(["get", "put"], 3000),
    }
    samples = lk.Samples(start=start, duration=rng.integers(10**6, 9 * 10**6, 3000))
    tagged = lk.Samples(start=start, duration=samples.duration, **columns)
    log = samples.to_log("1s")
    h = log.histogram()
    reported = lk.Histogram.from_percentiles([50, 99], [1e6, 4e6], 100)
    found = lk.diagnose(samples)
    curve = lk.load_curve({"50": h, "70": h + h}, "99=20ms")
    gc = lk.Events("gc.log", "jvm-gc", [2.0, 9.0], [2.5, 9.5], ["Pause Full", "Pause Full"])
    return {
        "samples": samples, "tagged samples": tagged, "part": tagged.between(1, 9).tagged("put"),
        "log": log, "tagged log": tagged.to_log("2s"), "resampled": log.resample("10s"),
        "histogram": h,
        "reported": reported, "sum of unlike layouts": h + lk.Histogram.of([1, 2], digits=2),
        "summary": h.summary(),
        "run": h.run, "buckets": h.buckets, "edges": reported.buckets,
        "series": interval_series(log, [50, 99]),
        "page": lk.Report("<p>Page</p>"), "fan-out": lk.fan_out(h, 10), "sequence": lk.sequential(h, 2),
        "distribution": lk.Distribution(h.buckets, h.index, h.counts / h.count),
        "slo": lk.SLO.parse("99=20ms"),
        "explanation": lk.explain(tagged), "columns": samples.with_columns({"host": ["a"] * 3000}),
        "events": gc, "coincidence": lk.explain(samples, events=gc).coincidence,
        "diagnosis": found, "stalls": found.detected_stalls, "comparison": lk.compare(h, h),
        "load curve": curve,
        "load row": curve.rows[0], "evidence": samples.evidence(),
        "change points": lk.change_points([1.0, 2.0] * 9),
        "report": lk.Report("<p>page</p>"),
        "sweep": lk.Sweep((), curve, curve.slo, "stopped", complete=True),
    }  # fmt: skip


def test_a_misspelt_name_is_answered_with_a_hint():
    for space, name, meant in ((lk, "fanout", "fan_out"), (lk.plot, "percentile", "percentiles")):
        with pytest.raises(AttributeError, match=f"{name!r}; did you mean {meant!r}"):
            getattr(space, name)


@pytest.mark.parametrize("name", ["explanation", "coincidence", "diagnosis", "comparison", "fan-out", "sequence", "load curve", "change points", "sweep", "distribution"])  # fmt: skip
def test_every_result_is_a_table_and_html(name):
    import pandas as pd

    result: Any = values()[name]
    assert isinstance(result.table, pd.DataFrame)
    assert "<" in result._repr_html_()


CONTEXT = {"expected_interval", "connections", "confidence"}


def test_the_context_of_a_measurement_is_named():
    """Bare numbers in ``diagnose(data, 200, 4)`` could be a rate, or an interval."""
    functions = {f"lk.{name}": getattr(lk, name) for name in lk.__all__}
    for kind in [value for value in functions.values() if inspect.isclass(value)]:
        if not issubclass(kind, Exception):
            functions |= {f"{kind.__name__}.{name}": own for name, own in vars(kind).items()}
    for name, function in functions.items():
        if inspect.isfunction(function) and not name.rpartition(".")[2].startswith("_"):
            for parameter in inspect.signature(function).parameters.values():
                named = parameter.kind is parameter.KEYWORD_ONLY
                # `correct(data, "1ms")`: what it corrects by
                assert parameter.name not in CONTEXT or named or name == "lk.correct", name


def test_every_public_value_type_is_walked():
    kinds = {type(value) for value in values().values()}
    behaviour = {lk.Buckets, lk.History, lk.Recorder}  # the base of layouts, and what has a state
    public = {value for name in lk.__all__ if inspect.isclass(value := getattr(lk, name))}
    public -= {kind for kind in public if issubclass(kind, Exception)} | behaviour
    assert public <= kinds


def test_what_was_read_survives_pickling():
    log = lk.read(RAW)
    assert pickle.loads(pickle.dumps(log)) == log


def test_values_survive_pickling():
    for name, value in values().items():
        again = pickle.loads(pickle.dumps(value))
        assert type(again) is type(value), name
        assert repr(again) == repr(value), name
        assert again == value, name
        assert hash_of(again) == hash_of(value), name
        assert_read_only(value)
        assert_read_only(again)


def test_values_are_equal_when_their_content_is():
    for name, value in values().items():
        copy = values(1)[name]
        assert value is not copy, name
        assert value == copy, name
        assert hash_of(value) == hash_of(copy), name
        equal = [key for key, other in values().items() if key != name and other == value]
        assert not equal, name
        assert value != "text", name


def hash_of(value: object) -> int | None:
    return hash(value) if type(value).__hash__ else None


def assert_read_only(value: object) -> None:
    """Every array that a public attribute returns."""
    for name in dir(value):
        if name.startswith("_") or isinstance(value, list):
            continue
        try:
            content = getattr(value, name)
        except LookupError:  # not available of this one
            continue
        parts = content if isinstance(content, tuple | list) else [content]
        for part in parts:
            assert not (isinstance(part, np.ndarray) and part.flags.writeable), name


def test_the_content_decides_on_equality():
    h = lk.Histogram.of([1, 2, 3])
    assert h != lk.Histogram.of([1, 2, 4])
    assert h != lk.Histogram.of([1, 2, 3], unit="us")
    assert h != h.with_run(tool="wrk2")
    assert sum([h, h, h]) - h - h == h
    s = lk.Samples(start=[0, 10], duration=[1, 2])
    assert s != lk.Samples(start=[0, 10], duration=[1, 3])
    assert s == s.select(np.array([0, 1]))
    log = s.to_log(1e-9)
    assert log == lk.Samples(start=[0, 10], duration=[1, 2]).to_log(1e-9)
    assert log != lk.Samples(start=[0, 10], duration=[1, 3]).to_log(1e-9)
    assert len({h, lk.Histogram.of([1, 2, 3]), s, log}) == 3


def test_arrays_given_stay_their_owners():
    start, duration = np.arange(3), np.arange(3)
    s = lk.Samples(start=start, duration=duration)
    assert start.flags.writeable
    assert duration.flags.writeable
    assert not s.duration.flags.writeable


ANSWERS = ("count", "min", "max", "mean", "std", "unit", "run")
QUESTIONS = ("percentile", "percentiles", "quantile", "summary", "to_frame", "to_unit", "with_run")


@pytest.mark.parametrize("name", ["samples", "log", "histogram", "summary"])
def test_all_four_types_answer_by_the_same_names(name):
    data: Any = values()[name]
    h: Any = values()["histogram"]
    assert all(hasattr(data, attribute) for attribute in (*ANSWERS, *QUESTIONS))
    assert data.count == 3000
    assert data.max == pytest.approx(h.max, rel=1e-3)
    assert data.mean == pytest.approx(h.mean)
    assert isinstance(data.percentile(99), float)
    assert data.percentile([50, 99]).tolist() == h.percentile([50, 99]).tolist()
    assert data.quantile(0.99) == data.percentile(99)
    assert list(data.quantile([0.5, 0.99])) == list(h.percentile([50, 99]))
    frame = data.percentiles([50, 99])
    assert frame.index.name == "percentile"
    assert list(frame.columns) == list(h.percentiles([50]).columns)
    assert frame.value.tolist() == h.percentiles([50, 99]).value.tolist()
    assert isinstance(data.summary(), lk.Summary)
    assert data.with_run(tool="wrk2").run.tool == "wrk2"
    assert data.to_unit("ns") == data
    assert not data.to_frame().empty


def test_a_log_is_a_sequence_of_histograms():
    log: Any = values()["log"]
    assert len(log) == 61
    assert isinstance(log[3], lk.Histogram)
    assert log[3].run.start is None
    assert log[3].run.duration == 1.0
    assert log[-1] == log[len(log) - 1]
    assert list(log)[3] == log[3]
    assert isinstance(log[3:5], lk.HistogramLog)
    assert log[3:5] == log.between(3, 5) == log.between("3s", "5s")
    assert sum(one.count for one in log) == log.count
    with pytest.raises(IndexError):
        log[100]
    table = log.by_interval([50, 99])
    assert len(table) == len(log)
    assert table.p99[3] == log[3].percentile(99)
    assert table["count"].sum() == log.count
    tagged: Any = values()["tagged log"]
    assert {one.run.tags for one in tagged} == {("get",), ("put",)}


def test_values_can_be_given_as_durations():
    h = lk.Histogram.of([1, 2, 3, 400], unit="ms")
    assert h.count_above("5ms") == h.count_above(5) == 1
    assert h.percentile_of("5ms") == h.percentile_of(5) == 75.0
    with pytest.raises(lk.InvalidArgumentError, match="not a valid duration"):
        h.percentile_of("5")
    model = lk.fan_out(h, 1)
    assert model.share_above("5ms") == model.share_above(5e6) == pytest.approx(0.25)
    with pytest.raises(lk.InvalidArgumentError, match="cannot turn"):
        lk.Histogram.of([1], unit="none").count_above("5ms")


def signatures() -> Iterator[tuple[str, str]]:
    """Every parameter and every return type of the public functions and methods."""
    for space in (lk, lk.plot, lk.simulate):
        for name in space.__all__:
            thing = getattr(space, name)
            members = {name: thing}
            if inspect.isclass(thing) and not issubclass(thing, Exception):
                public = [member for member in vars(thing) if not member.startswith("_")]
                members |= {f"{name}.{one}": inspect.getattr_static(thing, one) for one in public}
            for label, member in members.items():
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if callable(function) and not inspect.isclass(function):
                    signature = inspect.signature(function)
                    for parameter in signature.parameters.values():
                        is_style = parameter.kind is parameter.VAR_KEYWORD and space is lk.plot
                        if not is_style:  # matplotlib's own types of these are Any
                            yield f"{label}({parameter.name})", str(parameter.annotation)
                    yield f"{label} →", str(signature.return_annotation)


def test_no_public_signature_says_any():
    assert not [label for label, text in signatures() if re.search(r"\bAny\b", text)]


def test_a_users_file_uses_forty_public_names():
    text = Path(__file__).with_name("typing_user.py").read_text(encoding="utf-8")
    assert len({*re.findall(r"\blk\.(\w+)", text)} & {*lk.__all__}) >= 40


def test_arguments_of_another_kind_are_reported_in_a_sentence(tmp_path):
    h, frame = lk.Histogram.of([1, 2]), pd.DataFrame({"latency_ms": [1.0]})
    calls = {
        "diagnose takes data": lambda: lk.diagnose([]),
        "write takes data": lambda: lk.write(1, tmp_path / "x.hlog"),
        "correct takes data": lambda: lk.correct(5, "1ms"),
        "explain takes data": lambda: lk.explain(None),
        "merge takes data": lambda: lk.merge([h, 5]),
        "SLO.check takes data": lambda: lk.SLO.parse("99=5ms").check(5),
        "the new side of a comparison takes data": lambda: lk.compare(h, None),
        r"\+ takes data": lambda: h + 1,
        "expected a log; lk.merge adds up others": lambda: values()["log"] + h,
        "expected paths or URLs as text; lk.read takes a frame": lambda: lk.read_all(frame),
        "a confidence must be": lambda: h.highest_supported_percentile(confidence=95),
        "percentiles are numbers such as 99.9, not '5ms'": lambda: h.percentile("5ms"),
        "an SLO is text, not int": lambda: lk.SLO.parse(5),
        r".*text such as .tm99\.9., not int": lambda: h.trimmed_mean(1),
        "the gate takes numbers, oldest first, such as": lambda: lk.judge(h, h),
    }
    for message, call in calls.items():
        with pytest.raises(lk.InvalidArgumentError, match=rf"^{message}[^\n]*$"):
            call()
    assert not list(tmp_path.iterdir())


def test_a_repr_names_what_it_is_and_fits_on_a_screen():
    """A notebook shows it in full: no arrays, no tables, no nested runs."""
    for name, value in values().items():
        if type(value).__name__ not in lk.__all__:
            continue
        text = repr(value)
        assert len(text) < 700, name
        assert "array(" not in text, name
        assert "DataFrame" not in text, name
        assert "Run(" not in text.removeprefix("Run("), name
        if hasattr(value, "_repr_html_"):
            assert len(value._repr_html_()) < 20_000, name


# ---------------------------------------------------------------- wrong types

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


def test_what_takes_data_takes_a_path_and_a_frame(tmp_path):
    columns = {"endpoint": ["/a", "/b"] * 150, "start_s": np.arange(300.0)}
    frame = pd.DataFrame({**columns, "latency_ms": np.arange(1.0, 301.0)})
    frame.to_csv(path := tmp_path / "x.csv", index=False)
    asked = "fan_out correct retime find_stalls diagnose compare explain SLO.check"
    for name in asked.split():
        answers = {repr(CALLS[name](given)) for given in (path, frame, lk.read(path))}
        assert len(answers) == 1, answers
    drawn = [list(as_series(given)) for given in (path, frame, lk.read(path))]
    assert drawn == [["total", "/a", "/b"]] * 3
    lk.plot.fan_out(path, 10)
    plt.close("all")


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
