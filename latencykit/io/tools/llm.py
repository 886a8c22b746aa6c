"""Benchmarks of language-model servers: several latency types in one row per request.

Series: ttft is the time to the first token, itl the times between two tokens (or the chunks they
arrive in), tpot the mean time per token after the first one, e2el the total time. GuideLLM's series
keep the names that it gives them, since it counts the first token in its time per output token.
Rows of all series of a file state their request (`Samples.request`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latencykit._arrays import as_positions
from latencykit._text import format_items
from latencykit._typing import AnyArray, Floats, JSONObject
from latencykit.core.run import Run
from latencykit.core.samples import OUTCOMES, Samples
from latencykit.io import build, json_text
from latencykit.io.source import Confidence, Data, Head, ReadOptions, Series, Source
from latencykit.io.text_reports import (
    blocks,
    certain,
    has_json_keys,
    has_keys,
    has_match,
    line_numbers,
    plain,
)

_RUN = Run(measure="service", corrected="none", unit="s", unit_from="format")
_OK, _ERROR, _UNFINISHED = (OUTCOMES.index(name) for name in ("ok", "error", "unfinished"))


def _numbers(values: Sequence[object], unit: str) -> Floats:
    """Latencies in ns; NaN where a request has none."""
    numbers = [math.nan if value is None else value for value in values]
    return build.nanoseconds_of(np.array(numbers, np.float64), unit)


def _number(value: Any) -> float | None:
    """A number, or its text; None where it is missing or not finite, as in ``"inf"``."""
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else None


def _per_token(total: AnyArray, tokens: AnyArray) -> Floats:
    """The mean time of the tokens after the first one; NaN where there is none."""
    return np.where(tokens > 0, total / np.maximum(tokens, 1), np.nan)


def _rows(source: Source, options: ReadOptions, notes: list[str]) -> list[Any]:
    """One object per request: a line each, spread over lines, or in a list."""
    if re.match(r"\s*(?:\[|\{\s*\n)", source.head.text):
        rows, further = json_text.documents(source)
        notes += further
        return rows
    return list(json_text.lines(source, options, notes))


def _per_request(
    run: Run,
    values: Mapping[str, Floats],
    outcome: Sequence[int] | AnyArray,
    start: NDArray[np.int64] | None = None,
    gaps: Sequence[Sequence[float]] = (),
    unit: str = "s",
    **columns: NDArray[np.int64],
) -> dict[str, Data]:
    """Return one series per latency type, of ns per request, and of the gaps of each request."""
    # A request without a latency of some type, such as that between tokens if it has only one, is
    # missing in its series; a failed one is a row of every series but that of the gaps.
    codes = np.asarray(outcome, np.int8)
    good, number = codes == _OK, np.arange(codes.size)
    run = run.replace(
        failed=max(run.failed - int((codes == _ERROR).sum()), 0),
        unfinished=max(run.unfinished - int((codes == _UNFINISHED).sum()), 0),
    )
    if start is not None and start.size:
        number[np.argsort(start, kind="stable")] = np.arange(codes.size)
    series: dict[str, Data] = {}
    for name, latency in values.items():
        rows = ~good | np.isfinite(latency)
        if not (good & rows).any():
            continue
        series[name] = Samples(
            duration=np.where(np.isfinite(latency), latency, 0.0)[rows],
            start=None if start is None else start[rows],
            outcome=None if good.all() else codes[rows],
            run=run,
            **{key: column[rows] for key, column in columns.items()},
        ).with_request(number[rows])
    size = np.array([len(row) for row in gaps], np.int64) * good[: len(gaps)]
    if size.any():
        flat = itertools.chain.from_iterable(itertools.compress(gaps, size))
        between = build.nanoseconds_of(np.fromiter(flat, np.float64, int(size.sum())), unit)
        row = np.repeat(np.arange(size.size), as_positions(size))
        begin = None
        if start is not None and "ttft" in values and np.isfinite(values["ttft"][row]).all():
            before = np.cumsum(between) - between
            own = before - before[np.repeat(np.cumsum(size) - size, as_positions(size))]
            begin = start[row] + np.rint(values["ttft"][row] + own).astype(np.int64)
        samples = Samples(duration=between, start=begin, run=run.replace(failed=0))
        series["itl"] = samples.with_request(number[row])
    return {name: series[name] for name in ("ttft", "itl", "tpot", "e2el") if name in series}


# ------------------------------------------------------------
# vLLM and SGLang: one object per run, with lists of the requests' times where these were saved.

_HINTS = {
    "vLLM": "--save-detailed keeps every request: the distribution",
    "SGLang": "--output-details keeps every request: the distribution",
}
_MEANS = {"e2e_latency": "e2el"}
_SGLANG = has_json_keys(
    ("request_rate", "max_concurrency", "random_range_ratio"),
    ("mean_ttft_ms", "mean_e2e_latency_ms"),
)
_OBJECT = re.compile(r'^\{[^\n]*"mean_ttft_ms"', re.MULTILINE)
_TITLE = re.compile(r"^=+ Serving Benchmark Result =+[ \t]*$", re.MULTILINE)
_FACTS = {
    "Backend": "backend", "Successful requests": "completed", "Failed requests": "failed",
    "Benchmark duration (s)": "duration", "Request throughput (req/s)": "request_throughput",
    "Traffic request rate": "request_rate", "Request rate configured (RPS)": "request_rate",
    "Max request concurrency": "max_concurrency", "Maximum request concurrency": "max_concurrency",
}  # fmt: skip
_FACT = re.compile(r"^([A-Z][^:\n]{1,60}?):[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_CELL = re.compile(
    r"^(Mean|Median|Std|Min|Max|P[\d.]{1,8}) (TTFT|TPOT|ITL|E2EL|E2E Latency) \(ms\):[ \t]+"
    r"([\d.]{1,20})[ \t]*$",
    re.MULTILINE,
)


def sniff_sglang(head: Head) -> Confidence:
    """Recognise the keys of a result, and a line of them among those of a log."""
    line = _OBJECT.search(head.text)
    return certain(_SGLANG(head) or (line and '"mean_e2e_latency_ms"' in head.text[line.start() :]))


def sniff_vllm(head: Head) -> Confidence:
    """Recognise the keys of a result that is not SGLang's."""
    own = ("request_throughput", "mean_ttft_ms"), ("num_prompts", "request_rate", "completed")
    known = _OBJECT.search(head.text) or any(has_keys(head, *keys) for keys in own)
    return certain(known and not sniff_sglang(head))


