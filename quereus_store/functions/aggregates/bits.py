"""bit_and, bit_or, bit_xor: the bits of a group's integers, of any size.

Numbers are cut to integers, as the operators ``&`` and ``|`` do; what is no finite number is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_, xor

from quereus_store.functions.aggregates.exact import numbers_in
from quereus_store.functions.arguments import number_of
from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import INTEGER
from quereus_store.types.values import Value

_Row = tuple[Value, ...]

# State of bit_xor: how many integers were counted, and their bits.
_Parity = tuple[int, int]


def _integer(value: Value) -> int | None:
    number = number_of(value)
    return None if number is None or not math.isfinite(number) else int(number)


def _integers(column: Sequence[Value]) -> Sequence[int]:
    if set(map(type, column)) == {int}:
        return column  # type: ignore[return-value]
    return [integer for integer in map(_integer, numbers_in(column)) if integer is not None]


def _folding(name: str, operation: Callable[[int, int], int]) -> AggregateFunction:
    """An aggregate whose state is its value: taking an integer out needs the others."""

    def evaluate(column: Sequence[Value]) -> int | None:
        integers = _integers(column)
        return reduce(operation, integers) if integers else None

    def merge(left: int | None, right: int | None) -> int | None:
        if left is None or right is None:
            return right if left is None else left
        return operation(left, right)

    def add(state: int | None, row: _Row) -> int | None:
        return merge(state, _integer(row[0]))

    def same(state: int | None) -> int | None:
        return state

    algebra = Algebra(lambda: None, add, same, merge=merge, decode=lambda stored: stored)
    return AggregateFunction(name, evaluate, 1, 1, INTEGER, algebra=algebra)


def _bit_xor(column: Sequence[Value]) -> int | None:
    integers = _integers(column)
    return reduce(xor, integers) if integers else None


def _counted(state: _Parity, value: Value, sign: int) -> _Parity:
    integer = _integer(value)
    return state if integer is None else (state[0] + sign, state[1] ^ integer)


_XOR = Algebra(
    lambda: (0, 0),
    lambda state, row: _counted(state, row[0], 1),
    lambda state: state[1] if state[0] else None,
    lambda state, row: _counted(state, row[0], -1),
    lambda left, right: (left[0] + right[0], left[1] ^ right[1]),
)

BIT_AGGREGATES = (
    _folding("bit_and", and_),
    _folding("bit_or", or_),
    AggregateFunction("bit_xor", _bit_xor, 1, 1, INTEGER, algebra=_XOR),
)
