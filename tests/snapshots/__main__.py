"""Write the snapshots anew."""

from __future__ import annotations

from tests.snapshots.surface import snapshots

for path, text in snapshots().items():
    path.write_text(text, encoding="utf-8")
    print(path)
