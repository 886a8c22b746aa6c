"""From rungs to a file, by its suffix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latencykit.errors import UsageError
from latencykit.log import HistogramLog, merge_logs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from latencykit.formats.base import Rung

__all__ = ["checked_suffix", "write"]


def write(series: Mapping[str, Rung], path: Path, **options: Any) -> None:
    """Write one or several series to a file whose suffix names the format.

    Parameters
    ----------
    series : mapping of str to rung
    path : Path
        ``.hlog``, ``.hgrm``, ``.csv``, ``.json`` or ``.parquet``.
    **options
        ``ticks``, ``style``, ``out_unit`` (for ``.hgrm``), ``percentiles`` (for ``.csv``).

    Raises
    ------
    UsageError
        For another suffix, and for several series where the format holds one.
    """
    from latencykit.formats import csv_out, json_native
    from latencykit.formats.hgrm import write_hgrm
    from latencykit.formats.hlog_writer import write_hlog

    suffix = checked_suffix(path)
    if suffix == ".hlog":
        write_hlog(_one_log(series), path)
    elif suffix == ".hgrm":
        given = {key: options[key] for key in ("ticks", "style", "out_unit") if options.get(key) is not None}
        write_hgrm(_only(series, "an .hgrm"), path, **given)
    elif suffix == ".csv":
        csv_out.write_csv(series, path, options.get("percentiles"))
    elif suffix == ".json":
        json_native.write_json(series, path)
    else:
        from latencykit.formats import parquet

        parquet.write_parquet(series, path)


def checked_suffix(path: Path) -> str:
    """Return the suffix of a file to write, or raise `UsageError` where it names no format."""
    suffix = path.suffix.lower()
    if suffix not in (".hlog", ".hgrm", ".csv", ".json", ".parquet"):
        named = suffix or "a file without a suffix"
        raise UsageError(f"{path.name}: cannot write {named}; take .hlog, .hgrm, .csv, .json or .parquet")
    return suffix


def _only(series: Mapping[str, Rung], what: str) -> Rung:
    if len(series) > 1:
        raise UsageError(f"{what} holds one series, not {len(series)} ({', '.join(series)}); choose one with --series or --tag")
    return next(iter(series.values()))


def _one_log(series: Mapping[str, Rung]) -> Rung:
    """The tags of one log together again; of other things there can be one only."""
    logs = [rung for rung in series.values() if isinstance(rung, HistogramLog)]
    return merge_logs(logs) if len(logs) == len(series) and len(logs) > 1 else _only(series, "an .hlog of anything but logs")
