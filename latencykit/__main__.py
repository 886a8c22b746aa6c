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
    """Run the command line as a process of its own.

    It ends once exit handlers have run and output is flushed: to take numpy's modules apart would
    cost a tenth of a small `summary`, and so would collecting garbage while they are imported.
    """
    import atexit
    import gc
    import os

    status = 1  # of an unforeseen exception

    def leave() -> None:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            return  # which the interpreter reports
        os._exit(status)

    if not getattr(atexit, "_ncallbacks", lambda: 0)():  # those of coverage, say, would run after
        atexit.register(leave)  # handlers that are registered from now on run before
    gc.set_threshold(20_000)
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise


if __name__ == "__main__":
    program()
