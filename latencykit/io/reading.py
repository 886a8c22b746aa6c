"""From a path to data types: find the format, read, name the series, and apply what the user asked for."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from latencykit.core.histogram_log import HistogramLog
from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import (
    CorruptInputError,
    DataNotAvailableError,
    IncompatibleDataError,
    InputTooLargeError,
    InvalidArgumentError,
    LatencyKitError,
    ReaderError,
    UnknownFormatError,
)
from latencykit.io import registry
from latencykit.io.sanity_checks import settled, too_long
from latencykit.io.source import Confidence, Data, Format, ReadOptions, Source, Tally, level_name
from latencykit.units import NANOSECONDS, did_you_mean, printable, without_login

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import pandas as pd

# What Python says of text that is no number, or of a number that is none: the input's fault, wherever a reader meets it.
_NO_NUMBER = re.compile(
    r"(?:could not convert string to (?:float|complex)|invalid literal for int\(\) with base 10): (?P<text>.*)|"
    r"Exceeds the limit \(\d+ digits\) for integer string conversion|cannot convert float (?:NaN|infinity) to integer",
    re.DOTALL,
)
_OTHER_SHAPE = (AttributeError, LookupError, TypeError, ValueError)

_ANOTHER = "--format-in NAME (format=) takes it for another format"

__all__ = ["detect", "formats", "read", "read_all", "read_source"]


def detect(source: Source, name: str | Format | None = None) -> Format:
    """Return the format of a source: the one named, or the one that is surest."""
    if name is not None and not isinstance(name, str):
        return name
    if name is not None:
        found = registry.named_format(name)
        if found is None:
            known = ", ".join(sorted(one.name for one in registry.all_formats()))
            raise InvalidArgumentError(f"there is no format {name!r}; the formats are {known}")
        return found
    if not source.is_dir:
        _check_text(source)
    from latencykit.io import hlog

    broken: list[tuple[Format, Exception]] = []
    if _sniffed(hlog.FORMATS[0], source, []) is Confidence.CERTAIN:
        return hlog.FORMATS[
            0
        ]  # it cannot be anything else: to ask all the others would take longer than to read it
    sure = [(_sniffed(one, source, broken), one) for one in registry.all_formats()]
    best = max(confidence for confidence, _ in sure)
    candidates = [one for confidence, one in sure if confidence == best]
    if best == Confidence.NO and broken:
        raise _bug(source, *broken[0]) from broken[0][1]
    if best == Confidence.NO:
        start = printable(next((line for line in source.head.lines if line.strip()), ""), 50)
        seen = (
            "this directory (name the files in it)"
            if source.is_dir
            else f"this input (it begins '{start}')"
        )
        raise UnknownFormatError(
            f"{source.shown}: no reader knows {seen}; `latencykit formats` lists what can be read, --format-in NAME forces one"
        )
    if len(candidates) > 1:
        names = ", ".join(one.name for one in candidates)
        raise UnknownFormatError(
            f"{source.shown}: this could be any of {names}; say which with --format-in (format=)"
        )
    return candidates[0]


def _sniffed(one: Format, source: Source, broken: list[tuple[Format, Exception]]) -> Confidence:
    """How sure a format is; one whose code breaks over the file does not know it, and is appended to `broken`."""
    try:
        return one.sniff(source.head)
    except Exception as error:  # whatever one reader does, the others are asked
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            raise
        if not (isinstance(error, (LatencyKitError, csv.Error)) or _NO_NUMBER.match(str(error))):
            broken.append((one, error))
        return Confidence.NO


def _bug(source: Source, one: Format, error: Exception) -> ReaderError:
    """The error that tells of a reader's bug; `error` is its cause."""
    what = (
        f"{type(error).__name__}: {printable(str(error), 80)}"
        if str(error)
        else type(error).__name__
    )
    seen = f"the reader {one.name} broke over this file ({what})"
    return ReaderError(
        f"{source.shown}: {seen}: this is a bug in the reader; please send us the file"
    )


