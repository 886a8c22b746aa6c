"""A pytest plug-in: `latency` asserts how fast code is, `ctrlz` tests a load generator.

Nothing is imported until a fixture is used.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from latencykit.assertions import Latency, LatencyResult
    from latencykit.ctrlz.run import Calibration


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture `latency`."""
    group = parser.getgroup("latency", "latency assertions (latencykit)")
    group.addoption(
        "--latency-strict",
        action="store_true",
        help="Fail latency assertions that are undecided when their budget is spent.",
    )
    group.addoption(
        "--latency-report",
        metavar="DIR",
        help="Write a chart (.png) and the latencies (.json) of each assertion into DIR.",
    )
    group.addoption(
        "--latency-off", action="store_true", help="Call the code once or twice; measure nothing."
    )


@pytest.fixture
def latency(request: pytest.FixtureRequest) -> Latency:
    """Assert that code is fast enough, on a busy machine, too: at most 1 in 1,000 tests is wrong.

    Returns
    -------
    latencykit.assertions.Latency
        With ``limit``, ``compare``, ``against_history`` and ``from_benchmark``; see there.

    Examples
    --------
    In a test file::

        def test_lookup_is_fast(latency):
            with latency.limit("p99 < 2ms", budget="10s") as run:
                for _ in run:
                    cache.get(key)

        def test_not_slower(latency):
            latency.compare(base=lambda: old(x), new=lambda: new(x), allow="+20% p95")

        def test_not_slower_than_main(latency):
            latency.against_history("lookup", lambda: cache.get(key), allow="+20% p99")

        def test_benchmark(benchmark, latency):
            benchmark.pedantic(cache.get, [key], rounds=1000)
            latency.from_benchmark(benchmark, "p99 < 2ms")
    """
    from latencykit.assertions import Latency

    config = request.config
    results: list[LatencyResult] = []

    def take(result: LatencyResult) -> None:
        results.append(result)
        number = f".{len(results)}" if len(results) > 1 else ""
        properties = request.node.user_properties  # `record_property` warns of xunit2
        properties.append((f"latency{number}", f"{result.verdict}: {result}"))
        if result.calls:
            properties.append((f"latency{number}.{result.statistic}_ns", result.value))
        folder = config.getoption("latency_report")
        if folder is not None and result.calls:
            path = config.invocation_params.dir / folder
            path.mkdir(parents=True, exist_ok=True)
            _write(path / (re.sub(r"[^\w.-]+", "-", request.node.nodeid) + number), result)

    return Latency(
        strict=config.getoption("latency_strict"),
        off=config.getoption("latency_off"),
        on_result=take,
    )


def _write(path: Path, result: LatencyResult) -> None:
    from latencykit.io.native_json import write_json
    from latencykit.plot.files import save
    from latencykit.plot.percentile_chart import percentiles

    write_json(result.series, Path(f"{path}.json"))
    save(percentiles, dict(result.series), Path(f"{path}.png"), title=str(result).split("; ")[0])


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
