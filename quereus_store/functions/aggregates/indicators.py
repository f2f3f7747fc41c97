"""``grouping(key, ...)``: which keys the grouping set of a result row leaves out (SQL:1999).

The result has a bit for each argument, the last argument's lowest: 1 where the key is not in the row's
grouping set, so that its NULL stands for "all".  It is no aggregate of rows; the binder turns a call into
an :class:`Indicator`, which knows the positions of its keys, and code generation writes a constant for each
grouping set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.functions.registry import AggregateFunction, Function
from quereus_store.types.logical import INTEGER, LogicalType

_NAME = "grouping"


@dataclass(frozen=True, slots=True)
class Indicator(AggregateFunction):
    """``grouping`` of the keys at these positions."""

    positions: tuple[int, ...] = ()

    def value(self, chosen: Sequence[int]) -> int:
        """The result in the grouping set of these key positions."""
        bits = 0
        for position in self.positions:
            bits = 2 * bits + (position not in chosen)
        return bits


def _not_here(*columns: Any) -> int:
    raise sql_error(StatusCode.ERROR, "grouping() is only allowed in a query with GROUP BY")


def _check(types: Sequence[LogicalType]) -> None:
    _not_here()


GROUPING = AggregateFunction(_NAME, _not_here, 1, None, INTEGER, False, False, check=_check)


def indicator(positions: Sequence[int]) -> Indicator:
    """``grouping`` of the keys at these positions."""
    return Indicator(_NAME, _not_here, 1, None, INTEGER, False, False, positions=tuple(positions))


def indicator_functions() -> list[Function]:
    """The family, ready to register."""
    return [GROUPING]
