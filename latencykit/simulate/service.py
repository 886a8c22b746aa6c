"""How long the work itself takes: each of these returns a `Service`, which draws service times in nanoseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from latencykit.errors import UsageError
from latencykit.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Service", "constant", "exponential", "gamma", "lognormal", "mixture", "pareto", "service_of"]

Service: TypeAlias = "Callable[[np.random.Generator, int], NDArray[np.float64]]"
"""Draws n service times in nanoseconds; any function of (generator, n) will do."""


def constant(time: str | float) -> Service:
    """Return a service that always takes the same time (``"1ms"``, or seconds).

    Examples
    --------
    >>> constant("1ms")(np.random.default_rng(0), 2).tolist()
    [1000000.0, 1000000.0]
    """
    value = parse_duration(time, "s")
    return lambda _rng, n: np.full(n, value)


def exponential(mean: str | float) -> Service:
    """Return a memoryless service of the given mean.

    Examples
    --------
    >>> bool(abs(exponential("1ms")(np.random.default_rng(0), 10_000).mean() - 1e6) < 5e4)
    True
    """
    value = parse_duration(mean, "s")
    return lambda rng, n: rng.exponential(value, n)


def gamma(mean: str | float, shape: float) -> Service:
    """Return a gamma-distributed service: of squared variation ``1 / shape`` around its mean.

    Examples
    --------
    >>> bool(gamma("1ms", 100)(np.random.default_rng(0), 1000).std() < 2e5)
    True
    """
    value = parse_duration(mean, "s")
    return lambda rng, n: rng.gamma(shape, value / shape, n)


def lognormal(median: str | float, sigma: float) -> Service:
    """Return a log-normal service: most are quick, some take several times as long.

    Examples
    --------
    >>> bool(abs(np.median(lognormal("1ms", 1.0)(np.random.default_rng(0), 9999)) - 1e6) < 5e4)
    True
    """
    value = parse_duration(median, "s")
    return lambda rng, n: value * rng.lognormal(0.0, sigma, n)


def pareto(least: str | float, alpha: float) -> Service:
    """Return a service with a heavy tail: one in 10ᵅ takes more than ten times the least.

    Examples
    --------
    >>> t = pareto("1ms", 1.5)(np.random.default_rng(0), 100_000)
    >>> bool(t.min() >= 1e6), bool(0.028 < (t > 1e7).mean() < 0.035)
    (True, True)
    """
    value = parse_duration(least, "s")
    return lambda rng, n: value * (1.0 + rng.pareto(alpha, n))


def mixture(*parts: tuple[float, Service | str | float]) -> Service:
    """Return a service that is now this, now that: pairs of a share and a service, shares adding up to 1.

    Examples
    --------
    >>> m = mixture((0.99, "1ms"), (0.01, exponential("1s")))
    >>> bool(0.98 < (m(np.random.default_rng(0), 10_000) == 1e6).mean() < 1)
    True
    """
    shares = [share for share, _ in parts]
    if not parts or min(shares) < 0 or abs(sum(shares) - 1.0) > 1e-9:
        raise UsageError(f"the shares of a mixture must add up to 1, not {sum(shares)}")
    services = [service_of(part) for _, part in parts]

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        which = rng.choice(len(shares), n, p=shares)
        return np.choose(which, [service(rng, n) for service in services])

    return draw


def service_of(service: Service | str | float) -> Service:
    """Return a service as it is, or a constant one of the given time."""
    return service if callable(service) else constant(service)
