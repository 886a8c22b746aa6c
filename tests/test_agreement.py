"""One fact, one answer: what every command, the page and the notebook say of forty files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import latencykit as lk
from latencykit.core.run import Run
from latencykit.plot.series import as_series, doubts_from
from latencykit.views.diagnosis import diagnosis_record, diagnosis_text, stalls_section
from latencykit.views.page import diagnose_series
from latencykit.views.page_series import page_series
from latencykit.views.series import series_record
from tests.conftest import DATA, RAW
from tests.io.test_contract import CASES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.io.test_contract import Case

    Run = Callable[..., tuple[int, str, str]]

FILES = 40
BESIDE = (  # buckets that are open above, a failed request among the values, sends that end in a stall
    "prometheus/curl", "vegeta-hist/ctrlz", "percentile-lines/lines", "redis-benchmark/clipped",
    "serving-benchmark/two", "csv/intended-starts",
)  # fmt: skip
EXPLAINED = 20  # requests: of fewer, few or none are beyond p90
ASKED = (50.0, 90.0, 99.0, 99.9)
KNOWN = ("value", "low", "high", "bucket_low", "bucket_high", "supported", "cause")
STEADY = "the run is not steady"


def chosen() -> list[Case]:
    """Each format once, evenly spread, whose file alone is enough to read it."""
    first: dict[str, Case] = {}
    for case in CASES:
        if not case.options:
            first.setdefault(case.folder.parent.name, case)
    every = list(first.values())
    beside = [case for case in CASES if f"{case.folder.parent.name}/{case.folder.name}" in BESIDE]
    return beside + [every[k] for k in np.linspace(0, len(every) - 1, 3 * FILES).astype(int)]


def series_of(case: Case) -> dict[str, Any]:
    """The first series of a file that have counts."""
    read = list(as_series(case.read()).items())[:2]
    return {
        name: data
        for name, data in read
        if not isinstance(data, lk.Summary) and len(data.evidence().whole.counts)
    }


def asked(run: Run, *words: object) -> list[Any]:
    """The series or rows of a command's JSON; none where it refuses the file."""
    status, out, _ = run(*words, "--format", "json")
    if status == 2:
        return []
    record = json.loads(out)
    return record.get(
        "series", record["rows"] if "capacity" in record or "passed" in record else [record]
    )


def agree(run: Run, path: Path, page: Path, read: dict[str, Any]) -> set[str]:
    """Compare the answers on one file; return the commands that gave one."""
    percentiles = "50,90,99,99.9"
    summaries = asked(run, "summary", path, "--percentiles", percentiles)
    known = {
        one["name"]: {row["percentile"]: row for row in one["percentiles"]} for one in summaries
    }
    findings = {one["name"]: one["findings"] for one in summaries}
    answered = {"summary"} if known else set()
    drawn = asked(run, "chart", path, "-o", page.with_suffix(".svg"))
    for one in drawn:
        answered.add("chart")
        assert one["findings"] == findings[one["name"]]
        same(known[one["name"]], one["percentiles"], KNOWN)
    for one in asked(run, "load", path):
        if one["series"] in known and one.get("percentiles"):
            answered.add("load")
            same(known[one["series"]], one["percentiles"], KNOWN)
    for one in asked(run, "fanout", path, "-n", "1"):
        answered.add("fanout")
        (alone,) = (row for row in one["rows"] if row["n"] == 1)
        same(known.get(one["name"], {}), alone["percentiles"], ("value", "supported", "cause"))
    for one in asked(run, "diagnose", path):
        answered.add("diagnose")
        (row,) = (row for row in summaries if row["name"] == one["name"])
        assert (one["count"], one["raw_mean"]) == (row["count"], row["mean"])
        said = any("requests were omitted" in text for text in findings.get(one["name"], []))
        assert said == (one["verdict"] == "omits") or one["name"] not in findings, one["name"]
        if one["name"] in read:
            listed_alike(one, read[one["name"]])
    for one in asked(run, "explain", path):
        answered.add("explain")
        steady, said = (
            {text.partition(" (latencykit")[0] for text in texts if text.startswith(STEADY)}
            for texts in (findings.get(one["name"], []), one["findings"])
        )
        assert not said or one["name"] not in known or steady == said, one["name"]
    for one in asked(run, "compare", path, path):
        answered.add("compare")
        assert one["verdict"] in ("same", "inconclusive")
    first = summaries[0]
    lost = first["failed"] or first["timeouts"] or first["run"]["dropped"]
    limits = {
        p: 2 * row["value"] + 1
        for p, row in known[first["name"]].items()
        if row["value"] is not None
    }
    unit = "" if first["unit"] == "none" else first["unit"]
    slo = ",".join(f"p{p:g}={limit!r}{unit}" for p, limit in limits.items())
    for one in asked(run, "check", path, "--slo", slo):
        # check names the whole of a file after the file, summary calls it the total of its tags
        name = first["name"] if first["aggregate"] and len(known) > 1 else one["series"]
        row = known[name].get(float(one["statistic"][1:]))
        if lost or name != first["name"] or one["outcome"] == "unknown":
            continue  # check counts what failed as slower
        answered.add("check")
        if row["low"] is not None and row["high"] is not None:
            assert one["low"] <= row["low"] * (1 + 1e-9), one
            assert one["high"] is None or one["high"] >= row["high"] * (1 - 1e-9), one
        assert not (one["sure"] and one["outcome"] == "met" and row["cause"] == "few requests")
    for name, data in read.items():
        if name in known:
            answered |= {"page", "notebook", "curve"}
            shown_alike(name, data, known[name])
    return answered


