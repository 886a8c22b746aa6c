"""A folder or bucket with one file per run, each written once and never changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from latencykit._files import naming
from latencykit._text import without_secrets
from latencykit._threads import THREADS
from latencykit.errors import InvalidArgumentError, require_path
from latencykit.io.files import is_url, opening, storage

_SUFFIX = ".jsonl"
_AT_ONCE = 32  # requests to a bucket


class Store:
    """Named runs as bytes."""

    # A file appears complete, under a name made of its content: two writers cannot collide, and
    # adding a run again changes nothing. What a killed writer leaves has another suffix.

    def __init__(self, place: str | os.PathLike[str]) -> None:
        require_path(place)
        self.place = os.fspath(place)
        self._remote = is_url(self.place)
        if self.place.startswith("file://"):
            self.place, self._remote = self.place.removeprefix("file://"), False
        if not self.place:
            raise InvalidArgumentError("the store is an empty string; expected a folder or a URL")
        if not self._remote and Path(self.place).is_file():
            raise InvalidArgumentError(f"{self.place}: is a file; a store is a folder or a URL")

    def __repr__(self) -> str:
        return f"Store({without_secrets(self.place)!r})"

    def names(self) -> list[str]:
        """Return the names of all runs, in the order of their times."""
        if not (self._remote or Path(self.place).is_dir()):  # a bucket has no folder
            return []
        if self._remote:
            system, path = storage(self.place)
            with opening(self.place):
                try:
                    found = [str(entry) for entry in system.ls(path, detail=False, refresh=True)]
                except FileNotFoundError:  # an empty bucket has no folder
                    found = []
            files = [entry.rstrip("/").rpartition("/")[2] for entry in found]
        else:
            files = os.listdir(self.place)  # noqa: PTH208 - for thousands of files
        return sorted(
            name.removesuffix(_SUFFIX)
            for name in files
            if name.endswith(_SUFFIX) and not name.startswith(".")
        )

    def added(self, name: str) -> float:
        """Return when a run was written, ns; 0 in a bucket."""
        return 0 if self._remote else os.stat(f"{self.place}/{name}{_SUFFIX}").st_mtime_ns  # noqa: PTH116

    def read(self, names: Sequence[str]) -> list[bytes | Exception]:
        """Return the content of runs; an error where one cannot be read."""
        if not self._remote:
            return [self._local(name) for name in names]
        system, path = storage(self.place)

        def fetched(name: str) -> bytes | Exception:
            try:
                with opening(f"{self.place.rstrip('/')}/{name}{_SUFFIX}"):
                    content: bytes = system.cat_file(f"{path.rstrip('/')}/{name}{_SUFFIX}")
                    return content
            except Exception as error:  # noqa: BLE001 - reported by name, the rest is read
                return error

        if not THREADS:
            return list(map(fetched, names))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(fetched, names))

    def _local(self, name: str) -> bytes | Exception:
        try:
            with open(f"{self.place}/{name}{_SUFFIX}", "rb", buffering=0) as stream:  # noqa: PTH123
                return stream.read()
        except OSError as error:
            return error

    def write(self, name: str, content: bytes) -> str:
        """Write a run, unless it is there, and return its place."""
        if self._remote:
            system, path = storage(self.place)
            place = f"{self.place.rstrip('/')}/{name}{_SUFFIX}"
            with opening(place):
                system.makedirs(path, exist_ok=True)
                system.pipe_file(f"{path.rstrip('/')}/{name}{_SUFFIX}", content)
            return str(without_secrets(place))
        folder = Path(self.place)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgumentError(f"{folder}: cannot be made: {error.strerror}") from error
        target = folder / f"{name}{_SUFFIX}"
        if not target.exists():
            # Not `new_temporary`: it looks through the folder, which has thousands of files here.
            # Threads, and containers with one folder, may share a process id.
            temporary = folder / f".{name}.{os.urandom(8).hex()}.part"
            try:
                with naming(target, temporary):
                    temporary.write_bytes(content)
                    temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        return str(target)
