"""group_concat, string_agg, listagg and string_concat: the texts of a group, joined (functions, section 8).

A separator is an argument like any other, evaluated for every row; the last one that is not NULL joins
all. The states of the algebra are pairs of a tuple of texts and the separator so far, so parts can be
merged in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.functions.registry import AggregateFunction, Algebra
from quereus_store.types.logical import TEXT
from quereus_store.types.values import Value, to_text

_COMMA = ","

_State = tuple[tuple[str, ...], str | None]


def _texts(column: Sequence[Value]) -> Sequence[str]:
    if set(map(type, column)) <= {str}:
        return column  # type: ignore[return-value]
    return [to_text(value) or "" for value in column]


def _last_separator(separators: Sequence[Value]) -> str | None:
    return next((to_text(value) for value in reversed(separators) if value is not None), None)


def group_concat(column: Sequence[Value], separators: Sequence[Value] = ()) -> str | None:
    """All values as text, joined; NULL of nothing."""
    if not column:
        return None
    separator = _last_separator(separators)
    return (_COMMA if separator is None else separator).join(_texts(column))


def string_concat(column: Sequence[Value]) -> str:
    """The values that are text, joined by commas; an empty text of none."""
    return _COMMA.join([value for value in column if type(value) is str])


def _nothing() -> _State:
    return ((), None)


def _append(state: _State, row: tuple[Value, ...]) -> _State:
    text = to_text(row[0])
    if text is None:
        return state
    separator = to_text(row[1]) if len(row) > 1 else None
    return ((*state[0], text), state[1] if separator is None else separator)


def _append_text(state: _State, row: tuple[Value, ...]) -> _State:
    value = row[0]
    return ((*state[0], value), state[1]) if type(value) is str else state


def _join(left: _State, right: _State) -> _State:
    return (left[0] + right[0], left[1] if right[1] is None else right[1])


def _finish(state: _State) -> str | None:
    texts, separator = state
    return (_COMMA if separator is None else separator).join(texts) if texts else None


def _finish_text(state: _State) -> str:
    return _COMMA.join(state[0])


_ALGEBRA = Algebra(_nothing, _append, _finish, merge=_join)

TEXT_AGGREGATES = (
    AggregateFunction("group_concat", group_concat, 1, 1, TEXT, ordered=True, algebra=_ALGEBRA),
    AggregateFunction("group_concat", group_concat, 2, 2, TEXT, ordered=True, algebra=_ALGEBRA),
    AggregateFunction("string_agg", group_concat, 2, 2, TEXT, ordered=True, algebra=_ALGEBRA),
    AggregateFunction("listagg", group_concat, 2, 2, TEXT, ordered=True, algebra=_ALGEBRA),
    AggregateFunction(
        "string_concat",
        string_concat,
        1,
        1,
        TEXT,
        nullable=False,
        ordered=True,
        algebra=Algebra(_nothing, _append_text, _finish_text, merge=_join),
    ),
)
