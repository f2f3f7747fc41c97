"""Sources and joins (queries, sections 5 and 6)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.nodes import Join
from tests.plan.binding import bind, names, shape, show, types_of


def test_comma_is_a_cross_join() -> None:
    assert shape(bind("select * from crew, ship")) == "Join cross(TableScan crew, TableScan ship)"


def test_using_shows_the_pair_once() -> None:
    assert names("select * from crew a join crew b using (id)") == [
        "id", "nick", "rank", "ship", "nick:1", "rank:1", "ship:1",
    ]  # fmt: skip
    assert names("select id from crew a left join crew b using (id)") == ["id"]


def test_using_shows_the_side_that_is_always_there() -> None:
    left = bind("select id from crew a left join crew b using (id)")
    right = bind("select id from crew a right join crew b using (id)")
    full = bind("select id from crew a full join crew b using (id)")
    join = left.input  # type: ignore[attr-defined]
    assert left.columns[0].id == join.left.columns[0].id
    join = right.input  # type: ignore[attr-defined]
    assert right.columns[0].id == join.right.columns[0].id
    assert shape(full) == "Project(Project(Join full(TableScan crew, TableScan crew)))"
    assert not full.columns[0].nullable


def test_merged_columns_stay_reachable_by_qualifier() -> None:
    assert names("select a.id, b.id from crew a join crew b using (id)") == ["id", "id:1"]


def test_natural_joins_on_all_shared_names() -> None:
    plan = bind(
        "select * from (select id, nick from crew) a natural join (select nick, tons from crew, ship) b"
    )
    assert [column.name for column in plan.columns] == ["id", "nick", "tons"]


def test_using_names_the_side_that_lacks_the_column() -> None:
    with pytest.raises(Error, match="USING column not found on right side of join: rank"):
        bind("select * from crew join ship using (rank)")
    with pytest.raises(Error, match="USING column not found on left side of join: tons"):
        bind("select * from crew join ship using (tons)")


def test_outer_joins_make_the_other_side_nullable() -> None:
    assert types_of("select id, tons from crew left join ship on true") == ["INTEGER", "INTEGER?"]
    assert types_of("select id, tons from crew right join ship on true") == ["INTEGER?", "INTEGER"]
    assert types_of("select id, tons from crew full join ship on true") == ["INTEGER?", "INTEGER?"]


def test_on_sees_its_own_two_sides_only() -> None:
    with pytest.raises(Error, match=r"a\.id isn't a column"):
        bind("select * from crew a join (ship b join crew d on a.id = 1) on true")
    bind("select * from crew a join ship b on b.name = a.ship join crew c on c.id = a.id")


def test_lateral_sees_what_stands_left_of_it() -> None:
    lateral = "select * from crew c join lateral (select tons from ship where name = c.ship) s on true"
    assert shape(bind(lateral)).startswith("Join inner lateral(")
    with pytest.raises(Error, match=r"c\.ship isn't a column"):
        bind("select * from crew c join (select tons from ship where name = c.ship) s on true")


def test_table_functions_see_what_stands_left_of_them() -> None:
    assert shape(bind("select * from crew, generate_series(1, rank)")) == (
        "Join cross lateral(TableScan crew, TableFunctionScan)"
    )
    assert shape(bind("select * from crew, generate_series(1, 3)")) == (
        "Join cross(TableScan crew, TableFunctionScan)"
    )


def test_existence_flags() -> None:
    plan = bind("select id, f from crew left join ship on ship = name exists as f")
    join = plan.input  # type: ignore[attr-defined]
    assert isinstance(join, Join)
    assert join.right_flag == plan.columns[1].id
    assert join.left_flag is None
    assert names("select * from ship full join crew on true exists left as l, exists right as r")[-2:] == [
        "l",
        "r",
    ]


@pytest.mark.parametrize(
    ("join", "message"),
    [
        ("join ship on true exists as f", "'exists ... as' is not valid on an INNER join"),
        ("cross join ship exists as f", "'exists ... as' is not valid on a CROSS join"),
        ("left join ship on true exists left as f", "references the preserved side of a LEFT join"),
        ("full join ship on true exists as f", "'exists as' is ambiguous on a FULL join"),
    ],
)
def test_existence_flags_that_say_nothing(join: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        bind(f"select * from crew {join}")


def test_a_conditional_cross_join_filters() -> None:
    plan = bind("select * from crew cross join ship on tons > 20")
    assert isinstance(plan, Join)
    assert (plan.kind, show(plan.condition)) == ("inner", "Comparison(>, tons, 20)")


def test_committed_reads_the_state_before_the_transaction() -> None:
    plan = bind("select crew.id, c.id from committed.crew join crew c on true")
    scan = plan.input.left  # type: ignore[attr-defined]
    assert scan.committed
    with pytest.raises(Error, match=r"Table not found: committed\.kites"):
        bind("select * from committed.kites")
