"""Whether a condition says the same of rows that DISTINCT, UNION or GROUP BY takes for one.

Equal values may be told apart: 1, 1.0 and ``true`` by ``typeof``, two texts that NOCASE holds equal
by another collation, two spellings of a duration by their text.  Of such values the first met stands for
all, so a condition may be tested before that choice only if it cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quereus_store.plan import nodes
from quereus_store.plan.expressions import (
    Between,
    BoundExpression,
    ColumnRef,
    Comparison,
    Conjunction,
    Disjunction,
    ExclusiveOr,
    InList,
    IsTest,
    Not,
    Truth,
    children,
)
from quereus_store.types import (
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    NULL,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    LogicalType,
)

_EXACT = frozenset({BLOB, BOOLEAN, DATE, DATETIME, INTEGER, NULL, REAL, TIME, TIMESTAMP})


def loose_columns(columns: Iterable[tuple[int, LogicalType, str]]) -> Mapping[int, str]:
    """The columns (number, type, collation) whose equal values may differ, with the collation."""
    return {
        number: using
        for number, logical, using in columns
        if logical not in _EXACT and not (logical is TEXT and using == "BINARY")
    }


def says_the_same(predicate: BoundExpression, loose: Mapping[int, str]) -> bool:
    """Whether a condition cannot tell equal values of these columns apart."""
    if not loose or loose.keys().isdisjoint(nodes.referenced_columns(predicate)):
        return True
    if isinstance(predicate, Conjunction | Disjunction | ExclusiveOr | Not | Between):
        return all(says_the_same(operand, loose) for operand in children(predicate))
    if isinstance(predicate, IsTest):
        return predicate.test is Truth.NULL and isinstance(predicate.operand, ColumnRef)
    if isinstance(predicate, Comparison):
        return all(_alike(side, predicate.using, loose) for side in (predicate.left, predicate.right))
    if isinstance(predicate, InList):
        return all(_alike(side, predicate.using, loose) for side in (predicate.operand, *predicate.items))
    return False


def _alike(side: BoundExpression, using: str, loose: Mapping[int, str]) -> bool:
    if isinstance(side, ColumnRef):
        return loose.get(side.id, using) == using
    return loose.keys().isdisjoint(nodes.referenced_columns(side))
