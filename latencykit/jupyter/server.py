"""A report of a file under the Jupyter server's root, rendered in a process of its own."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from latencykit._processes import own_command
from latencykit._text import esc

_SECONDS = 300
"""A report that takes longer is given up."""
_AT_ONCE = asyncio.Semaphore(2)
"""Reports that are rendered at once."""


class ReportHandler(JupyterHandler):
    """``GET latencykit/report?path=run.hlog``: the page, or one line that says what is wrong."""

    # ``theme=dark`` or ``light``: that of JupyterLab, which a frame does not see.

    auth_resource = "contents"

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Send the page."""
        name = self.get_argument("path")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        # The page is made of untrusted input: no cookies, no requests, whatever it contains.
        policy = "frame-ancestors 'self'; sandbox allow-scripts allow-downloads"
        self.set_header("Content-Security-Policy", policy)
        theme = self.get_argument("theme", "")
        theme = theme if theme in ("light", "dark") else ""
        try:
            page = await _page(self._file(name))
            self.finish(page.replace(b"<html ", f"<html data-theme='{theme}' ".encode(), 1))
        except _RefusedError as error:
            self.set_status(422)
            self.finish(_message(str(error), theme or "light dark"))

    def _file(self, name: str) -> Path:
        """The file of a path of the contents API, which must lie under the server's root."""
        root = Path(self.contents_manager.root_dir).resolve()
        try:
            path = (root / name.lstrip("/")).resolve()
            shown = path.relative_to(root).parts
            hidden = any(part.startswith(".") for part in shown)
            allowed = not hidden or getattr(self.contents_manager, "allow_hidden", False)
            if allowed and path.is_file():
                return path
        except (OSError, ValueError):  # outside of the root, or no name that a file can have
            pass
        raise web.HTTPError(404, reason="no such file here")


class _RefusedError(Exception):
    """A file that cannot be read as latencies."""


async def _page(path: Path) -> bytes:
    """The report of a file."""
    async with _AT_ONCE:
        with tempfile.TemporaryDirectory(prefix="latencykit-") as folder:
            return await _rendered(path, Path(folder, "report.html"))


async def _rendered(path: Path, target: Path) -> bytes:
    folder = f"{path.parent}{os.sep}"  # is nobody's business who sees the server's files
    command = own_command("latencykit", "-q", "report", "-o", str(target), "--", str(path))
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=target.parent,  # what lies beside the file is nobody's module or configuration
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        raise _RefusedError(
            f"{path.name}: no report after {_SECONDS} s; try `latencykit report`"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        text = errors.decode("utf-8", "replace").replace(folder, "")
        lines = text.strip().splitlines()
        raise _RefusedError(
            lines[-1].removeprefix("latencykit: ") if lines else f"{path.name}: no report"
        )
    return target.read_bytes().replace(os.fsencode(esc(folder, len(folder))), b"")


def _message(text: str, theme: str) -> str:
    return (
        f"<!doctype html><meta charset='utf-8'><meta name='color-scheme' content='{theme}'>"
        "<body style='font: 15px/1.5 system-ui, sans-serif; padding: 1em'>"
        f"<p role='alert'>{esc(text, len(text))}</p>"
    )


def add_handlers(app: Any) -> None:
    """Add the route to a server."""
    route = url_path_join(app.settings["base_url"], "latencykit", "report")
    app.add_handlers(".*$", [(route, ReportHandler)])
