"""Runs notebooks, all in one kernel (a kernel takes longer to start than a lesson to run), and writes their outputs.

``python -m tests.notebooks.running`` executes every lesson again and writes its outputs into the repository; given
files, only those.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from types import TracebackType

    from nbformat import NotebookNode

_FRESH = """
%reset -f
import gc as _gc, os as _os, sys as _sys, warnings as _warnings
_warnings.simplefilter("default")
if "matplotlib.pyplot" in _sys.modules: _sys.modules["matplotlib.pyplot"].close("all")
for _name in ("lessons", "exercises", "pictures", "controls", "gate"): _sys.modules.pop(_name, None)
_os.chdir({folder!r})
_gc.collect()
"""
_FOLDED = re.compile(r"# (?:\d+ ·(?<!# 1 ·)|Appendix|Checking|Trimmed)")
_OPEN = re.compile(r"^[A-Z_]+ = |^(?:check|explain)\(", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_KEPT = ("tags", "slideshow", "jupyter")  # what an author sets in JupyterLab
_WIDGET = "application/vnd.jupyter.widget-view+json"
LIVE = "application/vnd.latencykit.live+html"
"""An output for pages without a kernel: HTML with its own script. Jupyter ignores it and shows the picture."""


class Runner:
    """A kernel that runs one notebook after the other, each in a fresh namespace, in its own folder, without widgets."""

    def __init__(self, folder: Path, pythonpath: str = "") -> None:
        self._folder, self._path = folder, pythonpath

    def __enter__(self) -> Runner:
        from jupyter_client.manager import KernelManager

        environment = dict(os.environ, LATENCYKIT_STATIC="1", PYTHONPATH=self._path)
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
        from nbclient import NotebookClient
        import nbformat

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
    """Return a notebook's text as the repository holds it.

    No times, no addresses, cells counted from 1, small pictures with the text that follows them as
    alternative text. A widget leaves its picture, and its HTML for pages without a kernel.
    """
    import nbformat

    number = 0
    for cell, after in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        cell.metadata = {name: cell.metadata[name] for name in _KEPT if name in cell.metadata}
        if cell.cell_type != "code":
            continue
        number += 1
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
            data: dict[str, Any] = output.get("data", {})
            if data.pop(_WIDGET, None) is not None and "text/html" in data:
                data[LIVE] = data.pop("text/html")
            if "image/png" in data:
                description = described(after)
                data["image/png"] = _small(data["image/png"])
                output.metadata = {"image/png": {"alt": description}}
                cell.metadata["mystnb"] = {"image": {"alt": description}}
                if LIVE in data:
                    live = _PICTURE.sub(lambda found: found[1] + _small(found[2]), data[LIVE])
                    data[LIVE] = live.replace('<img alt="" ', f'<img alt="{escape(description)}" ')
            if "text/plain" in data:
                data["text/plain"] = _ADDRESS.sub("", data["text/plain"])
    notebook.metadata.pop("widgets", None)
    fold(notebook)
    return nbformat.writes(notebook) + "\n"


_PICTURE = re.compile(r"(data:image/png;base64,)([A-Za-z0-9+/=]+)")


DESCRIPTION = re.compile(r"<details><summary>Description of the picture</summary>(.*)</details>", re.DOTALL)
"""The cell after a picture. JupyterLab ignores alternative texts, so what a screen reader needs is in the text, folded."""


def fold(notebook: NotebookNode) -> None:
    """Fold the code of every lesson but the first, so that its result is what one sees.

    What a reader edits stays open, and so does code without a result, which the text announces.
    """
    if not _FOLDED.match(notebook.cells[0].source):
        return
    for cell in notebook.cells:
        if cell.cell_type == "code" and not _OPEN.search(cell.source) and (cell.outputs or cell.source.startswith("import")):
            cell.metadata["jupyter"] = cell.metadata.get("jupyter", {}) | {"source_hidden": True}
            cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), "hide-input"})


def described(after: NotebookNode | None) -> str:
    """The description of a picture, in the cell after it."""
    found = DESCRIPTION.fullmatch(after.source) if after is not None else None
    return " ".join(unescape(found[1]).split()) if found else ""


def _small(png: str) -> str:
    """The same picture in 128 colours."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    """Execute every lesson again, in place, or those that are named."""
    import nbformat

    root = Path(__file__).resolve().parents[2]
    named = [Path(name).resolve() for name in sys.argv[1:]]
    with Runner(root / "notebooks", pythonpath=str(root)) as runner:
        folders = (root / "notebooks", root / "notebooks" / "solutions")
        every = [path for folder in folders for path in sorted(folder.glob("*.ipynb"))]
        for path in named or every:
            path.write_text(tidied(runner.run(nbformat.read(path, 4), path.parent)), "utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
