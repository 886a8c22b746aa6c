"""Write the snapshots and the JSON Schemas anew."""

from __future__ import annotations

import json

from tests.analysis.test_numbers import TABLE, table
from tests.plot.conftest import CHARTS, look_of
from tests.plot.test_room import LOOKS, shown
from tests.snapshots.schemas import schemas
from tests.snapshots.surface import snapshots

looks = {
    LOOKS / f"{name}.json": "[\n" + ",\n".join(map(json.dumps, look_of(shown(name)))) + "\n]\n"
    for name in CHARTS
}
for path, text in (snapshots() | schemas() | looks | {TABLE: table()}).items():
    path.write_text(text, encoding="utf-8")
    print(path)
