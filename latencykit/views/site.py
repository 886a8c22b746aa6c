"""latencykit as a web page: a folder for any static web server, with Python for WebAssembly."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from latencykit import __version__
from latencykit._files import whole
from latencykit._records import record
from latencykit._text import esc
from latencykit.errors import InvalidArgumentError, LatencyKitError
from latencykit.views.document import allowed


@record()
class Runtime:
    """Pyodide: the release that was tested, and what its files have to be."""

    address: str  # where the release is published
    first: Mapping[str, str]  # files that start Python → SHA-256; the lock file has the packages'
    packages: tuple[tuple[str, ...], tuple[str, ...]]  # of the page's start, and of some formats


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

_ENGINE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
_LIBRARY = "python_stdlib.zip"
_SUFFIXES = {".py", ".js", ".css", ".csv", ".json", ".html"}
_UNUSED = {".pyi", ".pxd", ".h", ".hpp", ".c", ".f", ".a"}
"""Files of packages for type checkers and compilers."""

_EXAMPLES = {
    "a server that froze": "ctrlz-uncorrected.hlog",
    "a day with tags": "redis-tagged.hlog",
    "garbage collection": "jhiccup-gc.hlog",
}


def write_site(folder: Path, runtime: str | None = None) -> Path:
    """Write the page and all that it loads into a folder; return the page, ``index.html``."""
    # Files of the same names are replaced. ``pyodide`` has Python itself, ``python`` the packages,
    # which start sooner if node is there to compile them. The runtime is the folder or address of
    # Pyodide's files; by default where Pyodide publishes them. Every file is checked by its
    # SHA-256.
    fetched = dict(runtime_files(itertools.chain(*RUNTIME.packages), runtime))
    files = {f"pyodide/{name}": fetched[name] for name in _ENGINE}
    python, needed = _python(fetched)
    files |= {f"python/{name}": content for name, content in python.items()}
    # Label → name and content of the sample files that are here.
    package = Path(__file__).resolve().parents[1]
    folders = (package / "_lessons" / "data", package.parent / "data")
    places = {
        label: next((f / name for f in folders if (f / name).is_file()), None)
        for label, name in _EXAMPLES.items()
    }
    examples = {label: (one.name, one.read_bytes()) for label, one in places.items() if one}
    files |= {f"examples/{name}": data for name, data in examples.values()}
    links = ", ".join(
        f'<button type="button" data-file="examples/{esc(name)}">{esc(label)}</button>'
        for label, (name, _) in examples.items()
    )
    page = _asset("index.html").replace("@EXAMPLES@", links)
    files["index.html"] = page.replace("@POLICY@", _policy("'self'")).encode()
    files["open.html"] = page.replace("@POLICY@", _policy("'self' https:")).encode()
    files |= {name: _asset(name).encode() for name in ("app.css", "app.js", "worker.js")}
    later = {f"python/{name}" for name in python.keys() - needed}
    version = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()[:16]
    offline = _asset("offline.js").replace("@VERSION@", f"{__version__}-{version}")
    kept = [".", *sorted(files.keys() - later)]
    files["offline.js"] = offline.replace("@FIRST@", json.dumps(kept)).encode()
    _write(folder, files)
    return folder / "index.html"


def runtime_files(packages: Iterable[str], place: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files that start Pyodide, and of packages for it."""
    # Packages are named as in Pyodide's lock file; what they depend on comes along.
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
    cache = _cache(digest)
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
        _keep(cache, content)
    return content


def _cache(digest: str) -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "latencykit", digest)


def _keep(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole(target) as temporary:
        temporary.write_bytes(content)


def _python(fetched: Mapping[str, bytes]) -> tuple[dict[str, bytes], set[str]]:
    """Archives of Python and all packages, their lock, and which of them the page starts with."""
    whole_lock = json.loads(fetched["pyodide-lock.json"])
    first, later = (_names(whole_lock["packages"], names) for names in RUNTIME.packages)
    start = {name: _members(fetched[name]) for name in (_LIBRARY, *sorted(first))}
    # Files of latencykit, without lessons and without what was compiled for this machine.
    root = Path(__file__).resolve().parents[1]
    files = {
        path.relative_to(root.parent).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.suffix in _SUFFIXES and "_lessons" not in path.parts
    }
    start["latencykit.zip"] = files
    # Archives as ``assets/site/compile.mjs`` makes them; of sources where node is missing.
    node, script = shutil.which("node"), _asset("compile.mjs")
    kept = {  # they depend on nothing else
        name: _cache(hashlib.sha256(script.encode() + fetched[name]).hexdigest())
        for name in later - first
    }
    made = {name: path.read_bytes() for name, path in kept.items() if node and path.is_file()}
    archives: dict[str, bytes] = {}
    with TemporaryDirectory() as temporary:
        folder, runtime = Path(temporary, "packages"), Path(temporary, "pyodide")
        for name, members in start.items():
            _write(folder / "start" / name, members)
        for name in kept.keys() - made.keys():
            _write(folder / "later" / name, _members(fetched[name]))
        if node:
            _write(runtime, {**fetched, "compile.mjs": script.encode()})
            command = [node, str(runtime / "compile.mjs"), str(runtime), str(folder)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
            if done.returncode:
                raise LatencyKitError(f"node could not compile the packages: {done.stderr[-500:]}")
        for place in sorted(folder.glob("*/*")):
            # A zip file of the same bytes whenever and wherever it is written.
            zipped = io.BytesIO()
            with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
                for path in sorted(place.rglob("*")):
                    if path.is_file():
                        entry = zipfile.ZipInfo(path.relative_to(place).as_posix())
                        archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
            archives[place.name] = zipped.getvalue()
    if node:
        for name in archives.keys() & kept.keys():
            _keep(kept[name], archives[name])
    archives |= made
    packages = {
        name: entry | {"sha256": hashlib.sha256(archives[entry["file_name"]]).hexdigest()}
        for name, entry in whole_lock["packages"].items()
        if entry["file_name"] in archives
    }
    packages["latencykit"] = {
        "name": "latencykit",
        "version": __version__,
        "file_name": "latencykit.zip",
        "sha256": hashlib.sha256(archives["latencykit.zip"]).hexdigest(),
        "package_type": "package",
        "install_dir": "site",
        "imports": ["latencykit"],
        "depends": list(RUNTIME.packages[0]),
        "unvendored_tests": False,
    }
    lock = json.dumps(whole_lock | {"packages": packages}).encode()
    return {"lock.json": lock, **archives}, {"lock.json", *start}


def _members(archive: bytes) -> dict[str, bytes]:
    """The files of a package, without its tests and what only compilers and type checkers read."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        files = {
            name: opened.read(name)
            for name in opened.namelist()
            if not {"tests", "f2py"} & set(PurePosixPath(name).parts)
            and PurePosixPath(name).suffix not in _UNUSED
            and not name.endswith("/")
        }
        left_out = "numpy/f2py/__init__.py"  # "from numpy import *", as scipy has it, imports it
        return files | ({left_out: b""} if left_out in opened.namelist() else {})


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        _keep(folder / name, content)
