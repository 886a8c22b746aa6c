"""``python -m latencykit``."""

from __future__ import annotations

from latencykit.cli import main

if __name__ == "__main__":
    main()
