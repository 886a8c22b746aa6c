"""Runs notebooks, all in one kernel (a kernel takes longer to start than a lesson to run), and writes their outputs.

``python -m tests.notebooks.running`` executes every lesson again and writes its outputs into the repository.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

if TYPE_CHECKING:
    from types import TracebackType

    from nbformat import NotebookNode

_FRESH = """
%reset -f
import gc as _gc, os as _os, sys as _sys, warnings as _warnings
_warnings.simplefilter("default")
if "matplotlib.pyplot" in _sys.modules: _sys.modules["matplotlib.pyplot"].close("all")
for _name in ("lessons", "pictures"): _sys.modules.pop(_name, None)
_os.chdir({folder!r})
_gc.collect()
"""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Runner:
    """A kernel that runs one notebook after the other, each in a fresh namespace, in its own folder, without widgets."""

    def __init__(self, folder: Path, pythonpath: str = "") -> None:
        self._folder, self._path = folder, pythonpath

    def __enter__(self) -> Runner:
        environment = dict(os.environ, LATENCYKIT_STATIC="1", PYTHONPATH=self._path, OPENBLAS_NUM_THREADS="1")
        environment.pop("MPLBACKEND", None)
        self._kernel = KernelManager(kernel_name="python3")
        quiet = ["--HistoryManager.enabled=False", "--IPKernelApp.log_level=40"]
        self._kernel.start_kernel(cwd=str(self._folder), env=environment, extra_arguments=quiet)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._kernel.shutdown_kernel(now=True)
        self._kernel.context.destroy()

    def run(self, notebook: NotebookNode, folder: Path) -> NotebookNode:
        """Return the notebook with its outputs; the first cell that fails raises `CellExecutionError`."""
        fresh = nbformat.v4.new_code_cell(_FRESH.format(folder=str(folder)))
        whole = nbformat.v4.new_notebook(cells=[fresh, *notebook.cells], metadata=notebook.metadata)
        client = NotebookClient(whole, km=self._kernel, timeout=120)
        try:
            client.execute()
        finally:
            client.kc.stop_channels()
        whole.cells = whole.cells[1:]
        return whole


def tidied(notebook: NotebookNode) -> str:
    """Return a notebook's text as the repository holds it: no times, no addresses, cells counted from 1, small pictures."""
    number = 0
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type != "code":
            continue
        number += 1
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
            data: dict[str, Any] = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = _small(data["image/png"])
            if "text/plain" in data:
                data["text/plain"] = _ADDRESS.sub("", data["text/plain"])
    return nbformat.writes(notebook) + "\n"


def _small(png: str) -> str:
    """The same picture in 128 colours."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    """Execute every lesson again, in place."""
    root = Path(__file__).resolve().parents[2]
    with Runner(root / "notebooks", pythonpath=str(root)) as runner:
        for path in sorted((root / "notebooks").rglob("*.ipynb")):
            path.write_text(tidied(runner.run(nbformat.read(path, 4), path.parent)), "utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
