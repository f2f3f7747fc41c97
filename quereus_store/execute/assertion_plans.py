"""How an assertion depends on the tables that it reads: what ``explain_assertion`` shows.

==========  =======================================================================================
``row``     equalities fix a unique key of the table: one row decides about the assertion
``group``   the table is grouped by plain columns of its own: one group decides
``global``  anything else, and everything under a set operation
==========  =======================================================================================

Chapters: dml-transactions-constraints, section 12; functions, section 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.assertions import assertion_context, violation_query
from quereus_store.execute.emptiness import contributing_scans
from quereus_store.plan import nodes as plans
from quereus_store.plan.binder import bind_query
from quereus_store.plan.conditions import column_comparisons, conjuncts
from quereus_store.plan.expressions import BoundExpression, ColumnRef, subplans
from quereus_store.schema.manager import assertions_of
from quereus_store.schema.objects import AssertionSchema, TableSchema, fold
from quereus_store.sql import render_expression
from quereus_store.types.json import render_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import ReadView

_Row = tuple[Any, ...]


def explain_assertion(session: Session, view: ReadView, name: str) -> Iterator[_Row]:
    """One row per reference to a table; raises NOTFOUND for an unknown assertion.

    A reference counts only if the table could make the assertion fail: none is left of
    ``not exists (select 1 from t where v < 0)`` if a CHECK of ``t`` says ``v >= 0``.
    """
    assertion = _named(view, name)
    context = assertion_context(session, view, assertion.schema)
    plan = bind_query(context, violation_query(assertion.expression))
    scans = contributing_scans(session.engine, view.catalog, plan, context)
    able = {column.id for scan in scans for column in scan.columns}
    violation = f"select 1 where not ({render_expression(assertion.expression)})"
    for number, (scan, classification, parameters) in enumerate(_references(plan), 1):
        if able.isdisjoint(column.id for column in scan.columns):
            continue
        base = scan.table.qualified_name.lower()
        shown = None if parameters is None else render_json(parameters)
        yield (assertion.name, f"{base}#{number}", base, classification, shown, violation)


def _named(view: ReadView, name: str) -> AssertionSchema:
    schema, _, own = name.rpartition(".")
    for assertion in assertions_of(view.catalog):
        if fold(assertion.name) == fold(own) and (not schema or fold(assertion.schema) == fold(schema)):
            return assertion
    raise sql_error(StatusCode.NOTFOUND, f"Assertion not found: {name}")


def _references(plan: plans.PlanNode) -> Iterator[tuple[plans.TableScan, str, list[str] | None]]:
    """The table references of a plan and its subqueries, classified."""
    under_set = {id(part) for part in _under_set_operations(plan)}
    for part in plans.walk_plan(plan):
        if isinstance(part, plans.TableScan):
            if id(part) in under_set:
                yield part, "global", None
            else:
                yield part, *_classified(plan, part)
        for expression in plans.expressions(part):
            for inner in subplans(expression):
                yield from _references(inner)


def _under_set_operations(plan: plans.PlanNode) -> Iterator[plans.PlanNode]:
    for part in plans.walk_plan(plan):
        if isinstance(part, plans.SetOperation):
            yield from plans.walk_plan(part)


def _classified(plan: plans.PlanNode, scan: plans.TableScan) -> tuple[str, list[str] | None]:
    own = frozenset(column.id for column in scan.columns)
    place = {column.id: position for column, position in zip(scan.columns, scan.positions, strict=True)}
    fixed = {
        place[comparison.column.id]
        for conjunct in _conditions(plan)
        for comparison in column_comparisons(conjunct, own)
        if comparison.operator == "="
    }
    for key in _unique_keys(scan.table):
        if key and set(key) <= fixed:
            return "row", [f"pk{number}" for number in range(len(key))]
    for part in plans.walk_plan(plan):
        if isinstance(part, plans.Aggregate) and part.keys and any(p is scan for p in plans.walk_plan(part)):
            keys = [key for key in part.keys if isinstance(key, ColumnRef) and key.id in own]
            grouped = {place[key.id] for key in keys}
            fixes_row = any(key and set(key) <= grouped for key in _unique_keys(scan.table))
            if fixes_row and len(keys) == len(part.keys):
                return "group", [key.name for key in keys]
    return "global", None


def _conditions(plan: plans.PlanNode) -> Iterator[BoundExpression]:
    """The conditions that every row of a plan's inputs has to meet to count."""
    for part in plans.walk_plan(plan):
        if isinstance(part, plans.Filter):
            yield from conjuncts(part.predicate)
        elif isinstance(part, plans.Join) and part.kind in (plans.JoinKind.INNER, plans.JoinKind.SEMI):
            yield from conjuncts(part.condition)


def _unique_keys(table: TableSchema) -> Iterator[tuple[int, ...]]:
    yield tuple(part.column for part in table.primary_key.parts)
    for unique in table.unique_constraints:
        if not any(table.columns[column].nullable for column in unique.columns):
            yield unique.columns