def _check_text(source: Source) -> None:
    """Refuse what is empty, or of an encoding that no reader takes."""
    data = source.head.data
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise source.corrupt(
            None, "the file is empty", "the output of a tool", "was the tool's run recorded?"
        )
    begin = data[:400]
    wide = (
        begin[:2] in (b"\xff\xfe", b"\xfe\xff")
        or begin[1::2].count(0) == len(begin) // 2
        or begin[::2].count(0) * 2 == len(begin)
    )
    if wide and any(begin):
        raise source.corrupt(
            1, "the text is UTF-16 or UTF-32", "UTF-8", "convert it: iconv -f UTF-16 -t UTF-8"
        )


def read_source(
    source: Source,
    options: ReadOptions,
    format: str | Format | None = None,  # noqa: A002
    *,
    part: bool = False,
) -> dict[str, Data]:
    """Read every series of a source: name → data type, with the run's source and format filled in.

    Of a `part` of a log nobody can tell how long the whole of it is, so that nothing is said of latencies too long.
    """
    chosen = detect(source, format)
    options = replace(options, tally=Tally())
    try:
        found = _found(chosen, source, options)
    finally:
        if options.tally.unreported:
            options.report(
                f"skipped: {source.shown}: {options.tally.unreported:,} more corrupt lines"
            )
    if not found or all(
        isinstance(data, Summary) and not (data.stats or data.reported_percentiles)
        for data in found.values()
    ):
        raise CorruptInputError(
            source.shown, None, f"this {chosen.title} holds no latencies", "at least one", ""
        )
    if options.unit is not None:
        found = {name: _taken_as(data, options.unit) for name, data in found.items()}
    if options.unit is not None and all(data.run.unit_from != "option" for data in found.values()):
        raise InvalidArgumentError(
            f"{source.shown}: {chosen.title} states its unit itself; leave unit= (--unit) out"
        )
    doubts = {name: None if part else too_long(data) for name, data in found.items()}
    notes = [options.tally.note, "the compressed file is cut at its end" if source.cut else None]
    return {
        name or source.name: data.with_run(
            source=source.name,
            format=chosen.name,
            command=without_login(data.run.command or "") or None,
            notes=data.run.with_notes(
                *filter(None, [data.run.unit_note, doubts[name], *notes])
            ).notes,
        )
        for name, data in found.items()
    }


def _taken_as(data: Data, unit: str) -> Data:
    """A data type whose unit is only assumed in the unit that the user states, where its reader did not ask for it."""
    run = data.run
    if run.unit_from != "assumed" or run.unit not in NANOSECONDS:
        return data
    known: dict[str, Any] = {
        "unit": unit, "unit_from": "option", "notes": tuple(note for note in run.notes if note != run.unit_note)
    }  # fmt: skip
    if isinstance(data, Samples):
        factor = (
            1.0 / NANOSECONDS[run.unit]
            if unit == "none"
            else NANOSECONDS[unit] / NANOSECONDS[run.unit]
        )
        columns = {
            name: getattr(data, name)
            for name in ("start", "intended", "outcome", "connection", "tag")
        }
        given = {name: column for name, column in columns.items() if column is not None}
        kept = "none" if unit == "none" else "ns"
        return Samples(
            duration=data.duration * factor, unit=kept, run=run.replace(**known), **given
        )
    bare: Any = data.to_unit(run.unit)
    if isinstance(bare, HistogramLog):
        bare = bare.rows(np.arange(len(bare)), unit=unit)
    else:
        bare = replace(bare, unit=unit)
    return cast("Data", (bare if unit == "none" else bare.to_unit(data.unit)).with_run(**known))


