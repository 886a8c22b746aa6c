"""Files and URLs; each becomes a `Source` where it is read."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from latencykit import errors
from latencykit._files import new_temporary, temporary_folder
from latencykit._limits import current_limits
from latencykit._text import natural_key, printable, without_secrets
from latencykit.io.source import Source

TASK_BYTES, TASK_FILES = 4 << 20, 128
"""Small files are read together, up to this number of bytes or files per task."""
_WORTH_PROCESSES = 6  # tasks
_SLOWEST = 256 << 10  # bytes per second, at which a large file may come
_silent: set[str] = set()  # hosts that were late with a size, which is only an estimate
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::.*://)")
_HOST = re.compile(r"(?<=://)[^/]*")


def is_url(path: str) -> bool:
    """True if a path is a URL."""
    return _URL.match(path) is not None


def expand(url: str) -> list[str]:
    """Return the files that a URL or path with ``*`` stands for, sorted; others as they are."""
    if not any(mark in _HOST.sub("", url) for mark in "*?["):  # hosts may be [::1]
        return [url]
    if not is_url(url):
        import glob

        found = [url]
        if not os.path.lexists(url):
            found = sorted(glob.glob(url), key=natural_key)  # noqa: PTH207 - absolute patterns
    # a question mark begins the query of a web address
    elif not any(mark in _HOST.sub("", url) for mark in "*["):
        return [url]
    else:
        with opening(url):
            system, path = _filesystem(url)
            found = [system.unstrip_protocol(one) for one in system.glob(path)]
            found.sort(key=natural_key)
    if not found:
        raise errors.InvalidArgumentError(f"{without_secrets(url)}: no file matches")
    return found


def storage(url: str) -> tuple[Any, str]:
    """Return the client of a storage, of fsspec's interface, and the path in it."""
    with opening(url):
        return _filesystem(url)


def size_of(url: str) -> int:
    """Return the size of a file in bytes; 0 if it is unknown."""
    if not is_url(url):
        try:
            status = os.stat(url)  # noqa: PTH116 - for thousands of files
        except (OSError, ValueError):
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    host = "".join(_HOST.findall(url)[:1])
    try:
        system, path = _filesystem(url)
        if host in _silent:
            return 0
        return int(system.info(path).get("size") or 0)
    except errors.MissingPackageError:
        raise
    except Exception as error:  # noqa: BLE001 - each storage has its own; reading reports them
        if any(isinstance(cause, TimeoutError) for cause in _causes(error)):
            _silent.add(host)
        return 0


def worth_multiprocessing(sizes: Sequence[int]) -> bool:
    """True if reading files of these sizes takes longer than starting processes."""
    return max(sum(sizes) / TASK_BYTES, len(sizes) / TASK_FILES) >= _WORTH_PROCESSES


def source_of(url: str) -> Source:
    """Return the source that readers read: a file, or a copy of a URL's content."""
    return _Copy(url) if is_url(url) else Source(url)


@contextlib.contextmanager
def read_head(url: str) -> Iterator[Source]:
    """Give the first complete lines of a file as a source: enough to find when a log began."""
    with temporary_folder("latencykit-") as folder:
        held = folder / Path(url.partition("?")[0]).name
        with opening(url):
            system, path = _filesystem(url) if is_url(url) else (None, url)
            with system.open(path, "rb") if system else Path(path).open("rb") as stream:
                held.write_bytes(stream.read(1 << 18))
        text = Source(held).head.data
        held.write_bytes(text[: text.rfind(b"\n") + 1])
        yield Source(held)


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import filesystem, url_to_fs
    except ImportError as missing:
        raise errors.MissingPackageError("fsspec", "Reading a URL", "cluster") from missing
    if bracketed := re.match(r"(https?)://[^/?]*\[", url):  # to url_to_fs, "::" joins two URLs
        return filesystem(bracketed[1], **_patience(url)), url
    system, path = url_to_fs(url, **_patience(url))
    return system, str(path)


def _patience(url: str) -> dict[str, Any]:
    """Timeouts of web servers; fsspec's own bound is five minutes for each request."""
    web = re.search(r"(?:^|::)(https?)://", url)
    try:
        from aiohttp import ClientTimeout
    except ImportError:  # fsspec says what is missing
        return {}
    if web is None:
        return {}
    bounds = current_limits()
    longest, pause = bounds.fetch + bounds.download / _SLOWEST, min(bounds.answer, bounds.fetch)
    timeout = ClientTimeout(total=longest, sock_connect=pause, sock_read=pause)
    guards = [] if bounds.private else [_guard()]
    known = {"client_kwargs": {"timeout": timeout, "trace_configs": guards}}
    return known if web.start() == 0 else {web[1]: known}


@cache
def _guard() -> Any:
    from aiohttp import TraceConfig

    guard = TraceConfig()
    guard.on_request_redirect.append(_stay_public)
    return guard


async def _stay_public(_session: object, _context: object, step: Any) -> None:
    """Refuse a redirect from a public address into the network that this machine is part of."""
    target = step.url.join(type(step.url)(step.response.headers.get("Location", "")))
    if await _is_public(step.url.host) and not await _is_public(target.host):
        raise errors.CorruptInputError(
            without_secrets(str(step.url)),
            None,
            f"it redirects to {target.host}, a private address",
            "a public one",
            "--allow-private (lk.limits(private=1)) follows it",
        )