def same(known: dict[float, Any], rows: list[Any], keys: tuple[str, ...]) -> None:
    for row in rows:
        other = known.get(row["percentile"], row)
        assert [row[key] for key in keys] == [other[key] for key in keys], row


def shown_alike(name: str, data: Any, known: dict[float, Any]) -> None:
    """The page's data, the dashes of a chart, and the table of a notebook."""
    (shown,) = page_series({name: data})
    same(known, [row for row in shown.numbers["percentiles"] if row["percentile"] < 100], KNOWN)
    counted = data if isinstance(data, lk.Histogram) else data.histogram()
    dashes = doubts_from({name: data}, {name: counted})[name]
    few = data.evidence().whole.sample_limit()
    html = re.sub(r"<[^>]+>", " ", data._repr_html_())
    for p, row in known.items():
        dashed = p > few or any(one.first < p <= one.last for one in dashes)
        assert row["supported"] == (not dashed and row["bucket_high"] is not None), (name, p)
        cell = re.search(rf"\bp{p:g}\s+(\S)", html)
        if cell and row["bucket_high"] is not None:
            assert (cell[1] == "(") == (not row["supported"]), (name, p, html)


def listed_alike(diagnosis: dict[str, Any], data: Any) -> None:
    """The stalls of `find_stalls`, `explain`, the page and the text are those of `diagnose`."""
    starts = pytest.approx([stall["start"] for stall in diagnosis["stalls"]])
    texts = " ".join(diagnosis["findings"])
    assert diagnosis["stalls"] or "nothing was answered" not in texts
    assert not diagnosis["stalls"] or "no stall shows" not in texts
    if isinstance(data, lk.HistogramLog) or getattr(data, "start", None) is not None:
        assert lk.find_stalls(data)["start"].tolist() == starts
        if data.count >= EXPLAINED and data.percentile(90) < data.max:  # some are slow
            explained = lk.explain(data)
            listed = explained.coincidence
            assert listed is None or listed.stalls["start"].tolist() == starts
            assert not (diagnosis["stalls"] and str(explained.findings[0]).startswith("no stall"))
        (shown,) = diagnose_series(page_series({diagnosis["name"]: data}), {})
        assert shown.diagnosis.detected_stalls.start.tolist() == starts
        assert bool(diagnosis["stalls"]) == ("<table" in stalls_section([shown]))


