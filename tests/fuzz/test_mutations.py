"""Mutated real outputs: a bounded share of them, and all that ever broke something."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

import latencykit as lk
from tests.fuzz import mutations
from tests.fuzz.__main__ import _guarded
from tests.fuzz.targets import CORPUS

KEPT = sorted((CORPUS / "mutations").iterdir())


@pytest.fixture(scope="module")
def sources() -> list[tuple[str, str, bytes]]:
    return mutations.samples()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads peaks from /proc")
def test_no_mutant_of_any_format_takes_much(
    sources: list[tuple[str, str, bytes]], tmp_path: Path
) -> None:
    """One kind of mutation of each format, another one from format to format."""
    kinds = len(mutations.STRUCTURAL)
    of_formats = {Path(name).parents[1]: number for number, (name, *_) in enumerate(sources)}
    for place, number in enumerate(of_formats.values()):
        name, suffix, data = sources[number]
        kind = place % kinds
        seed = number * kinds + kind
        path = tmp_path / f"input{suffix}"
        path.write_bytes(mutations.structural(data, seed))

        def read(_: bytes, path: Path = path) -> None:
            with contextlib.suppress(lk.LatencyKitError):
                for series in lk.read_all(path, lenient=True, unit="ms").values():
                    series.summary()

        try:
            _guarded(read, 15.0)(data)
        except Exception as error:
            error.add_note(f"{name}, {mutations.STRUCTURAL[kind].__name__}")
            raise


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in KEPT])
def test_what_a_mutation_once_broke_is_not_broken(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / f"input{path.suffix}"
    shutil.copy(path, copy)
    for number in (0, 1, 3, 5):  # leniently, strictly, diagnosed, and both
        mutations.library(copy, number)
    mutations.command_line(copy, 0)


@pytest.mark.parametrize("what", ["a reader's bug", "nonsense"])
def test_the_oracle_sees_what_is_wrong(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "input.txt"
    path.write_text("x")
    broken = lk.Summary({"min": 9e9, "max": 1e6}) if what == "nonsense" else None

    def read_all(*_: object, **__: object) -> dict[str, lk.Summary]:
        if broken is None:
            raise mutations.ReaderError(f"{path}: the reader broke")
        return {"": broken}

    monkeypatch.setattr(lk, "read_all", read_all)
    with pytest.raises((mutations.ReaderError, AssertionError)):
        mutations.library(path, 1)
