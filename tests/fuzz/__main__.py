"""Run a target under atheris: coverage-guided, bounded, from the fixtures and the kept corpus.

    python -m tests.fuzz codec log sniff --seconds 20
    python -m tests.fuzz sniff --runs 1000000 --corpus /tmp/fuzz

What breaks a target is written beside the working corpus, which it says; make it small, mend the
cause, and keep it in ``tests/fuzz/corpus/TARGET``. ``python -m tests.benchmarks.hostile --mutants N``
needs no atheris: it breaks real outputs in ways that keep their structure.

    python -m tests.fuzz kernel --runs 10000000 --seed 1

makes wild calls of the C loops under AddressSanitizer and UBSan, reads the corpus with them, and
compares their answers with numpy's on mutated payloads.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 1.0
MEBIBYTES = 256
_HANG = 30  # seconds of the clock after which an input is given up as one that never ends
_LONGEST = 4 << 10  # bytes of an input
_CLEAR = Path("/proc/self/clear_refs")
_PACKAGES = ("hdr", "io", "core")


def main() -> None:
    """Parse the command line, then fuzz each target in a process of its own, or mutate here."""
    options = _options()
    if "kernel" in options.targets:
        from tests.fuzz import kernel

        print(kernel.run(options.runs, options.seed))
        return
    import atheris
    import pandas  # noqa: F401, ICN001 - or the first input that needs it takes its time

    with atheris.instrument_imports(include=["latencykit"]):
        for name in _PACKAGES:
            package = importlib.import_module(f"latencykit.{name}")
            for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                if module.name.endswith("._kernel"):
                    continue  # compiled
                importlib.import_module(module.name)
        targets = importlib.import_module("tests.fuzz.targets")
    for name in options.targets:  # to instrument the imports takes longer than a short run
        if child := os.fork():
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status:
                sys.exit(f"{name} ended with status {status}")
        else:
            _fuzz(name, targets, options)


def _fuzz(name: str, targets: Any, options: argparse.Namespace) -> None:
    """Hand over to atheris, which never returns."""
    import atheris

    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    if options.corpus:
        folder = options.corpus / name
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(targets.seeds(name)):
        (folder / f"seed-{number:04}").write_bytes(data)
    bound = [f"-max_total_time={options.seconds}"] if options.seconds else []
    bound += [f"-runs={options.runs}"] if options.runs else []
    settings = [
        f"-artifact_prefix={folder.parent / folder.name}-",
        f"-timeout={_HANG}",
        f"-max_len={_LONGEST}",
    ]
    settings += ["-rss_limit_mb=0", "-print_final_stats=1", f"-seed={options.seed}"]
    warnings.simplefilter("error")  # as in the tests
    target = _guarded(targets.TARGETS[name])
    atheris.Setup([sys.argv[0], *bound, *settings, str(folder)], target)
    atheris.Fuzz()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("targets", nargs="+", choices=["codec", "log", "sniff", "kernel"])
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument(
        "--corpus",
        type=Path,
        help="folder that keeps what is found, in one of each target; a new one by default",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.seconds and not options.runs:
        parser.error("say how long: --seconds N or --runs N")
    return options


def _guarded(target: Callable[[bytes], None], seconds: float = SECONDS) -> Callable[[bytes], None]:
    """The target, where an input that takes too long or too much memory is a failure, too."""

    def guarded(data: bytes) -> None:
        _CLEAR.write_bytes(b"5")  # the peak begins anew: atheris itself keeps some KiB an execution
        before, begin = _peak(), time.process_time()
        target(data)
        took, grown = time.process_time() - begin, (_peak() - before) >> 10
        assert took <= seconds, f"{took:.1f} s of processor time; {seconds} s are allowed"
        assert grown <= MEBIBYTES, f"{grown} MiB of memory; {MEBIBYTES} are allowed"

    return guarded


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
