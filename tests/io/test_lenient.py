"""What --lenient skips is counted, and reported in a handful of lines per file, however many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

import latencykit as lk
from latencykit.io.rows import line_chunks

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
