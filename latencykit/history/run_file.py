"""One run as a file of JSON lines: one line per series, and in each the facts of the run.

============  ==================================================================================
key           meaning
============  ==================================================================================
time          seconds since the epoch: of the commit, or of the measurement; the order of runs
measured      when the run was measured
commit        null outside of a repository
branch
host          where it was added
labels        runs whose labels differ are judged apart, such as those of another ``machine``
digest        of all distributions of the run
series
unit          ``ns``, or ``none`` for bare numbers
count         requests without failures
statistics    ``p50``, ``p90``, ``p99``, ``p99.9``, ``mean``, ``max``, or a tool's own: value, and
              95 % confidence interval within the run; null where the run is too short for it
distribution  the series' histogram as JSON, deflated, in base64
============  ==================================================================================
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from latencykit._records import record
from latencykit.core import Data
from latencykit.core.histogram import Histogram, histogram_of, statistic_of
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError
from latencykit.io.native_json import data_of, record_of
from latencykit.units import NANOSECONDS, format_percentile

_PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_UNKNOWN: list[float | None] = [None, None, None]
_LARGEST_ERROR = 0.5  # of a run by itself, in log units: a shorter one decides nothing
_Z = 1.96


@record()
class StoredSeries:
    """The key statistics of one series of a run."""

    unit: str  # ns, or none for bare numbers
    count: int | None  # of requests without failures
    # Value and confidence interval within the run; None where the run does not show it.
    statistics: dict[str, list[float | None]] = field(compare=False)

    def value(self, statistic: str) -> float:
        """Return a statistic; NaN where the run does not support it."""
        value = self.statistics.get(statistic, _UNKNOWN)[0]
        return math.nan if value is None else value

    def error(self, statistic: str) -> float:
        """Return the relative standard error of a statistic within the run; 0 if unknown."""
        _, low, high = self.statistics.get(statistic, _UNKNOWN)
        return min(math.log(high / low) / (2 * _Z), _LARGEST_ERROR) if low and high else 0.0


@record()
class StoredRun:
    """One run of a history."""

    name: str  # of its file, without .jsonl
    time: float  # of the commit, else of the measurement, seconds since the epoch
    measured: float  # seconds since the epoch
    commit: str | None
    branch: str | None
    host: str | None
    labels: dict[str, str] = field(compare=False)  # runs whose labels differ are judged apart
    digest: str = field(compare=False)  # of the distributions: the same data has the same
    series: dict[str, StoredSeries] = field(compare=False)

    @property
    def order(self) -> tuple[float, float, str]:
        """Key by which runs are sorted, the oldest first."""
        return self.time, self.measured, self.name

    @property
    def label(self) -> str:
        """The commit, shortened, or the time."""
        if self.commit:
            return self.commit[:10]
        return dt.datetime.fromtimestamp(self.time, dt.UTC).strftime("%Y-%m-%d %H:%M")


def counted(data: Data) -> Histogram | Summary:
    """Return what is stored of a series: its histogram or its statistics, times in ns."""
    if isinstance(data, Summary):
        return data.to_unit("ns") if data.unit in NANOSECONDS else data
    return histogram_of(data, "a history")


def stored_series(data: Histogram | Summary) -> StoredSeries:
    """Return the key statistics of a series; NaN where the run does not support one."""
    statistics: dict[str, list[float | None]] = {}
    if isinstance(data, Summary):
        named = {f"p{format_percentile(p)}": v for p, v in data.reported_percentiles.items()}
        for name, value in (named | dict(data.stats)).items():
            statistics[name] = [_finite(float(value)), None, None]
        return StoredSeries(data.unit, data.count, statistics)
    for row in data.percentile_rows(_PERCENTILES):
        ends = [row.value if row.supported and row.resolved else math.nan, row.low, row.high]
        statistics[f"p{format_percentile(row.percentile)}"] = list(map(_finite, ends))
    for name, known in (("mean", "mean"), ("max", "p100")):
        statistics[name] = [_finite(statistic_of(data, known)), None, None]
    return StoredSeries(data.unit, data.count, statistics)


def _packed(series: Mapping[str, Histogram | Summary]) -> dict[str, bytes]:
    return {
        name: zlib.compress(json.dumps(record_of(entry), separators=(",", ":")).encode())
        for name, entry in series.items()
    }


def digest_of(series: Mapping[str, Data]) -> str:
    """Return the digest of what would be stored: the same data has the same."""
    return _digest(_packed({name: counted(entry) for name, entry in series.items()}))


def encode(series: Mapping[str, Data], facts: Mapping[str, Any]) -> tuple[StoredRun, bytes]:
    """Return a run and the bytes of its file; `facts` are the fields of the run but its content."""
    data = {name: counted(entry) for name, entry in series.items()}
    packed = _packed(data)
    common = {**facts, "digest": _digest(packed)}
    stamp = dt.datetime.fromtimestamp(facts["time"], dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    # The same data of one commit is one run, whenever and from wherever it is added again.
    same = {key: common[key] for key in common if key not in ("measured", "host")}
    own = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]
    commit = "".join(c for c in (facts["commit"] or "run")[:10] if c.isalnum()) or "run"
    stored = {name: stored_series(entry) for name, entry in data.items()}
    lines = [
        common | {"series": name} | vars(entry)
        | {"distribution": base64.b64encode(packed[name]).decode()}
        for name, entry in stored.items()
    ]  # fmt: skip
    content = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    return StoredRun(name=f"{stamp}-{commit}-{own}", series=stored, **common), content


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _digest(packed: Mapping[str, bytes]) -> str:
    parts = (f"{name}\0".encode() + content for name, content in sorted(packed.items()))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _parsed(name: str, content: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """The lines of a file, and their distributions, if it is as it was written."""
    try:
        lines = [json.loads(line) for line in content.splitlines()]
        parsed = [(line, base64.b64decode(line.pop("distribution"))) for line in lines]
        intact = _digest({line["series"]: packed for line, packed in parsed}) == lines[0]["digest"]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        seen = f"not a complete file of a history ({type(error).__name__})"
        raise CorruptInputError(f"{name}.jsonl", None, seen, "", "add the run again") from None
    if not intact:
        seen = "the run's distributions were changed"
        raise CorruptInputError(f"{name}.jsonl", None, seen, "", "add the run again")
    return parsed


def decode(name: str, content: bytes, rename: Mapping[str, str] | None = None) -> StoredRun:
    """Return the run of a file's bytes."""
    series, facts = {}, dict[str, Any]()
    try:
        for facts, _ in _parsed(name, content):
            key = facts.pop("series")
            own = {field: facts.pop(field) for field in StoredSeries.__dataclass_fields__}
            series[(rename or {}).get(key, key)] = StoredSeries(**own)
        return StoredRun(name=name, series=series, **facts)
    except (TypeError, KeyError) as error:
        seen = f"the run's record is corrupt ({type(error).__name__})"
        raise CorruptInputError(f"{name}.jsonl", None, seen, "", "add the run again") from None


def distributions(name: str, content: bytes) -> dict[str, Histogram | Summary]:
    """Return the distribution of every series of a run's file."""
    series: dict[str, Any] = {
        line["series"]: data_of(json.loads(zlib.decompress(packed)))
        for line, packed in _parsed(name, content)
    }
    return series
