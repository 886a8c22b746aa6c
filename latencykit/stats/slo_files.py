"""SLOs that other tools keep in files: gnuplot's steps, and HistogramLogAnalyzer's XML."""

from __future__ import annotations

import re

from latencykit.errors import UsageError
from latencykit.stats.slo import SLO, Limit
from latencykit.units import NANOSECONDS, format_percentile

__all__ = ["slo_from_text"]

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_STEP = re.compile(rf"\s*({_NUMBER})[\s,]+({_NUMBER})(?:[\s,]+({_NUMBER})\s*%?.*)?\s*")
_ELEMENT, _LIMIT = "SLAPercentile", "acceptablehicupp_msec"  # spelled so by HistogramLogAnalyzer


def slo_from_text(text: str, unit: str = "ms") -> SLO:
    """Return the SLO in the text of a file.

    Parameters
    ----------
    text : str
        Entries as `SLO.parse` takes them; or rows ``1/(1 − q)  limit  [percentile%]`` that gnuplot draws as steps; or
        HistogramLogAnalyzer's XML (always milliseconds).
    unit : str, default "ms"
        Unit of the limits in gnuplot's rows.

    Raises
    ------
    UsageError
        Where the text is none of the three, or XML with a document type, which could hold anything.

    Examples
    --------
    >>> print(slo_from_text("1.0 10.0 0%\\n100.0 10.0 99%\\n100.0 20.0 99%\\n10000.0 20.0 99.99%"))
    p99=10 ms, p99.99=20 ms
    """
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith("<"):
        return _from_xml(body)
    lines = [line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    steps = [_STEP.fullmatch(line) for line in lines]
    if lines and all(steps):
        return _from_steps([(float(s[1]), float(s[2]), s[3]) for s in steps if s], unit)
    return SLO.parse(text)


def _from_steps(rows: list[tuple[float, float, str | None]], unit: str) -> SLO:
    """Each level of the staircase is a limit, up to the percentile at which it ends."""
    if unit not in NANOSECONDS:
        raise UsageError(f"limits in {unit!r} have no duration; name their unit: ns, us, ms or s")
    ends: dict[float, float] = {}
    for place, level, label in rows:
        if place < 1:
            raise UsageError(f"a step at {place:g} is no percentile; the first column is 1/(1 - q), 1 or more")
        percentile = float(label) if label is not None else float(f"{100 * (1 - 1 / place):.12g}")
        ends[level] = max(ends.get(level, 0.0), percentile)
    limits = [
        Limit("max" if p == 100 else f"p{format_percentile(p)}", level * NANOSECONDS[unit])
        for level, p in sorted(ends.items(), key=lambda item: item[1])
        if p > 0
    ]
    return SLO.of(limits)


def _from_xml(text: str) -> SLO:
    """Read ``<SLAPercentile acceptablehicupp_msec="2">99.0</SLAPercentile>`` elements."""
    from xml.parsers import expat

    limits: list[Limit] = []
    inside: list[str] = []
    held: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == _ELEMENT:
            inside[:], held[:] = [attributes.get(_LIMIT, "")], []

    def end(name: str) -> None:
        if name == _ELEMENT and inside:
            limits.append(_xml_limit("".join(held).strip(), inside.pop()))

    def refuse(*_: object) -> None:
        raise UsageError("the SLO's XML declares a document type, which it does not need; remove the DOCTYPE")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = held.append
    parser.StartDoctypeDeclHandler = refuse  # so no entity can ever be declared, let alone expanded
    try:
        parser.Parse(text, True)
    except expat.ExpatError as broken:
        raise UsageError(f"the SLO is no well-formed XML: {broken}") from None
    if not limits:
        raise UsageError(f"the SLO's XML holds no {_ELEMENT} element; write them as HistogramLogAnalyzer's SLAdetails.xml does")
    return SLO.of(limits)


def _xml_limit(percentile: str, limit: str) -> Limit:
    try:
        share, level = float(percentile), float(limit)
    except ValueError:
        share = level = -1.0
    if not (0 <= share <= 100 and level >= 0):
        raise UsageError(f'<{_ELEMENT} {_LIMIT}="{limit[:40]}">{percentile[:40]} is no limit; both are plain numbers')
    return Limit("max" if share == 100 else f"p{format_percentile(share)}", level * NANOSECONDS["ms"])
