"""Recognition as data: what a format is known by, as values for `Format.sniff`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from latencykit.io.source import Confidence
from latencykit.io.text_reports import search

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from latencykit.io.source import Head

    Sniff = Callable[[Head], Confidence]


def has_keys(head: Head, *keys: str, within: int | None = None) -> bool:
    """True if the head looks like JSON and names all `keys`; for sniffing only."""
    text = head.text[:within]
    return text.lstrip()[:1] in ("{", "[") and all(f'"{key}"' in text for key in keys)


def certain(match: object) -> Confidence:
    """Return CERTAIN where something matches, else NO."""
    return Confidence.CERTAIN if match else Confidence.NO


def starts_with(*prefixes: str) -> Sniff:
    """Recognise a file that begins with one of these prefixes."""
    return partial(_starts_with, prefixes)


def has_json_keys(*alternatives: tuple[str, ...], within: int | None = None) -> Sniff:
    """Recognise JSON whose first characters contain all keys of one of the alternatives."""
    return partial(_has_json_keys, alternatives, within)


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
    return partial(_has_match, patterns, without, plain, confidence)


def _starts_with(prefixes: tuple[str, ...], head: Head) -> Confidence:
    return certain(head.text.startswith(prefixes))


def _has_json_keys(
    alternatives: tuple[tuple[str, ...], ...], within: int | None, head: Head
) -> Confidence:
    return certain(any(has_keys(head, *keys, within=within) for keys in alternatives))


def _has_match(
    patterns: tuple[str | re.Pattern[str], ...],
    without: str | re.Pattern[str],
    plain: Callable[[str], str],
    confidence: Confidence,
    head: Head,
) -> Confidence:
    text = plain(head.text)
    fits = all(search(pattern, text) for pattern in patterns) and not search(without, text)
    return confidence if fits else Confidence.NO
