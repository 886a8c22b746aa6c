"""The teaching notebooks: where they lie, copying them to a learner's folder, and JupyterLab there."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from latencykit._files import whole
from latencykit.errors import InvalidArgumentError, MissingPackageError

__all__ = ["Copied", "copy_lessons", "launch", "lesson_files"]

_RECORD = ".latencykit-lab.json"
"""What was copied into a folder, as name → digest: it tells a learner's changes from an older version of ours."""


_LESSON = (".ipynb", ".md", ".py")


@dataclass(frozen=True)
class Copied:
    """Names of the files that were written, that were up to date, and that a learner changed and so were kept."""

    written: tuple[str, ...]
    same: tuple[str, ...]
    kept: tuple[str, ...]


def lesson_files() -> dict[str, Path]:
    """Return name in the learner's folder → file: from inside the wheel, or from a checkout's ``notebooks`` and ``data``."""
    package = Path(__file__).resolve().parent.parent
    installed, checkout = package / "_lessons", package.parent
    roots = (
        {"": installed}
        if installed.is_dir()
        else {"": checkout / "notebooks", "data/": checkout / "data"}
    )
    found = {
        prefix + path.relative_to(root).as_posix(): path
        for prefix, root in roots.items()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not any(part.startswith((".", "__")) for part in path.relative_to(root).parts)
        if path.suffix in _LESSON or prefix or path.relative_to(root).parts[0] == "data"
    }
    if not any(name.endswith(".ipynb") for name in found):
        raise InvalidArgumentError(
            "this installation carries no lessons; install latencykit from its wheel, or from a whole checkout"
        )
    return found


def copy_lessons(folder: Path) -> Copied:
    """Copy the lessons and their data into a folder, which is made if need be.

    A file that the learner changed is never touched; one that only an older version of latencykit wrote is replaced.
    """
    record = folder / _RECORD
    try:
        before: dict[str, str] = json.loads(record.read_text("utf-8")) if record.exists() else {}
    except ValueError as damaged:
        raise InvalidArgumentError(
            f"{record}: is corrupt; remove it, and every file that differs from ours is kept"
        ) from damaged
    written, same, kept = [], [], []
    for name, source in lesson_files().items():
        target, content = folder / name, source.read_bytes()
        shipped = _digest(content)
        there = _digest(target.read_bytes()) if target.exists() else None
        if there == shipped:
            same.append(name)
        elif there is not None and there != before.get(name):
            kept.append(name)
            continue
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole(target) as temporary:  # a part of a lesson would pass for a learner's change
                temporary.write_bytes(content)
            written.append(name)
        before[name] = shipped
    with whole(record) as temporary:
        temporary.write_text(json.dumps(before, indent=1, sort_keys=True), "utf-8")
    return Copied(tuple(written), tuple(same), tuple(kept))


def launch(folder: Path) -> None:
    """Start JupyterLab in a folder, and return when it ends."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingPackageError("jupyterlab", "latencykit lab", "lab")
    options = [
        f"--ServerApp.root_dir={folder.resolve()}",
        "--LabApp.default_url=/lab/tree/README.md",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append(
            "--ServerApp.allow_root=True"
        )  # in a container everybody is root, and Jupyter would refuse
    status = subprocess.run([sys.executable, "-m", "jupyterlab", *options], check=False).returncode  # noqa: S603
    if status > 0:
        raise InvalidArgumentError(
            f"JupyterLab ended with status {status}; what it said stands above; --no-launch only copies"
        )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
