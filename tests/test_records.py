"""Records behave as frozen dataclasses of the same fields do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latencykit._records import record


def _fields(module: str) -> dict[str, object]:
    return {
        "__module__": module,
        "__qualname__": "Both",
        "__doc__": "Fields of every kind.",
        "__annotations__": {
            "plain": "int", "hidden": "int", "apart": "float", "made": "list[int]", "named": "str",
        },
        "hidden": field(default=1, repr=False),
        "apart": field(default=2.0, compare=False),
        "made": field(default_factory=list),
        "named": field(default="x", kw_only=True),
    }  # fmt: skip


Theirs = dataclass(frozen=True)(type("Both", (), _fields(__name__)))
Both = record()(type("Both", (), _fields(__name__)))
KINDS = (Both, Theirs)
VALUES = st.integers(-2, 2)
GIVEN = st.tuples(
    st.lists(VALUES, max_size=5),
    st.dictionaries(st.sampled_from(["plain", "hidden", "apart", "named", "other"]), VALUES),
)


def _made(kind: type, values: list[int], named: dict[str, int]) -> object:
    try:
        return kind(*values, **named)
    except TypeError:
        return None


@given(GIVEN)
def test_the_same_calls_are_accepted_and_give_the_same_fields(arguments):
    ours, theirs = (_made(kind, *arguments) for kind in KINDS)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert vars(ours) == vars(theirs)
        assert repr(ours) == repr(theirs)
        assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)


@given(GIVEN, GIVEN)
def test_they_are_equal_where_dataclasses_are(one, other):
    ours, theirs = ([_made(kind, *each) for each in (one, other)] for kind in KINDS)
    if None not in ours:
        assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
        assert ours[0] != theirs[0]


def test_their_signature_is_that_of_a_dataclass_and_words_the_error():
    assert str(inspect.signature(Both)) == str(inspect.signature(Theirs))
    with pytest.raises(TypeError, match=r"Both\(\): missing a required argument: 'plain'"):
        Both()
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Both(1, other=2)


def test_they_are_frozen_replaced_copied_and_pickled():
    one = Both(1, made=[5])
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.plain = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.plain
    assert dataclasses.replace(one, plain=3) == Both(3, made=[5])
    for same in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert same == one
    assert Both(1).made is not Both(1).made


@record()
class Numbers:
    """Two, one of which counts."""

    plain: int
    apart: float = field(default=2.0, compare=False)


@given(VALUES, VALUES)
def test_equal_ones_have_one_hash(plain, apart):
    assert Numbers(plain) == Numbers(plain, apart)
    assert hash(Numbers(plain)) == hash(Numbers(plain, apart))


def test_a_class_keeps_its_own_methods_and_identity_where_eq_is_false():
    @record(eq=False)
    class Own:
        """One."""

        x: int

        def __init__(self, x: int) -> None:
            vars(self).update(x=x + 1)

        def __repr__(self) -> str:
            return "own"

    assert Own(1).x == 2
    assert repr(Own(1)) == "own"
    assert Own(1) != Own(1)
    assert str(inspect.signature(Own)) == "(x: 'int') -> 'None'"
