"""Raw samples in tables of any kind: the role and unit of each column, and rows into data types.

``cells`` reads names and cells, ``outcomes`` failures, ``aggregates`` tables of counts or
percentiles; ``columns`` decides for one table, ``build_samples`` makes data types of chunks of
rows; ``delimited``, ``objects`` and ``binary`` are containers.
"""

from __future__ import annotations

from latencykit.io.raw import binary, delimited, objects

__all__ = ["FORMATS"]

FORMATS = delimited.FORMATS | objects.FORMATS | binary.FORMATS
