"""JupyterLab: a double click on a log opens its report, which `server` renders.

The part in the browser is plain JavaScript in the form that JupyterLab loads, so that installing
needs no Node.
"""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Jupyter Server asks for this by name."""
    return [{"module": "latencykit.jupyter"}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """JupyterLab asks for this by name, in a development install."""
    return [{"src": "labextension", "dest": "latencykit"}]


def _load_jupyter_server_extension(server: Any) -> None:
    """Jupyter Server calls this when it starts."""
    from latencykit.jupyter.server import add_handlers

    add_handlers(server.web_app)
