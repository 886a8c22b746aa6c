"""Commands as a web page runs them: asked for and answered in JSON, in Python within a browser.

The page's worker (``views/assets/site/worker.js``) puts files into ``/files`` and calls `answer`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

_PACKAGES = {"pandas", "scipy"}
"""Large packages that the page loads once a format needs them."""

_REPORT = "report.html"

_LOG = "0.000,1.000,0.000,HISTFAAAAB542pNpmSzMwMDAyAABzFAawv///7/9B6gIAF2UBXg=\n"
"""One request, to import what nearly every report needs."""


def warm_up() -> None:
    """Make a report, so that the first one that somebody waits for starts sooner."""
    with TemporaryDirectory() as folder:
        Path(folder, "a.hlog").write_text(_LOG, "utf-8")
        answer(json.dumps({"command": "report", "files": ["a.hlog"]}), folder)


def answer(request: str, folder: str = "/files") -> str:
    """Run one command over the files of a folder and return what it says, both as JSON."""
    # A request has `command` (report, diagnose, explain, compare), `files` (names), `unit`, `slo`,
    # `column`, `series`, `base`, `columns` (characters of a line). The reply has `command` (as the
    # command line takes it), `status`, `text`, `notes`, of a report also `html` and the names of
    # its `series`. With `needs`, there are packages to load before asking again: a report is
    # complete only then, and other commands have no answer before.
    asked = json.loads(request)
    os.environ["COLUMNS"] = str(asked.get("columns") or 80)
    files, base, page = list(asked["files"]), asked.get("base"), asked["command"] == "report"
    if asked["command"] == "compare" and base in files:
        files = [base, *(name for name in files if name != base)]
    words = [asked["command"], *files]
    for key in ("unit", "column", "series", *(["slo"] if page else [])):
        words += [f"--{key}", str(asked[key])] if asked.get(key) else []
    words += ["-o", _REPORT] if page else []
    before = Path.cwd()
    with TemporaryDirectory() as desk:
        for name in asked["files"]:
            Path(desk, name).symlink_to(Path(folder, name))
        os.chdir(desk)
        try:
            reply = _run(words)
            if page and reply.get("status") == 0:
                html = Path(_REPORT).read_text("utf-8")
                start = html.index("id='model'>") + len("id='model'>")
                model, _ = json.JSONDecoder().raw_decode(html, start)
                shown = [str(one["name"]) for one in model["series"] if not one["derived"]]
                reply |= {"html": html, "series": shown}
        finally:
            os.chdir(before)
    return json.dumps({"command": shlex.join(["latencykit", *words]), **reply})


def _run(words: Sequence[str]) -> dict[str, object]:
    """What a command prints, and its status; or the packages that it needs, or both."""
    from latencykit.cli import main

    missing = _Missing()
    out, err = io.StringIO(), io.StringIO()
    sys.meta_path.append(missing)
    status: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(words)
    except SystemExit as end:
        status = end.code
    except ModuleNotFoundError:
        if not missing.found:
            raise
        status = 1
    finally:
        sys.meta_path.remove(missing)
    needs: dict[str, object] = {"needs": missing.found} if missing.found else {}
    if status and needs:
        return needs
    notes = [line for line in err.getvalue().splitlines() if line != f"wrote {_REPORT}"]
    return {"status": status, "text": out.getvalue(), "notes": "\n".join(notes)} | needs


class _Missing:
    """Notes which of the packages that can be loaded were looked for in vain."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def find_spec(self, name: str, *_: object) -> None:
        if name in _PACKAGES and name not in self.found:
            self.found.append(name)
