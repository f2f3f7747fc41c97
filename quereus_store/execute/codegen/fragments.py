"""Pieces of Python source that expressions are put together from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quereus_store.plan import expressions as bound
from quereus_store.plan.expressions import BoundExpression
from quereus_store.records import record
from quereus_store.types import BOOLEAN, DATE, DATETIME, INTEGER, NUMERIC, REAL, TEXT, TIME, TIMESTAMP

NUMBERS = frozenset({INTEGER, REAL, NUMERIC, BOOLEAN, TIMESTAMP})
TEXTS = frozenset({TEXT, DATE, TIME, DATETIME})


@record(frozen=True, slots=True)
class Strict:
    """A NULL-strict value: NULL exactly if one of ``guards`` (source of nullable operands) is."""

    source: str
    guards: tuple[str, ...] = ()

    def value(self) -> str:
        """Source with the guards applied."""
        if not self.guards:
            return self.source
        if self.guards == (self.source,):
            return self.source
        tests = " or ".join(f"{guard} is None" for guard in self.guards)
        return f"(None if {tests} else {self.source})"


def tuple_display(sources: Sequence[str]) -> str:
    """Source of a tuple."""
    return f"({', '.join(sources)}{',' if len(sources) == 1 else ''})"


def not_null(guards: Iterable[str]) -> list[str]:
    """Tests that none of these is NULL."""
    return [f"{guard} is not None" for guard in guards]


def all_of(tests: Sequence[str]) -> str:
    """Source that is truthy when all tests are."""
    return tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"


def is_simple(expression: BoundExpression) -> bool:
    """Whether repeating the expression's source costs next to nothing."""
    return isinstance(expression, bound.ColumnRef | bound.Parameter | bound.ContextValue | bound.Literal)
