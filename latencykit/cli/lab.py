"""``latencykit lab``: copy the lessons, and start JupyterLab there."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path

import click

from latencykit._processes import own_command
from latencykit.cli.options import note
from latencykit.errors import InvalidArgumentError, MissingPackageError


@click.command("lab")
@click.argument(
    "folder", metavar="[DIR]", default="latencykit-lab", type=click.Path(file_okay=False)
)
@click.option("--with-solutions", is_flag=True, help="Copy the solutions of the exercises, too.")
@click.option("--no-launch", is_flag=True, help="Write only; do not start JupyterLab.")
def command(folder: str, with_solutions: bool, no_launch: bool) -> None:
    """Copy the lessons and their data into DIR (latencykit-lab), and start JupyterLab there.

    Files that are in DIR already are kept: choose another DIR for the lessons of a new version.

    \b
    latencykit lab
    latencykit lab my-desk --no-launch
    """
    written, kept = copy_lessons(Path(folder), with_solutions)
    note(f"{len(written)} files copied, {len(kept)} existing ones kept")
    click.echo(folder)
    if not no_launch:
        launch(Path(folder))


def lesson_files(with_solutions: bool = False) -> dict[str, Path]:
    """Return name in the learner's folder → file, from the wheel or from a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed, checkout = package / "_lessons", package.parent
    roots = {"": checkout / "notebooks", "data/": checkout / "data"}
    if installed.is_dir():
        roots = {"": installed}
    files = {}
    for prefix, root in roots.items():
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            # What the site and scripts read belongs to no lesson.
            hidden = any(part.startswith((".", "__")) for part in name.parts)
            hidden |= name.parts[0] in ("book", "league", "slides")
            hidden |= name.parts[0] == "solutions" and not with_solutions
            lesson = path.suffix in (".ipynb", ".md", ".py", ".js")
            if path.is_file() and not hidden and (lesson or prefix or name.parts[0] == "data"):
                files[prefix + name.as_posix()] = path
    if not any(name.endswith(".ipynb") for name in files):
        raise InvalidArgumentError(
            "this installation has no lessons; install latencykit from its wheel, "
            "or from a complete checkout"
        )
    return files


def copy_lessons(folder: Path, with_solutions: bool = False) -> tuple[list[str], list[str]]:
    """Copy the lessons into a folder, made if need be: names that were written, and were there."""
    from latencykit._files import whole

    written, kept = list[str](), list[str]()
    for name, source in lesson_files(with_solutions).items():
        target = folder / name
        (kept if target.exists() else written).append(name)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole(target) as temporary:  # a part of a lesson would pass for a change
                temporary.write_bytes(_unanswered(name, source.read_bytes()))
    return written, kept


_QUESTION = re.compile(r"\b(ask|draw_prediction)\(")


def _unanswered(name: str, content: bytes) -> bytes:
    """Return a lesson without outputs, collapsed below the first question."""
    if not re.fullmatch(r"\d[^/]*\.ipynb", name):
        return content
    notebook = json.loads(content)
    cells, below = [], False
    for cell in notebook["cells"]:
        cells.append(cell)
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            below |= bool(_QUESTION.search(source))
        elif below and source.startswith("## "):
            # JupyterLab shows the whole cell of a collapsed heading, so the text gets its own.
            heading, _, text = source.partition("\n")
            about = cell["metadata"]
            cell["source"] = heading
            cell["metadata"] = about | {"jp-MarkdownHeadingCollapsed": True}
            skipped = about.get("slideshow", {}).get("slide_type") == "skip"
            if text:
                new = {"id": f"{cell['id']}-text", "metadata": about if skipped else {}}
                cells.append(cell | new | {"source": text.lstrip()})
    notebook["cells"] = cells
    return (json.dumps(notebook, ensure_ascii=False, indent=1) + "\n").encode()


def launch(folder: Path) -> None:
    """Start JupyterLab in a folder, and return when it ends."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingPackageError("jupyterlab", "latencykit lab", "lab")
    options = [
        f"--ServerApp.root_dir={folder.resolve()}",
        "--LabApp.default_url=/lab/tree/README.md",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # The usual user of a container is root, which Jupyter refuses otherwise.
        options.append("--ServerApp.allow_root=True")
    program = own_command("jupyterlab", *options)
    status = subprocess.run(program, check=False).returncode  # noqa: S603
    if status > 0:
        raise InvalidArgumentError(
            f"JupyterLab ended with status {status}; its messages are above; "
            "--no-launch only copies"
        )
