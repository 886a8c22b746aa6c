"""Puts the lessons (``notebooks/``) and their data (``data/``) inside the wheel; all else stands in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLessons(build_py):
    """A wheel carries the lessons as ``latencykit/_lessons``; an editable install finds them beside the package."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "latencykit" / "_lessons"
        shutil.rmtree(target, ignore_errors=True)
        for root, folder, pattern in (("notebooks", "", "*.*"), ("notebooks", "", "solutions/*.*"), ("data", "data", "**/*.*")):
            for path in Path(root).glob(pattern):
                if path.is_file() and not path.name.startswith("."):
                    copy = target / folder / path.relative_to(root)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, copy)


setup(cmdclass={"build_py": BuildWithLessons})