def _runs(tool: str, source: Source, options: ReadOptions) -> Series:
    """Every run of a file: single requests where they were saved, else means and percentiles."""
    text = plain(source.text())
    if _OBJECT.search(text) and not re.match(r"\s*\[\s*\{", text):  # lines of a log, too
        text = "\n".join(line if line.startswith('{"') else "" for line in text.split("\n"))
    records, notes = json_text.documents(source, text)
    return _series(records, tool, notes)


def read_report(source: Source, options: ReadOptions) -> Series:
    """Read the report of every run as the JSON that the tools save of it."""
    text = plain(source.text())
    records: list[JSONObject] = []
    for title, end in blocks(text, _TITLE):
        body = text[title.end() : end]
        record: JSONObject = {
            _FACTS[name]: value for name, value in _FACT.findall(body) if name in _FACTS
        }
        for stat, metric, value in _CELL.findall(body):
            record[f"{stat}_{metric.replace(' ', '_')}_ms".lower()] = float(value)
        if "completed" not in record:
            line = line_numbers(text)(title.start())
            raise source.corrupt(line, "this report is cut", "the number of successful requests")
        if not re.fullmatch(r"\d+", record.get("max_concurrency", "0")):
            del record["max_concurrency"]  # "not set"
        records.append(record)
    sglang = any(record.get("backend", "").startswith("sglang") for record in records)
    return _series(records, "SGLang" if sglang else "vLLM", ())