def _found(chosen: Format, source: Source, options: ReadOptions) -> dict[str, Data]:
    """What a reader finds; whatever breaks in it is told as its bug.

    But what is no number where one should stand is the input's fault, and so is JSON of another shape than the tool's, in
    which anything may stand in any place: either the file is corrupt, or the tool has a version that we have not seen.
    """
    try:
        with np.errstate(invalid="raise", over="raise"):
            found = chosen.read(source, options)
        return {name: settled(data, source) for name, data in found.items()}
    except LatencyKitError as error:
        if isinstance(
            error, (InputTooLargeError, IncompatibleDataError, DataNotAvailableError)
        ) and source.shown not in str(error):
            raise type(error)(f"{source.shown}: {error}") from error
        if not isinstance(error, InvalidArgumentError) or source.shown in str(error):
            raise
        raise source.corrupt(None, str(error)) from error
    except csv.Error as error:
        raise source.corrupt(
            None, f"this is no table ({error})", f"an intact output of {chosen.title}", _ANOTHER
        ) from error
    except (FloatingPointError, OverflowError) as error:
        raise source.corrupt(None, "a number in it is too large", "latencies", _ANOTHER) from error
    except Exception as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            raise
        if isinstance(error, ValueError) and (number := _NO_NUMBER.match(str(error))):
            text = printable(number["text"] or "what stands for a number", 60)
            seen = f"{text} is no number that can be read"
            raise source.corrupt(
                None, seen, f"an intact output of {chosen.title}", _ANOTHER
            ) from error
        if source.json and isinstance(error, _OTHER_SHAPE):
            seen = f"this is not the JSON of {chosen.title} ({type(error).__name__}: {printable(str(error), 80)})"
            raise source.corrupt(
                None,
                seen,
                "an intact output",
                "if the tool wrote it so, please send us the file",
            ) from error
        raise _bug(source, chosen, error) from error


def with_measure(data: Data, measure: str | None) -> Data:
    """Return the data type by the measure asked for."""
    if measure is None:
        return data
    if measure not in ("response", "service"):
        raise InvalidArgumentError(f"measure must be 'response' or 'service', not {measure!r}")
    if isinstance(data, Samples):
        return data.measured("response" if measure == "response" else "service")
    if data.run.measure not in (measure, "unknown"):
        raise DataNotAvailableError(
            f"{data.run.source} holds {data.run.measure} times only; raw samples with intended starts hold both"
        )
    return data


def expand_tags(name: str, data: Data) -> dict[str, Data]:
    """Return one entry a tag of a tagged log or tagged samples; others as they are."""
    if not isinstance(data, HistogramLog | Samples) or not data.tags:
        return {name: data}
    return {tag or name: part for tag, part in data.by_tag().items()}


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the contract's name
    series: str | None = None,
    tag: str | None = None,
    measure: str | None = None,
    unit: str | None = None,
    column: str | None = None,
    start_column: str | None = None,
    lenient: bool = False,
    counted: bool = False,
    cache: bool = False,
) -> Data:
    """Read one series of any output that latencykit knows.

    Parameters
    ----------
    path : str or os.PathLike
        A file (also compressed), a directory where the tool writes one, or ``-``.
    format : str, optional
        Name of the format, to skip recognising it.
    series : str, optional
        Which series, where the output holds several.
    tag : str, optional
        One tag of a tagged log; ``""`` for its untagged lines. Without it, all tags stay in one `HistogramLog`.
    measure : {"response", "service"}, optional
        For sources that know the intended start; response is the default there.
    unit : str, optional
        What the stored values are: ``ns``, ``us``, ``ms``, ``s``, ``none``.
    column, start_column : str, optional
        The columns of latencies and of starts in a table of raw samples, by name or by number from 1.
    lenient : bool, default False
        Skip corrupt lines; the notes of the run count them.
    counted : bool, default False
        Only a histogram will be asked for: of tables of millions of rows, the rows are counted as they are read, in
        bounded memory.
    cache : bool, default False
        Store what the first pass over a log decodes beside it (``run.hlog.cache.npz``), and use that file the next
        time, unless the log has changed.

    Returns
    -------
    Samples, HistogramLog, Histogram or Summary
        The richest data type that the output holds.

    Raises
    ------
    LatencyKitError
        Unknown format, corrupt input, several series and none named.
    """
    options = _options(unit, column, start_column, lenient, counted, measure, _listed(series))
    found = read_source(Source(path), options, format)
    if series is None and len(found) > 1:
        raise InvalidArgumentError(
            f"{path}: holds several series: {', '.join(found)}; name one with series= (or take read_all)"
        )
    if series is not None and series not in found:
        raise InvalidArgumentError(
            f"{path}: holds no series {series!r}{did_you_mean(series, found)}"
        )
    data = with_measure(
        found[series] if series is not None else next(iter(found.values())), measure
    )
    if cache and isinstance(data, HistogramLog) and Path(path).is_file():
        data._use_sidecar(Path(path))  # noqa: SLF001
    if tag is None:
        return data
    if not isinstance(data, HistogramLog | Samples):
        raise InvalidArgumentError(f"{path}: a {level_name(data)} has no tags")
    return data.tagged(tag)


