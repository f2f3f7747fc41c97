"""Judging an assertion by the rows that changed, instead of running all of it.

A conjunct ``not exists (select … from t join u … where …)`` that held before a transaction can only
be broken by a row of ``t`` or ``u`` that the transaction has left new or different: some result row
must be made of it.  So the query is compiled once more for each table, restricted to one primary
key, and run for each changed key.  That is sound where

* the query is one SELECT without grouping, aggregates, windows, LIMIT and WITH;
* every reference to the table stands in FROM where more rows give more result rows
  (inner and cross joins, the left side of a left join), and nowhere else in the assertion;
* the assertion is known to have held when the transaction began
  (:class:`~quereus_store.execute.assertions.AssertionGuard` keeps account of that).

Chapter: dml-transactions-constraints, section 12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from quereus_store.functions.registry import AggregateFunction, FunctionRegistry
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import subplans
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.traversal import walk
from quereus_store.types import BLOB, BOOLEAN, INTEGER, REAL, TEXT

TableKey: TypeAlias = tuple[str, str]
"""Folded schema and name of a table."""
Resolve: TypeAlias = Callable[[nodes.TableReference], TableSchema | None]

_KEY_TYPES = (INTEGER, TEXT, REAL, BLOB, BOOLEAN)


def conjuncts_of(expression: nodes.Expression) -> Iterator[nodes.Expression]:
    """What an assertion says, taken apart at its ANDs."""
    if isinstance(expression, nodes.BinaryOperation) and expression.operator is nodes.BinaryOperator.AND:
        yield from conjuncts_of(expression.left)
        yield from conjuncts_of(expression.right)
    else:
        yield expression


def table_key(table: TableSchema) -> TableKey:
    """A table's key."""
    return fold(table.schema), fold(table.name)


def scans_of(plan: plans.PlanNode) -> Iterator[TableSchema]:
    """The table of each scan of a bound plan, subqueries included."""
    for part in plans.walk_plan(plan):
        if isinstance(part, plans.TableScan):
            yield part.table
        for expression in plans.expressions(part):
            for inner in subplans(expression):
                yield from scans_of(inner)


def keyed_queries(
    conjunct: nodes.Expression, scans: Iterable[TableSchema], resolve: Resolve, registry: FunctionRegistry
) -> Mapping[TableKey, tuple[nodes.Query, ...]]:
    """By table, the queries that find what one of its keys does to a conjunct.

    A query has the key's values as its parameters.  ``scans`` are the tables of all scans of the
    conjunct's plan.
    """
    select = _plain_select(conjunct, registry)
    if select is None or select.source is None:
        return {}
    found: dict[TableKey, list[nodes.Query]] = {}
    for reference in _monotone(select.source):
        table = resolve(reference)
        if table is not None and _has_simple_key(table):
            found.setdefault(table_key(table), []).append(_restricted(select, reference, table))
    counts = Counter(map(table_key, scans))
    return {key: tuple(queries) for key, queries in found.items() if counts[key] == len(queries)}


def _plain_select(conjunct: nodes.Expression, registry: FunctionRegistry) -> nodes.Select | None:
    """The SELECT of ``not exists (select …)``, if its rows depend on the rows of FROM one by one."""
    if not isinstance(conjunct, nodes.UnaryOperation) or conjunct.operator is not nodes.UnaryOperator.NOT:
        return None
    query = conjunct.operand.query if isinstance(conjunct.operand, nodes.Exists) else None
    if not isinstance(query, nodes.Query) or not isinstance(query.body, nodes.Select):
        return None
    select = query.body
    clauses = (select.group_by, select.having, select.windows, select.qualify, select.schema_path)
    if query.with_clause is not None or query.limit is not None or query.offset is not None or any(clauses):
        return None
    if any(_combines_rows(item, registry) for item in select.items):
        return None
    return select


def _combines_rows(item: nodes.Node, registry: FunctionRegistry) -> bool:
    return any(
        isinstance(part, nodes.WindowCall)
        or (
            isinstance(part, nodes.FunctionCall)
            and (part.star or isinstance(registry.find(part.name, len(part.arguments)), AggregateFunction))
        )
        for part in walk(item)
    )


def _monotone(relation: nodes.Relation) -> Iterator[nodes.TableReference]:
    """The references in a FROM clause of which another row only ever adds to the result."""
    if isinstance(relation, nodes.TableReference):
        if not relation.columns:
            yield relation
    elif isinstance(relation, nodes.Join) and not relation.flags:
        if relation.kind in (nodes.JoinKind.INNER, nodes.JoinKind.CROSS):
            yield from _monotone(relation.left)
            yield from _monotone(relation.right)
        elif relation.kind is nodes.JoinKind.LEFT:
            yield from _monotone(relation.left)


def _has_simple_key(table: TableSchema) -> bool:
    """Whether a parameter equal to a stored key value finds exactly the rows with that key."""
    columns = [table.columns[part.column] for part in table.primary_key.parts]
    return bool(columns) and all(column.type in _KEY_TYPES for column in columns)


def _restricted(select: nodes.Select, reference: nodes.TableReference, table: TableSchema) -> nodes.Query:
    """The SELECT over one key of a reference's table."""
    condition = select.where
    for number, part in enumerate(table.primary_key.parts, 1):
        column = nodes.ColumnReference(table.columns[part.column].name, reference.alias or reference.name)
        pinned = nodes.BinaryOperation(
            nodes.BinaryOperator.EQUAL, column, nodes.Parameter(index=number, numbered=True)
        )
        condition = (
            pinned
            if condition is None
            else nodes.BinaryOperation(nodes.BinaryOperator.AND, pinned, condition)
        )
    one = nodes.ResultColumn(nodes.Literal.of(1))
    return nodes.Query(replace(select, items=(one,), where=condition))
