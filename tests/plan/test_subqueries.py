"""Subqueries in expressions (queries, section 12)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.expressions import InSubquery, Not, Quantified, ScalarSubquery
from quereus_store.plan.nodes import free_columns
from tests.plan.binding import bind, expression, shape, show


def test_correlation_is_the_columns_a_plan_does_not_produce() -> None:
    correlated = expression("(select tons from ship where name = crew.ship)")
    assert isinstance(correlated, ScalarSubquery)
    assert len(free_columns(correlated.plan)) == 1
    alone = expression("(select max(tons) from ship)")
    assert isinstance(alone, ScalarSubquery)
    assert not free_columns(alone.plan)


def test_correlation_reaches_through_several_levels() -> None:
    bind(
        "select id from crew c where exists (select 1 from ship s where s.name = c.ship and s.tons ="
        " (select max(t.tons) from ship t where t.name = c.ship or t.tons = s.tons))"
    )


def test_an_outer_column_in_an_inner_select_list_stays_outer() -> None:
    found = expression("(select crew.id from ship limit 1)")
    assert isinstance(found, ScalarSubquery)
    assert len(free_columns(found.plan)) == 1


def test_in_coerces_column_by_column() -> None:
    found = expression("nick in (select tons from ship)")
    assert isinstance(found, InSubquery)
    assert show(found.operands) == "(Cast(nick))"
    found = expression("id in (select name from ship)")
    assert isinstance(found, InSubquery)
    assert shape(found.plan) == "Project(Project(TableScan ship))"
    found = expression("(id, nick) in (select tons, name from ship)")
    assert isinstance(found, InSubquery)
    assert len(found.operands) == 2


def test_quantified_comparisons() -> None:
    assert isinstance(expression("id = any (select tons from ship)"), InSubquery)
    assert isinstance(expression("id <> all (select tons from ship)"), Not)
    found = expression("id > all (select tons from ship)")
    assert isinstance(found, Quantified)
    assert (found.operator, found.every) == (">", True)


def test_a_row_compared_with_a_subquery_is_compared_inside_it() -> None:
    found = expression("(id, nick) = (select tons, name from ship limit 1)")
    assert isinstance(found, ScalarSubquery)
    assert shape(found.plan) == "Project(Limit(Project(TableScan ship)))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(select 1, 2)", "Scalar subquery must return exactly one column"),
        ("1 in (select 1, 2)", "IN subquery must return exactly one column"),
        ("(1, 2) in (select 1)", "Row values have different sizes: left has 2, right has 1"),
        ("1 > all (select 1, 2)", "Quantified subquery must return exactly one column"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        bind(f"select {text}")
    assert caught.value.line == 1
