"""What is too much is refused, and what is corrupt is counted where it is let pass."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit._limits import DEFAULT, current_limits
from latencykit.cli import main
from latencykit.errors import InputTooLargeError, InvalidArgumentError, PayloadError
from latencykit.hdr.payload import open_payload, open_payloads
from latencykit.io.rows import line_chunks
from tests.conftest import DATA

LOG = DATA / "hlog/hdrhistogram-java-ctrlz-a/uncorrected.hlog"
PAYLOAD = b"HISTFAAAACV42pNpmSzMwMDAwgABzFCaEYh5f7hHMNh/gAicX8bIBABjHQWa"
TIGHT = {"line": 500, "intervals": 20, "others": 5}


def test_changes_hold_inside_and_end_with_the_block(monkeypatch):
    monkeypatch.setenv("LATENCYKIT_LIMITS", "line=1KiB, slots=100_000")
    with lk.limits(slots=7, whole="2GiB"):
        assert (current_limits().line, current_limits().slots, current_limits().whole) == (
            1024,
            7,
            2 << 30,
        )
    assert (current_limits().line, current_limits().slots, current_limits().whole) == (
        1024,
        100_000,
        DEFAULT.whole,
    )
    monkeypatch.delenv("LATENCYKIT_LIMITS")
    assert current_limits() == DEFAULT


@pytest.mark.parametrize(
    "text", ["lines=3", "line", "line=", "line=0", "line=-1", "line=1e9", "line=3 bananas"]
)
def test_what_is_not_a_limit_is_said(monkeypatch, text):
    monkeypatch.setenv("LATENCYKIT_LIMITS", text)
    with pytest.raises(InvalidArgumentError, match="limit"):
        current_limits()


@pytest.mark.parametrize("name", TIGHT)
@pytest.mark.parametrize("surface", ["library", "command line", "environment"])
def test_a_log_beyond_a_limit_is_refused_with_the_hint(
    tmp_path, capsys, monkeypatch, name, surface
):
    path = tmp_path / "a.hlog"
    path.write_bytes(b"\n" * 3 + b"# nothing\n" * 3 + LOG.read_bytes())
    if surface == "library":
        with (
            lk.limits(**{name: TIGHT[name]}),
            pytest.raises(InputTooLargeError, match=f"a.hlog:[0-9]+: .*--limit {name}=SIZE"),
        ):
            lk.read(path)
        return
    words = ["-q", "summary", str(path)]
    if surface == "environment":
        monkeypatch.setenv("LATENCYKIT_LIMITS", f"{name}={TIGHT[name]}")
    else:
        words += ["--limit", f"{name}={TIGHT[name]}"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    reported_stats = capsys.readouterr()
    assert (ended.value.code, reported_stats.out, reported_stats.err.count("\n")) == (2, "", 1)
    assert f"--limit {name}=SIZE" in reported_stats.err


@pytest.mark.parametrize(("name", "size"), [("line", 10), ("inflated", 20), ("slots", 1000)])
def test_a_payload_beyond_a_limit_is_refused(name, size):
    for function in (open_payload, lambda text: open_payloads([text])):
        with lk.limits(**{name: size}), pytest.raises(PayloadError):
            function(PAYLOAD)
        function(PAYLOAD)


@pytest.mark.slow
def test_rows_intervals_and_whole_files_know_their_limits(tmp_path):
    table, array, whole = tmp_path / "a.csv", tmp_path / "a.npz", tmp_path / "a.json.gz"
    table.write_text("latency_ns,note\n1,a\n2," + "b" * (9 << 20) + "\n")
    np.savez_compressed(array, latency_ns=np.zeros(1 << 20))
    whole.write_bytes(gzip.compress(b'{"latencykit":"' + b"1" * (1 << 20)))
    for path, changes in (
        (table, {"line": 1000}),
        (array, {"whole": "1MiB"}),
        (whole, {"whole": "1MiB"}),
    ):
        with (
            lk.limits(**changes),
            pytest.raises(InputTooLargeError, match=f"{path.name}.*--limit {next(iter(changes))}"),
        ):
            lk.read(path)
    samples = lk.Samples(duration=[1, 1], start=[0, 10**15], unit="ns")
    with lk.limits(intervals=1000), pytest.raises(InputTooLargeError, match="use longer ones"):
        samples.to_log("1s")


@pytest.mark.slow
def test_megabytes_of_blank_lines_are_passed_over(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"start_ns,latency_ns\n1,2\n" + b"\n" * (17 << 20) + b"3,x\n")
    with pytest.raises(lk.LatencyKitError, match=rf"a\.csv:{3 + (17 << 20)}: "):
        lk.read(path, format="csv")


def test_more_series_than_a_chart_can_show_are_refused(tmp_path, capsys):
    words = [f"{name}={LOG}" for name in "abcd"]
    for command in (["chart", "-o", "a.png"], ["report", "-o", "a.html"]):
        out = tmp_path / command[2]
        with pytest.raises(SystemExit) as ended:
            main(["-q", command[0], *words, "-o", str(out), "--limit", "series=3"])
        text = capsys.readouterr().err
        assert ended.value.code == 2
        assert "4 series are too many for one chart or page, which shows up to 3; choose" in text
        assert not out.exists()


def test_too_many_series_are_refused_before_any_is_read(run, tmp_path):
    out, files = tmp_path / "a.html", [tmp_path / f"{k}.hlog" for k in range(9)]
    for command in (["report"], ["chart"], ["chart", "--kind", "dashboard"]):
        status, _, err = run("-q", *command, *files, "-o", out, "--limit", "series=8")
        assert (status, err.count("\n"), out.exists()) == (2, 1, False)
        assert "9 series are too many" in err
        assert "--tag" in err


def test_of_very_many_tags_a_chart_shows_the_total_and_the_first(run, tmp_path):
    log, out, count = tmp_path / "a.hlog", tmp_path / "a.svg", 9
    line = max(LOG.read_text().splitlines(), key=len)
    log.write_text("".join(f"Tag=part-{k},{line}\n" for k in range(count)))
    requests = count * lk.read(log, tag="part-0").histogram().count
    for name in ("a.html", "a.svg"):
        status, _, err = run("chart", log, "-o", tmp_path / name, "--limit", "series=8")
        assert status == 0
        assert "the first 7 of 9 series; --series or --tag selects others" in err
        text = (tmp_path / name).read_text()
        assert f"7 series and their total · {requests:,} requests" in text
        assert ("part-7" in text, "part-6" in text) == (False, True)
    plain = tmp_path / "b.hlog"
    plain.write_text(line + "\n")
    status, _, _ = run("-q", "report", log, plain, "-o", tmp_path / "c.html", "--limit", "series=8")
    assert status == 0  # of one file the total, and all of the other
    both = requests // count * (count + 1)
    title = f"8 series and their total · {both:,} requests"
    assert title in (tmp_path / "c.html").read_text()
    with lk.limits(series=8):
        assert "the first 7 of 9 series" in lk.report(lk.read(log)).html
    assert run("-q", "report", log, "-o", out, "--limit", "series=8", "--tag", "part-8")[0] == 2
    assert run("-q", "chart", log, "-o", out, "--limit", "series=8", "--tag", "part-8")[0] == 0


# ---------------------------------------------------------------- lenient

HLOG = (Path(__file__).parents[2] / "data/jhiccup-v2.hlog").read_text()


def log_with_rubbish(number: int) -> str:
    body = HLOG.splitlines(keepends=True)
    return "".join([*body, *("nonsense\n" for _ in range(number)), "\x1b[31m,1,2,HISTF\n"])


def table_with_rubbish(number: int) -> str:
    good = "".join(f"{k},{k % 9 + 1}\n" for k in range(3000))
    return (
        f"start_s,latency_ms\n{good}"
        + "".join(f"{k},soon\n" for k in range(number))
        + "1,2,3\nnever,4\n5,6\n"
    )


def objects_with_rubbish(number: int) -> str:
    good = '{"status":200,"ts":1700000000.5,"duration_s":0.25}\n'
    return good * 50 + "{oops\n" * number + good


CASES = {
    "hlog": (log_with_rubbish, 501),
    "csv": (table_with_rubbish, 502),
    "jsonl": (objects_with_rubbish, 500),
}


@pytest.mark.parametrize(("make", "number"), CASES.values(), ids=CASES)
def test_much_rubbish_is_a_few_lines_and_all_of_it_is_counted(
    make, number, run, tmp_path, monkeypatch, request
):
    monkeypatch.setattr(line_chunks, "__defaults__", (1 << 14,))  # a table comes in many pieces
    path = tmp_path / f"a.{request.node.callspec.id}"
    path.write_text(make(500))
    known = {"unit": "ns"} if path.suffix == ".hlog" else {}
    with pytest.raises(lk.LatencyKitError, match=r"^[^\n]+$"):
        lk.read(path, **known)
    words = [f"--{name}={value}" for name, value in known.items()]
    status, out, err = run("summary", "--lenient", *words, path)
    assert status == 0, err
    lines = err.splitlines()
    assert len(lines) <= 12
    assert len([one for one in lines if one.startswith("skipped: ")]) <= 11
    assert any(one.startswith(f"skipped: {path}:") for one in lines)
    assert any(one.endswith(" more corrupt lines") for one in lines)
    assert "--lenient" not in err
    assert "\x1b" not in err
    assert f"{number} corrupt lines were skipped" in out.splitlines()
    notes = lk.read(path, **known, lenient=True).run.notes
    assert any("corrupt lines were skipped" in note for note in notes)


def test_each_file_is_counted_by_itself(run, tmp_path):
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(table_with_rubbish(10))
    found = lk.read_all(paths, lenient=True)
    assert len(found) == 2
    for data in found.values():
        assert sum("12 corrupt lines were skipped" in note for note in data.run.notes) == 1
    _, _, err = run("summary", "--lenient", *paths)
    assert err.count("more corrupt lines") == 2


def test_few_are_reported_one_by_one(run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("latency_ms\n1\nx\n2\ny\n3\n")
    status, out, err = run("summary", "--lenient", path)
    assert status == 0
    assert out.endswith("\n2 corrupt lines were skipped\n")
    assert err.splitlines() == [
        f"skipped: {path}:3: this is not a row of this table: 'x'; expected numbers in latency_ms",
        f"skipped: {path}:5: this is not a row of this table: 'y'; expected numbers in latency_ms",
    ]
