"""The lessons in the browser: JupyterLite beside the page ``try/``, with whose Python they run."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from latencykit.cli.lab import copy_lessons
from latencykit.errors import LatencyKitError
from latencykit.views.site import runtime_files

NEEDED = ("jupyterlite_core", "jupyterlite_pyodide_kernel", "jupyter_server", "ipywidgets", "anywidget")
EXTENSIONS = ("@jupyterlite/pyodide-kernel-extension", "@jupyter-widgets/jupyterlab-manager", "anywidget")
RELEASED = ("numpy", "click", "pandas", "scipy", "matplotlib", "packaging", "micropip")
"""Packages of Pyodide's release."""
KERNEL = ("piplite", "pyodide_kernel", "ipykernel")
"""Packages that the kernel's extension brings along."""
PURE = (
    "ipython==9.12.0", "asttokens==3.0.2", "decorator==5.3.1", "executing==2.3.0", "ipython-pygments-lexers==1.1.1", "jedi==0.20.1",
    "matplotlib-inline==0.2.2", "parso==0.8.7", "prompt-toolkit==3.0.53", "pure-eval==0.2.4", "pygments==2.21.0", "stack-data==0.6.3",
    "traitlets==5.16.1", "wcwidth==0.9.4", "comm==0.2.3", "psygnal==0.16.1", "typing-extensions==4.16.0",
    *(f"{name}=={version(name)}" for name in ("ipywidgets", "anywidget") if find_spec(name)),
)  # fmt: skip
"""Pure-Python packages of the kernel and of the controls; their front ends are those that are installed."""

_LINK = """<p class="in-the-browser"><a href="../lite/notebooks/index.html?path={}.ipynb">Open in the browser</a> to run the cells,
change them and check your answers. There is nothing to install, and nothing is uploaded: Python runs in the page, after a
download of some 45 MB.</p>"""
_LOCK = "lessons-lock.json"
_PLUGIN = "@jupyterlite/pyodide-kernel-extension:kernel"


@functools.cache
def missing() -> str:
    """Return why the lessons cannot be built here; empty where they can."""
    if not (runtime := os.environ.get("LATENCYKIT_PYODIDE")):
        return "LATENCYKIT_PYODIDE names no folder or address of Pyodide"
    if packages := [name for name in NEEDED if find_spec(name) is None]:
        return f"not installed: {', '.join(packages)} (the extra docs has them)"
    try:
        dict(runtime_files(RELEASED, runtime))
    except LatencyKitError as error:  # a file that the page can do without, such as micropip's
        return str(error)
    return ""


