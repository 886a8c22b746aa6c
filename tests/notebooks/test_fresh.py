"""The committed outputs of every lesson are those of a fresh execution: its texts to the letter, its pictures to the eye."""

from __future__ import annotations

import base64
import io
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.conftest import needs_package
from tests.notebooks.running import LIVE, tidied
from tests.notebooks.test_lessons import LESSONS, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbformat import NotebookNode

pytestmark = [pytest.mark.slow, needs_package("ipykernel", "test")]

_SHARE = 0.01  # of the pixels may differ by more than _STEP of 255: another version of a font's rendering
_STEP = 64


@pytest.mark.parametrize("name", LESSONS)
def test_committed_outputs_are_those_of_a_fresh_execution(name: str, executed: Callable[[str], NotebookNode]):
    import nbformat

    committed = nbformat.read(ROOT / "notebooks" / name, 4)
    fresh = nbformat.reads(tidied(deepcopy(executed(name))), 4)
    assert list(_texts(committed)) == list(_texts(fresh))
    differing = [place for (place, was), (_, now) in zip(_pictures(committed), _pictures(fresh), strict=True) if not _alike(was, now)]
    assert differing == [], f"{name}: write it again: python -m tests.notebooks.running notebooks/{name}"


def _texts(notebook: NotebookNode) -> Iterator[tuple[int, str]]:
    """What each cell prints, in one piece: a busy machine hands it over in several."""
    for place, cell in enumerate(cell for cell in notebook.cells if cell.get("outputs")):
        yield place, "".join(output.text for output in cell.outputs if "text" in output)
        for output in cell.outputs:
            for kind, content in output.get("data", {}).items():
                if kind not in ("image/png", LIVE):  # a page without a kernel has tests of its own
                    yield place, f"{kind}: {content}"


def _pictures(notebook: NotebookNode) -> Iterator[tuple[int, str]]:
    return ((place, output.data["image/png"]) for place, output in _outputs(notebook) if "image/png" in output.get("data", {}))


def _outputs(notebook: NotebookNode) -> Iterator[tuple[int, Any]]:
    # A copy by `latencykit lab` has cells of its own between those of the repository; none of them prints.
    return enumerate(output for cell in notebook.cells for output in cell.get("outputs", []))


def _alike(was: str, now: str) -> bool:
    from PIL import Image

    one, other = (np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), int) for png in (was, now))
    return one.shape == other.shape and float((np.abs(one - other).max(axis=2) > _STEP).mean()) <= _SHARE