def without_a_freeze(seed: int) -> lk.Samples:
    """A loop at full speed of 1 to 64 connections whose latencies are independent."""
    rng, number = np.random.default_rng(seed), (1, 2, 3, 6, 16, 64)[seed % 6]
    start, took = [], []
    for _ in range(number):
        work = 5e6 * rng.lognormal(-0.5, (0.8, 1.3, 1.7)[seed % 3], 4000)
        if seed % 4 == 3:
            work = 2e6 * np.where(rng.random(4000) < 0.02, rng.normal(40, 2, 4000), 1.0)
        begin = np.cumsum(work) - work
        start.append(begin[begin < 12e9])
        took.append(work[begin < 12e9])
    at, latency = np.concatenate(start), np.concatenate(took)
    order = np.argsort(at)
    run = Run(tool="hey", loop="closed", connections=number, measure="service")
    return lk.Samples(start=np.rint(at[order]), duration=np.rint(latency[order]), run=run)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_surface_lists_stalls_that_chance_leaves(seed: int) -> None:
    samples = without_a_freeze(seed)
    for data in (samples, samples.to_log("100ms"), samples.to_log("1s")):
        found = lk.diagnose(data)
        assert found.verdict in ("service times", "no stall")
        assert not len(found.stalls)
        listed_alike(diagnosis_record("", found), data)


@pytest.mark.slow  # nine commands on forty files
@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # charts of many series
@pytest.mark.usefixtures("read_once")
def test_forty_files_have_one_answer_each(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    files, answered = 0, dict[str, int]()
    for case in chosen():
        if files == len(BESIDE):  # of more files what a chart says is asked, not its picture
            monkeypatch.setattr(Figure, "draw", lambda *_: None)
        if files >= FILES + len(BESIDE) or not (read := series_of(case)):
            continue
        for command in agree(run, case.path, tmp_path / "page", read):
            answered[command] = answered.get(command, 0) + 1
        files += 1
    assert files == FILES + len(BESIDE)
    assert all(number >= FILES // 4 for number in answered.values()), answered
    assert len(answered) == 11, answered


def test_named_statistics_are_bracketed_as_the_terminal_brackets_them():
    """p99.9 of 1,501 requests, in a notebook and in a console."""
    values = np.random.default_rng(1).lognormal(14, 0.5, 1501)
    summary = lk.Histogram.of(values).summary()
    html = re.sub(r"<[^>]+>", " ", summary._repr_html_())
    for row in series_record("", summary)["percentiles"]:
        name = f"p{row['percentile']:g}"
        bracketed = row["supported"] is False and row["percentile"] < 100
        assert (f"{name} (" in str(summary)) == bracketed, (name, str(summary))
        assert bool(re.search(rf"{re.escape(name)}\s+\(", html)) == bracketed, (name, html)
    log = lk.read(RAW)
    known = [row["supported"] for row in series_record("", log)["percentiles"]]
    assert [row["supported"] for row in series_record("", log.summary())["percentiles"]] == known
    assert "p95 215 µs, p99 (1.04 ms)" in str(log.summary())  # the parts of the run differ
    of_unknown = lk.Summary({"mean": 3e6}, {99.0: 5e6})
    assert str(of_unknown) == "Summary(p99 5 ms, mean 3 ms)"


def test_a_diagnosis_shows_the_ranges_that_the_source_leaves():
    """The last bucket of Prometheus is open: of the slowest requests a lower bound is known."""
    data = next(iter(lk.read_all(DATA / "formats/prometheus/curl/metrics.txt").values()))
    assert data.censored
    assert "≥ 100 ms" in lk.diagnose(data)._repr_html_()
    assert "50–100 ms" in str(lk.diagnose(data))
    (closed, *_) = lk.read_all(DATA / "formats/prometheus/go-client/scrape2.txt").values()
    assert "slowest request took 6.42–7.7 ms" in str(lk.diagnose(closed))


def test_a_notebook_heads_and_colours_a_diagnosis_as_the_terminal_words_it():
    omits = lk.diagnose(lk.read(DATA / "formats/hey/ctrlz/stdout.txt"))
    times = lk.diagnose(lk.read(DATA / "formats/ab/keepalive/stdout.txt"))
    for result, correction in ((omits, "had they been sent"), (times, "users, up to")):
        html, text = result._repr_html_(), diagnosis_text([diagnosis_record("", result)], "table")
        assert f"<td>as recorded</td><td>{correction}</td>" in html
        assert "as recorded" in text
        assert correction in text
    assert "color:#d0312d" in omits._repr_html_()
