"""What a user writes: `mypy --strict` sees no ``Any`` in it (``disallow_any_expr``), and it runs."""

from __future__ import annotations

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
    model: lk.Distribution = lk.fan_out(h, 100)
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
    samples = lk.Samples(start=(0, 10), duration=(1, 2))
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


def main() -> None:
    """Run all of it."""
    log = read()
    numbers(log)
    analyses(log)
    arguments()
    errors()
    everything: dict[str, lk.Samples | lk.HistogramLog | lk.Histogram | lk.Summary] = lk.read_all(
        [DATA / "ctrlz-uncorrected.hlog"]
    )
    assert everything
    buckets: lk.Buckets = log.histogram().buckets
    assert isinstance(buckets, lk.HdrBuckets | lk.EdgeBuckets)
    with lk.limits(intervals=1000) as limits:
        assert limits.intervals == 1000


if __name__ == "__main__":
    main()
