"""latencykit as a web page: a folder for any static web server, with Python for WebAssembly."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from latencykit import __version__
from latencykit._files import whole
from latencykit._records import record
from latencykit.errors import InvalidArgumentError
from latencykit.views.document import allowed
from latencykit.views.markup import esc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@record()
class Runtime:
    """Pyodide: the release that was tested, and what its files have to be.

    Attributes
    ----------
    address : str
        Where the release is published.
    first : Mapping of str to str
        Files that start Python, with their SHA-256; the lock file names those of all packages.
    packages : tuple of str
        Packages that the page starts with, then those that some formats need.
    """

    address: str
    first: Mapping[str, str]
    packages: tuple[tuple[str, ...], tuple[str, ...]]


RUNTIME = Runtime(
    address="https://cdn.jsdelivr.net/pyodide/v314.0.3/full",
    first={
        "pyodide.mjs": "5cfc46f5dcbaf2a16f26e2363f441873eb424762609cc03db00d6a2ace4d00e5",
        "pyodide.asm.mjs": "1a9775427ef6e8abaa7db88ece0515422d1886915ae5c9093776410c865dfd8d",
        "pyodide.asm.wasm": "e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf",
        "python_stdlib.zip": "444c770dfd75a32097fc0a7d5c1413fd3140601f49c3a1f2e9af0376fcd124b4",
        "pyodide-lock.json": "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3",
    },
    packages=(("numpy", "click"), ("pandas", "scipy")),
)

_SUFFIXES = {".py", ".js", ".css", ".json", ".html"}

_EXAMPLES = {
    "a server that froze": "ctrlz-uncorrected.hlog",
    "a day with tags": "redis-tagged.hlog",
    "garbage collection": "jhiccup-gc.hlog",
}


def write_site(folder: Path, runtime: str | None = None) -> Path:
    """Write the page and all that it loads.

    Parameters
    ----------
    folder : Path
        Made if need be; files of the same names are replaced.
    runtime : str, optional
        Folder or address of Pyodide's files; by default where Pyodide publishes them. Every file
        is checked by its SHA-256.

    Returns
    -------
    Path
        The page, ``index.html``.

    Raises
    ------
    InvalidArgumentError
        A file of the runtime is missing, or is not the one that was tested.
    """
    start, later = RUNTIME.packages
    files = {f"pyodide/{name}": data for name, data in runtime_files(start + later, runtime)}
    lock = json.loads(files["pyodide/pyodide-lock.json"])["packages"]
    once_needed = _names(lock, later) - _names(lock, start)
    first = sorted(files.keys() - {f"pyodide/{name}" for name in once_needed})
    files["latencykit.zip"] = _package()
    examples = _examples()
    files |= {f"examples/{name}": data for name, data in examples.values()}
    links = ", ".join(
        f'<button type="button" data-file="examples/{esc(name)}">{esc(label)}</button>'
        for label, (name, _) in examples.items()
    )
    page = _asset("index.html").replace("@EXAMPLES@", links)
    files["index.html"] = page.replace("@POLICY@", _policy("'self'")).encode()
    files["open.html"] = page.replace("@POLICY@", _policy("'self' https:")).encode()
    files |= {name: _asset(name).encode() for name in ("app.css", "app.js", "worker.js")}
    kept = [".", *first, *sorted(name for name in files if not name.startswith("pyodide/"))]
    version = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()[:16]
    offline = _asset("offline.js").replace("@VERSION@", f"{__version__}-{version}")
    files["offline.js"] = offline.replace("@FIRST@", json.dumps(kept)).encode()
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target) as temporary:
            temporary.write_bytes(content)
    return folder / "index.html"


def runtime_files(packages: Iterable[str], place: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files that start Pyodide, and of packages for it.

    Parameters
    ----------
    packages : Iterable of str
        As Pyodide's lock file names them; what they depend on comes along.
    place : str, optional
        Folder or address, see `write_site`.

    Raises
    ------
    InvalidArgumentError
        See `write_site`.
    """
    place = place or RUNTIME.address
    for name, digest in RUNTIME.first.items():
        content = _fetched(place, name, digest)
        yield name, content
        if name == "pyodide-lock.json":
            lock = json.loads(content)["packages"]
    digests = {one["file_name"]: one["sha256"] for one in lock.values()}
    for name in sorted(_names(lock, packages)):
        yield name, _fetched(place, name, digests[name])


def _policy(connect: str) -> str:
    """The page's own files, and the script and style of a report: its frame inherits this."""
    script, style = allowed()
    return (
        f"default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval' {script}; "
        f"style-src 'self' {style}; worker-src 'self' blob:; connect-src {connect}; "
        "frame-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    place = resources.files("latencykit.views").joinpath("assets", "site", name)
    return place.read_text("utf-8")


def _names(lock: Mapping[str, dict[str, list[str]]], packages: Iterable[str]) -> set[str]:
    """Files of packages and of all that they depend on."""
    waiting, found = list(packages), dict[str, str]()
    while waiting:
        name = waiting.pop().lower()
        if name not in found:
            found[name] = str(lock[name]["file_name"])
            waiting += lock[name]["depends"]
    return set(found.values())


def _fetched(place: str, name: str, digest: str) -> bytes:
    """One file, from the cache if it was fetched before."""
    from latencykit.io.files import is_url, opening, storage

    path = f"{place.rstrip('/')}/{name}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "latencykit", digest)
    if not is_url(path):
        if not Path(path).is_file():
            raise InvalidArgumentError(
                f"{place}: no {name} there; expected the files of Pyodide ({RUNTIME.address})"
            )
        content = Path(path).read_bytes()
    elif cache.is_file():
        content = cache.read_bytes()
    else:
        with opening(path):
            system, rest = storage(path)
            content = system.cat_file(rest)
    if hashlib.sha256(content).hexdigest() != digest:
        raise InvalidArgumentError(
            f"{path}: is not the file that latencykit was tested with (SHA-256 {digest[:12]}…); "
            "is it of another release of Pyodide?"
        )
    if is_url(path) and not cache.is_file():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with whole(cache) as temporary:
            temporary.write_bytes(content)
    return content


def _package() -> bytes:
    """The package itself, without lessons and without what was compiled for this machine."""
    root = Path(__file__).resolve().parents[1]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            name = PurePosixPath("latencykit", path.relative_to(root).as_posix())
            left_out = {"_lessons", "__pycache__"} & set(name.parts)
            if (
                path.is_file()
                and not left_out
                and path.suffix in (".py", ".js", ".css", ".json", ".html")
            ):
                # the same bytes whenever and wherever it is written
                archive.writestr(
                    zipfile.ZipInfo(str(name)), path.read_bytes(), zipfile.ZIP_DEFLATED
                )
    return made.getvalue()


def _examples() -> dict[str, tuple[str, bytes]]:
    """Label → name and content of the sample files that are here."""
    package = Path(__file__).resolve().parents[1]
    folders = (package / "_lessons" / "data", package.parent / "data")
    places = {
        label: next((f / name for f in folders if (f / name).is_file()), None)
        for label, name in _EXAMPLES.items()
    }
    return {label: (one.name, one.read_bytes()) for label, one in places.items() if one}
