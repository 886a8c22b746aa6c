"""Readers of logs in other languages, built where their toolchain is installed.

Each adds all intervals of a log up and takes p50, p99 and the maximum of each, and prints count,
maximum and the sum of the series. ``HDRHISTOGRAM_JAR`` and ``HDRHISTOGRAM_C`` (a source tree)
choose sources; otherwise the package clients fetch them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

__all__ = ["PEERS", "build"]

HERE = Path(__file__).parent
PEERS = ("Rust crate", "HdrHistogram_c", "Go", "Java")


def build(folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Return a command per peer that could be built, and a line per peer that could not."""
    commands, missing = {}, []
    makers = dict(zip(PEERS, (_rust, _c, _go, _java), strict=True))
    for name, make in makers.items():
        place = folder / name.replace(" ", "-").lower()
        place.mkdir(parents=True, exist_ok=True)
        try:
            commands[name] = make(place)
        except (OSError, subprocess.CalledProcessError) as error:
            message = getattr(error, "stderr", None) or str(error)
            missing.append(f"{name}: {message.strip().splitlines()[-1]}")
    return commands, missing


def _run(*command: str | Path, where: Path) -> None:
    program = shutil.which(str(command[0]))
    if program is None:
        raise FileNotFoundError(f"{command[0]} is not installed")
    arguments = [program, *map(str, command[1:])]
    subprocess.run(arguments, cwd=where, check=True, capture_output=True, text=True)


def _rust(place: Path) -> list[str]:
    target = str(place / "target")
    _run("cargo", "build", "-q", "--release", "--target-dir", target, where=HERE / "rust")
    return [str(place / "target/release/peer")]


def _go(place: Path) -> list[str]:
    shutil.copytree(HERE / "go", place, dirs_exist_ok=True)
    _run("go", "mod", "tidy", where=place)
    _run("go", "build", "-o", "peer", ".", where=place)
    return [str(place / "peer")]


def _c(place: Path) -> list[str]:
    """Its sources with zlib: from ``HDRHISTOGRAM_C``, or from the npm package that carries them."""
    if "HDRHISTOGRAM_C" in os.environ:
        sources = Path(os.environ["HDRHISTOGRAM_C"])
    else:
        _run("npm", "pack", "native-hdr-histogram@1.0.0", where=place)
        with tarfile.open(next(place.glob("*.tgz"))) as archive:
            archive.extractall(place, filter="data")
        sources = place / "package/HdrHistogram_c/src"
    parts = ("histogram", "histogram_log", "encoding", "time")
    files = [sources / f"hdr_{part}.c" for part in parts]
    zlib = place / "package/zlib"
    names = "adler32 compress crc32 deflate inflate inftrees inffast trees zutil uncompr"
    bundled = [zlib / f"{name}.c" for name in names.split()] if zlib.exists() else []
    include = (f"-I{sources}", f"-I{zlib}") if bundled else (f"-I{sources}",)
    libraries = ("-lm",) if bundled else ("-lz", "-lm")
    options = ("-O2", "-w", "-o", "peer", *include)
    _run("cc", *options, HERE / "peer.c", *files, *bundled, *libraries, where=place)
    return [str(place / "peer")]


def _java(place: Path) -> list[str]:
    jars = sorted(Path.home().glob(".m2/repository/org/hdrhistogram/HdrHistogram/*/*.jar"))
    if "HDRHISTOGRAM_JAR" in os.environ:
        jars = [Path(os.environ["HDRHISTOGRAM_JAR"])]
    if not jars:
        raise FileNotFoundError("no jar of HdrHistogram; set HDRHISTOGRAM_JAR")
    _run("javac", "-cp", jars[-1], "-d", place, HERE / "Peer.java", where=place)
    return ["java", "-cp", f"{jars[-1]}{os.pathsep}{place}", "Peer"]
