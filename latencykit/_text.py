"""Text for people: URLs without secrets, plurals, hints; and the one writer of untrusted text.

Names, tags and messages of files reach a terminal, Markdown, HTML, a script, CSV or a chart
through a function of this module only: `printable`, `on_terminal`, `markdown_text`, `esc`,
`script_json`, `guarded`, `plain`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TextIO

from latencykit._processes import environment

# A password may have a slash in it.
_LOGIN = r"(?<=://)(?:[^/\s'\"]*|[^/\s:\[]*:(?!\d+\b)(?:(?!//)[^\s'\"]){0,300})@"

_QUERY = r"(://[^\s?#'\"]{0,1000})[?#](?:[^\s'\"]*[^\s'\":;,.)])?"


_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

LONGEST_WORD = 256
"""Characters of a word; a longer one is cut, so that no cell outweighs its table."""

_TERMINAL = "_LATENCYKIT_TERMINAL"  # in the environment: processes that read files know it, too


def in_terminal() -> AbstractContextManager[None]:
    """While the block runs, messages name options as the command line does."""
    return environment(_TERMINAL, "1")


def option(name: str, value: str = "", python: str | None = None) -> str:
    """Return an option, and its value, as the surface of the reader names it.

    >>> option("start-column"), option("unit", "ms", "'ms'")
    ('start_column=', "unit='ms'")
    >>> with in_terminal():
    ...     option("start-column"), option("unit", "ms", "'ms'")
    ('--start-column', '--unit ms')
    """
    if _TERMINAL not in os.environ:
        return f"{name.replace('-', '_')}={value if python is None else python}"
    return f"--{name} {value}".rstrip()


CAUSES = {
    "few requests": "few requests",
    "one slow period": "one slow period",
    "drift": "drift",
    "parts differ": "the parts of the run differ",
    "as stated": "the file says so",
    "timeouts": "timeouts",
    "above the last bucket": "above the last bucket",
}
"""Why a percentile is uncertain, as every surface words it."""


def cause_text(cause: str) -> str:
    """Return why a percentile is uncertain, in words."""
    return CAUSES.get(cause, f"based on {cause}" if cause else "")


def format_items(number: int, singular: str, plural: str | None = None) -> str:
    """Return a count and what is counted.

    >>> format_items(1, "request"), format_items(1200, "reply", "replies")
    ('1 request', '1,200 replies')
    """
    return f"{number:,.0f} {singular if number == 1 else plural or singular + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the hint of a message on an unknown word: the likely one, or all valid ones.

    >>> did_you_mean("gte", ["get", "put"]), did_you_mean("nope", ["get", ""])
    ("; did you mean 'get'?", "; there are '' and 'get'")
    """
    from difflib import get_close_matches

    names = sorted(known)
    close = get_close_matches(word, names, 1)
    if close:
        return f"; did you mean {printable(close[0])!r}?"
    shown = [repr(printable(name)) for name in names[:20]]
    return (
        f"; there are {', '.join(shown[:-1])} and {shown[-1]}"
        if len(shown) > 1
        else f"; there is {shown[0]}"
        if shown
        else ""
    )


