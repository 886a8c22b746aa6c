"""Run quick tests in Pyodide under node: ``python -m tests.pyodide [PYTEST ARGUMENTS]``.

``LATENCYKIT_PYODIDE`` names the folder or address of Pyodide's files; by default where it is
published. What pytest needs besides is installed as pure Python into a temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from latencykit.errors import LatencyKitError
from latencykit.views.site import runtime_files
from tests.pyodide.test_samples import FILES, NATIVE, answer

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PACKAGES = ("numpy", "click", "pandas", "scipy", "matplotlib", "packaging")
PURE = ("pytest", "hypothesis", "fsspec", "tzdata")
FOLDERS = ("analysis", "cli", "core", "hdr", "io", "plot", "pyodide", "simulate", "views")
QUICK = (
    *("-q", "-rs", "-o", "addopts=", "-p", "no:cacheprovider", "--tb=short"),
    *("-W", "ignore:It looks like `register_random` was passed"),  # Hypothesis counts references
)


def main(arguments: list[str]) -> int:
    """Return pytest's exit status, or 3 where it cannot run."""
    node = shutil.which("node")
    if node is None:
        print("NOT RUN: the tests in Pyodide need node, which is not installed")
        return 3
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        try:
            for name, content in runtime_files(PACKAGES, os.environ.get("LATENCYKIT_PYODIDE")):
                (place / name).write_bytes(content)
        except LatencyKitError as error:
            print(f"NOT RUN: the tests in Pyodide need its files: {error}")
            return 3
        python = json.loads((place / "pyodide-lock.json").read_text())["info"]["python"]
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "-q", "--target", str(place / "pure")),
                *("--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none"),
                *(f"--python-version={python.rpartition('.')[0]}", *PURE),
            ],
            check=True,
        )
        answers = {name: answer(name) for name in FILES}
        (place / "pure" / NATIVE.name).write_text(json.dumps(answers), "utf-8")
        selected = [] if "-m" in arguments else ["-m", "not slow and not needs_tool"]
        words = arguments or [f"tests/{name}" for name in FOLDERS]
        return subprocess.run(
            [
                *(node, str(HERE / "run.mjs"), str(place), str(ROOT)),
                *(",".join(PACKAGES), *QUICK, *selected, *words),
            ],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
