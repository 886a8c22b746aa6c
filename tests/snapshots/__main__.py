"""Write the snapshots and the JSON Schemas anew."""

from __future__ import annotations

from tests.snapshots.schemas import schemas
from tests.snapshots.surface import snapshots

for path, text in (snapshots() | schemas()).items():
    path.write_text(text, encoding="utf-8")
    print(path)
