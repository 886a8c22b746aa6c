"""From results to the records that are printed as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from latencykit.views.values import number

if TYPE_CHECKING:
    from collections.abc import Mapping

Record = TypeVar("Record")


def record_from(kind: type[Record], source: object, **own: object) -> Record:
    """Return a record of a kind: `own` keys, and the others by name from an object or a mapping.

    Numbers are as JSON has them, and tuples are lists.
    """
    names: Mapping[str, object] = kind.__annotations__
    get: Any = source.__getitem__ if hasattr(source, "__getitem__") else source.__getattribute__
    return cast("Record", {name: own[name] if name in own else _plain(get(name)) for name in names})


def _plain(value: object) -> object:
    if isinstance(value, float):
        return number(value)
    return list(value) if isinstance(value, tuple) else value
