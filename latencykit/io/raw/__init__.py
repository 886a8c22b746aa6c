"""Raw samples in whatever table they lie: which column is what, in which unit, and rows into data types.

``names`` knows what columns are called, ``plan`` decides for one table, ``values`` turns cells into nanoseconds and
outcomes, ``gather`` makes data types of chunks of rows; ``delimited``, ``objects`` and ``binary`` know the containers.
"""

from __future__ import annotations

from latencykit.io.raw import binary, delimited, objects

__all__ = ["FORMATS"]

FORMATS = (*delimited.FORMATS, *objects.FORMATS, *binary.FORMATS)
