"""A catalog of sample tables, and plans as text that a test can read.

Every plan that a test binds also goes through :func:`verify`: each operator may read only what its
inputs produce, numbers never clash, nothing is left dangling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from typing import Any

from quereus_store.functions.builtins import builtin_functions
from quereus_store.plan.binder import BindContext, bind_mutation, bind_query
from quereus_store.plan.expressions import (
    BoundExpression,
    Column,
    ColumnRef,
    Literal,
    Parameter,
    subplans,
)
from quereus_store.plan.mutations import MutationPlan
from quereus_store.plan.nodes import (
    Aggregate,
    CommonTable,
    Filter,
    Join,
    PlanNode,
    Project,
    Recursion,
    TableScan,
    With,
    expressions,
    free_columns,
    inputs,
    referenced_columns,
)
from quereus_store.schema import builder, manager
from quereus_store.schema.objects import Catalog
from quereus_store.sql import nodes
from quereus_store.sql.parser import parse_script, parse_statement
from quereus_store.types import ListPlan, LogicalType

SAMPLE = """
create table crew (id integer primary key, nick text, rank integer null, ship text);
create table ship (name text primary key, tons integer);
create table words (id integer primary key, n text collate nocase, r text collate rtrim, p text);
create table docs (id integer primary key, j json, d date, t timespan null, x any null);
create view kites as select id, nick from crew where ship = 'Kite';
create view pairs (a, b, c) as select 1, 2;
create table temp.far (id integer primary key);
"""


def catalog_of(script: str) -> Catalog:
    """The catalog that a script of CREATE statements makes."""
    catalog = manager.empty_catalog()
    for statement in parse_script(script):
        if isinstance(statement, nodes.CreateTable):
            table = builder.build_table(statement, schema_name=statement.name.schema or "main")
            catalog = manager.put_table(catalog, table)
        elif isinstance(statement, nodes.CreateView):
            catalog = manager.put_view(catalog, builder.build_view(statement, "main"))
    return catalog


CATALOG = catalog_of(SAMPLE)


def context(catalog: Catalog = CATALOG, **types: LogicalType) -> BindContext:
    """A context; keyword ``p0=INTEGER`` types the first positional parameter, other names named ones."""
    slots: dict[int | str, LogicalType] = {
        (int(name[1:]) if name[0] == "p" and name[1:].isdigit() else name): logical_type
        for name, logical_type in types.items()
    }
    return BindContext(catalog, builtin_functions(), parameters=slots)


def bind(sql: str, catalog: Catalog = CATALOG, **types: LogicalType) -> PlanNode:
    """The verified plan of a query."""
    statement = parse_statement(sql)
    assert isinstance(statement, nodes.Query)
    plan = bind_query(context(catalog, **types), statement)
    verify(plan)
    assert not free_columns(plan)
    return plan


def bind_write(sql: str, catalog: Catalog = CATALOG, **types: LogicalType) -> Any:
    """The verified plan of an INSERT, UPDATE or DELETE."""
    statement = parse_statement(sql)
    assert isinstance(statement, nodes.Insert | nodes.Update | nodes.Delete)
    plan = bind_mutation(context(catalog, **types), statement)
    verify_mutation(plan)
    return plan


def names(sql: str) -> list[str]:
    """The output names of a query."""
    return [column.name for column in bind(sql).columns]


def types_of(sql: str, **types: LogicalType) -> list[str]:
    """The output types of a query, with ``?`` where the column can be NULL."""
    return [f"{column.type}{'?' if column.nullable else ''}" for column in bind(sql, **types).columns]


def expression(text: str, source: str = "crew", **types: LogicalType) -> BoundExpression:
    """An expression, bound over a table."""
    plan = bind(f"select {text} as e from {source}", **types)
    while not isinstance(plan, Project):
        plan = inputs(plan)[0]
    return plan.expressions[0]


# --- invariants ---------------------------------------------------------------------------------------------


def verify(plan: PlanNode, outer: frozenset[int] = frozenset()) -> None:
    """Check that a plan is well formed, given the columns that enclosing plans provide."""
    ids = [column.id for column in plan.columns]
    assert len(set(ids)) == len(ids), f"{type(plan).__name__} gives a number twice: {ids}"
    if isinstance(plan, Join) and plan.lateral:
        verify(plan.left, outer)
        verify(plan.right, outer | _ids(plan.left.columns))
    else:
        for child in inputs(plan):
            verify(child, outer)
    available = outer | frozenset().union(*(_ids(child.columns) for child in inputs(plan)))
    for expression in expressions(plan):
        _verify_expression(expression, available)
    if isinstance(plan, Filter):
        # A column list over a derived table may have renamed what comes out.
        assert [column.id for column in plan.columns] == [column.id for column in plan.input.columns]
    if isinstance(plan, Project):
        assert len(plan.columns) == len(plan.expressions)
    if isinstance(plan, TableScan):
        assert len(plan.columns) == len(plan.positions)
    if isinstance(plan, Aggregate):
        assert len(plan.columns) == len(plan.keys) + len(plan.aggregates)
    if isinstance(plan, With):
        assert plan.columns == plan.body.columns
    if isinstance(plan, Recursion):
        assert len(plan.columns) == len(plan.seed.columns) == len(plan.step.columns)


def verify_mutation(plan: MutationPlan) -> None:
    """Check the parts of a mutation: each reads only the rows that it may."""
    verify(plan.source)
    rows = _ids(plan.new) | _ids(plan.old)
    for part in (*plan.generated, *plan.checks):
        _verify_expression(part.expression, rows)
    if plan.returning is not None:
        for value in plan.returning.expressions:
            _verify_expression(value, rows)
    row: Iterable[BoundExpression | None] = getattr(plan, "row", ())
    for value in row:
        if value is not None:
            _verify_expression(value, _ids(plan.source.columns))
    for upsert in getattr(plan, "upserts", ()):
        for value in (*upsert.row, upsert.where):
            if value is not None:
                _verify_expression(value, rows)


def _verify_expression(value: BoundExpression, available: frozenset[int]) -> None:
    assert referenced_columns(value) <= available, f"{show(value)} reads what is not there: {available}"
    for plan in subplans(value):
        verify(plan, available)


def _ids(columns: Iterable[Column]) -> frozenset[int]:
    return frozenset(column.id for column in columns)


# --- plans as text ------------------------------------------------------------------------------------------

_HIDDEN = frozenset({"type", "nullable", "collation", "position"})


def show(value: Any) -> str:
    """An expression as text: columns by name, literals as Python spells them."""
    if isinstance(value, ColumnRef):
        return value.name
    if isinstance(value, Literal):
        return repr(value.value)
    if isinstance(value, Parameter):
        return f"?{value.slot}"
    if isinstance(value, PlanNode):
        return shape(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ")"
    if isinstance(value, BoundExpression):
        parts = [
            show(getattr(value, each.name))
            for each in fields(value)
            if each.name not in _HIDDEN
            and not isinstance(getattr(value, each.name), ListPlan)
            and getattr(value, each.name) not in (None, (), "BINARY", False)
        ]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, Enum):
        return str(value.value)
    return str(getattr(value, "name", value))


def shape(plan: PlanNode) -> str:
    """The operators of a plan, outermost first: ``Sort(Project(TableScan crew))``."""
    inside = [shape(item.plan) for item in getattr(plan, "tables", ()) if isinstance(item, CommonTable)]
    if isinstance(plan, With):
        inside.append(shape(plan.body))
    else:
        inside += [shape(child) for child in inputs(plan)]
    name = type(plan).__name__
    if isinstance(plan, TableScan):
        name += f" {plan.table.name}"
    elif isinstance(plan, Join):
        name += f" {plan.kind}" + (" lateral" if plan.lateral else "")
    return name + (f"({', '.join(inside)})" if inside else "")