def _series(records: Sequence[JSONObject], tool: str, notes: tuple[str, ...]) -> Series:
    """The series of every run, named after its rate or its number of connections."""
    run = Run()
    for number, record in enumerate(records, 1):
        rate, limit = _number(record.get("request_rate")), _number(record.get("max_concurrency"))
        scheduled = bool(rate) and not limit
        completed, failed = record.get("completed"), record.get("failed")
        sent = int(record.get("num_prompts") or len(record.get("errors") or ()))
        run = Run(
            tool=tool, command=record.get("model_id"), measure="service",
            loop="open" if scheduled else "closed" if limit else "unknown",
            corrected="schedule" if scheduled else "none", rate=rate or None, unit="s",
            duration=_number(record.get("duration")), unit_from="format",
            achieved=_number(record.get("request_throughput")),
            connections=int(limit) if limit else None, notes=notes,
            failed=max(sent - int(sent if completed is None else completed), 0) if failed is None
            else int(failed),
        )  # fmt: skip
        if completed is not None and not int(completed):
            continue  # its statistics are zeros
        series: dict[str, Data] = _vllm_requests(record, run) if record.get("ttfts") else {}
        means = run.replace(unit="ms").with_notes(_HINTS[tool])
        for key in [key for key in record if re.fullmatch(r"mean_\w+_ms", key)]:
            stem, end = key[5:-3], key[4:]
            cells = {k.removesuffix(end): v for k, v in record.items() if k.endswith(end)}
            name = _MEANS.get(stem, stem)
            # all zeros: not measured, as the tokens were not streamed
            if name not in series and any(cells.values()):
                series[name] = _from_statistics(name, cells, completed, means)
        label = "" if len(records) == 1 else f"run {number} "
        if label and (run.rate or run.connections):
            label = f"rate {run.rate:g} " if run.rate else f"concurrency {run.connections} "
        for name, data in series.items():
            yield label + name, data
    if all(str(record.get("completed")) == "0" for record in records):
        yield "", build.unanswered(run)


def _vllm_requests(record: JSONObject, run: Run) -> dict[str, Data]:
    """Single requests, in seconds; failed ones carry a text in ``errors``, or got no token."""
    first = _numbers(record["ttfts"], "s")
    errors = record.get("errors") or []
    gaps = [[float(gap) for gap in row or ()] for row in record.get("itls") or ()]
    outcome = np.where(first > 0, _OK, _ERROR).astype(np.int8)
    if len(errors) == first.size:
        outcome[[bool(error) for error in errors]] = _ERROR
    started = record.get("start_times") or []
    start = build.whole_nanoseconds(started, "s") if len(started) == first.size else None
    if len(gaps) != first.size:
        return _per_request(run, {"ttft": first}, outcome, start)
    rest = _numbers([math.fsum(row) for row in gaps], "s")
    tokens = record.get("output_lens") or []
    if len(tokens) != first.size:  # servers send several tokens per chunk: it is fewer than they
        tokens = [len(row) + 1 for row in gaps]
    each = np.where(rest > 0, _per_token(rest, _numbers(tokens, "ns") - 1), np.nan)
    values = {"ttft": first, "e2el": first + rest, "tpot": each}
    return _per_request(run, values, outcome, start, gaps)


# ------------------------------------------------------------
# GuideLLM: benchmarks at several rates in one document.

_GUIDE_METRICS = (
    "request_latency",
    "time_to_first_token_ms",
    "inter_token_latency_ms",
    "time_per_output_token_ms",
)
_GUIDE_HINT = (
    "the file keeps a sample of the requests; their distribution is that of its percentiles"
)
_GUIDE_NOTE = "one mean per request; GuideLLM's own percentiles weight it by the request's tokens"


