"""Set operations (queries, section 10)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.nodes import PlanNode, SetOperation, inputs
from tests.plan.binding import bind, names, shape, types_of


def operation(sql: str) -> SetOperation:
    """The outermost set operation of a query."""
    plan: PlanNode = bind(sql)
    while not isinstance(plan, SetOperation):
        plan = inputs(plan)[0]
    return plan


def test_operators_group_to_the_left_and_intersect_binds_tighter() -> None:
    plan = operation("select 1 except select 2 union all select 3 intersect select 4")
    assert (plan.kind, plan.all) == ("union", True)
    assert isinstance(plan.left, SetOperation)
    assert isinstance(plan.right, SetOperation)
    assert (plan.left.kind, plan.right.kind) == ("except", "intersect")


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        ("1", "2", "INTEGER"),
        ("1", "2.5", "NUMERIC"),
        ("1", "null", "INTEGER?"),
        ("1", "'x'", "ANY"),
        ("json('1')", "'x'", "JSON?"),
    ],
)
def test_column_types(left: str, right: str, merged: str) -> None:
    assert types_of(f"select {left} union select {right}") == [merged]
    assert types_of(f"select {right} union select {left}") == [merged]


def test_json_on_one_side_casts_the_other() -> None:
    assert shape(bind("select json('1') union select 'x'")) == (
        "SetOperation(Project(Values), Project(Project(Values)))"
    )


def test_collations_conflict_except_under_union_all() -> None:
    assert operation("select n from words union select p from words").using == ("NOCASE",)
    assert operation("select n from words union all select r from words").using == ("BINARY",)
    with pytest.raises(Error, match="ambiguous collation for comparison"):
        bind("select n from words union select r from words")


def test_widths_must_match() -> None:
    with pytest.raises(Error, match="SET operation column count mismatch: left has 1, right has 2") as caught:
        bind("select 1 union select 1, 2")
    assert caught.value.line == 1
    with pytest.raises(Error, match="All rows must have the same number of columns"):
        bind("values (1), (1, 2)")


def test_a_parenthesised_operand_keeps_its_order_and_limit() -> None:
    assert shape(bind("(select id from crew order by id limit 1) union all select 2")) == (
        "SetOperation(Limit(Sort(Project(TableScan crew))), Project(Values))"
    )


def test_membership_flags() -> None:
    plan = operation("select id from crew union exists left as l, exists right as r select tons from ship")
    assert [column.name for column in plan.columns] == ["id", "l", "r"]
    assert (plan.left_flag, plan.right_flag) == (plan.columns[1].id, plan.columns[2].id)
    assert names("select 1 as a union exists right as r, exists left as l select 2") == ["a", "r", "l"]
    with pytest.raises(Error, match="'exists <branch> as' membership columns are not valid on DIFF"):
        bind("select 1 diff exists left as l select 2")


def test_flags_of_operands_follow_the_columns() -> None:
    nested = "(select 1 as a union exists left as l select 2) {} exists left as m select 3"
    assert names(nested.format("union all")) == ["a", "l", "m"]
    assert names(nested.format("except")) == ["a", "l", "m"]
    assert shape(bind(nested.format("union"))).startswith("With(SetOperation(")
