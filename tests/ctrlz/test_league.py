"""The league: entries are data, results are merged, and a verdict that flips is unknown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import latencykit as lk
from latencykit.ctrlz.run import PLACES
from latencykit.errors import CorruptInputError, LatencyKitError
from tests.ctrlz.conftest import league
from tests.ctrlz.test_commands import result

load_entries, merge_results = league.load_entries, league.merge_results
version_of = league.version_of
run_league, league_row = league.run_league, league.league_row
ROOT = Path(__file__).parents[2]
ENTRY = """
tool = "mine"
install = "make"
needs = []
[[modes]]
name = "open"
command = "{python} -m latencykit.ctrlz.client open {url} --rate {rate} --duration {duration}s -o {out}"
advice = "none needed"
"""


@pytest.fixture
def entry(tmp_path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(ENTRY)
    return path


@pytest.fixture
def run(capsys):
    """Run the script; return its status and what it prints."""

    def words_of(*words: object) -> tuple[int, str, str]:
        status = league.main([str(word) for word in words])
        return status, *capsys.readouterr()

    return words_of


@pytest.fixture
def verdicts(monkeypatch):
    """Replace the test by one that gives these verdicts, run by run."""

    def install(*names: str, error: str | None = None) -> None:
        def fake(command, *, repeat, **_):
            if error is not None:
                raise LatencyKitError(error)
            runs = [result(name) for name in names[:repeat]]
            from latencykit.ctrlz.run import _combined

            return _combined(runs)

        monkeypatch.setattr(league, "ctrlz", fake)

    return install


# ------------------------------------------------------------ entries


def test_every_entry_of_the_league_is_complete() -> None:
    entries = load_entries()
    assert len({(entry.tool, entry.mode) for entry in entries}) == len(entries) > 40
    places, folder = {*PLACES, "many"}, str(Path(league.__file__).parent)
    for one in entries:
        words = [*one.command, *([one.server] if one.server else [])]
        named = {name for word in words for name in re.findall(r"\{([a-z_]+)\}", word)}
        assert named <= places, one
        assert one.advice
        assert one.install
        assert (one.server is None) == (one.url is None), one
        for word in words:
            for path in re.findall(rf"{re.escape(folder)}[\w./-]+", word):
                assert Path(path).is_file(), path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("tool =", "tool ="), None), (("tool = ", "tol = "), "tol"), (("install", "in stall"), "line"),
        (('"make"', "7\nspeed = 3"), "speed"), (("command", "comand"), "comand"),
        (("{out}", "{out}'"), "quotation"), (("needs = []", "needs = 5"), "wrong value"),
        (("needs = []", 'duration = "long"'), "wrong value"), (("[[modes]]", "modes = 3\n[x]"), "the key 'x'"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_an_error_of_one_line(change, message, entry) -> None:
    entry.write_text(ENTRY.replace(*change))
    if message is None:
        assert load_entries([str(entry)])
        return
    with pytest.raises(CorruptInputError, match=message) as error:
        load_entries([str(entry)])
    assert str(entry) in str(error.value)
    assert "\n" not in str(error.value)


def test_versions_are_the_tools_own() -> None:
    ours = load_entries(["latencykit"])[0]
    assert version_of(ours) == lk.__version__
    assert version_of(ours._replace(version_command="echo tool v1.2.3 of 2026")) == "1.2.3"
    assert version_of(ours._replace(tool="x", version_command="no-such-tool -V")) is None


# ------------------------------------------------------------ results


def test_a_verdict_that_flips_is_unknown(verdicts, entry) -> None:
    entries = load_entries([str(entry)])
    verdicts("honest", "omits", "honest")
    (row,) = run_league(entries)["results"]
    assert row["verdict"] == "unknown"
    assert row["reasons"][0] == "the verdict differs between runs: honest, omits"
    assert [run["verdict"] for run in row["runs"]] == ["honest", "omits", "honest"]
    verdicts("omits", "omits", "omits")
    (row,) = run_league(entries)["results"]
    assert row["verdict"] == "omits"
    assert league_row(row)["reported p99"] == "1 ms"


# ------------------------------------------------------------ the command


def test_the_published_table_is_that_of_the_results(run) -> None:
    """`league.py --from notebooks/league/results.json --format markdown` prints it."""
    results = ROOT / "notebooks" / "league" / "results.json"
    table = run("--from", results, "--format", "markdown")[1].strip()
    assert table in (ROOT / "notebooks" / "load-generators.md").read_text(encoding="utf-8")
    record = json.loads(results.read_text(encoding="utf-8"))
    for row in record["results"]:
        if row["error"] is None:
            assert row["version"]
            assert len(row["runs"]) >= 3
        else:
            assert row["error"].startswith("not run: ")
    tools = {row["tool"] for row in record["results"]}  # each entry, run or not, has a row
    assert {path.stem for path in results.parent.glob("*.toml")} <= tools
    words = [word for row in record["results"] for word in row.get("command", [])]
    assert not [word for word in words if re.search(r"(^|[^{}\w./])/\w+/", word)]
