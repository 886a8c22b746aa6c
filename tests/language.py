"""The words of the project: ``python -m tests.language`` lists what is not plain English in the field's own terms.

It reads comments, strings, docstrings and identifiers of the package and its tests, and the prose of
README, CONTRIBUTING and lessons.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["findings"]

ROOT = Path(__file__).parents[1]

# Pattern → what to write. Identifiers are split at underscores and capitals before they are
# compared.
WORDS = {
    r"rungs?": "data type, level of detail",
    r"pedigrees?": "provenance",
    r"ladders?": "levels of detail; arithmetic progression",
    r"(?:tell|tells|told|telling) (?:of|whether|apart|how|what|which|where|them|from|by)": "report, show, detect, distinguish",
    r"(?:is|are|was|were|be|been) told": "is reported",
    r"told": "reported",
    r"untold": "unreported",
    r"(?:held|holds?|holding) (?:up|against)": "delayed; compared with",
    r"(?:rest|rests|rested|resting) (?:on|upon|mostly)": "is based on, is dominated by",
    r"(?:is|are|was|were|be) no (?!longer|more|less|such|other|one\b|[a-z]+ (?:than|at "
    r"all|here))[a-z]+": "is not a …",
    r"so many": "N, that many",
    r"whoever": "anyone who",
    r"way out": "hint",
    r"(?:stand|stands|stood|standing) still": "pause, stop responding",
    r"(?:that|which|who) (?:was|were) to come": "that were due",
    r"trust up to": "highest supported percentile",
    r"filled up": "corrected",
    r"strangers?'?s?": "untrusted",
    r"damaged?": "corrupt",
    r"damages": "corruption",
    r"(?:house|nouns?|front door)": "architecture, type, public API",
    r"(?:source says no more|in particular stands out|without a good reply|than the run can have had)": "the sentence in the glossary",
    r"(?:waiting for many answers|printed as the reference|the last line does not end)": "the sentence in the glossary",
    r"implies 1 requests": "1 request",
    r"(?:logs?|groups?|charts?|pages?|curves?|columns?|rows?|files?|runs?|values?|lines?|points?|bins?|tests?|threads?|buckets?|intervals?|histograms?|counts?|series|tags?|numbers?|requests?)"
    r" an? (?:second|minute|hour|side|file|row|line|interval|bucket|request|tag|series|run|slot|time|inch|pixel|percentile|user|call|connection|thread|test|tool|format|column)": "per",
    r"noting": "with_notes",
    r"(?:chance|chances) (?:of|that)": "probability",
}
_ALL = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"(?P<w{k}>{p})" for k, p in enumerate(WORDS)) + r")(?![\w-])",
    re.IGNORECASE,
)
_ADVICE = list(WORDS.values())
ALLOWED = re.compile(r'"rung"|`rung`|\'rung\'|\brung: |Told you')  # the JSON key keeps its name


def findings(root: Path = ROOT) -> Iterator[str]:
    """Yield ``path:line: word (write: …)`` for every word on the list."""
    for path in sorted((root / "latencykit").rglob("*.py")):
        yield from _of_code(path, root)
    for path in sorted((root / "tests").rglob("*.py")):
        if path != Path(__file__):
            yield from _of_code(path, root)
    pages = [
        str(path.relative_to(root))
        for path in sorted((root / "notebooks/book/how-to").glob("*.md"))
    ]
    pages += [
        "notebooks/book/index.md",
        "notebooks/book/truth.md",
        "AGENTS.md",
        ".github/SECURITY.md",
    ]
    for name in ("README.md", "CONTRIBUTING.md", "data/README.md", "notebooks/README.md", *pages):
        if (root / name).exists():
            for number, line in enumerate(
                (root / name).read_text(encoding="utf-8").splitlines(), 1
            ):
                yield from _in(line, f"{name}:{number}")
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for number, cell in enumerate(cells):
            for line in "".join(cell["source"]).splitlines():
                yield from _in(line, f"{path.relative_to(root)}:cell {number}")
    for path in sorted(
        path for kind in ("js", "csv") for path in (root / "latencykit").rglob(f"*.{kind}")
    ):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield from _in(line, f"{path.relative_to(root)}:{number}")


def _of_code(path: Path, root: Path) -> Iterator[str]:
    where = path.relative_to(root)
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            text = token.string
            flat = re.sub(r"\s+", " ", text)
            if "\n" in text and not ALLOWED.search(flat):
                yield from _in(flat, f"{where}:{token.start[0]}")
            else:
                for offset, line in enumerate(text.splitlines()):
                    yield from _in(line, f"{where}:{token.start[0] + offset}")
        elif token.type == tokenize.NAME and not token.string.isupper():
            name = token.string.strip("_").removeprefix("test_")
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")
            if words != "rung":
                yield from _in(words, f"{where}:{token.start[0]}")
            elif not _is_key(token):
                yield f"{where}:{token.start[0]}: {token.string} (write: data)"


def _is_key(token: tokenize.TokenInfo) -> bool:
    """The JSON key, and the field of a format that becomes it."""
    return bool(re.search(r"rung: \w+$|rung=|\.rung\b", token.line))


def _in(text: str, where: str) -> Iterator[str]:
    for hit in _ALL.finditer(ALLOWED.sub("", text)):
        kind = next(int(name[1:]) for name, value in hit.groupdict().items() if value)
        yield f"{where}: {hit[0]} (write: {_ADVICE[kind]})"


if __name__ == "__main__":
    found = list(findings())
    print("\n".join(found))
    print(f"{len(found)} words to change")
    sys.exit(bool(found))
