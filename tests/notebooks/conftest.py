"""The lessons as a learner gets them: installed from a wheel, copied by ``latencykit lab``."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.notebooks.running import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"


@contextlib.contextmanager
def beside(name: str, folder: Path = NOTEBOOKS) -> Iterator[Any]:
    """A module that lies beside the lessons; in the end, none of these modules is known."""
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for other in ("lessons", "exercises", "controls", "pictures", "gate", "quizzes"):
            sys.modules.pop(other, None)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An IPython shell whose cells may import the gate."""
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    monkeypatch.syspath_prepend(str(NOTEBOOKS))
    yield interactive.instance()
    interactive.clear_instance()
    sys.modules.pop("gate", None)


def ran(shell: Any, cell: str) -> bool:
    return bool(shell.run_cell(cell, store_history=True).success)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in ("latencykit", "notebooks", "data", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        (source / name).symlink_to(ROOT / name)  # pip builds beside the sources, and these are not to be touched
    _pip("install", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source))
    return target


@pytest.fixture(scope="session")
def desk(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A learner's folder, as ``latencykit lab`` makes it."""
    folder = tmp_path_factory.mktemp("desk") / "lab"
    environment = dict(os.environ, PYTHONPATH=str(installed))
    command = [sys.executable, "-P", "-m", "latencykit", "lab", str(folder), "--with-solutions", "--no-launch"]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, cwd=folder.parent)
    assert done.stdout == f"{folder}\n"
    return folder


@pytest.fixture(scope="session")
def runner(desk: Path, installed: Path) -> Iterator[Runner]:
    """One kernel for all lessons; it sees the installed package and no checkout."""
    with Runner(desk, pythonpath=str(installed)) as one:
        yield one


@pytest.fixture(scope="session")
def executed(desk: Path, runner: Runner) -> Callable[[str], NotebookNode]:
    """Execute a lesson, once per session."""
    import nbformat

    return cache(lambda name: runner.run(nbformat.read(desk / name, 4), (desk / name).parent))
