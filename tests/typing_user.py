"""A user's file: `mypy --strict` sees no ``Any`` in it (``disallow_any_expr``), and it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import latencykit as lk

DATA = Path(__file__).parents[1] / "data"


def read() -> lk.HistogramLog:
    """Read a log, and see what it is."""
    data = lk.read(DATA / "ctrlz-uncorrected.hlog", unit="ns")
    if not isinstance(data, lk.HistogramLog):
        raise lk.DataNotAvailableError("this log has intervals")
    return data


def numbers(log: lk.HistogramLog) -> float:
    """Percentiles, means and extremes are floats."""
    h: lk.Histogram = log.histogram()
    p99: float = h.percentile(99.0)
    mean, top, spread = h.mean, h.max, h.std
    summary: lk.Summary = h.summary()
    count: int = h.count
    return p99 + mean + top + spread + summary.percentile(99.0) + count


def analyses(log: lk.HistogramLog) -> str:
    """Every analysis returns its own type."""
    h = log.histogram()
    model: lk.FanOut = lk.fan_out(h, 100)
    two = lk.sequential(h, 2)
    diagnosis: lk.Diagnosis = lk.diagnose(log, expected_interval="10ms")
    comparison: lk.Comparison = lk.compare(h, h)
    corrected = lk.correct(h, "10ms")
    slo: lk.SLO = lk.SLO.parse("99.9=20ms")
    worst: float = model.percentile(99.0)
    assert isinstance(corrected, lk.Histogram)
    return f"{diagnosis.verdict} {comparison.verdict} {slo} {worst} {two.n}"


def arguments() -> lk.Samples:
    """Samples are made of arrays or lists."""
    samples = lk.Samples(start=range(0, 10**9, 10**7), duration=(10**6,) * 100)
    run: lk.Run = samples.run
    logs: list[lk.HistogramLog] = [samples.to_log("1s"), samples.to_log("1s")]
    merged = lk.merge(logs)
    assert merged is not None
    assert run.unit in ("ns", "us", "ms", "s", "none")
    return samples


def errors() -> list[str]:
    """Errors are classes that can be caught by name."""
    caught: list[str] = []
    try:
        lk.SLO.parse("nonsense")
    except lk.InvalidArgumentError as error:
        caught.append(str(error))
    for kind in (lk.CorruptInputError, lk.UnknownFormatError, lk.InputTooLargeError):
        assert issubclass(kind, lk.InputError)
    for other in (lk.IncompatibleDataError, lk.AlreadyCorrectedError, lk.MissingPackageError):
        assert issubclass(other, lk.LatencyKitError)
    return caught


def questions(
    data: lk.Samples | lk.HistogramLog | lk.Histogram | lk.Summary,
) -> tuple[str, int | None, float, float, float, float]:
    """All four types answer by the same names."""
    same = data.to_unit("ns").with_run(tool="mine")
    assert type(same) is type(data)
    assert {"value", "low", "high"} <= set(data.percentiles([50.0]).columns)
    assert not data.to_frame().empty
    assert data.quantile(0.5) == data.percentile(50.0)
    summary: lk.Summary = data.summary()
    return data.unit, summary.count, data.min, data.max, data.mean, data.std


def intervals(log: lk.HistogramLog) -> list[int]:
    """A log is a sequence of histograms."""
    first: lk.Histogram = log[0]
    part: lk.HistogramLog = log[1:3]
    rest: lk.HistogramLog = log.between("1s", 9.0)
    assert len(log.by_interval([50, 99])) == len(log)
    above: int = first.count_above("1ms")
    share: float = first.percentile_of("1ms")
    assert above + share >= 0
    return [h.count for h in part] + [h.count for h in rest]


def runs(samples: lk.Samples) -> str:
    """Several runs, and one run at another rate."""
    h = samples.histogram()
    curve: lk.LoadCurve = lk.load_curve({"500": h, "900": h}, lk.SLO.parse("99=20ms"))
    several: lk.Comparison = lk.compare([h, h], {"a": h, "b": h})
    at: list[int] = [point.position for point in lk.change_points([1.0, 1.0, 2.0] * 5)]
    models: list[lk.FanOut] = lk.fan_out(h, [1, 10], hedge=95.0)
    sums: lk.FanOut = lk.sequential(h, 2)
    timed: lk.Samples = lk.retime(samples, rate=100.0, connections=1)
    stalls = lk.find_stalls(timed)
    edges = lk.EdgeBuckets((0.0, 1.0), (1.0, 2.0))
    server = lk.simulate.Server("1ms")
    simulated: lk.Samples = lk.simulate.closed_loop(server, "1s")
    return f"{curve} {several.basis} {at} {models} {sums.n} {len(stalls)} {edges} {simulated}"


def outputs(log: lk.HistogramLog, directory: Path) -> None:
    """Charts, pages and files."""
    h = log.histogram()
    lk.plot.percentiles({"one": h, "other": log}, slo="99=20ms").figure.clear()
    lk.plot.timeline(log, percentiles=(99.0,)).figure.clear()
    lk.plot.ccdf(h).figure.clear()
    page: Path = lk.report({"log": log}, directory / "page.html", expected_interval="10ms")
    copy: Path = lk.write(log, directory / "copy.hlog")
    assert page.exists()
    assert copy.exists()
    assert len(lk.formats()) > 0


def measuring() -> None:
    """Latencies of one's own code."""
    with lk.Recorder(interval="1s") as recorder:
        recorder.record(1e6)
    h: lk.Histogram = recorder.histogram()
    rebuilt: lk.Histogram = lk.Histogram.from_percentiles([50.0, 99.0], [1e6, 2e6], 100)
    assert h.count == 1
    assert rebuilt.censored == 1


def main() -> None:
    """Run all of it."""
    log = read()
    numbers(log)
    analyses(log)
    samples = arguments()
    runs(samples)
    errors()
    intervals(log)
    every: list[lk.Samples | lk.HistogramLog | lk.Histogram | lk.Summary] = [samples, log]
    every += [log.histogram(), log.summary()]
    for data in every:
        questions(data)
    everything: dict[str, lk.Samples | lk.HistogramLog | lk.Histogram | lk.Summary] = lk.read_all(
        [DATA / "ctrlz-uncorrected.hlog"]
    )
    assert everything
    buckets: lk.Buckets = log.histogram().buckets
    assert isinstance(buckets, lk.HdrBuckets | lk.EdgeBuckets)
    with lk.limits(intervals=1000) as limits:
        assert limits.intervals == 1000
    with tempfile.TemporaryDirectory() as directory:
        outputs(log, Path(directory))
    measuring()


if __name__ == "__main__":
    main()
