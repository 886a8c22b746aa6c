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
    """Run the command line as a process of its own, which ends once exit handlers have run."""
    # To take numpy's modules apart would cost a tenth of a small `summary`, and a client of Dask
    # that found no scheduler would wait for 20 s.
    import atexit
    import gc
    import os

    status = 1  # of an unforeseen exception
    if not getattr(atexit, "_ncallbacks", lambda: 0)():  # those of coverage, say, would run after
        atexit.register(lambda: os._exit(status))
    gc.set_threshold(20_000)
    try:
        main()
    except SystemExit as end:
        status = int(end.code or 0)
        raise


if __name__ == "__main__":
    program()
