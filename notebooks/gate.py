"""A gate in the kernel: cells below an open question run once it is answered.

``LATENCYKIT_TEACH=1`` in the environment, or ``skip(all=True)``, opens every gate.
"""

from __future__ import annotations

import os

__all__ = ["skip"]

_open: dict = {}  # question → what shows the cells below it
_passed: set[str] = set()
_teaching = bool(os.environ.get("LATENCYKIT_TEACH"))


class UnansweredError(Exception):
    """A cell that waits for the answer to a question above it; shown as one line."""

    def _render_traceback_(self):
        return [str(self)]


def close(question, show=lambda: None):
    """Let no new cell run before `question` is answered; cells that ran before may run again.

    `show` is called if a lecturer goes on without an answer.
    """
    shell = _shell()
    if shell is None or _teaching:
        return show()
    if _check not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(_check)
    _passed.update(cell.strip() for cell in shell.user_ns.get("In", ()))
    _open[question] = show
    return None


def answered(question):
    """Open the gate for the cells below `question`."""
    _open.pop(question, None)


def skip(all=False):  # noqa: A002
    """Run on without an answer to the questions above, or to `all` of the notebook."""
    global _teaching
    _teaching = _teaching or all
    while _open:
        _open.popitem()[1]()


def stop():
    """Say what the cell waits for, and end the run."""
    raise UnansweredError("Answer the question above first; then run this cell again. (Run skip() in a cell above it to go on without an answer.)")


def _check(lines):
    source = "".join(lines).strip()
    if not _open or not source or source in _passed or source in ("skip()", "skip(all=True)"):
        return lines
    return ["__import__('gate').stop()\n"]


def _shell():
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()
