"""Common tables (queries, section 11) and data modification as a relation (section 12)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.nodes import MutationScan, PlanNode, Recursion, With, inputs
from tests.plan.binding import bind, names, shape, types_of


def recursion(sql: str) -> Recursion:
    """The first recursive common table of a query."""
    plan: PlanNode = bind(sql)
    assert isinstance(plan, With)
    found = plan.tables[0].plan
    while not isinstance(found, Recursion):
        found = inputs(found)[0]
    return found


def test_members_are_shared_unless_told_otherwise() -> None:
    assert shape(bind("with c as (select id from crew) select * from c a, c b")) == (
        "With(Project(TableScan crew), Project(Join cross(CommonTableScan, CommonTableScan)))"
    )
    assert shape(bind("with c as not materialized (select id from crew) select * from c a, c b")) == (
        "Project(Join cross(Project(TableScan crew), Project(TableScan crew)))"
    )
    plan = bind("with c as materialized (select 1) select * from c")
    assert isinstance(plan, With)
    assert plan.tables[0].materialized


def test_members_see_earlier_ones_and_hide_tables() -> None:
    assert names("with a as (select 1 as x), b as (select x + 1 as y from a) select * from b") == ["y"]
    assert names("with crew as (select 1 as x) select * from crew") == ["x"]
    assert names("with crew as (select 1 as x) select id from main.crew") == ["id"]
    assert names("with crew as (select id from crew) select * from crew") == ["id"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("with c(a) as (select 1, 2) select * from c", "CTE 'c' has 1 declared columns but query produces 2"),
        ("with c as (select 1), C as (select 2) select * from c", "Duplicate CTE name 'C' in WITH clause"),
        ("with c(a, A) as (select 1, 2) select * from c", r"Symbol 'a' already exists in the same scope\."),
        (
            "with recursive n(a, b) as (select 1 union all select a from n) select * from n",
            "Recursive CTE 'n' has 2 declared columns but query produces 1",
        ),
        ("with c as (select * from c) select * from c", "Table 'c' not found in schema path: main"),
    ],
)
def test_errors(sql: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        bind(sql)


def test_recursion() -> None:
    found = recursion(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select * from n"
    )
    assert (found.distinct, found.rounds, found.limit) == (False, 10_000, None)
    assert shape(found) == "Recursion(Project(Values), Project(Filter(CommonTableScan)))"


def test_recursion_with_limit_and_rounds() -> None:
    found = recursion(
        "with recursive n(i) as (select 1 union select i + 1 from n limit 3 offset 1)"
        " option (maxrecursion 7) select i from n"
    )
    assert (found.distinct, found.rounds) == (True, 7)
    assert found.limit is not None
    assert found.offset is not None


def test_recursion_is_as_wide_as_its_step() -> None:
    assert types_of("with recursive n(i) as (select 1 union all select i / 2 from n) select i from n") == [
        "NUMERIC?"
    ]


def test_several_seeds_and_steps() -> None:
    found = recursion(
        "with recursive n(i) as (select 1 union all select 2 union all select i + 1 from n union all"
        " select i * 2 from n) select * from n"
    )
    assert shape(found.seed) == "SetOperation(Project(Values), Project(Values))"
    assert shape(found.step) == "SetOperation(Project(CommonTableScan), Project(CommonTableScan))"


def test_a_recursive_body_may_have_a_with_of_its_own() -> None:
    plan = bind(
        "with recursive n(i) as ("
        "with one(o) as (select 1) select o from one union all select i + o from n, one)"
        " select i from n limit 3"
    )
    assert "With(Project(Values), Recursion(" in shape(plan)


def test_a_body_that_does_not_read_itself_is_no_recursion() -> None:
    assert "Recursion" not in shape(bind("with recursive c as (select 1 intersect select 2) select * from c"))


def test_writes_in_a_leading_with() -> None:
    plan = bind("with c as (insert into ship values ('Tug', 1) returning name) select * from c")
    assert isinstance(plan, With)
    assert isinstance(plan.tables[0].plan, MutationScan)
    assert [column.name for column in plan.columns] == ["name"]


def test_writes_elsewhere() -> None:
    assert shape(bind("select * from (delete from crew returning id) d")) == "MutationScan"
    bind("select (delete from crew returning id)")
    with pytest.raises(Error, match=r"DELETE in a relation position must have a RETURNING clause\."):
        bind("select * from (delete from crew) d")
    with pytest.raises(
        Error, match=r"WITH member 'c' is data-modifying \(DELETE\), which is only allowed in"
    ):
        bind("select * from (with c as (delete from crew returning id) select * from c) d")
