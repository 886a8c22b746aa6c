"""A pytest plug-in: the fixture `ctrlz` tests a load generator; nothing is imported until then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from latencykit.ctrlz.run import Calibration


@pytest.fixture
def ctrlz() -> Callable[..., Calibration]:
    """Test whether a load generator reports that its server paused.

    Returns
    -------
    callable
        `latencykit.ctrlz.run.ctrlz`: a command with places such as ``{url}``, ``{rate}`` and
        ``{duration}``, and the options of ``latencykit ctrlz`` by their names. Its result has
        ``verdict``, ``honest`` (None where the test is undecided), ``reasons`` and ``rows``.

    Raises
    ------
    LatencyKitError
        If the command cannot be run, or its output not be read.

    Examples
    --------
    In a test file (a run takes the load generator's time, 12 s by default)::

        def test_our_load_test_reports_stalls(ctrlz):
            result = ctrlz("./my-load-test --rate {rate} --duration {duration}s {url}", repeat=3)
            assert result.verdict == "honest", result.reasons
    """
    from latencykit.ctrlz.run import ctrlz

    return ctrlz
