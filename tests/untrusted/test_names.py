"""Names of files and their words reach no surface as commands, images, links or formulas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import latencykit
from tests.benchmarks.hostile import unsafe

HOSTILE = (
    "\x1b[31mred\x1b]0;x\x07", "\u202eevil\u2066", "a\x9b2Jb\x7f", "![x](http://a.example/x.png)",
    "[a](javascript:alert(1))", "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>",
    "=cmd|'/C calc'!A0", "@SUM(1+1)", "a|b", "`c`", "$\\frac{1}{0}$", "x\r\ny", "\ud83d", "~~s~~",
)  # fmt: skip


def _table(path: Path, slow: int, factor: float = 1.0) -> Path:
    """Calls of operations with hostile names, of which one is slow."""
    rows = ["start_ns,latency_ns,operation"]
    for k in range(3000):
        place = k % len(HOSTILE)
        name = HOSTILE[place].encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        value = int(1_000_000 * factor) + 1000 * (k % 7) + 40_000_000 * (place == slow)
        rows.append(f'{k * 2_000_000},{value},"{name}"')
    path.write_text("\n".join(rows) + "\n", encoding="utf-8", newline="")
    return path


COMMANDS = (
    ("summary",),
    ("summary", "--interval", "1s"),
    ("summary", "--by", "operation", "--notes"),
    ("explain", "--by", "operation"),
    ("explain", "--by", "operation", "--above", "p90"),
    ("check", "--slo", "99=20ms,max=1s"),
    ("check", "--slo", "99=20ms", "--by", "operation"),
    ("fanout", "-n", "1,10"),
    ("diagnose", "--notes"),
    ("compare",),
    ("compare", "--by", "operation", "--notes"),
    ("load",),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.usefixtures("read_once")
def test_no_name_is_a_command(words: tuple[str, ...], run: Any, tmp_path: Path) -> None:
    files: list[object] = [_table(tmp_path / "a.csv", 3)]
    if words[0] in ("compare", "load"):
        files.append(f"![x](b)<img src=x>`c`|={_table(tmp_path / 'b.csv', 5, 1.5)}")
    for style in ("table", "markdown", "csv", "json"):
        status, out, err = run(*words[:1], *files, *words[1:], "--format", style)
        assert status in (0, 1, 2)
        assert not unsafe(out + err)
        if style == "json" and out:
            json.loads(out)
        if style == "markdown":
            assert not re.search(r"(?<!\\)\[|<[a-z/]|(?<!\\)`c|(?<!\\)~~s", out)
        if style == "csv":
            assert not re.search(r'(?m)(^|,|;|")[=@]', out)
        if words == ("summary",):
            assert {"csv": "'=cmd|", "json": '"a|b"'}.get(style, "") in out


def test_a_page_has_no_foreign_markup(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    assert run("report", _table(tmp_path / "a.csv", 3), "-o", path)[0] == 0
    text = path.read_text(encoding="utf-8")
    assert not unsafe(text)
    assert "<img src=x" not in text
    assert "<script>alert" not in text


def test_one_module_escapes() -> None:
    """What makes a text safe for a surface is in `latencykit._text`, and nowhere else."""
    own = re.compile(
        r"html\.escape|from html import escape|xml\.sax\.saxutils|unicode_escape"
        r"|replace\(.&., *.&amp|replace\(.<., |replace\(.\|., |replace\(.\$., "
    )
    sources = Path(latencykit.__file__).parent.rglob("*.py")
    assert [one.name for one in sources if own.search(one.read_text("utf-8"))] == ["_text.py"]
