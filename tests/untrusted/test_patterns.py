"""Every pattern of the package takes time in proportion to the text, whatever the text."""

from __future__ import annotations

import ast
import re
import time
from pathlib import Path
from re import _parser as parser
from typing import TYPE_CHECKING, Any

import pytest

import latencykit
from latencykit.io.declared import Lines, Text
from latencykit.io.tools.log_lines import Log

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(latencykit.__file__).parent
WAYS = {"match": "match", "fullmatch": "fullmatch"}  # all others search
TEXT = (
    '\n¦ ¦\t¦1¦a¦,¦.¦-¦a ¦1 ¦1,¦1.¦a:¦a=¦[¦(¦"¦|¦\\¦x\n¦ \n¦a\n¦ 1 ¦% ¦'
    '=¦/¦a/¦{¦<¦1ms ¦ms¦1:¦#¦a.¦_a¦\r¦: ¦"a" ¦- ¦[1] ¦(1) ¦GET ¦1e¦+1¦.5¦1\n¦0,¦- 1 '
)
UNITS = TEXT.split("¦")
LENGTHS = 250, 1_000, 4_000  # characters
MOST = 0.02  # seconds, of which a linear pattern takes a hundredth
HARMLESS = {
    "latencykit.core.trimmed._RANGE": "typed on the command line",
    "latencykit.core.trimmed._SHORT": "typed on the command line",
    "latencykit.analysis.compare._CONDITION": "typed on the command line",
    "latencykit.analysis.slo._ENTRY": "typed on the command line, or a line of a file of limits",
    "latencykit.io.hgrm._ROW": "of lines of less than 200 characters",
    "latencykit.io.raw.cells._BRACKETS": "of names of columns of bounded length",
    "latencykit.io.source": "of 200 characters",
    "latencykit.io.tools.circllhist._LABEL": "of 120 characters",
    "latencykit.io.tools.hdr_base64._LABEL": "of 80 characters",
    "latencykit.io.tools.sketches._APACHE_BASE64": "asked at the beginning of a text alone",
    "latencykit.units": "typed on the command line",
}
"""Patterns that may take longer, each with the reason why that does no harm."""


def patterns() -> dict[tuple[str | bytes, int, str], str]:
    """Pattern, flags and way of use of each compiled pattern and each literal of ``re``, and where."""
    found: dict[tuple[str | bytes, int, str], str] = {}
    trees = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    for path, tree in trees.items():
        module = ".".join(("latencykit", *path.relative_to(ROOT).with_suffix("").parts))
        module = module.removesuffix(".__init__")
        if module.endswith(("__main__", "pytest_plugin", "jupyter.server")):
            continue  # what runs when imported, or needs a package that may be missing
        values = vars(__import__(module, fromlist=["*"]))
        uses: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                uses.setdefault(node.value.id, set()).add(node.attr)
            if isinstance(node, ast.Call):
                given = [*node.args, *(word.value for word in node.keywords)]
                for name in (one.id for one in given if isinstance(one, ast.Name)):
                    uses.setdefault(name, set()).add(getattr(node.func, "attr", "search"))
                if ast.unparse(node.func).startswith("re.") and node.args:
                    found |= literal(node, values, f"{module}:{node.lineno}")
        for name, value in values.items():
            for pattern in compiled(value):
                for way in uses.get(name, set()) - {"pattern", "groupindex", "flags"} or {"search"}:
                    key = pattern.pattern, pattern.flags, WAYS.get(way, "search")
                    found.setdefault(key, f"{module}.{name}")
    return found


def literal(node: ast.Call, values: dict, where: str) -> dict:
    """The pattern that a call of ``re`` names, where constants of the module say all of it."""
    way = node.func.attr
    try:
        text = eval(ast.unparse(node.args[0]), dict(values))
        flags = re.NOFLAG
        for one in (*node.args[1:], *(word.value for word in node.keywords)):
            if "re." in ast.unparse(one):
                flags |= eval(ast.unparse(one), dict(values))
        pattern = re.compile(text, flags) if isinstance(text, str | bytes) else text
    except (NameError, TypeError, KeyError, AttributeError, re.error):
        return {}  # of a variable: a name that is bound elsewhere
    if not isinstance(pattern, re.Pattern) or way in ("compile", "escape"):
        return {}
    return {(pattern.pattern, pattern.flags, WAYS.get(way, "search")): where}