def _options(
    unit: str | None,
    column: str | None,
    start_column: str | None,
    lenient: bool,
    counted: bool,
    measure: str | None,
    series: Sequence[str] | None,
) -> ReadOptions:
    wanted: Any = measure if measure in ("response", "service") else None
    return ReadOptions(unit, column, start_column, lenient, counted, wanted, tuple(series or ()))


def read_all(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002 - the contract's name
    series: str | Sequence[str] | None = None,
    tag: str | Sequence[str] | None = None,
    measure: str | None = None,
    unit: str | None = None,
    column: str | None = None,
    start_column: str | None = None,
    lenient: bool = False,
    counted: bool = False,
) -> dict[str, Data]:
    """Read every series of several files; the parameters are those of `read`.

    Returns
    -------
    dict of str to data type
        One entry per series (a tagged log: one a tag); of equal names, as much of the path in front as tells them apart.
    """
    many: list[Any] = (
        [paths] if isinstance(paths, str) or hasattr(paths, "__fspath__") else list(paths)
    )
    options = _options(unit, column, start_column, lenient, counted, measure, _listed(series))
    named: list[tuple[str, str, Data]] = []
    for path in many:
        source = Source(path)
        for name, data in read_source(source, options, format).items():
            one = with_measure(data, measure)
            named += [(source.shown, label, part) for label, part in expand_tags(name, one).items()]
    wanted_series, wanted_tags = _listed(series), _listed(tag)
    if wanted_series is not None:
        named = [entry for entry in named if entry[1] in wanted_series]
    if wanted_tags is not None:
        named = [entry for entry in named if (entry[2].run.tags or ("",))[0] in wanted_tags]
    if not named:
        raise InvalidArgumentError("none of the files holds the series or tags asked for")
    return unique_names(named)


def unique_names(named: Sequence[tuple[str, str, Data]]) -> dict[str, Any]:
    """Return name → data type from (path, name, data type).

    Equal names get as much of the path in front as tells the files apart, and a number where that is not enough.
    """
    often, telling = Counter(name for _, name, _ in named), _telling([path for path, _, _ in named])
    result: dict[str, Any] = {}
    for path, name, data in named:
        file, label = PurePath(path).name, name
        if often[name] > 1:
            label = telling[path] + (
                name.removeprefix(file) if name.startswith(file) else f":{name}"
            )
        number, unique = 2, label
        while unique in result:
            unique, number = f"{label} ({number})", number + 1
        result[unique] = data
    return result


def _telling(paths: Iterable[str]) -> dict[str, str]:
    """The last part of each path, with as many before it as tell it from the others."""
    depth = dict.fromkeys(paths, 1)
    while True:
        labels = {path: str(PurePath(*PurePath(path).parts[-d:])) for path, d in depth.items()}
        often = Counter(labels.values())
        alike = [
            path
            for path, label in labels.items()
            if often[label] > 1 and depth[path] < len(PurePath(path).parts)
        ]
        if not alike:
            return labels
        for path in alike:
            depth[path] += 1


def _listed(value: str | Sequence[str] | None) -> list[str] | None:
    return None if value is None else [value] if isinstance(value, str) else list(value)


def formats() -> pd.DataFrame:
    """Return a table of all formats: name, title, data type, suffixes, unit, whether they are read and written.

    Examples
    --------
    >>> bool(formats().loc["hlog", "writes"])
    True
    """
    import pandas as pd

    rows = [
        {
            "name": one.name, "title": one.title, "suffixes": " ".join(one.suffixes), "rung": one.level,
            "unit": one.unit or "stated", "reads": True, "writes": one.write is not None, "example": one.example,
        }
        for one in registry.all_formats()
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("name")
