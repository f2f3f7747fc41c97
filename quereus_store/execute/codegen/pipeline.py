"""Pipelines: the fused loops between two breakers.

A :class:`Pipeline` is a loop under construction.  An operator that produces
rows opens one over its source of batches; operators above add clauses (a
condition, an inner loop over matches, a computed value) until a breaker or the
end of the plan closes it.  Closed, it is either one comprehension per batch::

    for batch in t0_scan(x0):
        yield [(r0[0], r1[2]) for r0 in batch if r0[1] > p0 for r1 in matches(r0[2], EMPTY)]

or, for a breaker that takes rows apart, the same clauses as nested statements.
No tuple is built for anything in between: a column is an expression such as
``r0[1]``, kept in ``bindings``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quereus_store.plan.expressions import BoundExpression, Column
from quereus_store.records import record


@record(frozen=True, slots=True)
class Clause:
    """One step of a loop body: ``for target in source`` or ``if source``."""

    kind: str
    source: str
    target: str = ""

    def render(self) -> str:
        """The clause as it stands in a comprehension."""
        if self.kind == "for":
            return f"for {self.target} in {self.source}"
        return f"if {self.source}"


@dataclass(slots=True)
class Pipeline:
    """A loop over batches, open for more clauses.

    ``source`` iterates over batches and ``batch`` names one; ``per_batch`` are
    statements run for each batch before its rows; ``loop`` is the first clause,
    over the rows.  ``bindings`` gives the Python expression of each available
    column, ``pending`` the columns that are computed only when asked for, and
    ``whole`` the columns that a row variable holds exactly, in order.  ``only_batch`` is the
    source of the one batch that there is, where there is but one.
    """

    source: str
    batch: str
    loop: Clause
    clauses: list[Clause] = field(default_factory=list)
    per_batch: list[str] = field(default_factory=list)
    prologue: list[str] = field(default_factory=list)
    bindings: dict[int, str] = field(default_factory=dict)
    pending: dict[int, BoundExpression] = field(default_factory=dict)
    whole: dict[str, tuple[int, ...]] = field(default_factory=dict)
    only_batch: str = ""

    @property
    def has_one_batch(self) -> bool:
        """Whether the loop over batches would run just once, with nothing to do but its rows."""
        alone = self.source == f"({self.only_batch},)"
        return alone and not self.per_batch and not self.prologue

    def row_variables(self) -> list[str]:
        """The loop variables that clauses so far have bound."""
        names = [self.loop.target]
        names += [clause.target for clause in self.clauses if clause.kind == "for"]
        return names

    def passes_batches_through(self, output: Sequence[int]) -> bool:
        """Whether the source's batches already are the output."""
        return not self.clauses and not self.per_batch and self.whole.get(self.loop.target) == tuple(output)


def column_ids(columns: Sequence[Column]) -> tuple[int, ...]:
    """The numbers of columns."""
    return tuple([column.id for column in columns])


def nested(clauses: Sequence[Clause], body: Callable[[], None], open_block: Callable[[str], object]) -> None:
    """Write clauses as nested statements around a body.

    ``open_block(header)`` is a context manager that writes a compound statement.
    """
    if not clauses:
        body()
        return
    first, *rest = clauses
    with open_block(first.render() + ":"):  # type: ignore[attr-defined]
        nested(rest, body, open_block)
