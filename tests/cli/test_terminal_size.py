"""What a terminal shows: tables that fit it, and the progress of what takes long."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import latencykit as lk
from latencykit._text import text_width
from latencykit.cli import cli, options
from latencykit.views.ctrlz import ctrlz_text
from latencykit.views.load import sweep_text
from latencykit.views.tables import Table, fitted
from tests.conftest import DATA, LOGS, RAW, log_of_values
from tests.ctrlz.test_commands import result as calibration

COMMANDS = dict.fromkeys(
    ("summary", "check", "diagnose", "fanout", "explain", "load", "compare"), ()
)
COMMANDS |= {"check": ("--slo", "99=50ms")}
OPTIONS = ("series", "unit", "measure", "column", "start_column")


def samples():
    """One sample per format: name → path and the options that it needs."""
    found = {}
    for path in sorted((DATA / "formats").glob("*/*/expect.json")):
        expect = json.loads(path.read_text())
        words = []
        for key in OPTIONS:
            values = expect.get("options", {}).get(key, ())
            for value in [values] if isinstance(values, str) else values:
                words += [f"--{key.replace('_', '-')}", value]
        found.setdefault(expect["format"], (path.parent / expect["file"], words))
    return found | {"tagged log": (next(log for log in LOGS if "tags" in str(log)), [])}


SAMPLES = samples()
QUICK = (
    "ab", "ab-csv", "hey", "wrk", "wrk2", "k6-summary", "hlog", "hgrm", "prometheus", "csv",
    "percentile-lines", "redis-benchmark-csv", "tagged log",
)  # fmt: skip


def printed(monkeypatch, command, path, words=(), columns=80):
    """Both streams of a command, or None where it refuses the file."""
    monkeypatch.setenv("COLUMNS", str(columns))
    files = {"compare": ["--base", path, "--new", path], "load": [f"1000={path}"]}
    given = [*files.get(command, [path]), *words, *COMMANDS[command]]
    result = CliRunner().invoke(cli, [command, *map(str, given)])
    if isinstance(result.exception, lk.LatencyKitError):
        return None
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1), result.output
    return result.output.rstrip("\n").split("\n")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SAMPLES],
)
@pytest.mark.usefixtures("read_once")
def test_every_command_fits_the_terminal(monkeypatch, name):
    path, words = SAMPLES[name]
    monkeypatch.chdir(DATA)  # names of folders have no end
    path = path.relative_to(DATA)
    answers, turn = 0, 1 if name in QUICK else 2  # of the others, half of the commands by turns
    for command in ["summary", *[*COMMANDS][1 + len(name) % turn :: turn]]:
        lines = printed(monkeypatch, command, path, words)
        if lines is not None:
            answers += 1
            assert max(map(text_width, lines)) <= 80, (command, max(lines, key=text_width))
            assert len(lines) <= 24, (command, len(lines))
    assert answers > 1  # summary and one more


def test_percentiles_that_were_asked_for_are_never_left_out(monkeypatch):
    wanted = [f"p{p}" for p in range(5, 95, 5)]
    words = ["--percentiles", ",".join(text[1:] for text in wanted)]
    lines = printed(monkeypatch, "summary", SAMPLES["wrk"][0], words)
    assert [line.split()[0] for line in lines if line.startswith("p")] == wanted
    hundred = SAMPLES["ab-csv"][0]
    assert len(printed(monkeypatch, "summary", hundred)) < 6
    every = printed(monkeypatch, "summary", hundred, ["--percentiles", "all"])
    assert sum(line.startswith("p") for line in every) > 95
    narrow = printed(monkeypatch, "diagnose", RAW, ["--unit", "ns"], 60)
    assert any(line.endswith(" 8.59 ms") for line in narrow)  # the row is whole


def test_many_series_are_counted_and_csv_has_them_all(monkeypatch, tmp_path):
    path = tmp_path / "many.csv"
    rows = [f"{k % 60 + 1},s{k % 60}" for k in range(6000)]
    path.write_text("\n".join(["latency_ms,endpoint", *rows, ""]))
    tagged = tmp_path / "many.hlog"
    logs = [log_of_values([[1e6 * (k + 1)] * 50]).with_tag(f"s{k}") for k in range(60)]
    lk.write(lk.merge(logs), tagged)
    for command in COMMANDS:
        lines = printed(monkeypatch, command, tagged, ["--unit", "ns"] if command != "load" else [])
        assert lines is None or len(lines) <= 24, command
    listed = CliRunner().invoke(cli, ["summary", str(tagged), "--format", "csv"]).stdout
    names = [line.split(",")[0] for line in listed.splitlines()[1:]]
    assert [name for name in names if name.startswith("s")] == [f"s{k}" for k in range(60)]


def test_a_comment_on_a_pull_request_fits_one_screen(tmp_path):
    """Verdict, table and the path of a picture, of one file and of one with many series."""
    path, picture = tmp_path / "requests.csv", tmp_path / "both.png"
    rows = [f"{10 * k},{(k * 37) % 101 + 1},/s{k % 30}" for k in range(6000)]
    path.write_text("\n".join(["start_ms,latency_ms,endpoint", *rows, ""]))
    one = SAMPLES["hey"][0]
    for words, verdict in (
        (["compare", "--base", one, "--new", one, "-o", picture], "inconclusive: no change shown"),
        (["compare", "--base", path, "--new", path], "### total"),
        (["check", path, "--slo", "99=20ms,50=1s"], "**requests.csv: misses its SLO"),
    ):
        given = [*map(str, words), "--format", "markdown"]
        result = CliRunner().invoke(cli, given)
        lines = result.stdout.rstrip("\n").split("\n")
        assert (result.exit_code in (0, 1), lines[0].startswith(verdict)) == (True, True), lines[0]
        assert len(lines) <= 24, lines
        assert any(line.startswith("| ") for line in lines)
        drawn = any(line.startswith("![") and picture.name in line for line in lines)
        assert drawn == ("-o" in words)


def test_tables_of_measurements_fit_the_terminal(monkeypatch, tmp_path):
    """History, ctrlz and sweep: of results that were kept, as nothing is measured here."""
    monkeypatch.setenv("COLUMNS", "80")
    store = tmp_path / "store"
    calls = []
    runs = sorted((DATA / "history").glob("*.csv.gz"))
    for run in runs:
        name = f"checkout-service-of-the-region-eu-west-{run.name}"
        calls.append(["history", "add", f"{name}={run}", "--store", store])
    calls += [
        ["history", "show", "--store", store],
        ["history", "check", runs[-1], "--store", store],
    ]
    for words in calls:
        result = CliRunner().invoke(cli, [*map(str, words)])
        assert result.exit_code in (0, 1), result.output
        lines = result.output.rstrip("\n").split("\n")
        assert max(map(text_width, lines)) <= 80, (words[:2], max(lines, key=text_width))
    names = (50.0, 90.0, 99.0, 99.9, 100.0)
    cell = {"value": 1.2345e9, "low": 1.1e9, "high": 1.3e9, "resolved": False, "supported": False}
    cell |= {"bucket_low": 1.1e9, "bucket_high": 1.3e9}
    row = {
        "number": 12, "rate": 123_456.7, "achieved": 122_333.4, "duration": 120.5, "unit": "ns",
        "purpose": "the upper end, measured again", "verdict": "undecided",
        "percentiles": [cell | {"percentile": p} for p in names],
    }  # fmt: skip
    for text in (ctrlz_text(calibration()), sweep_text({"rows": [row] * 3})):
        assert max(map(text_width, text.split("\n"))) <= 80, text


# ---------------------------------------------------------------- the layout itself


def test_a_table_fits_whatever_the_width():
    random = np.random.default_rng(3)
    for _ in range(200):
        columns, rows = int(random.integers(2, 12)), int(random.integers(1, 6))
        cells = [
            ["x" * int(random.integers(1, 60 if not k else 14)) for k in range(columns)]
            for _ in range(rows)
        ]
        width = int(random.integers(24, 160))
        header = [f"c{k}" for k in range(columns)]
        text = fitted(header, cells, 1, width, header[2:4])
        assert max(map(text_width, text.split("\n"))) <= width
        for row in cells:  # numbers are never cut
            for k in range(4, columns):
                assert row[k] in text
    alike = [f'requests_total{{code="{code}",path="/var"}}' for code in (200, 503)]
    text = fitted(["series", "p50"], [[name, "1 ms"] for name in alike], 1, 28)
    assert len({*text.split()}) == 6, text


# ---------------------------------------------------------------- progress

TAKE_LONG = {
    "summary": (), "diagnose": (), "explain": (), "fanout": (), "check": ("--slo", "99=50ms"),
    "report": ("-o", "out.html"), "chart": ("-o", "out.png"), "merge": ("-o", "out.hlog"),
    "history add": ("--store", "store"), "history check": ("--store", "store"),
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "calls.csv"
    rng = np.random.default_rng(1)
    rows = zip(np.arange(20_000) / 1e2, rng.lognormal(0, 1, 20_000), strict=True)
    path.write_text("start_s,latency_ms\n" + "".join(f"{a},{b:.3f}\n" for a, b in rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("command", TAKE_LONG)
def test_a_terminal_learns_what_takes_long(command, table, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (*command.split(), table, *TAKE_LONG[command])
    assert " … " not in run(*words)[2]
    monkeypatch.setattr(options, "is_terminal", lambda stream: True)
    monkeypatch.setattr(options, "_EVERY", 1e-4)
    status, _, err = run(*words)
    assert status == 0
    assert f"reading {table} … " in err
    assert " … " not in run("-q", *words)[2]
    if command == "summary":
        two = run(*words, table, "--jobs", "1")[2]
        assert "reading, 1 of 2 files … " in two


@pytest.mark.parametrize("name", ["![x](http://evil/a.png)", "<img src=x>", "a|b", "`x`"])
def test_no_name_becomes_markup(name):
    table = Table("markdown", None)
    table.add({"series": name})
    assert not re.search(r"(?<!\\)[\[\]|`<]", table.render().splitlines()[2].strip("| "))
