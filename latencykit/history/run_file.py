"""One run as one Parquet file: a table for SQL, and a record at its end that is read without it.

============  ============  ====================================================================
column        type          meaning
============  ============  ====================================================================
run           string        name of the run: that of its file, without ``.parquet``
time          timestamp     of the commit, or of the measurement: the order of runs
measured      timestamp     when the run was measured
commit        string        null outside of a repository
branch        string
host          string        where it was added
machine       string        the label ``machine``: runs of different machines are judged apart
labels        map           all labels
series        string
unit          string        ``ns``, or ``none`` for bare numbers
count         int64         requests without failures
statistic     string        ``p50``, ``p90``, ``p99``, ``p99.9``, ``mean``, ``max``, or a tool's own
value         double        null where the run is too short for it
low, high     double        95 % confidence interval within the run
distribution  binary        in the first row of a series: JSON of its histogram, deflated
============  ============  ====================================================================

The rows are for other programs. latencykit reads the JSON under ``latencykit.history`` in the
file's metadata, which takes a tenth of the time where there are thousands of files.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import math
import zlib
from dataclasses import field
from typing import TYPE_CHECKING, Any

from latencykit._records import record
from latencykit.core.histogram import Histogram, histogram_of, statistic_of
from latencykit.core.summary import Summary
from latencykit.errors import CorruptInputError, MissingPackageError
from latencykit.io.native_json import data_of, record_of
from latencykit.units import NANOSECONDS, format_percentile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from latencykit.core import Data

_KEY = "latencykit.history"
_MARK = b'{"latencykit_history":1,'
_PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_DECODER = json.JSONDecoder()
_MAGIC = b"PAR1"
_UNKNOWN: list[float | None] = [None, None, None]


@record()
class StoredSeries:
    """The key statistics of one series of a run.

    Attributes
    ----------
    unit : str
        ``ns``, or ``none`` for bare numbers.
    count : int or None
        Requests without failures.
    statistics : mapping of str to list of float
        Value and confidence interval within the run; None where the run does not show it.
    """

    unit: str
    count: int | None
    statistics: dict[str, list[float | None]] = field(compare=False)

    def value(self, statistic: str) -> float:
        """Return a statistic; NaN where the run does not support it."""
        value = self.statistics.get(statistic, _UNKNOWN)[0]
        return math.nan if value is None else value


@record()
class StoredRun:
    """One run of a history.

    Attributes
    ----------
    name : str
        Name of its file, without ``.parquet``.
    time, measured : float
        Seconds since the epoch: of the commit, else of the measurement; and of the measurement.
    commit, branch, host : str or None
    labels : mapping of str to str
        Runs whose labels differ are judged apart.
    digest : str
        Of the distributions: the same data has the same.
    series : mapping of str to StoredSeries
    """

    name: str
    time: float
    measured: float
    commit: str | None
    branch: str | None
    host: str | None
    labels: dict[str, str] = field(compare=False)
    digest: str = field(compare=False)
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
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingPackageError("pyarrow", "A history", "arrow") from missing
    data = {name: counted(entry) for name, entry in series.items()}
    packed = _packed(data)
    digest = _digest(packed)
    stamp = dt.datetime.fromtimestamp(facts["time"], dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    own = hashlib.sha256(json.dumps([digest, dict(facts)], sort_keys=True).encode()).hexdigest()[
        :16
    ]
    commit = "".join(c for c in (facts["commit"] or "run")[:10] if c.isalnum()) or "run"
    run = StoredRun(
        name=f"{stamp}-{commit}-{own}", digest=digest,
        series={name: stored_series(entry) for name, entry in data.items()}, **facts,
    )  # fmt: skip
    common = {
        "run": run.name, "time": round(run.time * 1e6), "measured": round(run.measured * 1e6),
        "commit": run.commit, "branch": run.branch, "host": run.host,
        "machine": run.labels.get("machine"), "labels": list(run.labels.items()),
    }  # fmt: skip
    rows = []
    for name, entry in run.series.items():
        for number, (statistic, known) in enumerate(entry.statistics.items()):
            ends = dict(zip(("value", "low", "high"), known, strict=True))
            rows.append(
                common | ends | {"series": name, "unit": entry.unit, "count": entry.count}
                | {"statistic": statistic, "distribution": None if number else packed[name]}
            )  # fmt: skip
    string, stamp_type = pa.string(), pa.timestamp("us", "UTC")
    schema = pa.schema(
        {
            "run": string, "time": stamp_type, "measured": stamp_type, "commit": string,
            "branch": string, "host": string, "machine": string, "labels": pa.map_(string, string),
            "series": string, "unit": string, "count": pa.int64(), "statistic": string,
            "value": pa.float64(), "low": pa.float64(), "high": pa.float64(),
            "distribution": pa.binary(),
        }.items()
    )  # fmt: skip
    kept = {key: value for key, value in vars(run).items() if key not in ("name", "series")}
    kept["series"] = {name: [*vars(entry).values()] for name, entry in run.series.items()}
    text = json.dumps({"latencykit_history": 1, **kept}, separators=(",", ":"))
    assert text.encode().startswith(_MARK)
    out = io.BytesIO()
    with pq.ParquetWriter(
        out, schema, compression="zstd", write_statistics=False, store_schema=False
    ) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        writer.add_key_value_metadata({_KEY: text})
    return run, out.getvalue()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _digest(packed: Mapping[str, bytes]) -> str:
    parts = (f"{name}\0".encode() + content for name, content in sorted(packed.items()))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def decode(name: str, content: bytes, rename: Mapping[str, str] | None = None) -> StoredRun:
    """Return the run of a file's bytes, from the record at its end."""
    size = int.from_bytes(content[-8:-4], "little")
    begin = content.rfind(_MARK, max(len(content) - size - 8, 0)) if size else -1
    if content[:4] != _MAGIC or content[-4:] != _MAGIC or begin < 0:
        raise CorruptInputError(
            f"{name}.parquet", None, "not a complete file of a history", "", "add the run again"
        )
    try:
        # The record is ASCII; what follows it is the rest of the file's metadata.
        facts, _ = _DECODER.raw_decode(content[begin:-8].decode("latin-1"))
        del facts["latencykit_history"]
        series = {
            key: StoredSeries(unit, count, known)
            for key, (unit, count, known) in facts.pop("series").items()
        }
        if rename:
            series = {rename.get(key, key): entry for key, entry in series.items()}
        return StoredRun(name=name, series=series, **facts)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptInputError(
            f"{name}.parquet", None, f"the run's record is corrupt ({type(error).__name__})", "",
            "add the run again",
        ) from None  # fmt: skip


def distributions(name: str, content: bytes) -> dict[str, Histogram | Summary]:
    """Return the distribution of every series of a run's file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingPackageError("pyarrow", "A history", "arrow") from missing
    try:
        table = pq.read_table(io.BytesIO(content), columns=["series", "distribution"])
        packed = {
            row["series"]: row["distribution"] for row in table.to_pylist() if row["distribution"]
        }
        intact = _digest(packed) == decode(name, content).digest
        series: dict[str, Any] = {
            key: data_of(json.loads(zlib.decompress(data)))
            for key, data in packed.items()
            if intact
        }
    except (pa.ArrowException, zlib.error, ValueError, KeyError, TypeError, OSError) as error:
        raise CorruptInputError(
            f"{name}.parquet", None,
            f"the distributions are corrupt ({type(error).__name__})", "", "add the run again",
        ) from None  # fmt: skip
    if not intact:
        raise CorruptInputError(
            f"{name}.parquet", None, "the run's distributions were changed", "",
            "add the run again",
        )  # fmt: skip
    return series
