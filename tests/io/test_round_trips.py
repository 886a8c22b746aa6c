"""Whatever is read, converted and read again has the same counts, percentiles, unit, tool and loop."""

from __future__ import annotations

import pytest

import latencykit as lk
from latencykit.io.writing import write_series
from latencykit.units import NANOSECONDS
from tests.io.test_contract import cases

TARGETS = (".hlog", ".hgrm", ".csv", ".json", ".parquet")
PERCENTILES = (50, 90, 99, 99.9)
BUCKET = {".hlog": 2e-3, ".hgrm": 2e-3}  # width of a bucket of the target
REBUILT = "rebuilt from percentile rows"  # what an .hgrm is


def written(series, path):
    """The series that a file of this kind takes, written; empty where it takes none."""
    taken = dict([next(iter(series.items()))]) if path.suffix == ".hgrm" else series
    try:
        write_series(taken, path)
    except lk.LatencyKitError:
        return {}
    return taken


def values(data, unit):
    """Percentiles in another unit of time, where the data has them."""
    scale = 1.0 if data.unit == unit else NANOSECONDS[data.unit] / NANOSECONDS[unit]
    for p in PERCENTILES:
        try:
            yield p, data.percentile(p) * scale
        except lk.DataNotAvailableError:
            continue


def _failures(data):
    return isinstance(data, lk.Samples) and data.outcome is not None and data.outcome.any()


def agree(before, after, suffix):
    """Facts that differ, and percentiles that differ by more than a bucket of the target."""
    facts = [
        f"{name}: {one} is {other}"
        for name in ("tool", "loop", "corrected")
        if (one := getattr(before.run, name)) != (other := getattr(after.run, name))
        and {one, other} != {"none", "unknown"}
    ]
    assumed = [data.run.unit_from == "assumed" for data in (before, after)]
    if before.count != after.count or assumed[0] != assumed[1]:
        facts.append(f"count, unit: {before.count}, {assumed} is {after.count}")
    known, seen = dict(values(before, before.unit)), dict(values(after, before.unit))
    if isinstance(before, lk.Histogram) and suffix in (".csv", ".hlog"):
        reported = () if before.reported_percentiles is None else before.reported_percentiles[0]
        known = {} if suffix == ".csv" or reported else known  # only buckets are written
    if suffix == ".hgrm" or (suffix == ".hlog" and _failures(before)):
        known = {}  # rows to the third decimal place of a millisecond; good requests alone
    tolerance = BUCKET.get(suffix, 1e-9)
    facts += [
        f"p{p}: {value} is {seen.get(p)}"
        for p, value in known.items()
        if seen.get(p) != pytest.approx(value, rel=tolerance)
    ]
    expected = (*before.run.notes, before.run.unit_note, after.run.unit_note)
    return facts + [
        note for note in after.run.notes if note not in expected and not note.startswith(REBUILT)
    ]


@pytest.mark.slow
@cases()
def test_a_sample_is_the_same_after_each_conversion(case, tmp_path):
    pytest.importorskip("pyarrow")
    series = {
        name: data
        for name, data in lk.read_all(case.path, **case.options).items()
        if not data.run.aggregate
    }
    for suffix in TARGETS:
        path = tmp_path / f"sample{suffix}"
        before = written(series, path)
        after = dict(lk.read_all(path)) if before else {}
        if len(before) == 1:  # by tags or endpoints it is a total and its parts
            parts = [data for data in after.values() if not data.run.aggregate]
            after = dict.fromkeys(before, lk.merge(parts) if len(parts) > 1 else parts[0])
        after = {name: after[name] for name in after if name in before}
        assert after.keys() == before.keys(), suffix
        for name, data in before.items():
            assert agree(data, after[name], suffix) == [], (suffix, name)
