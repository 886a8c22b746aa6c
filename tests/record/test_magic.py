from __future__ import annotations

import pytest

import latencykit as lk
from tests.conftest import needs_package

pytestmark = needs_package("IPython", "test")


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "latencykit")
    yield shell
    shell.history_manager.enabled = False


def test_a_line_is_measured_as_often_as_asked(shell) -> None:
    shell.user_ns["seen"] = seen = []
    samples = shell.run_line_magic("latency", "-n 7 seen.append('a b')")
    assert seen == ["a b"] * 7
    assert len(samples) == 7
    assert samples.run.measure == "service"


def test_a_cell_is_measured_after_its_setup(shell) -> None:
    samples = shell.run_cell_magic("latency", "-n 5 total = 100", "total += 1\nlast = total\n")
    assert len(samples) == 5
    assert shell.user_ns["last"] == 105


def test_a_rate_counts_from_when_runs_were_due(shell) -> None:
    samples = shell.run_line_magic("latency", "-n 4 --rate 500 pass")
    assert samples.run.measure == "response"
    assert samples.intended is not None


def test_the_log_is_written(shell, tmp_path) -> None:
    shell.run_line_magic("latency", f"-n 3 -o {tmp_path / 'a.hlog'} pass")
    assert lk.read(tmp_path / "a.hlog").histogram().count == 3


def test_without_a_number_it_runs_for_a_while(shell, monkeypatch) -> None:
    monkeypatch.setattr("latencykit.record.magic._BUDGET_NS", 0)
    assert len(shell.run_line_magic("latency", "pass")) == 10


def test_an_error_in_the_code_ends_the_measurement(shell) -> None:
    with pytest.raises(ZeroDivisionError):
        shell.run_line_magic("latency", "-n 3 1 / 0")


@pytest.mark.parametrize("line", ["", "-n x pass", "-n 0 pass", "--wrong 3 pass", "--rate 0 pass"])
def test_what_cannot_be_used_is_refused(shell, line) -> None:
    with pytest.raises(lk.InvalidArgumentError):
        shell.run_line_magic("latency", line)
