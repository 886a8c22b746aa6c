"""Recognition as data: what a format is known by, as values for `Format.sniff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latencykit.io.source import Confidence, Head
from latencykit.io.text_reports import search

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    Sniff = Callable[[Head], Confidence]


def has_keys(head: Head, *keys: str, within: int | None = None) -> bool:
    """True if the head looks like JSON and names all `keys`; for sniffing only."""
    text = head.text[:within]
    return text.lstrip()[:1] in ("{", "[") and all(f'"{key}"' in text for key in keys)


def certain(match: object) -> Confidence:
    """Return CERTAIN where something matches, else NO."""
    return Confidence.CERTAIN if match else Confidence.NO


def either(*sniffs: Sniff) -> Sniff:
    """Recognise what one of these does, as surely as the surest of them."""
    return lambda head: max(sniff(head) for sniff in sniffs)


def starts_with(*prefixes: str) -> Sniff:
    """Recognise a file that begins with one of these prefixes."""
    return lambda head: certain(head.text.startswith(prefixes))


def has_json_keys(*alternatives: tuple[str, ...], within: int | None = None) -> Sniff:
    """Recognise JSON whose first characters contain all keys of one of the alternatives."""
    return lambda head: certain(any(has_keys(head, *keys, within=within) for keys in alternatives))


def has_match(
    *patterns: str | re.Pattern[str],
    without: str | re.Pattern[str] = r"(?!)",
    plain: Callable[[str], str] = str,
    confidence: Confidence = Confidence.CERTAIN,
) -> Sniff:
    """Recognise text that each of the patterns matches, and `without` does not.

    In a pattern that is text, ``^`` and ``$`` match at every line. `plain` takes a terminal's
    escapes out first.
    """

    def sniff(head: Head) -> Confidence:
        text = plain(head.text)
        fits = all(search(pattern, text) for pattern in patterns) and not search(without, text)
        return confidence if fits else Confidence.NO

    return sniff
