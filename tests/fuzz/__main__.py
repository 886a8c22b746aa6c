"""Run a target under atheris: coverage-guided, bounded, from the fixtures and the kept corpus.

    python -m tests.fuzz codec --seconds 20
    python -m tests.fuzz sniff --runs 1000000 --corpus /tmp/sniff

What breaks a target is written beside the working corpus, which it says; make it small, mend the
cause, and keep it in ``tests/fuzz/corpus/TARGET``. With ``--go-on`` one input of each kind is
written, and the run goes on.

    python -m tests.fuzz mutations --runs 100000 --seed 1 --jobs 2

needs no atheris: it breaks real outputs in ways that keep their structure, always goes on, and
writes one input of each kind of failure. Every mutation follows from its number, which begins at a
million times the seed.

    python -m tests.fuzz kernel --runs 10000000 --seed 1

makes wild calls of the C loops under AddressSanitizer and UBSan, reads the corpus with them, and
compares their answers with numpy's on mutated payloads.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 1.0
MEBIBYTES = 256
# seconds for real outputs, which are larger: to read, draw from and diagnose all that is in them
_MUTATED = 3.0
_HANG = 30  # seconds of the clock after which an input is given up as one that never ends
_LONGEST = 4 << 10  # bytes of an input
_CLEAR = Path("/proc/self/clear_refs")
_PACKAGES = ("hdr", "io", "core")


def main() -> None:
    """Parse the command line, then hand over to atheris, which never returns, or mutate here."""
    options = _options()
    if options.target == "kernel":
        from tests.fuzz import kernel

        print(kernel.run(options.runs, options.seed))
        return
    if options.target == "mutations":
        sys.exit(mutate(options.runs, options.seconds, options.seed, options.jobs, options.corpus))
    import atheris

    with atheris.instrument_imports(include=["latencykit"]):
        for name in _PACKAGES:
            package = importlib.import_module(f"latencykit.{name}")
            for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                if module.name.endswith("._kernel"):
                    continue  # compiled
                importlib.import_module(module.name)
        targets = importlib.import_module("tests.fuzz.targets")
    folder = options.corpus or Path(tempfile.mkdtemp(prefix=f"fuzz-{options.target}-"))
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(targets.seeds(options.target)):
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
    target = _guarded(targets.TARGETS[options.target])
    atheris.Setup(
        [sys.argv[0], *bound, *settings, str(folder)],
        _going_on(target, folder) if options.go_on else target,
    )
    atheris.Fuzz()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("target", choices=["codec", "log", "sniff", "mutations", "kernel"])
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument(
        "--corpus", type=Path, help="folder that keeps what was found; a new one by default"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes, for mutations")
    parser.add_argument(
        "--go-on",
        action="store_true",
        help="do not stop at a failure; write one input of each kind",
    )
    options = parser.parse_args()
    if not options.seconds and not options.runs:
        parser.error("say how long: --seconds N or --runs N")
    return options


def mutate(runs: int, seconds: int, seed: int, jobs: int, corpus: Path | None) -> int:
    """Mutate real outputs, by number or time, in some processes; 1 if anything failed."""
    import multiprocessing

    folder = corpus or Path(tempfile.mkdtemp(prefix="fuzz-mutations-"))
    folder.mkdir(parents=True, exist_ok=True)
    begin, most = seed * 1_000_000, runs or sys.maxsize
    shares = [(begin + job, begin + most, jobs, seconds, folder) for job in range(jobs)]
    if jobs > 1:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            results = pool.starmap(_mutations, shares, 1)
    else:
        results = [_mutations(*shares[0])]
    kinds = {kind: text for _, kinds in results for kind, text in kinds.items()}
    for text in kinds.values():
        print(text)
    print(
        f"{sum(number for number, _ in results):,} mutations, {len(kinds)} kinds of "
        f"failure{f' in {folder}' if kinds else ''}"
    )
    return 1 if kinds else 0


def _mutations(
    begin: int, end: int, step: int, seconds: int, folder: Path
) -> tuple[int, dict[str, str]]:
    """How many were made, and kind of failure → what is known of the first one."""
    import signal

    from tests.fuzz import mutations

    def stop(*_: object) -> None:
        raise AssertionError(f"not done within {_HANG} s of processor time")

    warnings.simplefilter("error")  # as in the tests
    signal.signal(signal.SIGPROF, stop)
    sources, kinds, done, until = mutations.samples(), {}, 0, time.monotonic() + (seconds or 1e9)
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as place:
        for number in range(begin, end, step):
            if time.monotonic() > until:
                break
            name, suffix, data = mutations.mutated(number, sources)
            path = Path(place) / f"input{suffix}"
            path.write_bytes(data)
            for check in (mutations.library, mutations.command_line)[: 1 + (number % 10 == 0)]:
                signal.setitimer(signal.ITIMER_PROF, _HANG)
                try:
                    _guarded(
                        lambda _, check=check, path=path, number=number: check(path, number),
                        _MUTATED,
                    )(data)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                    kind = _kind_of(error)
                    if kind not in kinds:
                        kinds[kind] = (
                            f"{kind}\n    {number} {check.__name__} {name}\n    "
                            f"{str(error)[:300]!r}"
                        )
                        (folder / f"{number}{suffix}").write_bytes(data)
                        with (folder / "kinds.txt").open("a") as list_of_kinds:
                            list_of_kinds.write(kinds[kind] + "\n")
                signal.setitimer(signal.ITIMER_PROF, 0)
            done += 1
            if done % 1000 == 0:
                (folder / f"done-{begin}").write_text(f"{done}\n")
    return done, kinds


def _kind_of(error: BaseException) -> str:
    """The exception and the last of our own lines below it."""
    cause = error.__cause__ or error
    frames = [
        one
        for one in traceback.extract_tb(cause.__traceback__)
        if "latencykit/" in one.filename or "fuzz" in one.filename
    ]
    where = (
        f"{Path(frames[-1].filename).stem}:{frames[-1].lineno} {frames[-1].name}"
        if frames
        else "elsewhere"
    )
    return f"{type(error).__name__}({type(cause).__name__}) at {where}"


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


def _going_on(target: Callable[[bytes], None], folder: Path) -> Callable[[bytes], None]:
    """The target, where a failure is written down and passed over."""
    known: set[str] = set()

    def going_on(data: bytes) -> None:
        try:
            target(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__}-{Path(place.filename).stem}-{place.lineno}"
            if kind not in known:
                known.add(kind)
                folder.with_name(f"{folder.name}-{kind}").write_bytes(data)
                traceback.print_exception(error)

    return going_on


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
