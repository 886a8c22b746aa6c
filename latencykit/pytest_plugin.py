"""A pytest plug-in: `latency` asserts how fast code is, `ctrlz` tests a load generator.

Nothing is imported until a fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from latencykit.assertions import Latency, LatencyResult
    from latencykit.ctrlz.run import Calibration


_OPTIONS: dict[str, dict[str, str]] = {
    "--latency-strict": {"action": "store_true", "help": "Fail undecided latency assertions."},
    "--latency-report": {"metavar": "DIR", "help": "Write charts (.png) and latencies (.json)."},
    "--latency-off": {"action": "store_true", "help": "Call the code, but measure nothing."},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture `latency`."""
    group = parser.getgroup("latency", "latency assertions (latencykit)")
    for name, settings in _OPTIONS.items():
        group.addoption(name, **settings)


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
    from latencykit.assertions import Latency, LatencyResult

    option, results = request.config.getoption, list[LatencyResult]()

    def take(result: LatencyResult) -> None:
        results.append(result)
        number = f".{len(results)}" if len(results) > 1 else ""
        properties = request.node.user_properties  # `record_property` warns of xunit2
        properties.append((f"latency{number}", f"{result.verdict}: {result}"))
        if result.calls:
            properties.append((f"latency{number}.{result.statistic}_ns", result.value))
        if result.calls and option("latency_report") is not None:
            from latencykit.io.native_json import write_json
            from latencykit.plot.files import save
            from latencykit.plot.percentile_chart import percentiles

            name = re.sub(r"[^\w.-]+", "-", request.node.nodeid) + number
            folder = request.config.invocation_params.dir / option("latency_report")
            folder.mkdir(parents=True, exist_ok=True)
            write_json(result.series, folder / f"{name}.json")
            title = str(result).split("; ")[0]
            save(percentiles, dict(result.series), folder / f"{name}.png", title=title)

    return Latency(option("latency_strict"), option("latency_off"), take)


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
