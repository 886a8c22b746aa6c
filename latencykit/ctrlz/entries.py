"""Known load generators: one TOML file per load generator in ``notebooks/league``.

::

    tool = "wrk"                       # its name, and the program's
    install = "apt install wrk"
    version = "wrk -v"                 # a command whose output contains the version

    [[modes]]
    name = "full speed"                # the effect of the flags, in words
    command = "wrk -t1 -c {connections} -d {duration}s --latency {url}"
    advice = "`--timeout` longer than any stall"

Optional: ``protocol`` (``http``); and per file or mode ``needs``, the programs that must be
installed, where the tool's own is not the only one; ``server`` and ``url``, the command that starts
a server on ``{port}`` and its address, where the test's own server (HTTP, RESP) will not do;
``duration``, the least length of a run in seconds; ``unit`` and ``series`` of the output, where it
does not state them. Commands contain the places of `ctrlz`, and ``{python}``, ``{league}`` (this
folder) and ``{many}`` (requests for most of a run at full speed).
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import latencykit
from latencykit._records import record
from latencykit._text import did_you_mean
from latencykit.errors import CorruptInputError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KEYS = {"tool", "install", "version", "needs", "protocol", "server", "url", "duration", "modes"}
_KEYS |= {"unit", "series"}
_MODE_KEYS = {"name", "command", "advice", "server", "url", "duration", "unit", "series", "needs"}


@record()
class Entry:
    """A load generator in one of its modes.

    Attributes
    ----------
    tool : str
        Its name.
    mode : str
        The effect of the flags, in words.
    command : tuple of str
        With places to fill, as `ctrlz` takes it.
    advice : str
        The flags that make its report honest.
    install : str
        How to install it.
    version_command : str
        A command whose output contains its version.
    needs : tuple of str
        Programs that have to be installed.
    protocol : str
    server, url : str or None
        Command that starts a server on ``{port}``, and its address; None for the test's own server.
    least : float
        Seconds that a run must last at least.
    unit, series : str or None
        Of its output.
    text : str
        The command as the file has it.
    """

    tool: str
    mode: str
    command: tuple[str, ...]
    advice: str
    install: str = ""
    version_command: str = ""
    needs: tuple[str, ...] = ()
    protocol: str = "http"
    server: str | None = None
    url: str | None = None
    least: float = 0.0
    unit: str | None = None
    series: str | None = None
    text: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Programs that it needs and that are not installed."""
        return tuple(name for name in self.needs if shutil.which(name) is None)


def folder() -> Path:
    """Return the folder of the entries, in the wheel or in a checkout."""
    package = Path(latencykit.__file__).resolve().parent
    installed = package / "_lessons" / "league"
    return installed if installed.is_dir() else package.parent / "notebooks" / "league"


def load_entries(names: Sequence[str] = ()) -> tuple[Entry, ...]:
    """Return the entries of some tools, or of all.

    Parameters
    ----------
    names : sequence of str
        Names of tools, or paths of ``.toml`` files.
    """
    own = [Path(name) for name in names if name.endswith(".toml")]
    tools = [name for name in names if not name.endswith(".toml")]
    known = [entry for path in sorted(folder().glob("*.toml")) for entry in _entries_of(path)]
    for name in tools:
        if all(entry.tool != name for entry in known):
            hint = did_you_mean(name, sorted({entry.tool for entry in known}))
            raise InvalidArgumentError(f"the league has no entry for {name!r}{hint}")
    chosen = [entry for entry in known if entry.tool in tools or not names]
    return (*chosen, *(entry for path in own for entry in _entries_of(path)))


def _entries_of(path: Path) -> list[Entry]:
    """Return the entries of a file, one per mode."""
    expected = "an entry of the league: tool, install, version, and [[modes]]"
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
        _check(path, record, _KEYS, {"tool", "install", "modes"})
        if isinstance(record["modes"], list):
            for mode in record["modes"]:
                _check(path, mode, _MODE_KEYS, {"name", "command", "advice"})
        places = {"{python}": sys.executable, "{league}": str(path.resolve().parent)}
        return [
            Entry(
                record["tool"], mode["name"], _words(mode["command"], places), mode["advice"],
                record["install"], record.get("version", ""),
                tuple(both.get("needs", [record["tool"]])), record.get("protocol", "http"),
                _filled(both.get("server"), places), both.get("url"),
                float(both.get("duration", 0.0)), both.get("unit"), both.get("series"),
                mode["command"],
            )
            for mode in record["modes"]
            for both in [record | mode]
        ]  # fmt: skip
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CorruptInputError(str(path), None, str(error), expected) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptInputError(str(path), None, f"a wrong value ({error})", expected) from None


def _check(path: Path, record: Mapping[str, object], known: set[str], needed: set[str]) -> None:
    for key in sorted(set(record) - known):
        raise CorruptInputError(str(path), None, f"the key {key!r}", f"one of {sorted(known)}")
    for key in sorted(needed - set(record)):
        raise CorruptInputError(str(path), None, f"no key {key!r}", "it")


def _filled(text: str | None, places: Mapping[str, str]) -> str | None:
    for place, value in places.items() if text is not None else ():
        text = text and text.replace(place, shlex.quote(value))
    return text


def _words(command: str, places: Mapping[str, str]) -> tuple[str, ...]:
    words = shlex.split(command)
    for place, value in places.items():
        words = [word.replace(place, value) for word in words]
    return tuple(words)


@cache
def tool_version(tool: str) -> str | None:
    """Return the version that a tool of the league reports; None where it is unknown."""
    if tool == "latencykit":
        return latencykit.__version__
    commands = {entry.tool: shlex.split(entry.version_command) for entry in load_entries()}
    command = commands.get(tool)
    if not command or shutil.which(command[0]) is None:
        return None
    try:
        answer = subprocess.run(  # noqa: S603 - of an entry
            command, capture_output=True, text=True, check=False, timeout=30, errors="replace",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)", answer.stdout + answer.stderr)
    return number[1] if number else None
