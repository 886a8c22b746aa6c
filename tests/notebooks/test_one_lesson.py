"""The one lesson that the quick lane runs, from the checkout; `test_lessons` runs all of them from the wheel."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import needs_package
from tests.notebooks.running import Runner

ROOT = Path(__file__).resolve().parents[2]
LESSON = "06-fastest-fails-every-request.ipynb"  # the one that takes the shortest time


@needs_package("ipykernel", "test")
def test_a_lesson_runs_to_its_end():
    import nbformat

    folder = ROOT / "notebooks"
    with Runner(folder, pythonpath=str(ROOT)) as runner:
        done = runner.run(nbformat.read(folder / LESSON, 4), folder)
    noise = [out.text for cell in done.cells for out in cell.get("outputs", []) if out.get("name") == "stderr"]
    assert noise == []
