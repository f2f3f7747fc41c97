"""count, and aggregates of truth: every, some and their other names (functions, section 8).

``count(*)`` and ``count(x)`` differ only in what they are given: all rows, or those whose argument is not
NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import ANY, BOOLEAN, INTEGER
from quereus_store.types.values import Value, truth

_Row = tuple[Value, ...]


def _zero() -> int:
    return 0


def _count_row(state: int, row: _Row) -> int:
    return state + 1


def _uncount_row(state: int, row: _Row) -> int:
    return state - 1


def _count_value(state: int, row: _Row) -> int:
    return state + (row[0] is not None)


def _uncount_value(state: int, row: _Row) -> int:
    return state - (row[0] is not None)


def _same(state: int) -> int:
    return state


def _decode(stored: Value) -> int:
    return stored or 0  # type: ignore[return-value]


def _values_in(column: Sequence[Value]) -> int:
    return len(column) - column.count(None)


def _count_algebra(
    add: Callable[[int, _Row], int],
    remove: Callable[[int, _Row], int],
    total: Callable[[Sequence[Value]], int],
) -> Algebra:
    return Algebra(_zero, add, _same, remove, int.__add__, total=total, decode=_decode, decode_exact=True)


COUNT_ROWS = AggregateFunction(
    "count",
    len,
    0,
    0,
    INTEGER,
    nullable=False,
    skips_nulls=False,
    algebra=_count_algebra(_count_row, _uncount_row, len),
)

COUNT_VALUES = AggregateFunction(
    "count",
    len,
    1,
    1,
    INTEGER,
    nullable=False,
    algebra=_count_algebra(_count_value, _uncount_value, _values_in),
)

# State of every and some: how many values are false, and how many are true.
_Verdict = tuple[int, int]


def _no_verdict() -> _Verdict:
    return (0, 0)


def _judge(state: _Verdict, row: _Row) -> _Verdict:
    verdict = truth(row[0])
    return state if verdict is None else (state[0] + (not verdict), state[1] + verdict)


def _unjudge(state: _Verdict, row: _Row) -> _Verdict:
    verdict = truth(row[0])
    return state if verdict is None else (state[0] - (not verdict), state[1] - verdict)


def _join_verdicts(left: _Verdict, right: _Verdict) -> _Verdict:
    return (left[0] + right[0], left[1] + right[1])


def _every(state: _Verdict) -> bool | None:
    return state[0] == 0 if any(state) else None


def _some(state: _Verdict) -> bool | None:
    return state[1] > 0 if any(state) else None


def every_column(column: Sequence[Value]) -> bool | None:
    """Whether all values are true; NULL when there are none."""
    return all(map(truth, column)) if column else None


def some_column(column: Sequence[Value]) -> bool | None:
    """Whether any value is true; NULL when there are none."""
    return any(map(truth, column)) if column else None


def _verdict_aggregate(
    name: str, evaluate: Callable[..., Value], finish: Callable[[_Verdict], Value]
) -> AggregateFunction:
    algebra = Algebra(_no_verdict, _judge, finish, _unjudge, _join_verdicts)
    return AggregateFunction(name, evaluate, 1, 1, BOOLEAN, algebra=algebra)


TRUTH_AGGREGATES = tuple(
    _verdict_aggregate(name, evaluate, finish)
    for names, evaluate, finish in (
        (("every", "bool_and"), every_column, _every),
        (("some", "bool_or"), some_column, _some),
    )
    for name in names
)


def _first(column: Sequence[Value]) -> Value:
    return column[0] if column else None


def _first_value(state: Value, row: _Row) -> Value:
    return row[0] if state is None else state


def _either(left: Value, right: Value) -> Value:
    return right if left is None else left


ANY_VALUE = AggregateFunction(
    "any_value",
    _first,
    1,
    1,
    lambda types: types[0] if types else ANY,
    algebra=Algebra(lambda: None, _first_value, lambda state: state, merge=_either),
)
