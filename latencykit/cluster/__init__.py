"""Ten thousand logs: the same reads and sums by processes of this machine or on a Dask cluster.

`read_many` takes paths, globs and URLs as one log that is read where the workers are. Its sums are exact, whoever
makes them, in whatever order, and whichever worker dies on the way.

>>> from latencykit import cluster
>>> log = cluster.read_many("data/ctrlz-*.hlog", jobs=1)
>>> log.histogram().max == max(log.files()["max"])
True
"""

from __future__ import annotations

from latencykit.cluster.log import ClusterLog, read_many

__all__ = ["ClusterLog", "read_many"]