def compiled(value: object, depth: int = 0) -> list[re.Pattern]:
    """The patterns that a value of a module is, holds, or declares."""
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, tuple) and [*map(type, value)] == [bytes] * 2:  # pattern, what is instead
        return [re.compile(value[0])]
    if depth > 4:
        return []
    inner: list[object] = []
    if isinstance(value, dict):
        inner = [*value.values(), *value]
    elif isinstance(value, tuple | list | frozenset):
        inner = list(value)
    elif getattr(value, "__module__", "") == "latencykit.io.text_reports" and hasattr(
        value, "__code__"
    ):
        held = [cell.cell_contents for cell in value.__closure__ or ()]  # of `has_match`, `either`
        texts = [one for part in held if isinstance(part, tuple) for one in part]
        inner = [re.compile(one, re.MULTILINE) if isinstance(one, str) else one for one in texts]
    elif type(value).__module__.startswith("latencykit"):
        inner = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        inner += list(getattr(value, "__dict__", {}).values())
        if isinstance(value, Text | Lines | Log):
            facts = [one for one in getattr(value, "facts", {}).values() if "(" in one]
            names = "row", "pair", "begin", "closing", "pattern"
            named = (getattr(value, name, "") for name in names)
            inner += [re.compile(one, re.MULTILINE) for one in (*facts, *named) if one]
    return [pattern for one in inner for pattern in compiled(one, depth + 1)]


def example(op: object, value: Any) -> str:
    """A text that one item of a parsed pattern matches, or nearly so."""
    name = str(op)
    if name == "LITERAL":
        return chr(value)
    if name == "IN":
        kinds = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
        first, *_ = value
        if str(first[0]) == "RANGE":
            return chr(first[1][0])
        return kinds.get(str(first[1]), "x") if str(first[0]) != "LITERAL" else chr(first[1])
    if name.endswith("REPEAT"):
        return "".join(example(*item) for item in value[2]) * value[0]
    if name in ("SUBPATTERN", "ATOMIC_GROUP", "BRANCH"):
        items = value if name == "ATOMIC_GROUP" else value[-1]
        return "".join(example(*item) for item in (items[0] if name == "BRANCH" else items))
    return "" if name in ("AT", "ASSERT", "ASSERT_NOT", "GROUPREF") else "x"


def attacks(items: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What leads to each unbounded repetition of a parsed pattern, and what it repeats."""
    for op, value in items:
        name = str(op)
        if name.endswith("REPEAT"):
            once = "".join(example(*item) for item in value[2]) or "x"
            if value[1] > 1000:
                yield before, once
                yield before, " " if once in ("x", "a") else "x"
            yield from attacks(value[2], before)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from attacks(branch, before)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            yield from attacks(value if name == "ATOMIC_GROUP" else value[-1], before)
        before += example(op, value)


def strings(pattern: str, flags: int, way: str) -> list[tuple[str, str]]:
    """Beginnings and repeated parts of texts that a pattern may backtrack over."""
    own = list(dict.fromkeys(re.findall(r"[A-Za-z]{2,}[:=]?", pattern)))[:8]
    units = [*UNITS, *own, *(f"{word} " for word in own), *(f" {word}" for word in own)]
    starts = ("", "x") if way == "fullmatch" else ("",)
    found = [(start, unit) for unit in units for start in starts]
    return [*found, *dict.fromkeys(attacks(parser.parse(pattern, flags & ~re.DEBUG)))]


def slowest(key: tuple[str | bytes, int, str]) -> tuple[float, str]:
    """Seconds that a pattern takes for the worst of the texts, and what that is made of."""
    text, flags, way = key
    ask = getattr(re.compile(text, flags), way)
    worst = 0.0, ""
    shown = text if isinstance(text, str) else text.decode("latin1")
    known = re.MULTILINE | re.IGNORECASE | re.DOTALL | re.VERBOSE
    for before, unit in strings(shown, flags & known, way):
        for size in LENGTHS:
            body = f"{before}{(unit * size)[:size]}\0!"
            asked = body if isinstance(text, str) else body.encode("latin1", "replace")
            took = float("inf")
            for _ in range(3):  # a busy machine slows one of them, not all
                begin = time.process_time()
                ask(asked)
                took = min(took, time.process_time() - begin)
                if took < MOST / 400:
                    break
            worst = max(worst, (took, f"{before}{unit}"))
            if not MOST / 400 < took < MOST:
                break  # four times the text can only take MOST if the time grows by its cube
    return worst


@pytest.mark.slow
def test_every_pattern_is_linear():
    found = patterns()
    assert len(found) > 600
    slow = {}
    for key, where in found.items():
        if where not in HARMLESS and where.partition(":")[0] not in HARMLESS:
            seconds, unit = slowest(key)
            if seconds > MOST:
                slow[where, key[2]] = f"{seconds:.3f} s of {unit!r}: {key[0]!r}"
    assert not slow, "\n".join(f"{key}: {text}" for key, text in slow.items())
