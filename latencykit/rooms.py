"""Lets a room be called like the verb that it is named after: ``latencykit.formats()``, ``latencykit.report(...)``.

A package and a function of one name would shadow each other, depending on who was imported first; a module of a class
with ``__call__`` is both.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["html_of", "make_callable"]


def make_callable(room: str, verb: Callable[..., Any]) -> None:
    """Make calling the module named `room` call `verb`; its docstring and signature are the verb's."""

    class Room(ModuleType):
        __doc__ = verb.__doc__
        __wrapped__ = staticmethod(verb)  # what inspect.signature and help() follow

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return verb(*args, **kwargs)

    sys.modules[room].__class__ = Room


def html_of(rung: Any) -> str:
    """Return a rung's view for a notebook; the view lives in `report`, far above, and is fetched when it is shown."""
    text: str = importlib.import_module("latencykit.report.views").html(rung)
    return text