def link(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:  # noqa: ARG001 - Sphinx's signature
    """Link a lesson's page to the lesson in the browser, where that is built."""
    folder, _, name = page.partition("/")
    if folder == "lessons" and name[0].isdigit() and not missing():
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{_LINK.format(name)}", 1)


def write(app: Any, error: Exception | None) -> None:
    """Write the lessons into the finished site, where Python for it can be had."""
    if error is not None or app.builder.format != "html":
        return
    if reason := missing():
        print(f"the lessons in the browser, lite/, are left out: {reason}")
    else:
        write_lessons(Path(app.outdir), os.environ["LATENCYKIT_PYODIDE"])


def write_lessons(site: Path, runtime: str) -> None:
    """Write ``lite/`` beside ``try/`` in a site; Python and packages are those of ``try/``."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copy_lessons(place / "files")
        for path in (place / "files").rglob("*.json.gz"):  # JupyterLite takes every .json… for JSON
            path.rename(path.with_name(path.name.replace(".json", "")))
        python, packages = _locked(site / "try", runtime, place)
        options = {"lockFileURL": f"../try/{python}/{_LOCK}", "stdLibURL": f"../try/{python}/python_stdlib.zip", "packages": packages}
        kernel = {"pyodideUrl": "./../try/pyodide/pyodide.mjs", "disablePyPIFallback": True, "loadPyodideOptions": options}
        config = {"appName": "latencykit: lessons", "litePluginSettings": {_PLUGIN: kernel}}
        about = {"jupyter-lite-schema-version": 0, "jupyter-config-data": config}
        (place / "jupyter-lite.json").write_text(json.dumps(about), "utf-8")
        building = {
            "LiteBuildConfig": {
                "contents": [str(place / "files")],
                "output_dir": str(site / "lite"),
                "apps": ["lab", "notebooks"],
                "ignore_sys_prefix": ["federated_extensions"],
                "federated_extensions": [str(_extension(name)) for name in EXTENSIONS],
                "no_sourcemaps": True,
                "no_unused_shared_packages": True,
            }
        }
        (place / "jupyter_lite_config.json").write_text(json.dumps(building), "utf-8")
        shutil.rmtree(site / "lite", ignore_errors=True)
        _run("-m", "jupyterlite_core", "build", "--lite-dir", folder, cwd=folder)
    for listing in (site / "lite" / "api" / "contents").rglob("all.json"):
        _keep_bytes(listing)


def _keep_bytes(listing: Path) -> None:
    """Say that compressed files are not text; by their names, as .csv.gz, they are taken for it."""
    about = json.loads(listing.read_text("utf-8"))
    for one in about["content"]:
        if one["name"].endswith(".gz"):
            one["mimetype"] = "application/gzip"
    listing.write_text(json.dumps(about), "utf-8")


def _run(*words: str, **options: Any) -> None:
    """Run a program of this Python, and show what it wrote if it fails."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}\n{done.stderr}")


def _extension(name: str) -> Path:
    """The folder of an extension of JupyterLab, wherever it is installed."""
    from jupyter_core.paths import jupyter_path

    places = [Path(one, name) for one in jupyter_path("labextensions")]
    return next(one for one in places if one.is_dir())


def _locked(page: Path, runtime: str, place: Path) -> tuple[str, list[str]]:
    """Add what the lessons need to the packages of the page; return their folder, and what starts with Python."""
    lock = next(one for one in page.glob("py*/*lock.json") if one.name != _LOCK)
    released = dict(runtime_files(RELEASED, runtime))
    all_packages = json.loads(released["pyodide-lock.json"])
    packages = all_packages["packages"] | json.loads(lock.read_text("utf-8"))["packages"]
    for name, content in released.items():
        if name.endswith(".whl") and not (lock.parent / name).exists():
            (lock.parent / name).write_bytes(content)
    python = str(all_packages["info"]["python"]).rpartition(".")[0]
    target = ("--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none", f"--python-version={python}")
    _run("-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps", "-d", str(place / "wheels"), *target, *PURE)
    bundled = _extension(EXTENSIONS[0]) / "static" / "pypi"
    wheels = [*(place / "wheels").glob("*.whl"), *(path for name in KERNEL for path in bundled.glob(f"{name}-*.whl"))]
    own = {entry["name"]: entry for entry in map(_entry, sorted(wheels))}
    for wheel in wheels:
        shutil.copy(wheel, lock.parent)
    archive = next(page.glob("**/latencykit.zip"))
    address = os.path.relpath(archive, lock.parent).replace(os.sep, "/")
    own["latencykit"] = _entry(archive) | {"file_name": address, "imports": ["latencykit"]}
    (lock.parent / _LOCK).write_text(json.dumps(all_packages | {"packages": packages | own}), "utf-8")
    return lock.parent.name, [*RELEASED, *own]


def _entry(file: Path) -> dict[str, Any]:
    """A package, as Pyodide's lock file describes one."""
    name, release = [*file.stem.split("-"), "0"][:2]
    return {
        "name": name.lower().replace("_", "-"),
        "version": release,
        "file_name": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "install_dir": "site",
        "package_type": "package",
        "imports": [],
        "depends": [],
        "unvendored_tests": False,
    }
