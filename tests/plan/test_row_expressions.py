"""Expressions over one row, and what they may not hold (queries, section 16)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quereus_store.errors import Error
from quereus_store.plan.binder import (
    bind_check,
    bind_default,
    bind_generated,
    bind_row_expression,
    generated_order,
    new_row,
)
from quereus_store.plan.expressions import BoundExpression
from quereus_store.schema.objects import CheckConstraint, Operation, TableSchema
from quereus_store.sql.parser import parse_expression
from tests.plan.binding import CATALOG, catalog_of, context, show


def table(script: str, name: str = "t") -> TableSchema:
    """A table by its declaration."""
    found = catalog_of(script).table("main", name)
    assert found is not None
    return found


def crew() -> TableSchema:
    """The sample table."""
    found = CATALOG.table("main", "crew")
    assert found is not None
    return found


def expression_of(text: str) -> BoundExpression:
    """An expression without columns."""
    return bind_row_expression(context(), crew(), parse_expression(text))[0]


def check(text: str, operation: Operation = Operation.INSERT) -> str:
    """A CHECK on crew as it judges an operation."""
    bound_in = context()
    new, old = new_row(bound_in, crew()), new_row(bound_in, crew())
    constraint = CheckConstraint("c", parse_expression(text))
    return show(bind_check(bound_in, crew(), constraint, operation, new, old))


def test_bare_and_qualified_names_read_the_row() -> None:
    expression, columns = bind_row_expression(context(), crew(), parse_expression("id + crew.rank"))
    assert show(expression) == "Arithmetic(+, id, rank)"
    assert [column.name for column in columns] == ["id", "nick", "rank", "ship"]


def test_a_check_sees_the_images_that_the_operation_has() -> None:
    assert check("id > old.id and new.rank > 1") == (
        "Conjunction((Comparison(>, id, None), Comparison(>, rank, 1)))"
    )
    assert check("id > old.id and new.rank > 1", Operation.DELETE) == (
        "Conjunction((Comparison(>, id, id), Comparison(>, None, 1)))"
    )


def test_subqueries_see_the_schema_and_the_row() -> None:
    assert check("exists (select 1 from ship where name = crew.ship)").startswith("Exists(Project(Filter(")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id > ?", "CHECK constraint 'c' on table 'crew' may not reference bind parameters."),
        (
            "id > random()",
            "Non-deterministic expression not allowed in CHECK constraint 'c' on table 'crew'."
            " Function 'random' is not deterministic. Use mutation context to pass non-deterministic values"
            " (e.g., WITH CONTEXT (timestamp = datetime('now'))).",
        ),
        ("nope > 1", "Column not found: nope"),
    ],
)
def test_what_a_check_may_not_hold(text: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        check(text)
    assert caught.value.message == message


def test_an_option_allows_what_is_not_deterministic() -> None:
    loose = replace(context(), options={"nondeterministic_schema": True})
    new = new_row(loose, crew())
    bind_check(
        loose, crew(), CheckConstraint("c", parse_expression("random() > 0")), Operation.INSERT, new, new
    )


def test_defaults() -> None:
    declared = table("create table t (id integer primary key, a text default (lower(new.id)))")
    column = declared.columns[1]
    supplied = {"id": expression_of("5")}
    assert show(bind_default(context(), declared, column, supplied)) == "Call(lower, (5))"
    with pytest.raises(Error, match=r"new\.id isn't a column"):
        bind_default(context(), declared, column, {})
    bare = replace(column, default=parse_expression("id"))
    with pytest.raises(Error, match=r"DEFAULT for column 'a' in table 't' may not reference a bare column"):
        bind_default(context(), declared, bare, supplied)


def test_a_default_names_the_whole_expression_that_is_not_deterministic() -> None:
    declared = table("create table t (r integer default random())")
    with pytest.raises(Error) as caught:
        bind_default(context(), declared, declared.columns[0], {})
    assert caught.value.message.startswith(
        "Non-deterministic expression not allowed in DEFAULT for column 'r' in table 't'."
        " Expression: random()."
    )


def test_generated_columns() -> None:
    declared = table(
        "create table t (a integer primary key, b integer generated always as (c + 1),"
        " c integer generated always as (new.a * t.a))"
    )
    assert generated_order(declared) == (2, 1)
    assert show(bind_generated(context(), declared, 2, new_row(context(), declared))) == "Arithmetic(*, a, a)"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "a integer generated always as (b), b integer generated always as (a)",
            "Cyclic dependency in generated columns: 'a', 'b'",
        ),
        (
            "a integer generated always as (nope)",
            "Column 'nope' referenced by generated column 'a' not found in table 't'",
        ),
        (
            "a integer generated always as (x.b)",
            "'x.b' referenced by generated column 'a' in table 't' binds nothing",
        ),
    ],
)
def test_generated_columns_that_cannot_be_computed(columns: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        generated_order(table(f"create table t ({columns})"))