def printable(text: str, limit: int = 60) -> str:
    r"""Return untrusted text safe to print: control characters escaped, truncated at `limit`.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii")
        for c in cut
    )


def brief_list(names: Iterable[str], most: int = 3) -> str:
    """Return names in a sentence, each once: the first ones, and how many more there are.

    >>> brief_list(["a", "b", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - most:,} more" if len(unique) > most else ""
    return ", ".join(unique[:most]) + more


def natural_key(text: str) -> list[tuple[int, str]]:
    """Return the key that sorts ``s2`` before ``s10``.

    >>> sorted(["s10", "s2", "S1"], key=natural_key)
    ['S1', 's2', 's10']
    """
    parts = re.split(r"(\d{1,300})", text)  # Python converts no number of any length
    return [
        (int(part), "") if k % 2 and part.isdecimal() else (-1, part)
        for k, part in enumerate(parts)
    ]


def markdown_text(text: str, *, code: bool = False) -> str:
    r"""Return untrusted text for Markdown: no image, link, tag or table is made of it.

    With `code`, text between backticks, of which nothing else can be made, remains code.

    >>> print(markdown_text("![x](http://a) <b>"), markdown_text("`-R <N>` `", code=True))
    !\[x\](http://a) &lt;b> `-R <N>` \`
    """
    kept = r"((?<!`)`[^`|\\\n]+`(?!`))|" if code else "()"
    return re.sub(
        kept + r"[\\`*\[\]|~<]",
        lambda found: found[1] or ("&lt;" if found[0] == "<" else f"\\{found[0]}"),
        text,
    )


def without_login(text: str) -> str:
    """Return a text without the names and passwords of its URLs.

    >>> without_login("wrk https://me:se@cret@host/@a?b=1")
    'wrk https://host/@a?b=1'
    """
    return re.sub(_LOGIN, "", text)


def without_secrets(text: str) -> str:
    """Return a text without the logins and queries (which may be signatures) of its URLs.

    >>> without_secrets("https://me:secret@host/a.hlog?token=1: the file is empty")
    'https://host/a.hlog: the file is empty'
    """
    return re.sub(_QUERY, r"\1", without_login(text))


def guarded(text: str) -> str:
    r"""Return untrusted text as a CSV cell that neither terminals nor spreadsheets interpret.

    An apostrophe precedes what looks like a formula, also after a semicolon, where spreadsheets
    of many locales split.

    >>> guarded("=cmd()"), guarded("a;-1"), guarded("a\x1b[31m")
    ("'=cmd()", "a;'-1", 'a\\x1b[31m')
    """
    return re.sub(r"(^|;)(?=[=+\-@＝＋－＠])", r"\1'", printable(text, len(text)))


def on_terminal(text: str) -> str:
    r"""Return lines that no terminal takes for commands, whatever names are in them.

    >>> on_terminal("a\x1b[31m\nb")
    'a\\x1b[31m\nb'
    """
    return "\n".join(printable(line, len(line)) for line in text.split("\n"))


def prose(text: str, style: str, *, listed: bool = False) -> str:
    """Return a sentence as it is written beside a table of this style, or as one of a list."""
    return f"{'- ' * listed}{markdown_text(text)}" if style == "markdown" else text


def esc(text: object, limit: int = 300) -> str:
    r"""Return foreign text as HTML text, or as the value of a quoted attribute."""
    import html  # with all names of characters: 1 ms, for pages alone

    return html.escape(printable(str(text), limit), quote=True)


def attribute(document: str) -> str:
    """Return a page of our own as an attribute in single quotes, of which it has the fewest."""
    return document.replace("&", "&amp;").replace("'", "&#39;")


def script_json(value: object) -> str:
    r"""Return JSON for an inline script: ASCII without the characters that HTML interprets."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(text: str, limit: int = 60) -> str:
    r"""Return untrusted text that matplotlib draws literally: printable, without $ … $."""
    shown = printable(text, limit).replace("$", r"\$")
    return f"\u200e{shown}\u200e" if _RIGHT_TO_LEFT.search(shown) else shown


def isolated(name: str) -> str:
    """Return a name which, if written from right to left, does not reorder the text around it."""
    return f"\u2068{name}\u2069" if _RIGHT_TO_LEFT.search(name) else name


# ------------------------------------------------------------
# Text in a terminal.

_UNKNOWN = 80
"""Columns of a terminal that does not say how wide it is."""


def terminal_width() -> int:
    """Return the columns of the terminal: ``COLUMNS``, what the terminal says, else 80."""
    import shutil

    return max(20, shutil.get_terminal_size((_UNKNOWN, 24)).columns)


def text_width(text: str) -> int:
    """Return the columns that a text takes: ideographs take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def shorten(text: str, width: int) -> str:
    """Return a name that takes at most `width` columns: its middle is left out.

    >>> shorten("checkout-service-eu-west-3.hlog", 16)
    'checkout…-3.hlog'
    """
    if text_width(text) <= width:
        return text
    head, tail = text, text
    while text_width(head) > width // 2:
        head = head[:-1]
    while text_width(tail) > width - 1 - text_width(head):
        tail = tail[1:]
    return f"{head}…{tail}"


def wrapped(text: str, width: int) -> str:
    """Return a text whose long lines are broken between words; what follows is indented."""
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        if text_width(line) <= width:
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        ) or [line]
    return "\n".join(lines)


def for_stream(text: str, stream: TextIO) -> str:
    """Return a text as a person reads it: lines are broken for a terminal, and for ``COLUMNS``."""
    try:
        read_by_person = stream.isatty() or "COLUMNS" in os.environ
    except ValueError:  # closed
        return text
    return wrapped(text, terminal_width()) if read_by_person else text


def brief(word: str) -> str:
    """Return a word of a file, cut with a mark beyond `LONGEST_WORD`."""
    return word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…"
