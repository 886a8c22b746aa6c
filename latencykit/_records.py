"""Frozen dataclasses whose methods are written once.

`dataclasses` compiles up to six functions for each class when it is imported. The thirty records
that reading a log needs took a quarter of the package's start-up that way. These have the fields
of a dataclass, for `dataclasses.replace` and its like, and share their methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field
from inspect import Signature
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type[Any])

_SHARED = (
    *("__signature__", "__init__", "__repr__", "__setattr__", "__delattr__"),
    *("__eq__", "__hash__"),
)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = True, kw_only: bool = False) -> Callable[[Class], Class]:
    """Make a class a record: ``dataclass(frozen=True, eq=eq, kw_only=kw_only)``.

    What the class defines itself is kept. A subclass is a record, too, or has its own `__init__`.

    >>> @record()
    ... class Point:
    ...     '''A place.'''
    ...
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, y=0)
    (Point(x=1, y=0), True)
    """

    def made(cls: Class) -> Class:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        fields = cls.__dataclass_fields__.values()
        given = [item for item in fields if item.init]
        compared = [item.name for item in fields if item.compare]
        cls.__record__ = (
            tuple(item.name for item in given if not item.kw_only),
            frozenset(item.name for item in given),
            {item.name: item.default for item in given if item.default is not MISSING},
            [item for item in given if item.default_factory is not MISSING],
            [item.name for item in fields if item.repr],
            attrgetter(*compared) if compared else type,
        )
        for name in _SHARED if eq else _SHARED[:-2]:
            if vars(cls).get(name) is None:
                setattr(cls, name, vars(_Record)[name])
        return cls

    return made


class _Signature:
    """The signature of a record, for `help` and for errors: rarely needed, so made on demand."""

    def __get__(self, instance: object, cls: Any) -> Signature:
        from inspect import Parameter, Signature

        if cls.__init__ is not _Record.__init__:  # which `inspect` looks at then
            raise AttributeError("__signature__")
        parameters = []
        for item in cls.__dataclass_fields__.values():
            kind = Parameter.KEYWORD_ONLY if item.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = item.default
            if default is MISSING:
                default = self if item.default_factory is not MISSING else Parameter.empty
            if item.init:
                parameters.append(Parameter(item.name, kind, default=default, annotation=item.type))
        parameters.sort(key=lambda parameter: parameter.kind)
        return Signature(parameters, return_annotation=None)

    def __repr__(self) -> str:  # where it stands for a default that is made anew
        return "<factory>"


class _Record:
    """The methods that all records share."""

    __record__: Any
    __signature__: Any = _Signature()

    def __init__(self, *values: Any, **named: Any) -> None:
        positional, names, defaults, factories, *_ = self.__record__
        given = dict(zip(positional, values, strict=False))
        given.update(named)
        unclear = len(given) < len(values) + len(named)  # two values of a field, or one of none
        if len(given) < len(names):
            for item in factories:
                if item.name not in given:
                    given[item.name] = item.default_factory()
            given = defaults | given
        if unclear or given.keys() != names:
            try:
                self.__signature__.bind(*values, **named)
            except TypeError as error:
                raise TypeError(f"{type(self).__name__}(): {error}") from None
        self.__dict__.update(given)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__record__[4])
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        key = self.__record__[5]
        return bool(key(self) == key(other)) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.__record__[5](self))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")
