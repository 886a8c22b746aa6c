"""`History`: the runs of a store, and the gate that learns from them."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import time as clock
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from latencykit import errors
from latencykit._records import record
from latencykit._typing import Floats
from latencykit.analysis.judge import RunVerdict, Verdict, bands_of, judged
from latencykit.core import Data
from latencykit.core.histogram import Histogram
from latencykit.core.run import Run, require_data
from latencykit.core.summary import Summary
from latencykit.core.trimmed import statistic_name
from latencykit.history.run_file import (
    StoredRun,
    StoredSeries,
    counted,
    decode,
    digest_of,
    distributions,
    encode,
)
from latencykit.history.run_file import stored_series as statistics_of
from latencykit.history.store import Store

if TYPE_CHECKING:
    import pandas as pd


_PERCENTILES = ("p50", "p99", "p99.9")
_ORDER: tuple[Verdict, ...] = ("worse", "confirm", "better", "same", "unknown")


@record()
class HistoryRow:
    """One statistic of one series, judged by its history; NaN where there is none."""

    series: str
    statistic: str
    unit: str
    verdict: Verdict
    missing: int  # earlier runs that are missing for a verdict
    runs: int  # earlier runs that it was compared with
    value: float  # of the new run
    level: float  # of the runs since the last change
    low: float  # the band in which 95 of 100 unchanged runs lie
    high: float
    since: StoredRun | None = None  # the first run at this level; None if it never changed

    @property
    def change(self) -> float:
        """Relative deviation from the level."""
        return self.value / self.level - 1 if self.level else math.nan


@record()
class HistoryVerdict:
    """A run judged by a history; see `History.judge`."""

    rows: tuple[HistoryRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The gravest of all rows: worse, confirm, better, same, unknown."""
        found = {row.verdict for row in self.rows}
        return next(word for word in _ORDER if word in found)


