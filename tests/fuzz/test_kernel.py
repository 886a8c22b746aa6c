"""The compiled kernel and numpy agree: on generated payloads, mutations and real logs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import latencykit as lk
from latencykit.core import kernel
from latencykit.core.histogram_log import blocks_of
from tests.conftest import python
from tests.fuzz.kernel import numpy_alone, run

compiled = pytest.mark.skipif(kernel.in_use() == "numpy", reason="no compiled kernel is in use")
LOGS = sorted(Path(__file__).parents[1].glob("data/**/*.hlog"))


@compiled
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_logs_read_alike(path):
    def answers():
        try:
            log = lk.read(path, lenient=True)
        except lk.LatencyKitError as error:
            return str(error)
        if not isinstance(log, lk.HistogramLog):
            return repr(log)
        arrays = [(b.rows, b.indptr, b.index, b.counts) for b in blocks_of(log)]
        whole = log.histogram()
        arrays.append((whole.index, whole.counts))
        return [[array.tolist() for array in block] for block in arrays]

    fast = answers()
    with numpy_alone():
        assert answers() == fast


@pytest.mark.slow
def test_wild_calls_and_mutations():
    said = run(100_000, 3)
    assert "no report" in said or "no C compiler" in said
    assert "alike in C and numpy" in said or kernel.in_use() == "numpy"


@compiled
def test_values_that_are_not_plain_are_counted_by_numpy():
    large = np.arange(200_000) % 5_000 + 1_000
    values = np.concatenate([large, [1 << 53, (1 << 63) - 1, 0], large])
    real = np.concatenate([large, [-0.0, 0.25, 2.0**62], large]).astype(np.float64)
    real.setflags(write=False)
    for some in (values, real, real[::2], real.astype(np.float32)):
        fast = lk.Histogram.of(some)
        with numpy_alone():
            slow = lk.Histogram.of(some)
        assert fast.buckets == slow.buckets
        assert np.array_equal(fast.index, slow.index)
        assert np.array_equal(fast.counts, slow.counts)


@pytest.mark.slow
def test_the_environment_chooses(tmp_path):
    def version(choice):
        environment = {**os.environ, "LATENCYKIT_KERNEL": choice}
        return python("-m", "latencykit", "--version", env=environment, check=False)

    assert version("no").stdout.splitlines()[1] == "kernel: numpy"
    forced = version("yes")
    if forced.returncode == 0:
        assert forced.stdout.splitlines()[1] == "kernel: C"
    else:
        assert "LATENCYKIT_KERNEL=yes, but" in forced.stderr
        assert len(forced.stderr.splitlines()) == 1


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_sources_compile_without_a_warning(tmp_path):
    source = Path(kernel.__file__).with_name("kernel.c")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-c"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "kernel.o", source], check=True)
