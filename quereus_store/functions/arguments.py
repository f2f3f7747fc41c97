"""What a function makes of its arguments: numbers and whole numbers out of any value, and type gates.

SQL functions take values of every class.  The families share two readings: :func:`number_of` (a number, a
boolean as 0 or 1, text that spells a finite number from end to end) and :func:`whole_number_of` (the same,
truncated toward zero); what reads as neither is ``None``, which most functions answer with NULL.

Some functions refuse argument types while a statement is prepared (functions, section 1);
:func:`require_numeric` makes such a check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from quereus_store.errors import StatusCode, sql_error
from quereus_store.types.logical import ANY, NULL, LogicalType
from quereus_store.types.values import WHITE_SPACE, Value, number_from_text

Number = int | float

NUMBER_CLASSES = frozenset((int, float))


def number_of(value: Value) -> Number | None:
    """The number a value is or wholly spells; None for anything else, NaN included."""
    kind = type(value)
    if kind is int:
        return value  # type: ignore[return-value]
    if kind is float:
        return value if value == value else None  # type: ignore[return-value]
    if kind is bool:
        return int(value)  # type: ignore[arg-type]
    if kind is str:
        return number_in_text(value)  # type: ignore[arg-type]
    return None


def number_in_text(text: str) -> Number | None:
    """The finite number that a text spells from end to end, blanks around it aside; None otherwise."""
    number = number_from_text(text)
    if number is None or not text.strip(WHITE_SPACE):
        return None
    return number if type(number) is int or math.isfinite(number) else None


def whole_number_of(value: Value) -> int | None:
    """The number of a value, truncated toward zero; infinities give None."""
    number = number_of(value)
    if number is None or type(number) is int:
        return number
    return int(number) if math.isfinite(number) else None


LARGEST_VALUE = 1_000_000_000
"""Characters or bytes that a function may make."""


def check_size(size: int) -> int:
    """The size of a value that is about to be made; raises TOOBIG beyond LARGEST_VALUE."""
    if size > LARGEST_VALUE:
        raise sql_error(StatusCode.TOOBIG, "string or blob too big")
    return size


def require_numeric(
    name: str, positions: Sequence[int] | None = None
) -> Callable[[Sequence[LogicalType]], None]:
    """A prepare-time check: the arguments at ``positions`` (None: all) are numeric, ANY or NULL.

    The check raises MISMATCH ``Invalid argument types for function NAME``.
    """

    def check(types: Sequence[LogicalType]) -> None:
        checked = types if positions is None else [types[position] for position in positions]
        if not all(item.is_numeric or item is ANY or item is NULL for item in checked):
            raise sql_error(StatusCode.MISMATCH, f"Invalid argument types for function {name}")

    return check


def type_of_first(types: Sequence[LogicalType]) -> LogicalType:
    """The result has the type of the first argument."""
    return types[0] if types else ANY
