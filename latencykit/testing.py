"""Tests that a third-party format must pass, as a class to inherit from::

    from latencykit.testing import FormatContract
    from my_package import FORMAT

    class TestMyFormat(FormatContract):
        format = FORMAT
        samples = ("tests/data/one.txt", "tests/data/another.txt")

pytest finds the tests by the name of the subclass. Register the format itself by an entry point::

    [project.entry-points."latencykit.formats"]
    my-format = "my_package:FORMAT"
"""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from latencykit.core.samples import Samples
from latencykit.core.summary import Summary
from latencykit.errors import LatencyKitError
from latencykit.io.reading import read_source
from latencykit.io.registry import builtin_formats
from latencykit.io.source import Confidence, Format, Head, ReadOptions, Source, level_name

__all__ = ["FormatContract"]

_LEVELS = ("summary", "histogram", "samples", "log")


class FormatContract:
    """The contract of a format: recognise its own output only, plain numbers, one-line errors.

    Attributes
    ----------
    format : Format
        The format under test.
    samples : sequence of paths
        Real outputs of the tool, each of which must be read without options.
    options : dict
        Options of `lk.read` without which a sample is not read, such as ``{"unit": "ms"}``.
    """

    format: ClassVar[Format]
    samples: ClassVar[Sequence[str | os.PathLike[str]]]
    options: ClassVar[dict[str, Any]] = {}

    def test_it_describes_itself(self) -> None:
        """Name, title, level of detail and suffixes are filled in, and the name is not taken."""
        fmt = self.format
        assert fmt.name, "a format needs a name"
        assert fmt.name == fmt.name.lower(), f"{fmt.name}: names are lower case"
        assert fmt.name not in {other.name for other in builtin_formats()}, f"{fmt.name} is taken"
        assert fmt.title, "a format needs a title"
        assert fmt.level in _LEVELS, f"level is one of {_LEVELS}, not {fmt.level!r}"
        assert all(suffix.startswith(".") for suffix in fmt.suffixes), "suffixes start with a dot"
        assert fmt.unit in (None, "ns", "us", "ms", "s"), f"unit {fmt.unit!r} is not known"
        assert self.samples, "the contract needs at least one real output"

    def test_it_recognises_its_samples(self) -> None:
        """It is surer of its own output than any built-in format, whatever the file's name."""
        for path in self.samples:
            head = Source(Path(path)).head
            own = self.format.sniff(head)
            others = {other.name: other.sniff(head) for other in builtin_formats()}
            rivals = [name for name, confidence in others.items() if confidence >= own]
            assert own > Confidence.NO, f"{path}: not recognised"
            assert not rivals, (
                f"{path}: {', '.join(rivals)} are as sure of it; built-in formats win ties"
            )
            assert self.format.sniff(Head("x", head.data)) > Confidence.NO, (
                f"{path}: recognised by its name only"
            )

    def test_detection_never_raises(self) -> None:
        """Any bytes may be offered to `sniff`: it answers, and claims none of them for certain."""
        for name, content in _untrusted(self._contents()):
            answer = self.format.sniff(Head("x.txt", content))
            assert answer in Confidence, f"{name}: sniff returned {answer!r}"

    def test_it_claims_nothing_that_is_not_its_own(self) -> None:
        """Noise, prose and other files are not recognised."""
        for name, content in _foreign():
            assert self.format.sniff(Head("x.txt", content)) == Confidence.NO, f"{name} is claimed"

    def test_numbers_are_plain_and_the_run_is_filled(self) -> None:
        """Latencies are finite and not negative, percentiles rise, and the run names its source."""
        for path in self.samples:
            for name, data in self._read(Path(path)).items():
                where = f"{path}, series {name!r}"
                assert data.run.format == self.format.name, where
                assert data.run.source, where
                assert data.run.unit_from in ("file", "format", "option", "assumed"), where
                assert all(note and "\n" not in note for note in data.run.notes), (
                    f"{where}: notes are single lines"
                )
                assert _LEVELS.index(level_name(data)) <= _LEVELS.index("log"), where
                if isinstance(data, Summary):
                    values = [
                        data.reported_percentiles[p] for p in sorted(data.reported_percentiles)
                    ]
                else:
                    counted = data.histogram()
                    assert counted.count + counted.censored > 0, f"{where}: no requests"
                    values = np.asarray(counted.percentile([0, 50, 90, 99, 100])).tolist()
                assert all(0 <= value < np.inf for value in values), f"{where}: {values}"
                assert values == sorted(values), f"{where}: percentiles fall: {values}"
                if isinstance(data, Samples):
                    assert (data.duration >= 0).all(), f"{where}: negative latencies"

    def test_compressed_samples_read_alike(self, tmp_path: Path) -> None:
        """A ``.gz`` of a sample gives the same series."""
        for path in map(Path, self.samples):
            if path.is_file():
                packed = tmp_path / f"{path.name}.gz"
                packed.write_bytes(gzip.compress(Source(path).bytes()))
                assert list(self._read(packed)) == list(self._read(path)), path

    def test_corrupt_input_is_an_error_of_one_line(self, tmp_path: Path) -> None:
        """Truncated and mutated samples are read, or refused with one line."""
        for name, content in _untrusted(self._contents()):
            copy = tmp_path / "mutated.txt"
            copy.write_bytes(content)
            try:
                self._read(copy)
            except LatencyKitError as error:
                assert "\n" not in str(error), f"{name}: {error}"
                assert copy.name in str(error), f"{name}: the error does not name the file: {error}"

    def _read(self, path: Path) -> dict[str, Any]:
        options = ReadOptions(**self.options)
        return read_source(Source(path), options, self.format)

    def _contents(self) -> list[bytes]:
        return [Source(Path(path)).bytes() for path in self.samples if Path(path).is_file()]


def _foreign() -> Iterator[tuple[str, bytes]]:
    dice = random.Random(5)
    yield "nothing", b""
    yield "blank lines", b" \n\n\t \r\n"
    yield "zeros", bytes(4096)
    yield "random bytes", dice.randbytes(4096)
    yield "prose", b"Dear reader,\n\nthe build was green yesterday.\n\nYours\n"
    yield "source code", b"import os\n\nprint('hello')\n"
    yield "a picture", b"\x89PNG\r\n\x1a\n" + dice.randbytes(500)


def _untrusted(contents: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    yield from _foreign()
    dice = random.Random(7)
    for k, content in enumerate(contents):
        yield f"sample {k}, cut in half", content[: len(content) // 2]
        yield (
            f"sample {k} without digits",
            bytes(120 if 48 <= byte <= 57 else byte for byte in content[:65536]),
        )
        for n in range(20):
            mutated = bytearray(content[:65536])
            for _ in range(1 + n % 4):
                mutated[dice.randrange(len(mutated))] = dice.randrange(256)
            yield f"sample {k}, mutation {n}", bytes(mutated)
