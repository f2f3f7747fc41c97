"""Records are what frozen dataclasses are, but for the guard: the same equality, hash and text."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from quereus_store.records import record


def declared(decorator: Any) -> tuple[type[Any], type[Any], type[Any]]:
    """A base, a class over it and one without fields."""

    @decorator(frozen=True, slots=True)
    class Node:
        name: str
        place: int = field(default=0, compare=False, repr=False, kw_only=True)

    @decorator(frozen=True, slots=True)
    class Leaf(Node):
        values: tuple[Any, ...] = ()

    @decorator(frozen=True, slots=True)
    class Nothing:
        pass

    return Node, Leaf, Nothing


Node, Leaf, Nothing = declared(record)
GUARDED = declared(dataclass)


def test_equal_values_are_equal_and_hash_alike() -> None:
    assert Leaf("a", (1,)) == Leaf("a", (1.0,))
    assert hash(Leaf("a", (1,))) == hash(Leaf("a", (1.0,)))
    assert Leaf("a") != Leaf("b")
    assert Nothing() == Nothing()
    assert len({Leaf("a"), Leaf("a"), Leaf("b"), Nothing(), Nothing()}) == 3


def test_the_class_belongs_to_the_value() -> None:
    assert Node("a") != Leaf("a")
    assert Node("a") != "a"
    assert Node("a").__eq__("a") is NotImplemented


def test_fields_that_do_not_count_are_not_compared() -> None:
    assert Leaf("a", place=1) == Leaf("a", place=2)
    assert hash(Leaf("a", place=1)) == hash(Leaf("a", place=2))


def test_what_has_no_hash_says_so() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Leaf("a", ([],)))


@pytest.mark.parametrize("values", [("a",), ("a", (1, "x"))])
def test_the_text_is_the_one_of_a_dataclass(values: tuple[Any, ...]) -> None:
    assert repr(Leaf(*values)) == repr(GUARDED[1](*values))
    assert repr(Nothing()) == repr(GUARDED[2]())


def test_a_text_of_its_own_stays() -> None:
    @record(frozen=True, slots=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return self.name

    assert repr(Own("x")) == "x"


def test_they_are_copied_and_changed_like_dataclasses() -> None:
    leaf = Leaf("a", (1,), place=3)
    assert copy.copy(leaf) == leaf
    assert replace(leaf, name="b") == Leaf("b", (1,))
    assert [each.name for each in fields(leaf)] == ["name", "place", "values"]
    assert not hasattr(leaf, "__dict__")
