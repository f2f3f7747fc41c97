"""FROM and USING in an UPDATE or DELETE that captures the rows of a view before it writes.

The view's rows are numbered and joined with the sources of the clause, whose names then count in SET, WHERE
and RETURNING.  Their columns are captured with the row.  A row that is met several times counts once, with
its first match; its number tells that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.dml_insert import numbered
from quereus_store.plan.binder.from_clause import bind_from
from quereus_store.plan.binder.scopes import FromScope, Source
from quereus_store.plan.expressions import BoundExpression, Column, reference
from quereus_store.plan.nodes import Join, JoinKind, PlanNode, Project
from quereus_store.sql import nodes

NUMBER = "\0row"
"""The captured column that holds the number of the view's row."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The rows of a view with what stands beside them, and what the clauses of the statement see."""

    plan: PlanNode
    scope: FromScope
    number: BoundExpression
    sources: tuple[Source, ...]

    @property
    def captured(self) -> dict[str, BoundExpression]:
        """What is captured besides the view's own row, by the names that it gets."""
        columns = [column for source in self.sources for column in source.columns]
        named = {f"\0beside{index}": reference(column) for index, column in enumerate(columns)}
        return {NUMBER: self.number, **named}

    def over(self, captured: Sequence[Column]) -> FromScope:
        """The names of the sources over the captured rows."""
        by_name = {column.name: column for column in captured}
        sources: list[Source] = []
        shown: list[Column] = []
        for source in self.sources:
            kept = [by_name[f"\0beside{len(shown) + index}"] for index in range(len(source.columns))]
            named = tuple(
                [
                    Column(mine.id, column.name, mine.type, mine.nullable, mine.collation)
                    for mine, column in zip(kept, source.columns, strict=True)
                ]
            )
            sources.append(Source(source.name, named, source.schema))
            shown += named
        return FromScope(tuple(sources), tuple(shown), None)


def join_beside(
    environment: Environment,
    own: tuple[str, str | None],
    plan: PlanNode,
    outputs: Sequence[tuple[str, BoundExpression]],
    relation: nodes.Relation,
) -> Beside:
    """Join the rows of a view with FROM or USING; ``own`` is the view's name there, and its schema."""
    plan, number = numbered(environment, plan)
    shown = tuple(
        [environment.column(name, value.type, value.nullable, value.collation) for name, value in outputs]
    )
    before = plan.columns
    plan = Project((*before, *shown), plan, (*map(reference, before), *[value for _, value in outputs]))
    name, schema = own
    view = Source(name, shown, schema)
    added = bind_from(environment, relation, FromScope((view,), shown, None))
    plan = Join(plan.columns + added.plan.columns, JoinKind.CROSS, plan, added.plan, lateral=False)
    scope = FromScope((view, *added.sources), shown + added.columns, None)
    return Beside(plan, scope, number, tuple(added.sources))


def number_column(captured: PlanNode) -> int:
    """Where the number of the view's row stands in the captured rows."""
    return next(index for index, column in enumerate(captured.columns) if column.name == NUMBER)