class History:
    """The runs of a store: a folder, or a URL that fsspec opens.

    Parameters
    ----------
    store : str or Path
        A folder, which is made when the first run is added; or a URL such as ``s3://bucket/runs``.
    branch : str, optional
        Only runs of this branch.
    rename : mapping of str to str, optional
        Old names of series and their new ones.

    Attributes
    ----------
    left_out : tuple of str
        Files that cannot be read, one line each; the others are used.

    Raises
    ------
    InvalidArgumentError
        If the store is a file.

    Examples
    --------
    >>> import latencykit as lk, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = History(folder)
    ...     for run in range(12):
    ...         data = lk.Histogram.of(range(1_000_000, 2_000_000, 1_000))
    ...         _ = history.add(data, time=run * 86400.0)
    ...     history = History(folder)
    ...     slow = lk.Histogram.of(range(3_000_000, 6_000_000, 3_000))
    ...     len(history.runs), history.judge(slow).verdict, history.judge(slow, slow, slow).verdict
    (12, 'confirm', 'worse')
    """

    def __init__(
        self,
        store: str | os.PathLike[str],
        *,
        branch: str | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> None:
        self._store, self._branch, self._rename = Store(store), branch, dict(rename or {})

    def __repr__(self) -> str:
        return f"History({self._store.place!r})"

    @cached_property
    def _read(self) -> tuple[tuple[StoredRun, ...], tuple[str, ...]]:
        names = self._store.names()
        runs, left_out = [], []
        for name, content in zip(names, self._store.read(names), strict=True):
            if isinstance(content, Exception):
                left_out.append(f"{name}.jsonl: cannot be read: {content}")
                continue
            try:
                run = decode(name, content, self._rename)
            except errors.CorruptInputError as error:
                left_out.append(str(error))
                continue
            if self._branch is None or run.branch == self._branch:
                runs.append(run)
        # Runs of one time keep the order in which they were added.
        runs.sort(key=lambda run: (run.time, run.measured, self._store.added(run.name), run.name))
        return tuple(runs), tuple(left_out)

    @property
    def runs(self) -> tuple[StoredRun, ...]:
        """The runs that can be read, oldest first."""
        return self._read[0]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Files that cannot be read, one line each."""
        return self._read[1]

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per run, series and statistic; times in ns."""
        import pandas as pd

        rows = [
            (run.name, pd.Timestamp(run.time, unit="s", tz="UTC"), run.commit, run.branch,
             run.labels.get("machine"), name, series.unit, series.count, statistic,
             series.value(statistic))
            for run in self.runs for name, series in run.series.items()
            for statistic in series.statistics
        ]  # fmt: skip
        columns = [
            "run", "time", "commit", "branch", "machine", "series", "unit", "count",
            "statistic", "value",
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    def add(
        self,
        data: Data | Mapping[str, Data],
        *,
        commit: str | None = None,
        branch: str | None = None,
        time: float | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> str:
        """Add a run, and return its file.

        Parameters
        ----------
        data : Samples, HistogramLog, Histogram or Summary, or mapping of str to such
            Of a mapping, each entry is a series.
        commit, branch : str, optional
            By default those of the CI job or of the git repository around; ``""`` for none.
        time : float, optional
            Seconds since the epoch, by which runs are ordered: by default the time of the commit,
            else of the measurement.
        labels : mapping of str to str, optional
            Such as ``{"machine": "ci-4"}``. Runs with other labels are judged apart.

        Raises
        ------
        InvalidArgumentError
            Without a series.
        DataNotAvailableError
            For a series in which nothing was counted.
        """
        series = _series_of(data)
        if commit is None or branch is None or time is None:
            known = origin()
            if commit is None:
                commit, time = known.commit, known.time if time is None else time
            branch = known.branch if branch is None else branch
        starts = [run.start for run in (entry.run for entry in series.values()) if run.start]
        measured = max(starts) if starts else clock.time()
        facts = {
            "time": float(measured if time is None else time), "measured": float(measured),
            "commit": commit or None, "branch": branch or None,
            "host": platform.node() or None,
            "labels": dict(sorted((labels or {}).items())),
        }  # fmt: skip
        if not 0 <= facts["time"] < 1e11 or not 0 <= facts["measured"] < 1e11:  # type: ignore[operator]
            raise errors.InvalidArgumentError(
                f"{time!r} is not a time; it is in seconds since 1970-01-01T00:00Z"
            )
        run, content = encode(series, facts)
        place = self._store.write(run.name, content)
        self.__dict__.pop("_read", None)
        return place

    def distribution(self, run: StoredRun) -> dict[str, Histogram | Summary]:
        """Return the distribution of every series of a run; a summary where that is all there is.

        Raises
        ------
        CorruptInputError
            If its file is corrupt.
        """
        content = self._store.read([run.name])[0]
        if isinstance(content, Exception):
            raise errors.CorruptInputError(
                f"{run.name}.jsonl", None, f"cannot be read: {content}", ""
            )
        found = distributions(run.name, content)
        return {self._rename.get(name, name): data for name, data in found.items()}

    def labels(self) -> list[dict[str, str]]:
        """Return the different labels of runs, those of the latest run last."""
        found = {tuple(run.labels.items()): run.labels for run in reversed(self.runs)}
        return list(found.values())[::-1]

    def values(
        self, series: str, statistic: str, labels: Mapping[str, str] | None = None
    ) -> tuple[list[StoredRun], list[float]]:
        """Return the runs with a statistic, oldest first, and its values: times in ns.

        Parameters
        ----------
        series, statistic : str
            Such as ``"p99"``.
        labels : mapping of str to str, optional
            Only runs with exactly these labels.
        """
        name = statistic_name(statistic) if statistic != "max" else "max"
        runs, values = [], []
        for run in self.runs:
            entry = run.series.get(series)
            value = entry.value(name) if entry else math.nan
            if value > 0 and (labels is None or run.labels == dict(labels)):
                runs.append(run)
                values.append(value)
        return runs, values

    def latest(
        self, series: str, statistic: str, labels: Mapping[str, str] | None = None
    ) -> RunVerdict | None:
        """Return a statistic of the latest run beside those before it: level, band, run noise.

        Runs before the last change count by their distance from their own level. None with fewer
        than six runs.

        Parameters
        ----------
        series, statistic : str
            Such as ``"p99"``.
        labels : mapping of str to str, optional
            Only runs with exactly these labels.
        """
        _, values = self.values(series, statistic, labels)
        verdict = judged(values[:-1], values[-1]) if len(values) > 1 else None
        return None if verdict is None or verdict.verdict == "unknown" else verdict

    def judge(
        self,
        data: Data | Mapping[str, Data],
        *reruns: Data | Mapping[str, Data],
        labels: Mapping[str, str] | None = None,
        statistics: Sequence[str] = (),
    ) -> HistoryVerdict:
        """Judge a run by the runs of the same labels.

        Parameters
        ----------
        data : Samples, HistogramLog, Histogram or Summary, or mapping of str to such
            The new run. It need not be in the store; if it is, it does not count as earlier.
        *reruns
            Runs that repeat it, to confirm or refute a deviation.
        labels : mapping of str to str, optional
            As they are when it is added.
        statistics : sequence of str, optional
            By default p50, p99 and p99.9 where the run supports them, else the mean.

        Returns
        -------
        HistoryVerdict
            One row per series and statistic. All are one family: an alarm takes more evidence where
            there are more rows, so that the false alarms are those of one gate.

        Raises
        ------
        IncompatibleDataError
            If a series has another unit than in the history.
        DataNotAvailableError
            If no series has one of the statistics.
        """
        chosen = [name if name == "max" else statistic_name(name) for name in statistics]
        runs = [
            {name: statistics_of(counted(entry)) for name, entry in _series_of(one).items()}
            for one in (data, *reruns)
        ]
        wanted = [
            (name, statistic)
            for name, entry in runs[0].items()
            for statistic in _judged_statistics(entry, chosen)
        ]
        if not wanted:
            raise errors.DataNotAvailableError(
                f"no series has {' or '.join(chosen or [*_PERCENTILES, 'mean'])}; choose others, "
                "or measure for longer"
            )
        given = dict(labels or {})
        earlier = [run for run in self.runs if run.labels == given]
        for one in reversed((data, *reruns)):  # the latest runs of the store may be these
            if earlier and earlier[-1].digest == digest_of(_series_of(one)):
                earlier.pop()
        rows = []
        for name, statistic in wanted:
            new = runs[0][name]
            with_series = [run for run in earlier if name in run.series]
            units = {run.series[name].unit for run in with_series} - {new.unit}
            if units:
                raise errors.IncompatibleDataError(
                    f"{name}: has the unit {new.unit!r}, but {units.pop()!r} in the history; state "
                    "the unit of the new run, or give the series another name"
                )
            known = [
                (run, value)
                for run in with_series
                if (value := run.series[name].value(statistic)) > 0
            ]
            history = [value for _, value in known]
            values = [one[name].value(statistic) for one in runs if name in one]
            values = [value for value in values if value > 0]
            error = new.error(statistic)
            verdict = judged(history, values, family=len(wanted), error=error)
            # The first run at the level that the new one is compared with.
            since = [known[at][0] for at in verdict.changes if at < len(known)][-1:]
            row = HistoryRow(
                name, statistic, new.unit, verdict.verdict, verdict.missing, len(history),
                values[0], verdict.level, verdict.low, verdict.high, since[0] if since else None,
            )  # fmt: skip
            rows.append(row)
        # Facts that explain verdicts: renamed series, other labels.
        lacking = set(chosen).difference(statistic for _, statistic in wanted)
        notes = [f"left out: {name}, which this run does not support" for name in sorted(lacking)]
        if earlier:
            gone = [name for name in earlier[-1].series if name not in runs[0]]
            added = [name for name in runs[0] if not any(name in run.series for run in earlier)]
            if gone and added:
                notes.append(
                    f"{', '.join(gone)}: not in this run, and {', '.join(added)} is new; a series "
                    "that was renamed keeps its history with --rename OLD=NEW"
                )
            elif gone:
                notes.append(f"{', '.join(gone)}: in the history, but not in this run")
        elif self.runs:
            others = sorted({_label_text(run.labels) for run in self.runs})
            text = _label_text(given)
            reason = f"no earlier run has the labels {text}; others: {'; '.join(others[:4])}"
            notes.append(reason if others != [text] else "no earlier run of this benchmark")
        else:
            of = f" of branch {self._branch}" if self._branch else ""
            notes.append(f"the store has no runs{of} yet")
        return HistoryVerdict(tuple(rows), tuple(notes))


def _label_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items()) or "(none)"


def _series_of(data: Data | Mapping[str, Data]) -> dict[str, Data]:
    """Series by name; one alone is named after its source, else ``run``."""
    if isinstance(run := getattr(data, "run", None), Run):
        return {run.series or "run": data}  # type: ignore[dict-item]
    errors.require(data, Mapping, "data from lk.read, or data by name: {'checkout': data}")
    series: dict[str, Data] = dict(data)  # type: ignore[arg-type]
    if not series:
        raise errors.InvalidArgumentError("no series is given; expected at least one")
    for entry in series.values():
        require_data(entry, "a history")
    return series


def _judged_statistics(entry: StoredSeries, chosen: Sequence[str]) -> list[str]:
    """Those that are asked for, or by default; of the known ones."""

    def known(names: Sequence[str]) -> list[str]:
        return [n for n in names if entry.value(n) > 0]

    return known(chosen) if chosen else known(_PERCENTILES) or known(["mean"]) or known(["p90"])


def parse_labels(texts: Sequence[str]) -> dict[str, str]:
    """Return labels from texts such as ``machine=ci-4``."""
    labels = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise errors.InvalidArgumentError(f"{text!r} is not a label; write it as machine=ci-4")
        labels[key.strip()] = value.strip()
    return labels


# ------------------------------------------------------------
# Where a run comes from: commit, branch and time, from CI variables and git.

# GitHub, GitLab, CircleCI, Buildkite, Jenkins, Azure, Bitbucket, Travis, Drone, TeamCity
_COMMITS = (
    "GITHUB_SHA", "CI_COMMIT_SHA", "CIRCLE_SHA1", "BUILDKITE_COMMIT", "GIT_COMMIT",
    "BUILD_SOURCEVERSION", "BITBUCKET_COMMIT", "TRAVIS_COMMIT", "DRONE_COMMIT_SHA",
    "BUILD_VCS_NUMBER",
)  # fmt: skip
_BRANCHES = (
    "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "CIRCLE_BRANCH",
    "BUILDKITE_BRANCH", "BRANCH_NAME", "GIT_BRANCH", "BUILD_SOURCEBRANCHNAME", "BITBUCKET_BRANCH",
    "TRAVIS_BRANCH", "DRONE_BRANCH",
)  # fmt: skip
_GIT_SECONDS = 10  # a repository on a disk that is not there does not stop a run from being kept


@record()
class Origin:
    """The commit of a run, its branch, and its time in seconds since the epoch."""

    commit: str | None = None
    branch: str | None = None
    time: float | None = None


def origin(environment: Mapping[str, str] | None = None) -> Origin:
    """Return what CI variables and git say of the current commit; None where nothing does."""
    known = os.environ if environment is None else environment
    commit = next((known[name] for name in _COMMITS if known.get(name, "").isalnum()), None)
    branch = next((known[name] for name in _BRANCHES if known.get(name)), None)
    commit = commit or _git("rev-parse", "HEAD")
    if branch is None:
        branch = _git("rev-parse", "--abbrev-ref", "HEAD")
        branch = None if branch == "HEAD" else branch  # a commit without a branch
    time = _git("show", "-s", "--format=%ct", commit, "--") if commit else None
    return Origin(commit, branch, float(time) if time and time.isdecimal() else None)


def _git(*words: str) -> str | None:
    """What git prints; None without git, or outside of a repository."""
    try:
        done = subprocess.run(  # noqa: S603 - git, with words that are not options
            ["git", *words],  # noqa: S607
            capture_output=True, text=True, timeout=_GIT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


# ------------------------------------------------------------
# A statistic over the runs of a history: levels, noise bands, and where the level changed.


@record()
class Change:
    """A change of the level: it happened after run `first` and not later than run `last`."""

    position: int  # the first run at the new level, as the gate reported it
    first: int  # the last run that is surely before the change
    last: int  # the first run that is surely after it
    before: float  # medians of the levels
    after: float


@record(eq=False)
class Trend:
    """A statistic of one series over the runs with the same labels, oldest first; times in ns."""

    series: str
    statistic: str
    unit: str
    labels: dict[str, str]
    runs: tuple[StoredRun, ...]
    values: Floats
    level: Floats
    low: Floats
    high: Floats
    changes: tuple[Change, ...]


def trend_of(
    history: History, series: str, statistic: str, labels: dict[str, str], last: int
) -> Trend:
    """Return the trend of those of the last runs that have the statistic."""
    latest = set([run for run in history.runs if run.labels == labels][-last:])
    known, numbers = history.values(series, statistic, labels)
    runs = [run for run in known if run in latest]
    values = np.asarray(numbers[len(known) - len(runs) :], np.float64)
    family, error = 1, 0.0
    if runs:  # as the latest run is judged
        family = sum(len(_judged_statistics(one, ())) for one in runs[-1].series.values())
        error = runs[-1].series[series].error(statistic_name(statistic))
    level, low, high, positions = bands_of(values, family, error)
    edges = [0, *positions, values.size]
    changes = []
    for k, position in enumerate(positions):
        before = float(np.median(values[edges[k] : position]))
        after = float(np.median(values[position : edges[k + 2]]))
        # A run nearer to the other level than to its own may belong to either side.
        nearer = np.abs(np.log(values / before)) < np.abs(np.log(values / after))
        earlier = np.flatnonzero(nearer[edges[k] : position])
        later = np.flatnonzero(~nearer[position : edges[k + 2]])
        first = edges[k] + int(earlier[-1]) if earlier.size else position - 1
        final = position + int(later[0]) if later.size else position
        changes.append(Change(position, first, final, before, after))
    unit = runs[-1].series[series].unit if runs else "ns"
    return Trend(
        series, statistic, unit, labels, tuple(runs), values, level, low, high, tuple(changes)
    )


def trends_of(
    history: History, statistics: Sequence[str], series: Sequence[str] = (), last: int = 1000
) -> list[Trend]:
    """Return a trend per series, statistic and labels that at least one run has."""
    known = dict.fromkeys(name for run in history.runs for name in run.series)
    trends = [
        trend_of(history, name, statistic, labels, last)
        for name in (series or known)
        for statistic in statistics
        for labels in history.labels()
    ]
    return [trend for trend in trends if trend.runs]
