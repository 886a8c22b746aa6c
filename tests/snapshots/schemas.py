"""The JSON Schemas in `latencykit/schemas`, made of the typed records that commands print.

A record is a ``TypedDict``: its docstring describes the object, the string below a key describes
the key, and pairs in ``Annotated`` are further keywords of JSON Schema.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import sys
import typing
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin

import latencykit
from latencykit.views import written
from latencykit.views.compare import CompareRecord
from latencykit.views.ctrlz import CtrlzRecord
from latencykit.views.diagnosis import DiagnosisRecord
from latencykit.views.explanation import ExplanationRecord
from latencykit.views.fan_out import FanOutRecord
from latencykit.views.history import HistoryCheckRecord, HistoryShowRecord
from latencykit.views.load import LoadRecord, SweepRecord
from latencykit.views.series import SeriesRecord
from latencykit.views.slo import CheckRecord

_FOLDER = Path(latencykit.__file__).parent / "schemas"

RECORDS: dict[str, Any] = {
    "chart": written.WrittenSeriesRecord,
    "check": CheckRecord,
    "compare": CompareRecord,
    "convert": written.WrittenRecord,
    "ctrlz": CtrlzRecord,
    "diagnose": ("Diagnoses of all series.", DiagnosisRecord),
    "explain": ("Explanations of all series.", ExplanationRecord),
    "fanout": ("Fan-out of all series.", FanOutRecord),
    "formats": list[written.FormatRecord],
    "hiccup": written.WrittenSeriesRecord,
    "history-check": HistoryCheckRecord,
    "history-show": HistoryShowRecord,
    "load": LoadRecord,
    "merge": written.MergeRecord,
    "report": written.WrittenRecord,
    "series": SeriesRecord,
    "summary": ("All series.", SeriesRecord),
    "sweep": SweepRecord,
}
"""What each command prints with ``--format json``; ``series`` is a part of several.

A pair stands for an object with a list of records, one per series.
"""

_PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}


def schemas() -> dict[Path, str]:
    """Return every schema: its file and its text."""
    return {
        _FOLDER / f"{name}.json": json.dumps(_document(name, kind), indent=2) + "\n"
        for name, kind in RECORDS.items()
    }


def _document(name: str, kind: Any) -> dict[str, Any]:
    title = f"latencykit {name} --format json"
    if name == "series":
        title = "A series as every command prints it"
    parts: dict[str, Any] = {}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}.json",
        "title": title,
    }
    if get_origin(kind) is list:
        body = _schema(kind, parts)
    elif isinstance(kind, tuple):
        text = "Grows when a key changes its meaning or goes away."
        keys = {
            "schema_version": {"description": text, "const": 1},
            "series": {"type": "array", "items": _schema(kind[1], parts)},
        }
        body = {"description": kind[0], "type": "object", "properties": keys}
        body |= {"required": [*keys], "additionalProperties": False}
    else:
        parts[kind.__name__] = None  # a record that contains itself refers to it
        body = _object(kind, parts)
        if _refers(body, kind) or any(_refers(part, kind) for part in parts.values()):
            parts[kind.__name__], body = body, {"$ref": f"#/$defs/{kind.__name__}"}
        else:
            del parts[kind.__name__]
    return head | body | ({"$defs": parts} if parts else {})


def _refers(schema: Any, kind: Any) -> bool:
    return f'"#/$defs/{kind.__name__}"' in json.dumps(schema)


def _schema(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; those of records go to `parts`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _schema(kind.__origin__, parts) | dict(kind.__metadata__)
    if kind is None or kind in _PLAIN:
        return {"type": _PLAIN[kind or NoneType]}
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return _either([_schema(item, parts) for item in arguments])
    if origin is dict:
        return _mapping(*arguments, parts)
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(arguments[0], parts)}
    for name, record in RECORDS.items():
        if kind is record and kind.__name__ not in parts:
            return {"$ref": f"{name}.json"}
    if kind.__name__ not in parts:
        parts[kind.__name__] = None
        parts[kind.__name__] = _object(kind, parts)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _either(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a schema that one of several describes, in the shortest form."""
    if all(set(kind) == {"type"} for kind in kinds):
        return {"type": [kind["type"] for kind in kinds]}
    listed = [kind for kind in kinds if "enum" in kind]
    if len(listed) == 1 and len(kinds) == 2 and {"type": "null"} in kinds:
        return {"enum": [*listed[0]["enum"], None]}
    return {"anyOf": kinds}


def _mapping(key: Any, value: Any, parts: dict[str, Any]) -> dict[str, Any]:
    inner = _schema(value, parts)
    if get_origin(key) is Literal:
        named = {"properties": dict.fromkeys(get_args(key), inner)}
    elif get_origin(key) is Annotated:
        named = {"patternProperties": {dict(key.__metadata__)["pattern"]: inner}}
    else:
        return {"type": "object", "additionalProperties": inner}
    return {"type": "object", **named, "additionalProperties": False}


def _object(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    properties, required = {}, []
    notes = _descriptions(kind)
    for key, hint in _hints(kind).items():
        optional = get_origin(hint) is NotRequired
        description = {"description": notes[key]} if key in notes else {}
        properties[key] = description | _schema(get_args(hint)[0] if optional else hint, parts)
        if not optional:
            required.append(key)
    return {
        "description": " ".join(inspect.cleandoc(kind.__doc__).split()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _lineage(kind: Any) -> list[Any]:
    """Return a record's bases and itself; a TypedDict forgets its bases."""
    names = vars(sys.modules[kind.__module__])
    bases = [names[ast.unparse(base)] for base in _class_of(kind).bases]
    return [
        *(own for base in bases if base is not typing.TypedDict for own in _lineage(base)),
        kind,
    ]


def _hints(kind: Any) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for own in _lineage(kind):
        names = _names(own.__module__)
        for key in _class_of(own).body:
            if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name):
                hints[key.target.id] = eval(ast.unparse(key.annotation), names)
    return hints


def _names(module: str) -> dict[str, Any]:
    """Return the names of a module, and those that it imports for type checkers only."""
    names = dict(vars(sys.modules[module]))
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If):
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    found = importlib.import_module(line.module)
                    names |= {item.name: getattr(found, item.name, None) for item in line.names}
    return names


def _class_of(kind: Any) -> ast.ClassDef:
    (node,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(node, ast.ClassDef)
    return node


def _descriptions(kind: Any) -> dict[str, str]:
    """Return the strings below the keys."""
    texts = {}
    for own in _lineage(kind):
        body = _class_of(own).body
        for key, below in itertools.pairwise(body):
            if (
                isinstance(key, ast.AnnAssign)
                and isinstance(key.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                texts[key.target.id] = " ".join(str(below.value.value).split())
    return texts
