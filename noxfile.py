#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The verbs of development: `nox -l` lists them, `nox` runs the three that take a minute.

Each is a part of `.ci/run`, which CI calls too.
"""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


def _run(session: nox.Session, part: str, extras: str) -> None:
    session.install("-e", f".[{extras}]")
    python = session.run("python", "-c", "import sys; print(sys.executable)", silent=True)
    session.run(
        "bash", ".ci/run", part, *session.posargs, external=True, env={"PYTHON": python.strip()}
    )


@nox.session
def quick(session: nox.Session) -> None:
    """Run the quick tests: those of the README's command."""
    _run(session, "quick", "test")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, layers and language."""
    _run(session, "lint", "dev")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    _run(session, "types", "dev,lab")


@nox.session(default=False)
def tests(session: nox.Session) -> None:
    """Run all tests."""
    _run(session, "tests", "test,lab,docs")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site into build/site."""
    _run(session, "docs", "docs")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure speed, on sizes too small to quote."""
    _run(session, "bench", "dev")


if __name__ == "__main__":
    nox.main()
