"""What worlds with a known truth are made of: when requests arrive, and how long each takes to serve; seeded."""

from __future__ import annotations

from latencykit.simulate.arrivals import bursty, fixed, poisson, ramp
from latencykit.simulate.service import constant, exponential, gamma, lognormal, mixture, pareto

__all__ = ["bursty", "constant", "exponential", "fixed", "gamma", "lognormal", "mixture", "pareto", "poisson", "ramp"]
