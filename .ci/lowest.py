"""Print every lower bound of pyproject.toml as a pin, for ``pip install -c``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
for wanted in (project["dependencies"], *project["optional-dependencies"].values()):
    for one in wanted:
        if bound := re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", one):
            print(f"{bound[1]}=={bound[2]}")  # noqa: T201 - that is what it is for
