"""Numbers of a selection on the page are those of `latencykit summary`, and what is copied runs."""

from __future__ import annotations

import contextlib
import io
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import latencykit as lk
from tests.conftest import DATA, log_of_values
from tests.core.test_censored_logs import log_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.needs_tool, pytest.mark.slow]

FIO = DATA / "formats/fio-json/mixed/out.txt"
SHOWN = ("p50", "p90", "p99", "p99.9", "p99.99", "max", "mean")


def log(seconds: int, rate: float, seed: int) -> lk.HistogramLog:
    """Poisson arrivals at a rate, counted second by second, with a stall."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.poisson(rate, seconds))
    values = np.split(rng.lognormal(14, 0.6, ends[-1]), ends[:-1])
    values[seconds // 3] += 7e8
    return log_of_values([each.astype(np.int64) for each in values])


def files_of(kind: str, folder: Path) -> list[Path]:
    """Files of a world, in the folder."""
    wrk = DATA / "formats/wrk/ctrlz/stdout.txt"
    if kind == "summary":
        return [DATA / "formats/go-bench/count10/stdout.txt"]
    if kind == "samples":
        rng = np.random.default_rng(8)
        start = np.sort(rng.uniform(0, 60e9, 20_000))
        pairs = zip(start / 1e9, rng.lognormal(14, 1, start.size), strict=True)
        path = folder / "samples.csv"
        lines = "".join(f"{a:.6f},{b:.0f}\n" for a, b in pairs)
        path.write_text(f"start_s,latency_ns\n{lines}")
        return [path]
    if kind == "scrapes":
        lk.write(log_of(1, size=120)[0], folder / "scrapes.json")
        return [folder / "scrapes.json"]
    worlds = {
        "busy hour": [(3600, 150.0)],
        "idle night": [(28_800, 0.2)],
        "mixed": [(300, 20.0)],
        "14 series": [(120, 15.0)] * 14,
    }[kind]
    paths = []
    for k, (seconds, rate) in enumerate(worlds):
        path = folder / f"host-{k}.hlog"
        lk.write(log(seconds, rate, k), path)
        paths.append(path)
    return [*paths, wrk] if kind == "mixed" else paths


def table_of(text: str) -> dict[str, dict[str, str]]:
    """Series → column → cell of the table that the command prints as Markdown."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[2:]}


def shown(page: Any) -> dict[str, dict[str, str]]:
    """Series → column → cell of the numbers on the page."""
    names = page.locator("#numbers").evaluate(
        "body => [...body.closest('table').tHead.rows[0].cells].map(cell => cell.textContent)"
    )
    rows = page.locator("#numbers").evaluate(
        "body => [...body.rows].map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


@pytest.mark.parametrize(
    "kind", ["busy hour", "idle night", "samples", "mixed", "summary", "14 series", "scrapes"]
)
def test_a_selection_reads_as_the_summary_of_its_span(
    kind: str, tmp_path: Path, opened: Any, run: Callable[..., tuple[int, str, str]]
) -> None:
    files, out = files_of(kind, tmp_path), tmp_path / "page.html"
    assert run("report", *files, "-o", out)[0] == 0
    page = opened(out)
    spans: list[tuple[float, float] | None] = [None]
    if kind != "summary":
        first, last = page.evaluate("window.latencykit.extent()")
        spans += [(first + a * (last - first), first + b * (last - first)) for a, b in SPANS]
    for span in spans:
        words: list[Any] = ["summary", "--format", "markdown"]
        words += ["--percentiles", "50,90,99,99.9,99.99,100"]
        timed = files
        if span:
            page.drag(*span)
            begin, end = page.selection()
            words += ["--from", begin, "--to", end]
            timed = [path for path in files if path.suffix in (".hlog", ".csv", ".json")]
        status, text, _ = run(*words, *timed)
        assert status == 0
        printed, rows = table_of(text), shown(page)
        assert set(printed) <= set(rows)
        for name, cells in printed.items():
            assert rows[name]["requests"] == cells["requests"]
            for column in SHOWN:
                seen, said = rows[name].get(column, ""), cells.get(column, "")
                assert said or kind == "summary"
                assert seen.strip("()") == said.strip("()"), (name, column, span)
                bracketed, known = seen.startswith("("), not said.startswith("(")
                if kind in WIDER:  # time bins than the file's: it claims no more than they show
                    assert bracketed or known, (name, column, span)
                else:
                    assert bracketed != known, (name, column, span)


SPANS = ((0.2, 0.5), (0.71, 0.745))
WIDER = ("busy hour", "idle night", "samples")


def counts(run: Any, page: Any) -> tuple[list[int], list[int]]:
    """Requests that the copied commands count, and those that the copied code counts."""
    by_command = []
    for line in page.copied("command").splitlines():
        tool, *words = shlex.split(line)
        assert tool == "latencykit"
        status, text, errors = run(*words, "--format", "markdown")
        assert status == 0, (line, errors)
        by_command += [int(row["requests"].replace(",", "")) for row in table_of(text).values()]
    code = page.copied("Python").replace("print(", "seen.append(")
    seen: list[Any] = []
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, {"seen": seen})
    return by_command, [int(one.count) for one in seen]


def on_page(page: Any) -> list[int]:
    return [int(row["requests"].replace(",", "")) for row in shown(page).values()]


def test_copies_of_tags_and_series_run(
    tmp_path: Path, opened: Any, run: Callable[..., tuple[int, str, str]]
) -> None:
    parts = [log(20, 30, 1), log(20, 20, 2).with_tag("it's"), log(20, 10, 3).with_tag("put")]
    lk.write(lk.merge(parts), tmp_path / "tagged log.hlog")
    lines = [f"{k / 50:.3f},{2000 + k % 97},{('a', 'b b')[k % 2]}" for k in range(2000)]
    (tmp_path / "rows.csv").write_text("start_s,latency,tag\n" + "\n".join(lines) + "\n")
    out = tmp_path / "page.html"
    words = ["report", tmp_path / "tagged log.hlog", tmp_path / "rows.csv", "-o", out]
    for extra in ([], ["--from", "3"]):
        status, _, errors = run(*words, "--unit", "us", *extra)
        assert status == 0, errors
        page = opened(out)
        for act in (lambda: None, lambda p=page: p.drag(5, 11)):
            act()
            expected = on_page(page)
            assert len(expected) == 7  # a total of each file, and its parts
            # totals of files share a command
            assert [*map(sorted, counts(run, page))] == [sorted(expected)] * 2
        page.locator("#legend .only").nth(1).click()
        (one,) = on_page(page)
        assert counts(run, page) == ([one], [one])


def test_copies_name_one_series_of_a_file_that_has_several(
    tmp_path: Path, opened: Any, run: Callable[..., tuple[int, str, str]]
) -> None:
    out = tmp_path / "page.html"
    lk.report(lk.read_all(FIO), out)
    page = opened(out)
    page.locator("#legend .only").nth(1).click()
    command = page.evaluate("window.latencykit.page.series[1].origin")
    assert command == {"path": FIO.name, "series": lk.read_all(FIO)["seq sync"].run.series}
