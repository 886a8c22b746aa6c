"""What the commands print as JSON is what the published schemas say, key by key."""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latencykit
from latencykit.cli import cli, history
from tests.history.conftest import fill
from tests.snapshots.schemas import schemas

Run = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).parents[2]
LOGS = [
    ROOT / "data" / f"{name}.hlog"
    for name in ("ctrlz-uncorrected", "redis-tagged", "jhiccup-gc", "ctrlz-scheduled", "jhiccup-v2")
]
FORMATS = ROOT / "tests" / "data" / "formats"
TOOLS = ("ab", "csv", "fio-json", "go-bench", "hgrm", "hey", "k6-csv", "prometheus", "wrk")
EXPECTED = [min((FORMATS / name).rglob("expect.json")) for name in TOOLS]
OUTPUTS = [path.parent / json.loads(path.read_text("utf-8"))["file"] for path in EXPECTED]
SCHEMAS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (Path(latencykit.__file__).parent / "schemas").glob("*.json")
}


@functools.cache
def validator(command: str) -> Any:
    from jsonschema import Draft202012Validator  # two seconds, of which most builds a grammar
    from referencing import Registry, Resource

    registry: Any = Registry().with_resources(
        (f"{name}.json", Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
    )
    Draft202012Validator.check_schema(SCHEMAS[command])
    return Draft202012Validator(SCHEMAS[command], registry=registry)


def validated(command: str, printed: str) -> Any:
    """Return the record that a command printed, which its schema describes."""
    record = json.loads(printed)
    validator(command).validate(record)
    return record


@pytest.fixture
def record(run: Run) -> Callable[..., Any]:
    """Run a command; return the record that it prints, which its schema describes."""

    def printed(command: str, *words: object) -> Any:
        return validated(command, run(command, *words, "--format", "json")[1])

    return printed


def test_schemas_are_those_of_the_records() -> None:
    made = schemas()
    assert made == {path: path.read_text(encoding="utf-8") for path in made}, (
        "the records changed; if that is meant, run `python -m tests.snapshots`"
    )
    assert {path.stem for path in made} == set(SCHEMAS)


def test_every_key_of_a_record_is_typed_and_described_in_its_schema() -> None:
    limit = SCHEMAS["check"]["$defs"]["LimitRecord"]
    assert limit["properties"]["value"] == {"type": ["number", "null"]}
    assert limit["properties"]["margin"]["description"] == "Distance to the limit, relative to it."
    assert limit["properties"]["outcome"] == {"enum": ["met", "missed", "unknown"]}
    assert (limit["required"], limit["additionalProperties"]) == (list(limit["properties"]), False)


def test_every_command_that_prints_json_has_a_schema(run: Run) -> None:
    names = cli.list_commands(None)
    names += [f"history {part}" for part in history.command.commands]
    printing = {
        name.replace(" ", "-")
        for name in names
        if "[table|json|csv|markdown]" in run(*name.split(), "--help")[1]
    }
    assert printing | {"series"} == set(SCHEMAS)
    for name in SCHEMAS:
        validator(name)


SLO = ("--unit", "ns", "--slo", "99=20ms,max=1s,mean=3ms,failed=1%")
RUNS = [f"{1000 * k}={LOGS[0]}" for k in (1, 2, 3)]
ASKED: list[tuple[object, ...]] = [
    *((command, path) for command in ("summary", "diagnose") for path in (*LOGS, *OUTPUTS)),
    *(("summary", path, "--interval", "2s") for path in LOGS[:2]),
    ("fanout", LOGS[0], "-n", "4,10"),
    ("fanout", LOGS[0], "-n", "4,10", "--independent"),
    ("fanout", LOGS[0], "-n", "4", "--quorum", "2", "--hedge-after", "95"),
    ("explain", LOGS[0]),
    ("compare", LOGS[0], LOGS[2]),
    ("compare", "--base", LOGS[0], "--base", LOGS[3], "--new", LOGS[2], "--new", LOGS[4]),
    ("compare", LOGS[1], LOGS[1]),
    ("check", *LOGS[:3], *SLO),
    ("check", *LOGS[:3], *SLO, "--by", "tag"),
    ("load", *RUNS),
    ("load", *RUNS, *SLO),
]


@pytest.mark.parametrize("words", ASKED, ids=lambda words: " ".join(map(str, words))[:60])
def test_every_style_says_what_the_record_does(
    words: tuple[object, ...], run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    in_every_style(run, str(words[0]), *words)


def test_every_style_says_what_a_history_does(run: Any, tmp_path: Path) -> None:
    for runs in (3, 20):
        fill(tmp_path, runs, 0 if runs == 3 else 3)
        for words in (("check", LOGS[0], "--unit", "ns"), ("show",)):
            in_every_style(run, f"history-{words[0]}", "history", *words, "--store", tmp_path)


def in_every_style(run: Any, schema: str, *words: object) -> None:
    """In CSV numbers and single words; in a terminal the cells of the Markdown table."""
    status, out, _ = run(*words, "--format", "json")
    if status == 2:  # several measurements of one output cannot be diagnosed together
        assert words[0] == "diagnose"
        return
    known = [*leaves(validated(schema, out))]
    numbers = np.array([float(one) for one in known if isinstance(one, int | float)])
    texts = {str(one) for one in known} | {f"p{number:g}" for number in numbers} | {"", "yes", "no"}
    for row in run.csv(*words, status=status):
        for cell in row.values():
            with contextlib.suppress(ValueError):
                assert np.isclose(numbers, float(cell.replace(",", "")), rtol=1e-5).any(), (
                    cell,
                    row,
                )
                continue
            assert " " in cell or cell in texts, (cell, row)
    shown, marked = (run.printed(style, words, status) for style in ("table", "markdown"))
    cells = [line.strip("| ").split(" | ") for line in marked.splitlines() if line[:1] == "|"]
    rows = collections.defaultdict(set)
    for first, *others in cells:
        rows[first].update(cell.replace("\\", "") for cell in others)
    for first, *others in (re.split(r" {2,}", line) for line in shown.splitlines()):
        assert first not in rows or rows[first] >= {*others}, (first, others, rows[first])


def leaves(value: Any) -> Iterator[Any]:
    """The values in a record, and the names that it gives them."""
    if isinstance(value, dict | list):
        yield from value if isinstance(value, dict) else (len(value),)
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    elif value is not None:
        yield value


def test_explain(record: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    host, took = rng.choice(["a", "b"], 4000), rng.exponential(1, 4000)
    rows = [f"{k},{one},{two}" for k, (one, two) in enumerate(zip(took, host, strict=True))]
    path = tmp_path / "calls.csv"
    path.write_text("\n".join(["start_s,latency_ms,host", *rows]) + "\n")
    (series,) = record("explain", path)["series"]
    assert {row["value"] for row in series["attributes"]} == {"a", "b"}


def test_what_is_written(record: Any, tmp_path: Path) -> None:
    log = LOGS[0]
    for command, out in (("chart", "a.svg"), ("report", "a.html")):
        record(command, log, "-o", tmp_path / out)
    record("convert", log, tmp_path / "a.hgrm")
    assert record("merge", log, log, "-o", tmp_path / "a.hlog")["count"] == 2 * 6852
    summed = record("merge", *[tmp_path / "a.hgrm"] * 2, "-o", tmp_path / "b.json")
    assert summed["count"] == 2 * 6852
    record("hiccup", "--duration", "1s", "-o", tmp_path / "b.hlog")


@pytest.mark.slow
def test_ctrlz(run: Run) -> None:
    client = f"{sys.executable} -m latencykit.ctrlz.client open {{url}} "
    client += "--rate {rate} --duration {duration}s -o {out}"
    short = ("--duration", "4s", "--stall", "1s", "--format", "json")
    validated("ctrlz", run("ctrlz", *short, "--", *client.split())[1])
