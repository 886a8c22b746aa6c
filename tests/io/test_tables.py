"""Odd tables with a known truth, in every container: outcomes, counts, percentiles, units, moments, decimal commas."""

from __future__ import annotations

import csv
import json
import random

import numpy as np
import pandas as pd
import pytest

import latencykit as lk
from latencykit.analysis.slo import SLO
from latencykit.core.columns import encoded
from latencykit.core.samples import OUTCOMES
from latencykit.errors import LatencyKitError
from latencykit.io.raw.outcomes import candidate, outcome_of_word, outcome_rule
from latencykit.io.writing import write_series as write

MS = 1_000_000
CONTAINERS = ("csv", "tsv", "semicolon", "json", "jsonl", "columns", "parquet")


def some(number, *things):
    """Cases of each thing in a few containers, other ones for each."""
    return [
        (*thing, one)
        for k, thing in enumerate(things)
        for one in random.Random(k).sample(CONTAINERS, number)
    ]


SEPARATORS = {"csv": ",", "tsv": "\t", "semicolon": ";"}


def written(path, columns, container):
    """Write columns (lists of cells; None is an empty one) into a container, and return its path."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if container in SEPARATORS:
        target = path / f"t.{'tsv' if container == 'tsv' else 'csv'}"
        with target.open("w", newline="") as stream:
            writer = csv.writer(stream, delimiter=SEPARATORS[container], lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(row.values() for row in rows)
    elif container == "parquet":
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")
        target = path / "t.parquet"
        pd.DataFrame(columns).to_parquet(target)
    else:
        target = path / ("t.jsonl" if container == "jsonl" else "t.json")
        whole = {"json": rows, "columns": columns}.get(container)
        target.write_text(
            "".join(json.dumps(row) + "\n" for row in rows) if whole is None else json.dumps(whole)
        )
    return target


def failures_of(path, **known):
    data = lk.read(path, **known)
    h = data.histogram()
    return (h.count, h.run.failed, h.run.timeouts, h.run.dropped + h.run.unfinished), data.run


# ---------------------------------------------------------------- outcomes

GOOD = {"ok": 0, "error": 1, "timeout": 2, "dropped": 3, "unfinished": 3}
CELLS = {
    "http": ([200, 204, 301, 503, 404, 504, 408, 0, 499], ("ok ok ok error error timeout timeout "
                                                          "error unfinished")),
    "line": (["200 OK", "HTTP/1.1 201 Created", "503 Service Unavailable", "504"], ("ok ok error "
                                                                                   "timeout")),
    "grpc": ([0, 0, 14, 4, 1, 13], "ok ok error timeout unfinished error"),
    "grpc words": (["OK", "Unavailable", "DEADLINE_EXCEEDED", "StatusCode.INTERNAL", "Canceled"], "ok error timeout error unfinished"),
    "exit": ([0, 0, 1, 137, -9], "ok ok error error error"),
    "pass": (["pass", "passed", "fail", "FAILED"], "ok ok error error"),
    "ko": (["OK", "ok", "KO", "nok"], "ok ok error error"),
    "success": (["success", "failure", "error", "timeout"], "ok error error timeout"),
    "valid": (["valid", "VALID", "invalid"], "ok ok error"),
    "true": (["true", "True", "false", "FALSE"], "ok ok error error"),
    "ones": ([1, 1, 0], "ok ok error"),
    "yes": (["yes", "Y", "no", "n"], "ok ok error error"),
    "bools": ([True, True, False], "ok ok error"),
    "flipped": (["false", "no", "0", "true"], "ok ok ok error"),
    "late": ([0, 0, 1], "ok ok timeout"),
    "message": ([None, None, "connection refused", "i/o timeout", "dial tcp: whatever"], "ok ok error timeout error"),
    "class": ([None, "java.net.SocketTimeoutException", "java.io.IOException", None], "ok timeout error ok"),
    "none": (["none", "None", "refused"], "ok ok error"),
    "errors": ([0, 0, 3, 1], "ok ok error error"),
    "codes": ([0, 0, 110, 104], "ok ok error error"),
}  # fmt: skip
NAMES = {
    "http": ["status", "http.response.status_code", "ResponseCode", "response code", "http-status", "statuscode", "elb_status_code"],
    "line": ["status", "responseStatus", "Status Line Code"],
    "grpc": ["grpc_status", "grpc.code", "rpc.grpc.status_code", "grpcStatusCode"],
    "grpc words": ["status", "grpc_code", "code", "rpc status"],
    "exit": ["exit_code", "exitCode", "exit", "return code", "rc", "returncode", "exit.status"],
    "pass": ["result", "test_result", "verdict", "outcome"],
    "ko": ["outcome", "status", "request.result", "Result"],
    "success": ["result", "status", "call_outcome", "final-status"],
    "valid": ["state", "response_state", "result"],
    "true": ["success", "is_success", "request.success", "wasSuccessful", "ok", "valid", "isValid", "response_ok", "passed"],
    "ones": ["success", "valid", "ok", "is_ok", "successful"],
    "yes": ["passed", "succeeded", "Success?"],
    "bools": ["success", "is_valid"],
    "flipped": ["error", "isError", "has_error", "failed", "request_failed", "not_ok", "http_req_failed", "is failure", "invalid"],
    "late": ["timed_out", "isTimedOut", "timeout", "timedout", "request.timeout", "Time Out"],
    "message": ["error", "error_message", "errorMessage", "failure.reason", "exception", "err", "Error Text", "failure_message"],
    "class": ["exception", "exception_class", "error.type", "exceptionType"],
    "none": ["error", "exception"],
    "errors": ["errors", "error_count", "error"],
    "codes": ["error_code", "errorcode", "errno", "failure.code"],
}  # fmt: skip
CASES = [(kind, name) for kind, names in NAMES.items() for name in names]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_outcome_is_understood_in_every_container(tmp_path, kind, name):
    cells, said = CELLS[kind]
    wanted = [GOOD[word] for word in said.split()]
    truth = tuple(wanted.count(kind) for kind in range(4))
    latencies = [k + 1.5 for k in range(len(cells))]
    containers = CONTAINERS if kind not in ("grpc words", "true") else CONTAINERS[:6]
    for container in random.Random(f"{kind}{name}").sample(containers, 1):
        kinds = {type(cell) for cell in cells if cell is not None}
        columns = {
            "latency_ms": latencies,
            name: [None if c is None else str(c) for c in cells] if len(kinds) > 1 else cells,
        }
        found, run = failures_of(written(tmp_path, columns, container))
        assert found == truth, container
        assert run.failures_known


STRANGE = [
    ("state", ["CA", "NY", "OK", "TX"]), ("state", ["NO", "SO", "OK", "VA", "IN"]),
    ("us_state", ["OK", "WA"]),
    ("zip_code", [20001, 40401, 50301]), ("area_code", [212, 415, 305]),
    ("country_code", ["NO", "DE", "US"]),
    ("language.code", ["no", "en", "de"]), ("error_rate", [0.1, 0.0, 0.2]),
    ("errorRate", [0, 0, 1]), ("code_size", [200, 500, 404]),
    ("valid_users", [3, 0, 7]), ("success_ratio", [1.0, 0.5, 0.9]), ("status", [0, 1, 1]),
    ("result", [0, 1]),
    ("result", [17, 230, 404]), ("result_count", [100, 500, 404]), ("state", [1, 2, 3]),
    ("code", ["A1", "B2"]),
    ("error_budget", ["high", "low"]), ("exception_handler", ["default", "custom"]),
    ("timeout_ms", [500, 500, 500]),
    ("valid", [3, 9, 12]), ("success", ["eh", "oh"]), ("outcome", ["blue", "red", "green"]),
    ("exit_node", ["a", "b"]), ("marital_status", ["single", "married"]),
    ("order_status", ["shipped", "new", "open"]),
    ("error_type", ["A", "B"]), ("status_bytes", [200, 500]), ("state_changes", [0, 1]),
    ("timeouts_total", [12, 0, 40]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cells"), STRANGE)
def test_what_only_looks_like_an_outcome_is_noted_and_makes_nothing_fail(tmp_path, name, cells):
    columns = {"latency_ms": [k + 1.5 for k in range(len(cells))], name: cells}
    path = written(
        tmp_path, columns, random.Random(f"{name}{cells}").choice(["csv", "jsonl", "parquet"])
    )
    found, run = failures_of(path)
    assert found == (len(cells), 0, 0, 0)
    assert any(repr(name) in note for note in run.notes)
    assert not run.failures_known
    assert [row.outcome for row in SLO.parse("failed=0.1%").check(lk.read(path).histogram())] == [
        "unknown"
    ]


def test_known_failures_prove_a_limit_missed_and_never_met(tmp_path):
    columns = {"latency_ms": [1.0] * 100, "status": [500] * 20 + [200] * 80, "state": ["CA"] * 100}
    h = lk.read(written(tmp_path, columns, "csv")).histogram()
    outcomes = [
        SLO.parse(f"failed={limit}").check(h)[0].outcome for limit in ("0%", "1%", "30%", "100%")
    ]
    assert outcomes == ["missed", "missed", "unknown", "met"]


@pytest.mark.parametrize(
    "word", ["north", "NY", "Kansas", "notify", "passport", "okra", "blue", "errand?", "hello"]
)
def test_words_that_begin_like_others_say_nothing(word):
    assert (
        outcome_of_word(word) in (None, OUTCOMES.index("error"))
        if word == "errand?"
        else outcome_of_word(word) is None
    )


def test_no_name_and_no_cell_breaks_the_reading_of_outcomes():
    dice = random.Random(5)
    words, texts = (
        "status code is not error x Rate HTTP timed out 9 _ . é grpc exit ß",
        "ok 0 1 200 5e3 -1 nan NO ² timeout true - 1.5 inf",
    )
    cells = [None, "", "x" * 500, "\x00", *texts.split()]
    for _ in range(400):
        name = "".join(dice.choices([*words.split(), " "], k=dice.randint(1, 5)))
        found = candidate(name)
        if found is not None:
            outcome_rule(encoded(np.array(dice.choices(cells, k=6), object)), found)


# ---------------------------------------------------------------- counts and percentiles


def spread(dice, size):
    """Distinct ascending values, and how often each occurred."""
    values = sorted(dice.sample(range(1, 5000), size))
    return values, [dice.randint(1, 400) for _ in values]


COUNTS = "count n requests weight frequency freq hits occurrences Count num_requests sample_count"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "container"), some(3, *((name,) for name in COUNTS.split())))
def test_values_with_counts_are_a_histogram(tmp_path, name, container):
    dice = random.Random(f"{name}{container}")
    values, counts = spread(dice, 12)
    value = dice.choice(["value_us", "latency_us", "us", "Response Time (us)", "duration_us"])
    data = lk.read(written(tmp_path, {value: values, name: counts}, container))
    raw = np.repeat(values, counts) * 1e3
    assert data.count == raw.size
    for p in (1, 25, 50, 90, 99, 100):
        assert data.percentile(p) == np.sort(raw)[max(0, int(np.ceil(p / 100 * raw.size)) - 1)]
    assert data.mean == pytest.approx(raw.mean())
    assert any(f"'{name}'" in note for note in data.run.notes)


@pytest.mark.parametrize("name", ["user_count", "retry_count", "row_count", "bytes", "n_items"])
def test_counts_of_other_things_are_not_looked_at(tmp_path, name):
    data = lk.read(written(tmp_path, {"latency_ms": [1, 2, 3], name: [4, 5, 6]}, "csv"))
    assert len(data) == 3


@pytest.mark.slow
@pytest.mark.parametrize("container", ["tsv", "jsonl"])
@pytest.mark.parametrize(
    ("columns", "buckets", "above"),
    [
        (
            {"le_ms": ["1", "2", "5", "+Inf"], "count": [5, 7, 8, 10]},
            [(0, 1, 5), (1, 2, 2), (2, 5, 1)],
            2,
        ),
        ({"le_ms": ["1", "2", "5"], "count": [5, 7, 1]}, [(0, 1, 5), (1, 2, 7), (2, 5, 1)], 0),
        ({"upper_ms": ["1", "2", "5"], "hits": [5, 7, 9]}, [(0, 1, 5), (1, 2, 7), (2, 5, 9)], 0),
        (
            {"upper_ms": ["1", "2", "5"], "cumulative_count": [5, 7, 9]},
            [(0, 1, 5), (1, 2, 2), (2, 5, 2)],
            0,
        ),
        ({"bucket_ms": ["0", "2", "5"], "count": [5, 7, 1]}, [(0, 2, 5), (2, 5, 7)], 1),
        ({"bucket_start_ms": ["1", "2", "5"], "n": [5, 7, 1]}, [(1, 2, 5), (2, 5, 7)], 1),
        (
            {"low_ms": ["0", "1", "5"], "high_ms": ["1", "2", ""], "count": [5, 7, 1]},
            [(0, 1, 5), (1, 2, 7)],
            1,
        ),
        (
            {"from_ms": ["0", "1"], "to_ms": ["1", "3"], "frequency": [5, 7]},
            [(0, 1, 5), (1, 3, 7)],
            0,
        ),
    ],
)
def test_buckets_with_counts(tmp_path, columns, buckets, above, container):
    data = lk.read(written(tmp_path, columns, container))
    held = data.buckets.low(data.index) / MS, data.buckets.high(data.index) / MS, data.counts
    assert list(zip(*(column.tolist() for column in held), strict=True)) == buckets
    assert data.censored == above


PERCENTILES = [
    ("percentile", [50, 90, 99, 99.9]), ("quantile", [0.5, 0.9, 0.99, 0.999]),
    ("percentile", [0.5, 0.9, 0.99, 0.999]),
    ("p", [50, 90, 99, 99.9]), ("q", [0.5, 0.9, 0.99, 0.999]),
    ("Percentile", ["p50", "p90", "p99", "p99.9"]),
    ("metric", ["P50", "P90", "P99", "P999"]), ("stat", ["50%", "90%", "99%", "99.9%"]),
    ("pctile", ["50th", "90th", "99th", "99.9th"]),
    ("name", ["median", "p90", "p99", "p99.9"]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "levels", "container"), some(3, *PERCENTILES))
def test_percentiles_with_values_are_printed_percentiles(tmp_path, name, levels, container):
    value = random.Random(f"{name}{container}").choice(
        ["latency_ms", "value_ms", "ms", "duration (ms)"]
    )
    data = lk.read(written(tmp_path, {name: levels, value: [1.5, 2.5, 10, 40]}, container))
    assert isinstance(data, lk.Summary)
    printed = [data.percentile(p) / MS for p in (50, 90, 99, 99.9)]
    assert printed == [1.5, 2.5, 10, 40]


# ---------------------------------------------------------------- units, names, moments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("latency", "unit", "container"),
    some(
        3,
        *[("latency", "unit"), ("value", "Unit"), ("duration", "duration_unit"), ("took", "units")],
    ),
)
def test_every_row_may_state_its_unit(tmp_path, latency, unit, container):
    columns = {
        latency: [1.5, 250.0, 3000.0, 7.0],
        unit: ["s", "ms", "us", "seconds"],
        "id": [1, 2, 3, 4],
    }
    data = lk.read(written(tmp_path, columns, container))
    assert data.duration.tolist() == [1500 * MS, 250 * MS, 3 * MS, 7000 * MS]
    assert data.run.unit_from == "file"
    with pytest.raises(LatencyKitError, match="leave unit="):
        lk.read(written(tmp_path, columns, container), unit="ms")


EPOCHS = {"s": 1.7e9, "ms": 1.7e12, "us": 1.7e15, "ns": 1.7e18}


STAMPED = [
    (name, unit)
    for name in ("time", "value", "latency", "time_ms", "latency_{}", "t_{}")
    for unit in EPOCHS
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit", "container"), some(1, *STAMPED))
def test_moments_are_never_latencies(tmp_path, name, unit, container):
    begin, step = EPOCHS[unit], EPOCHS[unit] / 1.7e9
    columns = {
        name.format(unit): [int(begin + k * step * 1.5) for k in range(8)],
        "status": [200] * 8,
    }
    path = written(tmp_path, columns, container)
    for given in ({}, {"unit": unit}) if name in ("time", "value", "latency") else ({},):
        with pytest.raises(LatencyKitError):
            lk.read(path, **given)
    beside = written(tmp_path, columns | {"rt_ms": [1, 2, 3, 4, 5, 6, 7, 8]}, container)
    assert lk.read(beside, column="rt_ms").histogram().max == 8 * MS


# ---------------------------------------------------------------- decimal commas and thousands


def german(value):
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


VALUES = [1234.5, 2.25, 0.5, 7654321.25, 12.0]


@pytest.mark.slow
@pytest.mark.parametrize("separator", ["csv", "tsv", "semicolon"])
@pytest.mark.parametrize(
    "style",
    [
        german, lambda v: f"{v:,.2f}", lambda v: f"{v:.2f}", lambda v: f"{v:.2f}".replace(".", ","),
        lambda v: f"{v:,.2f}".replace(",", " ").replace(".", ","), lambda v: f"{v:,.2f}".replace(",", "'"),
        lambda v: f"{v:,.2f}".replace(",", "\u202f"), lambda v: f"{v:,.2f}".replace(",", "_"),
    ],
)  # fmt: skip
def test_numbers_of_every_country_are_decided_by_the_whole_column(tmp_path, style, separator):
    columns = {"id": range(5), "latency_ms": [style(value) for value in VALUES]}
    data = lk.read(written(tmp_path, columns, separator))
    assert data.duration.tolist() == [int(value * MS) for value in VALUES]


@pytest.mark.slow
@pytest.mark.parametrize("separator", ["csv", "tsv", "semicolon"])
@pytest.mark.parametrize(
    "cells",
    [
        ["1,234", "5,678"],
        ["1,234", "12"],
        ["1,5", "2.5"],
        ["1.234,5", "1,234.5"],
        ["1,234", "1.234"],
    ],
)
def test_numbers_that_may_be_either_are_refused(tmp_path, cells, separator):
    with pytest.raises(
        LatencyKitError, match="may have a decimal comma, or grouped digits"
    ) as caught:
        lk.read(written(tmp_path, {"id": range(len(cells)), "latency_ms": cells}, separator))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("good", "odd"), [("1.234,5", "12.5"), ("1,234.5", "12,5")])
def test_a_late_cell_of_another_country_is_an_error(tmp_path, good, odd):
    path = written(tmp_path, {"id": range(1001), "latency_ms": [good] * 1000 + [odd]}, "semicolon")
    with pytest.raises(LatencyKitError, match=r"t\.csv:1002: "):
        lk.read(path)


@pytest.mark.slow
def test_failures_stay_with_a_log(tmp_path):
    columns = {"start_s": [0, 1, 2], "latency_ms": [1, 2, 3], "status": [200, 200, 500]}
    write({"x": lk.read(written(tmp_path, columns, "csv"))}, tmp_path / "x.hlog")
    again = lk.read(tmp_path / "x.hlog")
    assert (again.run.failed, again.run.failures_known) == (1, True)
    assert [row.outcome for row in SLO.parse("failed=1%").check(again.histogram())] == ["missed"]


CELLS_OF_A_KIND = [
    ["1", "2", "3.5"], ["10", "200"], ["1,234", "1.234,5"], ["1e400", "", "nan", "+Inf"],
    ["p50", "p90", "max", "count"], ["0.5", "0.9", "0.99"],
    ["200", "500"], ["ok", "boom"], ["ms", "s", "b"], ["1700000000", "1700000001"],
    ["5ms", "1.5 s"], ["true", ""], ["a"], ["1", "5", "+Inf"],
]  # fmt: skip
ODD_NAMES = [
    "latency_ms", "latency", "value_us", "le", "upper_ms", "low_ms", "high_ms", "bucket_ms",
    "count", "n", "weight", "percentile", "q", "unit", "status", "error", "success", "timestamp",
    "time", "start_s", "op", "name", "series", "exit_code", "x", "cumulative_count",
    "duration_ns_assumed", "state", "grpc_code",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_table_breaks_a_reader(tmp_path, seed):
    dice = random.Random(seed)
    said = []
    for _ in range(40):
        names = dice.sample(ODD_NAMES, dice.randint(1, 4))
        rows = dice.randint(0, 6)
        columns = {name: dice.choices(dice.choice(CELLS_OF_A_KIND), k=rows) for name in names}
        path = written(tmp_path, columns, dice.choice(CONTAINERS[:6]))
        try:
            found = lk.read_all(path, unit=dice.choice([None, None, "ms", "none"]))
        except LatencyKitError as error:
            said.append(str(error))
            continue
        for one in found.values():
            assert one.run.unit_from in ("file", "option", "assumed")
            assert isinstance(one, lk.Summary) or one.histogram().count >= 0
    assert not [text for text in said if "cannot be read as" in text or "\n" in text]
