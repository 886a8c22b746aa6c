"""Compiles the C sources where there is a compiler; elsewhere the wheel is pure Python.

``LATENCYKIT_KERNEL=no`` compiles nothing, ``=yes`` fails where the kernel cannot be compiled.
``python hatch_build.py`` compiles into the source tree, as ``pip install -e .`` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    BuildHookInterface = object

_WINDOWS = sys.platform == "win32"
KERNEL = "latencykit/core/_kernel" + (".dll" if _WINDOWS else ".so")
_FLAGS = ["-std=c99", "-O3", "-ffp-contract=off", "-shared", "-fvisibility=hidden"]


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc, valid-type]
    """Adds what was compiled to the wheel, and names the platform in its tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        root = Path(self.root)
        if version == "editable":
            compile_all(root, root)
            return
        self._folder = tempfile.TemporaryDirectory()
        made = compile_all(root, Path(self._folder.name))
        if not made:
            return
        from packaging.tags import sys_tags

        # The functions are called by ctypes: any Python, but one platform, and no promise about its
        # C library's age.
        platforms = (tag.platform for tag in sys_tags())
        platform = next(
            name for name in platforms if "linux" not in name or name.startswith("linux")
        )
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        for name in made:
            build_data["force_include"][str(Path(self._folder.name, name))] = name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled; the wheel has it."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def compile_all(root: Path, out: Path) -> list[str]:
    """Compile the sources of `root` into `out`; return the names of what could be compiled."""
    choice = os.environ.get("LATENCYKIT_KERNEL", "")
    if choice == "no":
        return []
    problem = _compile(root / "latencykit/core/kernel.c", out / KERNEL, [])
    if problem and choice == "yes":
        raise RuntimeError(f"LATENCYKIT_KERNEL=yes, but the kernel cannot be compiled: {problem}")
    return [] if problem else [KERNEL]


def _compile(source: Path, library: Path, flags: list[str]) -> str | None:
    """Compile with the first compiler that can; return what was wrong, or None."""
    library.parent.mkdir(parents=True, exist_ok=True)
    named = os.environ.get("CC") or sysconfig.get_config_var("CC") or ""
    problem = "there is no C compiler"
    if not _WINDOWS:
        flags = [*flags, "-fPIC"]
    for compiler in (named, "cc", "gcc", "clang"):
        command = compiler.split()
        if not command or shutil.which(command[0]) is None:
            continue
        fresh = library.with_name(f"{library.name}.new")  # a process may be using the old one
        done = subprocess.run(
            [*command, *_FLAGS, *flags, "-o", str(fresh), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and fresh.exists():
            done = _tried(fresh)
            if done.returncode == 0:
                fresh.replace(library)
                return None
        fresh.unlink(missing_ok=True)
        problem = (done.stderr.strip().splitlines() or [f"{command[0]} failed"])[-1]
    return problem


_TRIAL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
numbers, address, number = ctypes.c_int64 * 3, ctypes.c_void_p, ctypes.c_int64
begins, ends, slots = numbers(0), numbers(3), numbers(9)
indptr, index, counts, sums = numbers(), numbers(), numbers(), numbers()
decode, arrays = library.lk_rows, [address] * 3
decode.restype = number
decode.argtypes = [
    ctypes.c_char_p, number, *arrays[:2], number, address, number, *arrays, number, address, number
]
decode(bytes([2, 1, 4]), 3, begins, ends, 1, slots, 0, indptr, index, counts, 3, sums, 3)
decode(bytes([2, 1, 4]), 3, begins, ends, 1, slots, 0, indptr, None, None, 0, sums, 3)
if [*indptr, *index, *counts, *sums] != [0, 0, 0, 0, 2, 0, 1, 2, 0, 2, 0, 4]:
    sys.exit("what it compiled decodes other counts")
"""


def _tried(library: Path) -> subprocess.CompletedProcess[str]:
    """Load a library in a process of its own, which wrong code may end, and decode a row."""
    command = [sys.executable, "-I", "-c", _TRIAL, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    here = Path(__file__).parent
    print(*(compile_all(here, here) or ["nothing was compiled"]), sep="\n")
