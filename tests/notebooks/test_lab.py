"""``latencykit lab`` copies the lessons, and never over what a learner wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from latencykit.cli import main
from latencykit.errors import MissingPackageError, InvalidArgumentError
from latencykit.cli import lab as lessons

if TYPE_CHECKING:
    from collections.abc import Callable

README = "README.md"


def test_a_folder_gets_every_lesson_and_all_data(tmp_path: Path):
    written, kept = lessons.copy_lessons(tmp_path / "new" / "desk")
    names = {path.relative_to(tmp_path / "new" / "desk").as_posix() for path in (tmp_path / "new" / "desk").rglob("*")}
    assert set(written) == set(lessons.lesson_files()) <= names
    assert {"README.md", "lessons.py", "data/ctrlz-scheduled.hlog", "classroom.py"} <= names
    assert not [name for name in names if name.startswith("solutions")]  # they are for teachers
    assert kept == []
    assert not [name for name in names if name.startswith("book")]  # pages of the site are not copied


def test_solutions_come_if_they_are_asked_for(tmp_path: Path, run: Callable[..., tuple[int, str, str]]):
    assert run("lab", tmp_path, "--with-solutions", "--no-launch")[0] == 0
    assert (tmp_path / "solutions" / "13-solutions.ipynb").exists()


@pytest.mark.slow
def test_a_wheel_has_the_lessons_and_not_the_pages_of_the_site(installed: Path):
    lessons_of_the_wheel = installed / "latencykit" / "_lessons"
    names = {path.relative_to(lessons_of_the_wheel).as_posix() for path in lessons_of_the_wheel.rglob("*") if path.is_file()}
    assert {"README.md", "05-ctrl-z.ipynb", "solutions/05-solutions.ipynb", "data/ctrlz-scheduled.hlog"} <= names
    assert not [name for name in names if name.startswith("book")]


def test_what_a_learner_changed_is_kept_and_the_rest_comes_back(tmp_path: Path):
    lessons.copy_lessons(tmp_path)
    (tmp_path / README).write_text("mine")
    (tmp_path / "lessons.py").unlink()
    written, kept = lessons.copy_lessons(tmp_path)
    assert written == ["lessons.py"]
    assert README in kept
    assert (tmp_path / README).read_text() == "mine"


def test_the_command_says_how_many_files_it_kept(tmp_path: Path, run: Callable[..., tuple[int, str, str]]):
    (tmp_path / README).write_text("my own notes")
    status, out, err = run("lab", tmp_path, "--no-launch")
    assert (status, out) == (0, f"{tmp_path}\n")
    assert "files copied, 1 existing ones kept" in err


def test_jupyterlab_starts_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started = []
    monkeypatch.setattr(lessons.importlib.util, "find_spec", lambda name: object())
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(lessons.subprocess, "run", lambda command, check: started.append(command) or done)
    lessons.launch(tmp_path)
    assert f"--ServerApp.root_dir={tmp_path}" in started[0]


def test_a_lab_that_does_not_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lessons.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(lessons.subprocess, "run", lambda command, check: subprocess.CompletedProcess(command, 1))
    with pytest.raises(InvalidArgumentError, match="ended with status 1"):
        lessons.launch(tmp_path)


def test_without_jupyterlab_the_hint_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lessons.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install jupyterlab, or .*\[lab\]"):
        lessons.launch(tmp_path)
