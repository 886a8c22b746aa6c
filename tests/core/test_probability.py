"""Chances without scipy: what scipy says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from latencykit.core import quantiles as chances


@pytest.mark.parametrize("n", [0, 1, 2, 37, 1500, 6852, 1_000_000, 40_000_000])
def test_binomial_quantiles(n):
    q = np.concatenate([[0.0, 1.0, 1e-9], 1 - 10.0 ** -np.linspace(0.01, 7, 40)])
    ours = chances.binomial_quantiles([0.0005, 0.025, 0.5, 0.975], n, q)
    inside, p = np.clip(q, 1e-12, 1 - 1e-12), np.array([[0.0005], [0.025], [0.5], [0.975]])
    assert (special.bdtr(ours, n, inside) >= p * (1 - 1e-9)).all()
    assert (special.bdtr(np.maximum(ours - 1, 0), n, inside) < p * (1 + 1e-9))[ours > 0].all()


def test_poisson_at_least():
    rng = np.random.default_rng(0)
    k = 10 ** rng.uniform(0, 4, 5000)
    mean = k * 10 ** rng.uniform(-2, 0.0, k.size)
    theirs = special.gammainc(k, mean)
    np.testing.assert_allclose(chances.poisson_at_least(k, mean), theirs, rtol=1e-6, atol=1e-250)
    assert chances.poisson_at_least([3.0], [0.0]).tolist() == [0.0]