def read_guidellm(source: Source, options: ReadOptions) -> Series:
    """Read every benchmark's latencies of successful requests; the others are counted apart."""
    record = json_text.load(source)
    benchmarks = json_text.entry(record, "benchmarks", source, list)
    for benchmark in benchmarks:
        holders = [benchmark.get(key) or {} for key in ("config", "args", "scheduler")]
        strategy = next((row for h in holders if isinstance(row := h.get("strategy"), dict)), {})
        rate = strategy.get("rate") or strategy.get("constant_rate")
        kind = str(strategy.get("type_") or strategy.get("type") or "")
        label = (kind or "benchmark") + (f"@{float(rate):g}" if rate else "")
        streams = strategy.get("streams") or strategy.get("max_concurrency")
        scheduled = kind in ("constant", "poisson", "async")
        run = Run(
            tool="GuideLLM", measure="service", corrected="schedule" if scheduled else "none",
            version=(record.get("metadata") or {}).get("guidellm_version"),
            loop="open" if scheduled
            else "closed" if kind in ("synchronous", "concurrent") else "unknown",
            start=benchmark.get("start_time"), duration=benchmark.get("duration"),
            rate=float(rate) if rate else None, connections=int(streams) if streams else None,
            unit_from="format",
        )  # fmt: skip
        metrics = json_text.entry(benchmark, "metrics", source)
        totals = metrics.get("request_totals") or {}
        requests = benchmark.get("requests") or {}
        for metric in _GUIDE_METRICS:
            parts = metrics.get(metric) or {}
            if not (parts.get("successful") or {}).get("count"):
                continue
            name = f"{label if len(benchmarks) > 1 else ''} {metric.removesuffix('_ms')}".strip()
            yield name, _guide_metric(metric, parts, totals, requests, run)


def _guide_metric(
    metric: str, parts: JSONObject, totals: JSONObject, requests: JSONObject, run: Run
) -> Data:
    """One latency: single requests where all were saved, else its percentiles."""
    good, unit = parts["successful"], "ms" if metric.endswith("_ms") else "s"
    count = int(good["count"])
    others = {"errored": _ERROR, "incomplete": _UNFINISHED}
    failed, unfinished = (
        int(totals.get(kind) or (parts.get(kind) or {}).get("count") or 0) for kind in others
    )
    run = run.replace(unit=unit, failed=failed, unfinished=unfinished)
    rows = [row for row in requests.get("successful") or [] if isinstance(row, dict)]
    saved = sum(row.get(metric) is not None for row in rows)
    if saved == count or (saved and len(rows) == totals.get("successful")):
        run = run.with_notes(_GUIDE_NOTE) if saved != count else run
        outcome = [_OK] * len(rows)
        for kind, code in others.items():
            more = [row for row in requests.get(kind) or [] if isinstance(row, dict)]
            rows, outcome = rows + more, outcome + [code] * len(more)
        began = [row.get("request_start_time", row.get("start_time")) for row in rows]
        start = None
        if all(began):
            start = build.whole_nanoseconds([float(stamp or 0.0) for stamp in began], "s")
        latency = _numbers([row.get(metric) for row in rows], unit)
        latency[np.array(outcome) != _OK] = np.nan
        return _per_request(run, {"e2el": latency}, outcome, start)["e2el"]
    cells = {**good, **(good.get("percentiles") or {})}
    return _from_statistics("", cells, count, run.with_notes(_GUIDE_HINT))


# ------------------------------------------------------------
# AIPerf: one line per request, and a summary that has the form of GenAI-Perf's.

_AIPERF = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2el": "request_latency"}
_AIPERF_PHASE = ("phase_kind", "benchmark_phase")
_AIPERF_NOTE = "its inter_token_latency, a mean per request, is the series tpot"


