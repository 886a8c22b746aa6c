"""Hyperfoil: steps, totals, CSV."""

from __future__ import annotations

import json

import pytest

from latencykit.errors import CorruptInputError

SUMMARY = {
    "startTime": 1000, "endTime": 11000, "minResponseTime": 100_000, "meanResponseTime": 400_000,
    "stdDevResponseTime": 5,
    "maxResponseTime": 9_000_000, "percentileResponseTime": {"50.0": 300_000, "99.0": 5_000_000},
    "requestCount": 101,
    "responseCount": 100, "invalid": 2, "connectionErrors": 1, "requestTimeouts": 3,
    "internalErrors": 0,
    "blockedTime": 2_000_000_000,
}  # fmt: skip
STEPS = [
    {"from": 0.0, "to": 300_031.0, "percentile": 0.5, "count": 50, "totalCount": 50},
    {"from": 300_031.0, "to": 300_031.0, "percentile": 0.55, "count": 0, "totalCount": 50},
    {"from": 300_031.0, "to": 9_003_007.0, "percentile": 1.0, "count": 50, "totalCount": 100},
]


def test_all_json(read_text):
    entry = {
        "name": "main",
        "phase": "main",
        "metric": "get",
        "total": {"summary": SUMMARY},
        "histogram": {"percentiles": STEPS},
    }
    text = json.dumps(
        {
            "$schema": "http://hyperfoil.io/run-schema/v2.0",
            "version": "0.20",
            "stats": [entry],
            "sessions": [],
        }
    )
    h = read_text(text)["main/get"]
    assert (h.count, h.max, h.percentile(50), h.percentile(99), h.mean) == (
        100,
        9e6,
        300_000,
        5e6,
        400_000,
    )
    assert (h.run.failed, h.run.timeouts, h.run.duration, h.run.version) == (1, 3, 10.0, "0.20")
    assert any("waited 2 s" in note for note in h.run.notes)


def test_totals_of_the_api(read_text):
    text = json.dumps(
        {
            "status": "TERMINATED",
            "statistics": [{"phase": "main", "metric": "get", "summary": SUMMARY}],
        }
    )
    h = read_text(text)["main/get"]
    assert (h.count, h.percentile(99)) == (100, 5e6)


def test_total_csv(read_text):
    text = (
        "Phase,Metric,Start,End,Requests,Responses,Mean,StdDev,Min,p50.0,p99.0,Max,ConnectionErrors,RequestTimeouts,InternalErrors,"
        "Invalid,BlockedTime,MinSessions,MaxSessions\nmain,get,1000,11000,101,100,400000,5,100000,300000,5000000,9000000,1,3,0,0,0,,\n"
    )
    h = read_text(text, "total.csv")["main/get"]
    assert (h.count, h.percentile(50), h.max, h.run.timeouts) == (100, 300_000, 9e6, 3)
    with pytest.raises(CorruptInputError, match=r"total\.csv:2: "):
        read_text(text.replace("5000000", "much"), "total.csv")