async def _is_public(host: str | None) -> bool:
    """True if every address of a host is reachable from everywhere; as good as that if none is."""
    import asyncio
    import ipaddress
    import socket

    try:
        answers = await asyncio.get_running_loop().getaddrinfo(host or "", None)
    except socket.gaierror:
        return True
    return all(ipaddress.ip_address(str(answer[4][0])).is_global for answer in answers)


def _download(url: str, target: Path) -> None:
    """Copy a storage's file to disk as one stream, which every server supports."""
    system, path = _filesystem(url)
    from fsspec.callbacks import Callback

    bounds, came = current_limits(), 0
    began = time.monotonic()

    def count(size: int = 1) -> None:
        nonlocal came
        came, now = came + size, time.monotonic()
        if came > bounds.download:
            raise errors.InputTooLargeError(
                f"the server sent more than {bounds.download:,} bytes; "
                "--limit download=SIZE (lk.limits) allows more"
            )
        if now - began > bounds.fetch + came / _SLOWEST:
            raise errors.InputTooLargeError(
                f"the server took longer than {bounds.fetch:g} s ({came:,} bytes came); "
                "--limit fetch=TIME (lk.limits) allows more"
            )

    callback = Callback()
    callback.relative_update = count
    system.get_file(path, str(target), callback=callback)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__


@contextlib.contextmanager
def opening(url: str) -> Iterator[None]:
    """Turn any error of a storage's client into one line that names the URL."""
    try:
        yield
    except errors.LatencyKitError as error:
        if isinstance(error, errors.InputTooLargeError) and without_secrets(url) not in str(error):
            raise errors.InputTooLargeError(f"{without_secrets(url)}: {error}") from error
        raise
    except ImportError as missing:  # fsspec's own words say which package a protocol needs
        raise errors.InvalidArgumentError(f"{without_secrets(url)}: {missing}") from missing
    except Exception as error:  # each storage has errors of its own
        shown = without_secrets(url)
        if any(isinstance(cause, TimeoutError) for cause in _causes(error)):
            bounds = {"answer": current_limits().answer, "fetch": current_limits().fetch}
            name = min(bounds, key=bounds.__getitem__)
            raise errors.InputTooLargeError(
                f"{shown}: the server said nothing for {bounds[name]:g} s; "
                f"--limit {name}=TIME (lk.limits) allows more"
            ) from error
        if isinstance(error, FileNotFoundError):
            seen, hint = "nothing is there, or nobody answers", "check the address"
            raise errors.MissingInputError(shown, None, seen, "", hint) from error
        raise errors.CorruptInputError(shown, None, *_fault(error)) from error


_QUOTED = 200  # characters of what a storage says; never of a web server's body


def _fault(error: Exception) -> tuple[str, str, str]:
    """The failure of a storage in words: what was seen, what was expected, and a hint."""
    status, name = getattr(error, "status", None), type(error).__name__
    # a directory is made where it is copied to
    if isinstance(error, (FileExistsError, IsADirectoryError)):
        return "this is a directory", "a file", ""
    if name == "ClientPayloadError":
        return "the server ended before the end of the file", "", "try again"
    cut = isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError))
    # a client's own class may keep only the system's number
    cut |= getattr(error, "errno", None) == errno.ECONNRESET
    if cut or name == "ServerDisconnectedError":
        return "the server hung up before it answered", "", "try again"
    if name in ("NoCredentialsError", "CredentialRetrievalError"):
        names = "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        return "no credentials were found", "a login of the storage", f"set {names}"
    if isinstance(error, PermissionError) and not error.filename:
        return "the storage refuses access", "", "check the login and the address"
    if name == "TooManyRedirects":
        return "the server redirects in a circle", "", "check the address"
    if any(type(cause).__module__ == "aiohttp.http_exceptions" for cause in _causes(error)):
        return "the server's answer is not valid HTTP", "", "try again, or check the address"
    if isinstance(status, int) and status >= 300:
        from http import HTTPStatus

        phrases = {code.value: f" {code.phrase}" for code in HTTPStatus}
        hints = {401: "check the login", 403: "check the login", 429: "try later"}
        hint = "try later" if status >= 500 else hints.get(status, "check the address")
        return f"the server answered {status}{phrases.get(status, '')}", "", hint
    if isinstance(error, ValueError) and "range requests" in str(error):
        return "the server sent the file instead of the range that was asked for", "", "try again"
    reason = getattr(error, "strerror", None) or str(error) or name
    words = printable(" ".join(without_secrets(reason).split()), _QUOTED)
    return f"cannot be read: {words}", "", ""


class _Copy(Source):
    """The content of a URL, copied to disk: readers pass over it more than once."""

    def __init__(self, url: str) -> None:
        super().__init__(without_secrets(url))
        copy = new_temporary("latencykit-")
        gone = weakref.finalize(self, copy.unlink, missing_ok=True)
        try:
            with opening(url):
                _download(url, copy)
        except BaseException:
            gone()
            raise
        self.file = copy