def read_aiperf(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one row per request; those of the warm-up are left out."""
    notes: list[str] = []
    records = _rows(source, options, notes)
    kept = [row for row in records if "warmup" not in map(row["metadata"].get, _AIPERF_PHASE)]
    if left_out := len(records) - len(kept):
        notes.append(f"{format_items(left_out, 'request')} of the warm-up left out")
    records, about = kept, [row["metadata"] for row in kept]
    outcome = [
        _UNFINISHED if metadata.get("was_cancelled") else _ERROR if record.get("error") else _OK
        for record, metadata in zip(records, about, strict=True)
    ]
    cells = [record.get("metrics") or {} for record in records]
    gaps = [_latencies(row, "inter_chunk_latency", source) for row in cells]
    single = {
        name: [_latencies(row, key, source) for row in cells] for name, key in _AIPERF.items()
    }
    if any(len(row) > 1 for row in single["tpot"]):  # before chunks had a metric of their own
        gaps = gaps if any(gaps) else single.pop("tpot")
    values = {
        name: np.array([row[0] if row else math.nan for row in column], np.float64)
        for name, column in single.items()
    }
    started = [metadata.get("request_start_ns", metadata.get("timestamp_ns")) for metadata in about]
    ends = [metadata.get("request_end_ns") for metadata in about]
    start = None if None in started else np.array(started, np.int64)
    failed = np.array(outcome) != _OK
    values = {name: np.where(failed, np.nan, latency) for name, latency in values.items()}
    if start is not None and None not in ends:  # how long a failed request took
        took = np.maximum(np.array(ends, np.int64) - start, 0)
        values["e2el"] = np.where(failed, took, values["e2el"])
    run = _RUN.replace(tool="AIPerf", unit="ms", unit_from="file").with_notes(_AIPERF_NOTE, *notes)
    return _per_request(run, values, outcome, start, gaps, "ns")


def _latencies(metrics: JSONObject, key: str, source: Source) -> list[float]:
    """The values of a metric in ns, one or several, each metric in its own unit."""
    metric = metrics.get(key)
    value = metric.get("value") if isinstance(metric, dict) else None
    if value is None:
        return []
    numbers = value if isinstance(value, list) else [value]
    return list(_numbers(numbers, _unit_of(metric, key, source)).tolist())


def _unit_of(metric: object, key: str, source: Source) -> str:
    word = str(json_text.entry(metric, "unit", source, str)).lower()
    if (unit := build.unit_in(word)) is None:
        raise source.corrupt(None, f"{key} is in {word!r}", "a unit of time such as ms")
    return unit


def read_nvidia_summary(source: Source, options: ReadOptions) -> Series:
    """Read the statistics of every latency type."""
    record = json_text.load(source)
    record = {**record, **(record.get("records") or {})}  # where AIPerf's first version had them
    config = record.get("input_config") or {}
    own = "aiperf_version" in record or "cli_command" in config
    answered = _scalar(record, "request_count")
    failed = _scalar(record, "error_request_count")
    if failed is None:
        failed = sum(int(row.get("count") or 0) for row in record.get("error_summary") or [])
    run = _RUN.replace(
        tool="AIPerf" if own else "GenAI-Perf", version=record.get("aiperf_version"),
        command=config.get("cli_command") if isinstance(config, dict) else None,
        unit="ms", unit_from="file", duration=_scalar(record, "benchmark_duration"),
        achieved=_scalar(record, "request_throughput"), failed=int(failed),
        start=build.epoch_seconds(record["start_time"]) if record.get("start_time") else None,
        notes=(_AIPERF_NOTE,),
    )  # fmt: skip
    for name, key in {"ttft": "", "itl": "inter_chunk_latency", **_AIPERF}.items():
        metric = record.get(key)
        if isinstance(metric, dict) and _number(metric.get("avg")) is not None:
            unit, count = _unit_of(metric, key, source), metric.get("count") or answered
            yield name, _from_statistics(name, metric, count, run.replace(unit=unit))


def _scalar(record: JSONObject, key: str) -> float | None:
    """A metric of one number: its average."""
    metric = record.get(key)
    value = metric.get("avg") if isinstance(metric, dict) else None
    return None if value is None else float(value)


# ------------------------------------------------------------
# GenAI-Perf: what perf_analyzer recorded, with the moment of every chunk.

_NO_TOKEN = re.compile(r'^(?:data:)?\s*+(?:\[DONE\]\s*+)?$|"choices":\s*\[\]|"content":\s*""')


def read_genai_perf(source: Source, options: ReadOptions) -> Series:
    """Read one row per request of every experiment, from the moments of its chunks."""
    record = json_text.load(source)
    experiments = json_text.entry(record, "experiments", source, list)
    for experiment in experiments:
        about = experiment.get("experiment") or {}
        mode, level = about.get("mode"), about.get("value")
        requests = json_text.entry(experiment, "requests", source, list)
        arrivals = []
        for row in requests:  # the moments of responses with tokens; of all without their texts
            moments = [int(moment) for moment in row.get("response_timestamps") or []]
            outputs = row.get("response_outputs") or []
            if len(outputs) == len(moments):
                texts = [
                    str(output.get("response", "x")) if isinstance(output, dict) else "x"
                    for output in outputs
                ]
                kept = [not _NO_TOKEN.search(x) or x.count("data:") > 1 for x in texts]
                moments = list(itertools.compress(moments, kept))
            arrivals.append(moments)
        began = np.array([row["timestamp"] for row in requests], np.int64)
        outcome = [
            _OK if row and request.get("success", True) else _ERROR
            for row, request in zip(arrivals, requests, strict=True)
        ]
        ends = [row or [start] for row, start in zip(arrivals, began.tolist(), strict=True)]
        first, last = (np.array([row[at] for row in ends], np.int64) for at in (0, -1))
        further = np.array([max(len(row) - 1, 0) for row in arrivals], np.float64)
        values = {"e2el": (last - began).astype(np.float64)}
        gaps: list[list[float]] = []
        notes: tuple[str, ...] = ()
        if further.any():  # a stream
            values["ttft"] = (first - began).astype(np.float64)
            values["tpot"] = _per_token(last - first, further)
            gaps = [np.diff(np.array(row, np.int64)).tolist() for row in arrivals]
            notes = ("its tokens are counted as chunks of the stream, which may contain several",)
        run = _RUN.replace(
            tool="GenAI-Perf", unit="ns",
            loop="closed" if mode == "concurrency" else "open" if mode == "request_rate"
            else "unknown",
            rate=float(level) if mode == "request_rate" and level else None,
            connections=int(level) if mode == "concurrency" and level else None, notes=notes,
        )  # fmt: skip
        label = f"{mode} {level} " if len(experiments) > 1 else ""
        for name, data in _per_request(run, values, outcome, began, gaps, "ns").items():
            yield label + name, data


# ------------------------------------------------------------
# inference-perf: requests with the moments of their tokens, and summaries.

_INFERENCE_PERF = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "itl",
    "time_per_output_token": "tpot",
    "request_latency": "e2el",
}


def read_inference_perf(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one row per request: its start, its end, and when each token arrived."""
    notes: list[str] = []
    rows = _rows(source, options, notes)
    outcome = [_ERROR if row.get("error") or row["end_time"] is None else _OK for row in rows]
    began, ended = (
        build.whole_nanoseconds(
            [float(row["start_time"] if row[key] is None else row[key]) for row in rows], "s"
        )
        for key in ("start_time", "end_time")
    )
    info = [row.get("info") or {} for row in rows]
    about = [details.get("response_metrics") or details for details in info]
    arrivals = [details.get("output_token_times") or [] for details in about]
    first, last = (_numbers([row[at] if row else None for row in arrivals], "s") for at in (0, -1))
    pairs = zip(about, arrivals, strict=True)
    tokens = _numbers([details.get("output_tokens") or len(row) for details, row in pairs], "ns")
    values = {"e2el": (ended - began).astype(np.float64)}
    streamed = np.array([len(row) > 1 for row in arrivals])
    gaps: list[list[float]] = []
    if streamed.any():
        values["ttft"] = first - began
        further = np.where(streamed, tokens - 1, 0)
        values["tpot"] = _per_token(last - first, further)
        gaps = [np.diff(np.array(row, np.float64)).tolist() for row in arrivals]
    run = _RUN.replace(tool="inference-perf", notes=tuple(notes))
    return _per_request(run, values, outcome, began, gaps)


def read_inference_summary(source: Source, options: ReadOptions) -> Series:
    """Read the statistics of every latency type, of a stage or of the entire run."""
    record = json_text.load(source)
    good = json_text.entry(record, "successes", source)
    load = record.get("load_summary") or {}
    run = _RUN.replace(
        tool="inference-perf", duration=load.get("send_duration"), rate=load.get("requested_rate"),
        achieved=load.get("achieved_rate"), connections=load.get("concurrency"),
        failed=int((record.get("failures") or {}).get("count") or 0),
    )  # fmt: skip
    for key, name in _INFERENCE_PERF.items():
        metric = (good.get("latency") or good).get(key)  # beside counts, as Prometheus reports them
        if metric:
            yield name, _from_statistics(name, metric, good["count"], run)


def _from_statistics(name: str, metric: JSONObject, count: Any, run: Run) -> Data:
    """Percentiles and statistics in the run's unit, of this number of requests."""
    # Of the intervals of a request, none is independent: their number supports no percentile.
    count = None if count is None or name == "itl" else int(count)
    return build.data_from_statistics(metric, count, run, run.unit)


# ------------------------------------------------------------
# LLMPerf: individual responses, and a summary of flat keys.

_LLMPERF = {"ttft": "ttft_s", "tpot": "inter_token_latency_s", "e2el": "end_to_end_latency_s"}
_LLMPERF_NOTE = "its inter_token_latency_s, the total time per token, is the series tpot"


def read_llmperf(source: Source, options: ReadOptions) -> dict[str, Data]:
    """Read one row per request; the file does not state when they were sent."""
    rows = json_text.entry({"responses": json_text.load(source)}, "responses", source, list)
    outcome = [_OK if row.get("error_code") is None else _ERROR for row in rows]
    between = [row.get(_LLMPERF["tpot"]) for row in rows]
    keys, gaps = dict(_LLMPERF), []
    if any(isinstance(gap, list) for gap in between):  # early versions kept every interval
        gaps = [gap if isinstance(gap, list) else [] for gap in between]
        del keys["tpot"]
    values = {name: _numbers([row.get(key) for row in rows], "s") for name, key in keys.items()}
    run = _RUN.replace(tool="LLMPerf", loop="closed", notes=(_LLMPERF_NOTE,))
    return _per_request(run, values, outcome, None, gaps)


def read_llmperf_summary(source: Source, options: ReadOptions) -> Series:
    """Read the statistics of every latency type."""
    record = json_text.load(source)
    clients = record.get("num_concurrent_requests")
    run = _RUN.replace(
        tool="LLMPerf", loop="closed", connections=int(clients) if clients else None,
        failed=int(record.get("results_number_errors") or 0), notes=(_LLMPERF_NOTE,),
    )  # fmt: skip
    count = record.get("results_num_completed_requests")
    for name, key in _LLMPERF.items():
        begin = f"results_{key}_"
        metric = {
            stat.removeprefix(begin).removeprefix("quantiles_"): value
            for stat, value in record.items()
            if stat.startswith(begin)
        }
        if metric:
            yield name, _from_statistics(name, metric, count, run)


FORMATS = {
    "vllm": (sniff_vllm, partial(_runs, "vLLM")),
    "sglang": (sniff_sglang, partial(_runs, "SGLang")),
    "serving-benchmark": (has_match(_TITLE), read_report),
    "guidellm": (
        has_match(  # the metrics may be far behind
            r"\A\s*[{\[]",
            '"benchmarks"',
            'guidellm|"generative_benchmark"|"time_to_first_token_ms"',
        ),
        read_guidellm,
    ),
    "aiperf": read_aiperf,
    "aiperf-json": (
        has_match(
            r"\A\s*\{",
            r'"(?:request_latency|time_to_first_token)"\s*:\s*\{\s*"(?:unit|avg)"',
            '"unit"',
        ),
        read_nvidia_summary,
    ),
    "genai-perf": read_genai_perf,
    "inference-perf": read_inference_perf,
    "inference-perf-summary": read_inference_summary,
    "llmperf": read_llmperf,
    "llmperf-summary": read_llmperf_summary,
}
