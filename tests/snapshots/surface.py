"""The public surface as text: names with their signatures, and the help of every command."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import click

import latencykit as lk
from latencykit import cli, plot, simulate

__all__ = ["snapshots"]

_HERE = Path(__file__).parent


def snapshots() -> dict[Path, str]:
    """Return every snapshot: its file and the text that it should hold."""
    return {_HERE / "api.txt": _api()} | {
        _HERE / f"help-{name}.txt": text for name, text in _helps().items()
    }


def _api() -> str:
    lines: list[str] = []
    for space, module in (("lk", lk), ("lk.plot", plot), ("lk.simulate", simulate)):
        for name in sorted(module.__all__):
            lines += _described(f"{space}.{name}", getattr(module, name))
    return "\n".join(lines) + "\n"


def _described(name: str, thing: Any) -> list[str]:
    if inspect.ismodule(thing):
        return [f"{name}: module"]
    if not inspect.isclass(thing):
        return [f"{name}{_signature(thing)}"]
    bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
    lines = [f"class {name}({bases}){_signature(thing)}"]
    if issubclass(thing, BaseException):
        return lines[:1]
    for member in sorted(one for one in dir(thing) if not one.startswith("_")):
        value = inspect.getattr_static(thing, member)
        if isinstance(value, staticmethod | classmethod):
            lines.append(f"    {type(value).__name__} {member}{_signature(value.__func__)}")
        elif callable(value):
            lines.append(f"    {member}{_signature(value)}")
        else:
            lines.append(f"    {member}")
    return lines


def _signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(…)"
    return re.sub(r"<([\w.]+)[^>]*>", r"<\1>", text)


def _helps() -> dict[str, str]:
    context = click.Context(
        cli.cli,
        info_name="latencykit",
        terminal_width=100,
        max_content_width=100,
        show_default=cli.cli.context_settings["show_default"],
    )
    helps = {"latencykit": cli.cli.get_help(context)}
    for name in cli.cli.list_commands(context):
        command = cli.cli.get_command(context, name)
        if command is not None:
            own = click.Context(
                command, info_name=name, parent=context, terminal_width=100, max_content_width=100
            )
            helps[name] = command.get_help(own)
            parts = command.commands if isinstance(command, click.Group) else {}
            for part, inner in parts.items():
                below = click.Context(
                    inner, info_name=part, parent=own, terminal_width=100, max_content_width=100
                )
                helps[f"{name}-{part}"] = inner.get_help(below)
    return {name: text.rstrip() + "\n" for name, text in helps.items()}
