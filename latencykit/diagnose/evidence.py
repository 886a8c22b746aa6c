"""What a test found: one line of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["STRONG", "WEAK", "Evidence", "holm", "p_words"]

STRONG, WEAK = 0.001, 0.05
LEAST = 5
"""Requests that must be missing before anybody is accused."""


@dataclass(frozen=True)
class Evidence:
    """One test and what it found.

    Attributes
    ----------
    test : str
        Its name.
    statistic : float
        Its p-value where it has one (`p` is True), else the number that it compares.
    threshold : float
        What the statistic is compared with.
    finding : str
        One sentence in words and numbers.
    level : {"none", "weak", "strong", "honest"}
        How strongly it speaks for omission; ``honest`` against it.
    missing : float
        Requests that it finds missing.
    p : bool
        Whether the statistic is a p-value, and so takes part in Holm's correction.
    """

    test: str
    statistic: float
    threshold: float
    finding: str
    level: str = "none"
    missing: float = 0.0
    p: bool = True


def holm(found: list[Evidence]) -> list[Evidence]:
    """Return the tests with their p-values adjusted for how many were made (Holm 1979), and levels to match.

    Examples
    --------
    >>> two = [Evidence("a", 0.0006, STRONG, "", "strong"), Evidence("b", 0.9, STRONG, "")]
    >>> [(one.statistic, one.level) for one in holm(two)]
    [(0.0012, 'weak'), (0.9, 'none')]
    """
    order = sorted((one.statistic, k) for k, one in enumerate(found) if one.p)
    out, worst = list(found), 0.0
    for place, (p, k) in enumerate(order):
        worst = max(worst, min(1.0, p * (len(order) - place)))
        level = found[k].level
        if level in ("weak", "strong"):
            level = "strong" if level == "strong" and worst < STRONG else "weak" if worst < WEAK else "none"
        out[k] = replace(found[k], statistic=worst, level=level)
    return out


def p_words(p: float) -> str:
    """Return a p-value as text: ``p < 1e-12`` below that.

    Examples
    --------
    >>> p_words(0.034), p_words(3e-200)
    ('p = 0.034', 'p < 1e-12')
    """
    return "p < 1e-12" if p < 1e-12 else f"p = {p:.2g}"
