"""Hypothesis strategies for syntax trees: any tree the parser can give, with hostile names.

Left out is what another tree stands for (see the module texts of ``nodes``): an IN list
of one bare subquery, a grouping set of one expression outside ROLLUP and its kin, a
query wrapped in a query that adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy, composite

from quereus_store.sql import nodes as n
from quereus_store.sql.keywords import ALL
from quereus_store.sql.traversal import writes_in

Value = TypeVar("Value")

names = st.one_of(
    st.sampled_from(["a", "b", "t", "Name", "x1"]),
    st.sampled_from(sorted(ALL)),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=4).filter(
        lambda text: "\0" not in text
    ),
)
plain_names = st.sampled_from(["a", "b", "c", "total", "u1"])
function_names = st.one_of(st.sampled_from(["f", "count", "left", "replace", "like", "glob"]), plain_names)
optional_names = st.none() | names


def tuples(items: SearchStrategy[Value], low: int = 0, high: int = 2) -> SearchStrategy[tuple[Value, ...]]:
    return st.lists(items, min_size=low, max_size=high).map(tuple)


def unique_tuples(
    items: SearchStrategy[Value], key: Callable[[Value], Any], low: int = 0, high: int = 2
) -> SearchStrategy[tuple[Value, ...]]:
    return st.lists(items, min_size=low, max_size=high, unique_by=key).map(tuple)


def optional(items: SearchStrategy[Value]) -> SearchStrategy[Value | None]:
    return st.none() | items


def numbers(low: int, fractions: float) -> SearchStrategy[n.Literal]:
    integers = st.integers(low, 10**20).map(lambda value: n.Literal(n.LiteralKind.INTEGER, value, str(value)))
    reals = st.floats(fractions, 1e300, allow_nan=False).map(
        lambda value: n.Literal(n.LiteralKind.REAL, value, repr(value))
    )
    return integers | reals.filter(lambda literal: literal.text != "-0.0")


constants = st.one_of(st.none(), st.booleans(), st.text(max_size=5)).map(n.Literal.of)
literals = st.one_of(numbers(0, 0.0), constants, st.binary(max_size=3).map(n.Literal.of))
settings_values = st.one_of(numbers(-5, -5.0), constants)
parameters = st.one_of(
    st.integers(1, 9).map(lambda index: n.Parameter(index, numbered=True)),
    plain_names.map(lambda name: n.Parameter(name=name)),
)
columns = st.one_of(
    names.map(n.ColumnReference),
    st.builds(n.ColumnReference, names, names),
    st.builds(n.ColumnReference, names, names, names),
)
types = st.builds(
    n.TypeName,
    st.sampled_from(["integer", "text", "double precision", "timestamp with time zone", "thing"]),
    st.sampled_from([(), ("5",), ("10", "2")]),
)
tags = unique_tuples(st.builds(n.Tag, names, settings_values), key=lambda tag: tag.key)
comparisons = st.sampled_from(
    [
        n.BinaryOperator.EQUAL,
        n.BinaryOperator.NOT_EQUAL,
        n.BinaryOperator.LESS,
        n.BinaryOperator.GREATER_EQUAL,
    ]
)


def expressions(depth: int = 3) -> SearchStrategy[n.Expression]:
    if depth <= 0:
        return st.one_of(literals, columns, parameters)
    return st.one_of(
        literals,
        columns,
        operators(depth),
        operators(depth),
        predicates(depth),
        calls(depth),
        composite_values(depth),
        subqueries(depth),
    )


@composite
def operators(draw: DrawFn, depth: int) -> n.Expression:
    operand = expressions(depth - 1)
    return draw(
        st.one_of(
            st.builds(n.UnaryOperation, st.sampled_from(n.UnaryOperator), operand),
            st.builds(n.BinaryOperation, st.sampled_from(n.BinaryOperator), operand, operand),
            st.builds(n.Collate, operand, plain_names),
        )
    )


@composite
def predicates(draw: DrawFn, depth: int) -> n.Expression:
    operand = expressions(depth - 1)
    items = tuples(operand, 0, 3).filter(
        lambda found: not (len(found) == 1 and isinstance(found[0], n.Subquery))
    )
    return draw(
        st.one_of(
            st.builds(n.IsTest, operand, st.sampled_from(n.IsTarget), st.booleans()),
            st.builds(n.IsDistinctFrom, operand, operand, st.booleans()),
            st.builds(n.Between, operand, operand, operand, st.booleans()),
            st.builds(
                n.PatternMatch, st.sampled_from(n.PatternOperator), operand, operand, optional(operand)
            ),
            st.builds(n.InList, operand, items),
        )
    )


@composite
def composite_values(draw: DrawFn, depth: int) -> n.Expression:
    operand = expressions(depth - 1)
    whens = tuples(st.builds(n.WhenClause, operand, operand), 1)
    return draw(
        st.one_of(
            st.builds(n.Case, optional(operand), whens, optional(operand)),
            st.builds(n.Cast, operand, types),
            st.builds(n.RowValue, tuples(operand, 1, 3)),
        )
    )


@composite
def subqueries(draw: DrawFn, depth: int) -> n.Expression:
    operand = expressions(depth - 1)
    inner = queries(depth - 1)
    return draw(
        st.one_of(
            st.builds(n.Subquery, inner),
            st.builds(n.Exists, inner),
            st.builds(n.InSubquery, operand, inner),
            st.builds(n.QuantifiedComparison, comparisons, st.sampled_from(n.Quantifier), operand, inner),
        )
    )


@composite
def calls(draw: DrawFn, depth: int) -> n.Expression:
    operand = expressions(depth - 1)
    name = draw(function_names)
    condition = draw(optional(operand))
    if draw(st.booleans()):
        arguments = draw(tuples(operand))
        distinct = bool(arguments) and draw(st.booleans())
        call = n.FunctionCall(name, arguments, distinct, False, draw(ordering(depth - 1)), condition)
    else:
        call = n.FunctionCall(name, star=True, filter=condition)
    if draw(st.booleans()):
        return call
    return n.WindowCall(call, draw(st.one_of(names.map(n.WindowReference), windows(depth - 1))))


@composite
def ordering(draw: DrawFn, depth: int) -> tuple[n.OrderingTerm, ...]:
    term = st.builds(
        n.OrderingTerm, expressions(depth), st.booleans(), optional(st.sampled_from(n.NullsPlacement))
    )
    return draw(tuples(term))


@composite
def windows(draw: DrawFn, depth: int) -> n.WindowSpecification:
    bound = st.sampled_from(n.BoundKind).flatmap(
        lambda kind: st.builds(
            n.FrameBound,
            st.just(kind),
            expressions(depth) if kind in (n.BoundKind.PRECEDING, n.BoundKind.FOLLOWING) else st.none(),
        )
    )
    frame = st.builds(
        n.WindowFrame, st.sampled_from(n.FrameUnit), bound, bound, optional(st.sampled_from(n.FrameExclusion))
    )
    return n.WindowSpecification(
        draw(tuples(expressions(depth))), draw(ordering(depth)), draw(optional(frame)), draw(optional_names)
    )


# Queries


@composite
def queries(draw: DrawFn, depth: int = 2, *, leading: bool = False) -> n.Query:
    with_clause = draw(optional(with_clauses(depth - 1, leading))) if depth > 0 else None
    limit = draw(optional(expressions(depth - 1)))
    offset = None if limit is None else draw(optional(expressions(depth - 1)))
    body = draw(bodies(depth))
    if limit is not None and depth > 0 and draw(st.booleans()):
        body = n.Query(body, limit=n.Literal(n.LiteralKind.INTEGER, 1, "1"))
    return n.Query(
        body, with_clause, draw(ordering(depth - 1)), limit, offset, draw(assignments("defaults", depth))
    )


@composite
def assignments(draw: DrawFn, purpose: str, depth: int, low: int = 0) -> tuple[n.Assignment, ...]:
    value = st.builds(n.Assignment, names, expressions(depth - 1))
    return draw(unique_tuples(value, key=lambda each: each.column.lower(), low=low, high=1 if purpose else 2))


@composite
def with_clauses(draw: DrawFn, depth: int, leading: bool) -> n.WithClause:
    query: SearchStrategy[Any] = queries(depth)
    if leading:
        query = query | modifications(depth, returning=True)
    member = st.builds(
        n.CommonTableExpression, names, query, tuples(names), optional(st.sampled_from(n.Materialization))
    )
    members = draw(unique_tuples(member, key=lambda each: each.name.lower(), low=1))
    return n.WithClause(members, draw(st.booleans()), draw(optional(st.integers(0, 99))))


def bodies(depth: int) -> SearchStrategy[Any]:
    if depth <= 0:
        return selects(0)
    return st.one_of(selects(depth), selects(depth), values(depth), set_operations(depth))


@composite
def values(draw: DrawFn, depth: int) -> n.Values:
    return n.Values(draw(tuples(tuples(expressions(depth - 1)), 1)))


@composite
def set_operations(draw: DrawFn, depth: int) -> n.SetOperation:
    operator = draw(st.sampled_from(n.SetOperator))
    flag = st.builds(n.MembershipFlag, names, optional(st.sampled_from(n.Side)))
    flags = () if operator is n.SetOperator.DIFF else draw(tuples(flag))
    limited = st.builds(lambda body, limit: n.Query(body, limit=limit), bodies(depth - 1), literals)
    operand: SearchStrategy[Any] = st.one_of(
        bodies(depth - 1), limited, modifications(depth - 1, returning=True)
    )
    return n.SetOperation(operator, draw(operand), draw(operand), draw(st.booleans()), flags)


@composite
def selects(draw: DrawFn, depth: int) -> n.Select:
    expression = expressions(depth - 1)
    grouping = st.one_of(
        expression.filter(lambda found: not isinstance(found, n.RowValue)),
        grouping_sets(depth).filter(
            lambda found: not (isinstance(found, n.GroupingSet) and len(found.expressions) == 1)
        ),
    )
    return n.Select(
        draw(tuples(result_items(depth), 1)),
        draw(optional(relations(depth))),
        draw(optional(expression)),
        draw(tuples(grouping)),
        draw(optional(expression)),
        draw(tuples(st.builds(n.WindowDefinition, names, windows(depth - 1)))),
        draw(optional(expression)),
        draw(st.booleans()),
        draw(tuples(names)),
    )


@composite
def grouping_sets(draw: DrawFn, depth: int) -> Any:
    single = expressions(depth - 1).filter(lambda found: not isinstance(found, n.RowValue))
    plain = st.builds(n.GroupingSet, tuples(single, 0, 3))
    several = tuples(plain)
    kinds = st.one_of(plain, st.builds(n.Rollup, several), st.builds(n.Cube, several))
    return draw(kinds | st.builds(n.GroupingSets, tuples(kinds)))


@composite
def result_items(draw: DrawFn, depth: int) -> Any:
    star = st.builds(n.ResultStar, optional_names)
    inverse = assignments("inverse", depth)
    column = st.builds(n.ResultColumn, expressions(depth - 1), optional_names, inverse)
    return draw(star | column | column)


def reading(bodies: SearchStrategy[Value]) -> SearchStrategy[Value]:
    """Queries that may be the body of a view: nothing in them writes."""
    return bodies.filter(lambda body: next(writes_in(body), None) is None)


def relations(depth: int) -> SearchStrategy[Any]:
    table = st.one_of(
        st.builds(n.TableReference, names, optional_names),
        st.builds(n.TableReference, names, optional_names, names, tuples(names)),
    )
    if depth <= 0:
        return table
    call = st.builds(n.FunctionCall, plain_names, tuples(expressions(depth - 1)))
    query = st.one_of(queries(depth - 1), modifications(depth - 1, returning=True))
    return st.one_of(
        table,
        st.builds(n.FunctionSource, call, names, tuples(names), st.booleans()),
        st.builds(n.SubquerySource, query, st.none(), st.just(()), st.booleans()),
        st.builds(n.SubquerySource, query, names, tuples(names), st.booleans()),
        joins(depth - 1),
    )


@composite
def joins(draw: DrawFn, depth: int) -> n.Join:
    kind = draw(st.sampled_from(n.JoinKind))
    left, right = draw(relations(depth)), draw(relations(depth))
    sides = {
        n.JoinKind.LEFT: [None, n.Side.RIGHT],
        n.JoinKind.RIGHT: [None, n.Side.LEFT],
        n.JoinKind.FULL: list(n.Side),
    }
    flags: tuple[n.MembershipFlag, ...] = ()
    if kind in sides:
        flags = draw(tuples(st.builds(n.MembershipFlag, names, st.sampled_from(sides[kind]))))
    form = draw(st.sampled_from(["natural", "using", "on"]))
    if form == "natural":
        return n.Join(kind, left, right, natural=True, flags=flags)
    if form == "using":
        return n.Join(kind, left, right, using=draw(tuples(names, 1)), flags=flags)
    condition = draw(optional(expressions(depth)) if kind is n.JoinKind.CROSS else expressions(depth))
    return n.Join(kind, left, right, condition, flags=flags)


# Data modification


@composite
def modifications(draw: DrawFn, depth: int = 2, *, returning: bool = False, leading: bool = False) -> Any:
    kind = draw(st.sampled_from([inserts, updates, deletes]))
    clauses: dict[str, Any] = {
        "context": draw(assignments("context", depth)),
        "schema_path": draw(tuples(names)),
        "tags": draw(tags),
        "returning": draw(tuples(result_items(depth), 1 if returning else 0)),
        "with_clause": draw(optional(with_clauses(depth - 1, leading))) if depth > 0 else None,
    }
    return draw(kind(depth, clauses))


@composite
def set_assignments(draw: DrawFn, depth: int) -> tuple[Any, ...]:
    value = expressions(depth - 1) | st.just(n.DefaultValue())
    single = st.builds(n.Assignment, names, value)
    several = st.builds(n.MultiAssignment, tuples(names, 1), queries(depth - 1))
    return draw(tuples(single | several, 1))


@composite
def inserts(draw: DrawFn, depth: int, clauses: dict[str, Any]) -> n.Insert:
    cell = expressions(depth - 1) | st.just(n.DefaultValue())
    rows = st.builds(n.Query, st.builds(n.Values, tuples(tuples(cell), 1)))
    source = draw(st.one_of(rows, queries(depth - 1), st.just(n.DefaultValues())))
    table = draw(st.builds(n.TableReference, names, optional_names, optional_names))
    action = draw(optional(st.sampled_from(n.ConflictAction)))
    upserts: tuple[n.UpsertClause, ...] = ()
    if action is None:
        upserts = draw(tuples(upsert_clauses(depth)))
    return n.Insert(table, source, draw(tuples(names)), action, upserts, **clauses)


@composite
def upsert_clauses(draw: DrawFn, depth: int) -> n.UpsertClause:
    target = draw(tuples(names))
    target_where = draw(optional(expressions(depth - 1))) if target else None
    if draw(st.booleans()):
        return n.UpsertClause(target, target_where)
    return n.UpsertClause(
        target, target_where, draw(set_assignments(depth)), draw(optional(expressions(depth - 1)))
    )


def targets(depth: int) -> SearchStrategy[Any]:
    return st.one_of(
        st.builds(n.TableReference, names, optional_names, optional_names),
        st.builds(n.SubquerySource, queries(depth - 1), names, tuples(names)),
    )


@composite
def updates(draw: DrawFn, depth: int, clauses: dict[str, Any]) -> n.Update:
    return n.Update(
        draw(targets(depth)),
        draw(set_assignments(depth)),
        draw(optional(relations(depth - 1))),
        draw(optional(expressions(depth - 1))),
        draw(optional(st.sampled_from(n.ConflictAction))),
        **clauses,
    )


@composite
def deletes(draw: DrawFn, depth: int, clauses: dict[str, Any]) -> n.Delete:
    source = draw(optional(relations(depth - 1)))
    return n.Delete(draw(targets(depth)), source, draw(optional(expressions(depth - 1))), **clauses)


# Definitions

object_names = st.builds(n.ObjectName, names, optional_names)
conflict_actions = optional(st.sampled_from(n.ConflictAction))
references = st.builds(
    n.ForeignKeyReference,
    object_names,
    tuples(names),
    optional(st.sampled_from(n.ReferentialAction)),
    optional(st.sampled_from(n.ReferentialAction)),
    optional(st.booleans()),
    optional(st.booleans()),
)
key_columns = tuples(st.builds(n.KeyColumn, names, st.booleans(), optional(names)))
modules = st.builds(
    n.ModuleClause, names, tuples(st.builds(n.ModuleArgument, settings_values, optional_names))
)
checks = st.builds(
    n.CheckConstraint, expressions(2), tuples(st.sampled_from(n.RowOperation)), conflict_actions
)


@composite
def column_constraints(draw: DrawFn) -> Any:
    kinds = st.one_of(
        st.builds(n.NullConstraint),
        st.builds(n.NotNullConstraint, conflict_actions),
        st.builds(n.ColumnPrimaryKey, st.booleans(), conflict_actions),
        st.builds(n.ColumnUnique, conflict_actions),
        checks,
        st.builds(n.DefaultConstraint, expressions(2)),
        st.builds(n.CollateConstraint, names),
        st.builds(n.GeneratedConstraint, expressions(2), st.sampled_from(n.GeneratedStorage)),
        st.builds(n.ColumnReferences, references),
    )
    return draw(named(kinds, tags_need_name=True))


@composite
def table_constraints(draw: DrawFn) -> Any:
    kinds = st.one_of(
        st.builds(n.PrimaryKeyConstraint, key_columns, conflict_actions),
        st.builds(n.UniqueConstraint, tuples(names, 1), conflict_actions),
        checks,
        st.builds(n.ForeignKeyConstraint, tuples(names, 1), references),
    )
    return draw(named(kinds, tags_need_name=False))


@composite
def named(draw: DrawFn, kinds: SearchStrategy[Any], *, tags_need_name: bool) -> Any:
    constraint = draw(kinds)
    name = draw(optional_names)
    found = draw(tags) if name is not None or not tags_need_name else ()
    values = {field: getattr(constraint, field) for field in type(constraint).__dataclass_fields__}
    return type(constraint)(**(values | {"name": name, "tags": found}))


column_definitions = st.builds(
    n.ColumnDefinition,
    names,
    optional(types),
    tuples(column_constraints(), 0, 3),
    tags,
)
context_variables = st.builds(n.ContextVariable, names, optional(types), st.booleans())


@composite
def tables(draw: DrawFn, *, exists: bool = True) -> n.CreateTable:
    return n.CreateTable(
        draw(object_names),
        draw(tuples(column_definitions, 1)),
        draw(tuples(table_constraints())),
        draw(optional(modules)),
        draw(tuples(context_variables)),
        draw(optional(st.builds(n.MaintainedClause, reading(queries(1)), tuples(names)))),
        draw(optional(queries(1))),
        draw(tags),
        draw(st.booleans()) if exists else False,
    )


def definitions(*, exists: bool = True) -> SearchStrategy[Any]:
    flag = st.booleans() if exists else st.just(False)
    indexed = st.builds(
        n.IndexedColumn,
        expressions(2).filter(lambda found: not isinstance(found, n.Collate)),
        optional(plain_names),
        st.booleans(),
    )
    return st.one_of(
        tables(exists=exists),
        st.builds(
            n.CreateIndex,
            object_names,
            object_names,
            tuples(indexed, 1),
            st.booleans(),
            optional(expressions(2)),
            tags,
            flag,
        ),
        st.builds(n.CreateView, object_names, reading(queries(2)), tuples(names), tags, flag),
        st.builds(
            n.CreateMaterializedView,
            object_names,
            reading(queries(1)),
            tuples(names),
            optional(modules),
            tags,
            flag,
        ),
        st.builds(n.CreateAssertion, object_names, expressions(2), flag),
    )


@composite
def alterations(draw: DrawFn) -> Any:
    change = st.one_of(
        st.builds(n.TagChange, st.sampled_from([n.TagOperation.SET, n.TagOperation.ADD]), tags),
        st.builds(n.TagChange, st.just(n.TagOperation.DROP), keys=tuples(names)),
    )
    action = st.one_of(
        st.builds(n.RenameTable, names),
        st.builds(n.RenameColumn, names, names),
        st.builds(n.RenameConstraint, names, names),
        st.builds(n.AddColumn, column_definitions),
        st.builds(n.AddConstraint, table_constraints()),
        st.builds(n.DropColumn, names),
        st.builds(n.DropConstraint, names),
        st.builds(n.AlterPrimaryKey, key_columns),
        st.builds(n.SetNotNull, names),
        st.builds(n.DropNotNull, names),
        st.builds(n.SetDataType, names, types),
        st.builds(n.SetDefault, names, expressions(2)),
        st.builds(n.DropDefault, names),
        st.builds(n.SetCollation, names, names),
        st.builds(n.ChangeTags, change),
        st.builds(n.ChangeTags, change, column=names),
        st.builds(n.ChangeTags, change, constraint=names),
        st.builds(n.SetMaintained, reading(queries(1)), tuples(names)),
        st.just(n.DropMaintained()),
    )
    kinds = st.sampled_from([n.ObjectKind.VIEW, n.ObjectKind.MATERIALIZED_VIEW, n.ObjectKind.INDEX])
    return draw(
        st.builds(n.AlterTable, object_names, action)
        | st.builds(n.AlterObjectTags, kinds, object_names, change)
    )


@composite
def declarations(draw: DrawFn) -> Any:
    settings = tuples(st.builds(n.ModuleArgument, settings_values, optional_names))
    row = tuples(expressions(1))
    seed = st.one_of(
        st.builds(n.SeedData, names, tuples(row)),
        st.builds(n.SeedData, names, tuples(row, 1), tuples(names, 1)),
    )
    items = tuples(definitions(exists=False) | seed, 0, 2)
    lens_query = reading(st.builds(n.Query, selects(1)))
    override = st.builds(n.LensOverride, names, lens_query)
    version = optional(st.text(max_size=4))
    return draw(
        st.one_of(
            st.builds(n.DeclareSchema, names, items, st.booleans(), version, settings),
            st.builds(n.DeclareLens, names, names, tuples(override)),
            st.builds(n.DiffSchema, optional_names),
            st.builds(n.ApplySchema, optional_names, version, settings, st.booleans()),
            st.builds(n.ExplainSchema, optional_names, version),
        )
    )


@composite
def commands(draw: DrawFn) -> Any:
    options = tuples(st.builds(n.ModuleArgument, settings_values, names))
    return draw(
        st.one_of(
            st.builds(n.BeginTransaction, optional(st.sampled_from(n.TransactionMode))),
            st.builds(n.RollbackTransaction, optional_names),
            st.builds(n.Savepoint, names),
            st.builds(n.ReleaseSavepoint, names),
            st.builds(n.Attach, expressions(1), names, options),
            st.builds(n.Detach, names),
            st.builds(n.Pragma, names, optional(settings_values)),
            st.builds(n.Analyze, optional_names, st.none()),
            st.builds(n.Analyze, optional_names, names),
            st.builds(n.DropObject, st.sampled_from(n.ObjectKind), object_names, st.booleans()),
            st.builds(n.RefreshMaterializedView, object_names),
            st.builds(n.Explain, queries(1), st.sampled_from(n.ExplainKind)),
        )
    )
