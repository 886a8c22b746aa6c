"""The page: what it says of each data type, and what is in it, without a browser but for one brush."""

from __future__ import annotations

import base64
import hashlib
import math
import pickle
import re

import numpy as np
import pytest

import latencykit as lk
from latencykit._text import script_json
from latencykit.core.run import CLOSED, Note, Run, code_of
from latencykit.views.page import page_html
from latencykit.views.page_data import page_bins, started
from latencykit.views.page_series import edges_of, page_series
from latencykit.views.series import series_record
from latencykit.views.summary import headline, trust
from tests.conftest import CTRLZ, RAW, SCHEDULED, log_of_values
from tests.io.test_writing import requests
from tests.views.conftest import model_of
from tests.views.test_browser import at_page

NASTY = "</script><img src=x onerror=alert(1)>$x$\u2028\x1b[31m'\"&<b>"


@pytest.fixture(scope="module")
def page(raw):
    stated = raw.with_run(unit_from="option", corrected="tool")
    return page_html({"raw": stated}, slo="p99=10ms, max=1s, failed=1%")


@pytest.mark.slow
def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for name in ("script", "style"):
        body = re.search(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    markup = re.sub(r"(?s)<script.*?</script>", "", page)
    assert not re.search(r"<[^>]*\s(style|on\w+)=", markup)


@pytest.mark.parametrize("facts", [{}, {"failed": 3, "timeouts": 2}])
def test_requests_that_failed_are_stated(facts):
    one = lk.Histogram.of([1, 2, 3]).with_run(**facts)
    sentence = "Not counted among the answered requests: 3 failed, 2 timed out."
    assert (sentence in trust(one, series_record("a", one))) == bool(facts)


def test_some_statistics_of_a_closed_loop_have_a_corrected_curve():
    stats = {"min": 2551.0, "mean": 75610.0, "max": 7302000.0}
    data = lk.Summary(stats, {50.0: 2604.0}, 100, run=Run(duration=0.0076, **CLOSED))
    assert lk.diagnose(data).verdict == "omits"
    assert ", corrected" in page_html({"sum": data})


def test_it_reaches_for_nothing(page):
    addresses = set(re.findall(r"\bhttps?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    elements, code = r"<(link|iframe|object|embed|base)\b", r"\beval\(|new Function|innerHTML"
    assert not re.search(rf"{elements}|\bsrc=|@import|url\((?!#)|{code}", page)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["label", "source", "tag", "tool", "note", "title"])
def test_nothing_foreign_becomes_markup(where, raw):
    named = {"source": {"source": NASTY}, "tool": {"tool": NASTY, "command": NASTY}}
    log = raw.with_run(**(named | {"note": {"notes": (NASTY,)}}).get(where, {}))
    if where == "tag":
        log = log.with_tag(NASTY) + log.with_tag("b")
    label, title = NASTY if where == "label" else "a", NASTY if where == "title" else None
    text = page_html(log if where == "tag" else {label: log}, title=title, command=NASTY)
    assert "<img" not in text
    assert "<b>'" not in text
    assert "\x1b" not in text
    assert "\u2028" not in text
    assert text.count("</script>") == 2
    model_of(text)


@pytest.mark.slow
def test_every_data_type_has_a_page(raw):
    number = np.arange(1000)
    series = {
        "samples": lk.Samples(start=number * 1000, duration=number + 1, unit="us"),
        "no times": lk.Samples(duration=np.arange(50) + 1, unit="ms"),
        "log": raw,
        "histogram": raw.histogram(),
        "summary": lk.Summary({"mean": 1e6}, {50.0: 9e5}, 10),
        "mean only": lk.Summary({"mean": 1e6}),
        "empty": lk.Histogram.of([]),
    }
    model = model_of(page_html(series))
    held = {
        one["name"]: {name for name in ("packed", "curve", "points", "reason") if one.get(name)}
        for one in model["series"]
        if not one["derived"]
    }
    assert held == {
        "samples": {"packed", "curve"}, "no times": {"curve"}, "log": {"packed", "curve"},
        "histogram": {"curve"},
        "summary": {"points"}, "mean only": {"reason"}, "empty": {"reason"},
    }  # fmt: skip
    assert model_of(page_html(lk.Histogram.of([1, 2], unit="none")))["unit"] == "none"


def test_the_slo_is_judged_and_drawn_as_steps(page):
    steps = model_of(page)["slo"]
    found = [(step["percentile"], step["limit"], step["outcome"]) for step in steps]
    assert found == [(99.0, 1e7, "met"), (100.0, 1e9, "missed")]
    assert "SLO: 1 of 3 limits missed" in page


@pytest.mark.slow
def test_what_omits_is_red_its_stall_is_shaded_and_the_corrected_curve_stands_beside_it(raw):
    text = page_html(raw)
    model = model_of(text)
    measured, corrected = model["series"]
    assert (measured["cls"], corrected["cls"]) == ("raw", "c0")
    assert corrected["derived"]
    found = lk.diagnose(raw.to_unit("ns")).corrected  # one estimate, not a second one over time
    assert corrected["curve"]["count"] == found.count
    assert "packed" not in corrected
    assert "band" not in corrected
    ((begin, end),) = corrected["curve"]["doubts"]
    assert 50 < begin < 65  # beyond, the stall supplies it
    assert end == 100
    assert sum(measured["packed"]["max"][k] or 0 for k in range(7, 12)) == 0
    (stall,) = model["stalls"]
    assert stall["end"] - stall["start"] == pytest.approx(6.0, abs=0.1)
    assert stall["label"] == "stall 6 s · ~2,930 requests missing"
    assert "What the measurement left out" in text
    assert len(re.findall(r"data-from=", text)) == 1
    assert "> (p99: the parts" in text  # p75 is not in the table


@pytest.mark.slow
def test_what_was_scheduled_is_called_clean_and_stays_alone():
    text = page_html(lk.read(SCHEDULED))
    assert len(model_of(text)["series"]) == 1
    assert "class='badge good'>clean" in text
    assert "What the measurement left out" not in text


@pytest.mark.slow
def test_a_unit_that_is_only_assumed_settles_no_limit(raw):
    steps = model_of(page_html(raw, slo="p99=10ms, max=1s"))["slo"]
    assert {step["outcome"] for step in steps} == {"unknown"}


@pytest.mark.slow
def test_series_are_compared_with_the_first(raw):
    other = lk.Summary({"mean": 1e6}, {50.0: 9e5})
    text = page_html({"before": raw, "after": raw.histogram(), "other": other})
    assert "Compared with before" in text
    assert text.count("class='badge unsure'>inconclusive") >= 1
    assert "id='comparison'" not in page_html(raw)


@pytest.mark.parametrize(("names", "buttons"), [("a", 0), ("ab", 2)])
def test_a_series_beside_others_can_be_hidden(names, buttons):
    text = page_html(dict.fromkeys(names, lk.Histogram.of([1, 2, 3])))
    assert text.count("<button type='button' data-series=") == buttons


@pytest.mark.slow
def test_the_fan_out_is_the_rooms_own(raw):
    model = model_of(page_html(raw))["fanOut"][0]
    row = next(row for row in model["rows"] if row["n"] == 100)
    assert row["words"].startswith("Of users who wait for 100 calls, ")
    assert "63 % if slow calls came independently" in row["words"]
    leaf = raw.histogram().percentile(100 * 0.5 ** (1 / 100))
    assert row["independent"][0]["value"] == leaf
    assert row["mixture"][0]["value"] < leaf


FEW = "(uncertain: few requests)"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([7_000_000] * 5, "All 5 requests took 7 ms."),
        (
            [1_000_000, 2_000_000, 9_000_000],
            f"3 requests: p50 2 ms {FEW}, p99 9 ms {FEW}, max 9 ms.",
        ),
        ([], "Nothing was counted."),
    ],
)
def test_headlines_say_no_more_than_the_sample_can(values, said):
    assert headline(lk.Histogram.of(values)) == said


def test_requests_without_an_answer_are_counted_in_the_headline():
    outcome = np.repeat(["ok", "timeout"], [90, 10])
    took = np.where(outcome == "ok", 10**6 * (1 + np.arange(100) % 3), 2 * 10**9)
    text = headline(lk.Samples(start=np.arange(100), duration=took, outcome=outcome).histogram())
    assert text.startswith("90 requests: ")
    assert text.endswith("and 10 gave no answer within 2 s.")


@pytest.mark.slow
def test_timeouts_are_never_counted_as_answers(spiky):
    model = model_of(page_html(spiky))
    packed, users = model["series"][0]["packed"], model["fanOut"][0]["rows"][-1]["independent"][0]
    assert (users["value"], users["open"]) == (2e9, True)  # of 1,000 calls some time out
    assert sum(packed["timeouts"]) == 120
    assert {bound for bound in packed["bound"] if bound is not None} == {2e9}


@pytest.mark.slow
def test_a_page_that_grows_too_large_takes_wider_slots():
    rng = np.random.default_rng(2)
    duration = rng.lognormal(12, 2, 40_000).astype(np.int64)
    samples = lk.Samples(start=np.arange(40_000) * 10**6, duration=duration)
    packed = model_of(page_html(samples, page_size=3_000))["series"][0]["packed"]
    assert len(packed["start"]) <= 40


@pytest.mark.slow
def test_the_command_line_writes_the_page_and_states_its_source(tmp_path, run):
    for name in ("report", "chart"):
        target = tmp_path / f"{name}.html"
        assert run(name, f"closed={RAW}", "-o", target)[0] == 0
        text = target.read_text()
        assert hashlib.sha256(RAW.read_bytes()).hexdigest() in text
        assert f"latencykit {name} closed=" in text
        assert f"{RAW.stat().st_size:,} bytes" in text
    words = ("chart", RAW, "-o", tmp_path / "x.html", "--kind", "density")
    assert "--kind density is for pictures" in run.refused(*words)


def test_a_change_without_an_interval_is_not_judged(raw: lk.HistogramLog) -> None:
    due = lk.read(CTRLZ / "corrected.hlog")
    comparison = lk.compare(raw, due)
    table = lk.report({"raw": raw, "due": due}).html.partition("id='comparison'")[2]
    rows = re.findall(r"<tr><th scope='row'>(.*?)</th>(.*?)</tr>", table.partition("</table>")[0])
    assert len(rows) == len(comparison.changes)
    for change, (_, cells) in zip(comparison.changes, rows, strict=True):
        *_, interval, verdict = re.findall(r"<td>(.*?)</td>", cells)
        assert not (interval and math.isinf(change.high) and change.low <= 0)
        assert verdict in (("yes", "no") if interval else ("not judged",))
    # The reasons for the verdict come before the numbers.
    assert "one run per side" in table.partition("<table")[0].lower()


# ---------------------------------------------------------------- slots of time


def log_of(intervals: int, digits: int = 3, seed: int = 1) -> lk.HistogramLog:
    """Intervals of 1 s with 40 values each; every seventh is missing."""
    kept = np.flatnonzero(np.arange(intervals) % 7 != 3)
    values = np.random.default_rng(seed).lognormal(12, 1.2, (kept.size, 40))
    return log_of_values(values, kept, digits=digits)


@pytest.mark.parametrize("size", [90, 5_000])
def test_every_slot_counts_what_its_intervals_counted_and_keeps_their_maximum(size):
    log = log_of(size)
    slots, total = page_bins(log, fine=10**9), log.histogram()
    assert slots.start.size <= 301
    assert (slots.width is None) == (size == 90)
    wider = slots.wider()
    assert wider.width >= 2 * np.median(slots.end - slots.start)
    assert total.count == slots.counts.sum() == wider.counts.sum()
    assert np.nanmax(wider.max) == total.max
    assert (wider.end[:-1] <= wider.start[1:] + 1e-9).all()
    for k in (0, slots.start.size // 2, slots.start.size - 1):
        part = log.between(slots.start[k], slots.end[k]).histogram()
        assert slots.max[k] == part.max
        assert slots.sum[k] / part.count == pytest.approx(part.mean, rel=1e-12)
        for seen, layout in ((slots, lk.HdrBuckets(3)), (slots.coarser(), lk.HdrBuckets(2))):
            held = slice(seen.indptr[k], seen.indptr[k + 1])
            wanted = part.rebucket(layout)
            assert seen.counts[held].tolist() == wanted.counts.tolist()
            for edge, own in ((seen.high, wanted.buckets.high), (seen.low, wanted.buckets.low)):
                assert edge[seen.index[held]].tolist() == own(wanted.index).tolist()


@pytest.mark.parametrize("step", [7_000_000, 100_000_000, 333_333_333])
def test_requests_are_counted_by_the_moment_they_were_sent_on_the_edges_that_windows_cut_at(step):
    number = np.arange(3000, dtype=np.int64)
    samples = lk.Samples(start=10**18 + number * step, duration=number % 97 * 1e6 + 1e6)
    log = started(samples)
    assert 8 <= len(log) <= 301
    edges = [*log.starts.tolist(), np.inf]
    for k in (0, 1, 7, len(log) - 1):
        assert log[np.array([k])].histogram().count == len(samples.between(edges[k], edges[k + 1]))


@pytest.mark.parametrize("noise", [0, 0.002, 0.127])
def test_a_selection_may_begin_at_a_short_number_just_before_each_interval(noise):
    starts = 7 + np.arange(40) + np.random.default_rng(3).uniform(0, noise, 40)
    edges = np.array(edges_of(page_series({"a": log_of_values([[10**6]] * 40, starts)})))
    assert ((starts - edges[:-1] >= 0) & (starts - edges[:-1] <= 0.01)).all()
    assert np.abs(np.round(edges[:-1], 2) - edges[:-1]).max() < 1e-9


def test_json_in_a_script_ends_no_script():
    text = script_json({"name": "</script><script>alert(1)</script>\u2028\u2029<!-- &amp;"})
    assert not set("<>&\u2028\u2029") & set(text)


# ---------------------------------------------------------------- a total and its parts

__all__ = ["requests"]  # a fixture


@pytest.fixture
def text(run, requests, tmp_path):
    page = tmp_path / "page.html"
    assert run("report", requests, "-o", page)[0] == 0
    return re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_parts_are_counted_and_not_compared_with_their_total(text):
    assert "<h1>total, /a and /b" in text
    assert "Compared with" not in text


def test_series_of_one_source_share_a_row(text):
    assert "total, /a, /b" in text


def test_footnotes_of_parts_do_not_repeat_the_total(run, requests):
    assert run("summary", requests)[1].count("is taken as the start") <= 1


def test_what_touches_all_numbers_comes_before_what_the_numbers_say(run, tmp_path):
    path = tmp_path / "times.csv"
    rows = [*(["1000"] * 900), "1O00", *(["9000000"] * 100)]
    path.write_text("\n".join(["latency_ns", *rows, ""]), encoding="utf-8")
    record = run("summary", path, "--lenient", "--format", "json")[1]
    assert '"findings": []' not in record
    *_, doubt, finding = run("summary", path, "--lenient")[1].splitlines()
    assert doubt == "1 corrupt line was skipped"
    assert finding == "2 modes: 90 % around 1 µs, 10 % around 9 ms"
    merged = Run(notes=("a",)).with_notes(pickle.loads(pickle.dumps(Note("b", "unit", 3.0))))
    assert [*map(code_of, merged.notes)] == ["", "unit"]
    assert merged.notes[1].value == 3.0


# ---------------------------------------------------------------- in a browser


def test_a_brush_over_the_stall_gives_the_numbers_of_that_span(opened, raw):
    page = opened({"raw": raw})
    assert page.rows()["raw"] == at_page(raw.histogram())
    page.drag(10.0, 12.6)
    begin, end = page.selection()
    within = raw.between(begin, end).histogram()
    assert 0 < within.count < raw.histogram().count
    assert within.max == raw.histogram().max
    assert page.rows()["raw"] == at_page(within)
    asked = [1, 10, 25, 50, 75, 95, 99.5]
    curve = page.evaluate(f"{asked}.map(p => window.latencykit.percentile('raw', p))")
    assert curve == np.minimum(within.percentile(asked), within.max).tolist()
    page.keyboard.press("Escape")
    assert page.rows()["raw"] == at_page(raw.histogram())
    assert len(page.requests) == 1
