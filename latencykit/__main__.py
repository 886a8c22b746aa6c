"""``python -m latencykit``, and the program ``latencykit``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl+C may arrive while its modules are imported."""
    try:
        from latencykit.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def program() -> None:
    """Run the command line as a process of its own; it collects less garbage while it imports."""
    import gc

    gc.set_threshold(20_000)
    main()


if __name__ == "__main__":
    program()
