"""What the package is built and published with."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def test_the_publishing_workflow_pins_its_actions() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used)


@pytest.mark.slow
@pytest.mark.parametrize("junk", ["junk", "", "other counts"])
def test_a_compiler_that_produces_junk_is_noticed(
    junk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "cc"
    fake.parent.mkdir()
    wrong = (
        """sed 's/done += entries;/done += entries + 1;/' "$last" >"$out.c"\n"""
        """/usr/bin/cc -shared -fPIC -o "$out" "$out.c"\n"""
    )
    fake.write_text(
        '#!/bin/sh\nfor last; do [ "$before" = -o ] && out=$last; before=$last; done\n'
        + (wrong if junk == "other counts" else f"printf '{junk}' >\"$out\"\n")
    )  # fmt: skip
    fake.chmod(0o755)
    if junk == "other counts" and not Path("/usr/bin/cc").exists():
        pytest.skip("no C compiler")
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    monkeypatch.setenv("CC", str(fake))
    monkeypatch.setenv(
        "PATH", f"{fake.parent}:/bin" if junk != "other counts" else os.environ["PATH"]
    )
    library = tmp_path / "out" / "_kernel.so"
    monkeypatch.setitem(build["_compile"].__globals__, "shutil", _only(fake))
    problem = build["_compile"](ROOT / "latencykit/core/kernel.c", library, [])
    assert problem
    assert not library.exists()
    if junk == "other counts":
        assert "other counts" in problem


def _only(compiler: Path) -> Any:
    """A `shutil` that finds one compiler."""

    class Shutil:
        @staticmethod
        def which(name: str) -> str | None:
            return name if name == str(compiler) else None

    return Shutil
