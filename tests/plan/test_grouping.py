"""GROUP BY, HAVING, aggregates (queries, section 8)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.nodes import Aggregate, PlanNode, inputs
from tests.plan.binding import bind, names, shape, show, types_of


def grouping(sql: str) -> Aggregate:
    """The grouping of a query."""
    plan: PlanNode = bind(sql)
    while not isinstance(plan, Aggregate):
        plan = inputs(plan)[0]
    return plan


def test_a_bare_key_keeps_its_number_and_is_known_under_any_qualifier() -> None:
    plan = grouping("select c.ship, count(*) from crew c group by ship")
    assert plan.columns[0].id == plan.input.columns[3].id


def test_an_expression_key_is_known_by_its_text() -> None:
    assert show(grouping("select UPPER(Ship) from crew group by upper(ship)").keys) == "(Call(upper, (ship)))"
    bind("select upper(ship) || '!', count(*) from crew group by upper(crew.ship) order by upper(ship)")
    with pytest.raises(Error, match="Column 'ship' must appear in the GROUP BY clause"):
        bind("select lower(ship) from crew group by upper(ship)")


def test_the_same_aggregate_is_computed_once() -> None:
    plan = grouping("select count(*), COUNT( * ), sum(rank) + sum(rank), sum(distinct rank) from crew")
    assert show(plan.aggregates) == (
        "(AggregateCall(count), AggregateCall(sum, (rank)), AggregateCall(sum, (rank), True))"
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select nick, count(*) from crew group by ship", "Column 'nick' must appear in the GROUP BY clause"),
        ("select crew.nick from crew group by ship", "Column 'crew.nick' must appear in the GROUP BY clause"),
        ("select * from crew group by id", "Column 'nick' must appear in the GROUP BY clause"),
        ("select id, count(*) from crew", "Cannot mix aggregate and non-aggregate columns in SELECT list"),
        (
            "select ship from crew group by ship having nick = 'x'",
            "HAVING references non-grouped column 'nick'; HAVING may only reference GROUP BY columns",
        ),
        ("select id from crew where sum(id) > 1", "Aggregate function sum not allowed in this context"),
        ("select sum(count(*)) from crew", "Aggregate function count not allowed in this context"),
        ("select id from crew group by sum(id)", "Aggregate function sum not allowed in this context"),
        ("select id from crew order by 3", r"ORDER BY position 3 is not in the SELECT list \(1\.\.1\)"),
        ("select id from crew group by 0", r"GROUP BY position 0 is not in the SELECT list \(1\.\.1\)"),
        ("select count(distinct *) from crew", "'\\*' cannot be used with other arguments in function call"),
    ],
)
def test_errors(sql: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        bind(sql)
    assert caught.value.line == 1


def test_constants_may_stand_beside_aggregates() -> None:
    assert names("select 'n' as t, count(*) from crew") == ["t", "count(*)"]


def test_aliases_in_group_by_and_having() -> None:
    assert show(grouping("select id as k from crew group by k").keys) == "(id)"
    assert show(grouping("select id as rank, rank as id from crew group by id, rank").keys) == "(id, rank)"
    bind("select ship, 2 * count(*) as d from crew group by ship having d > 2")


def test_group_by_position() -> None:
    assert show(grouping("select ship, count(*) from crew group by 1.0").keys) == "(ship)"


def test_order_by_may_add_aggregates() -> None:
    plan = grouping("select ship from crew group by ship order by count(*) desc")
    assert show(plan.aggregates) == "(AggregateCall(count))"


def test_order_by_of_a_single_group_orders_its_input() -> None:
    plan = bind("select group_concat(nick) from crew order by nick desc")
    assert shape(plan) == "Project(Aggregate(Sort(TableScan crew)))"


def test_filter_order_and_distinct_inside_a_call() -> None:
    call = grouping(
        "select group_concat(distinct nick order by id desc) filter (where rank > 1) from crew"
    ).aggregates[0]
    assert call.distinct
    assert show(call.filter) == "Comparison(>, rank, 1)"
    assert [(show(term.expression), term.descending) for term in call.order] == [("id", True)]


def test_grouping_sets() -> None:
    assert grouping("select ship, rank from crew group by rollup (ship, rank)").sets == ((0, 1), (0,), ())
    assert grouping("select ship, rank from crew group by cube (ship, rank)").sets == ((0, 1), (0,), (1,), ())
    assert grouping("select ship from crew group by grouping sets ((ship), ())").sets == ((0,), ())
    crossed = grouping("select ship, rank, id from crew group by id, rollup (ship, rank)")
    assert crossed.sets == ((0, 1, 2), (0, 1), (0,))
    assert types_of("select ship from crew group by rollup (ship)") == ["TEXT?"]


def test_subqueries_see_keys_only() -> None:
    bind("select ship, (select tons from ship s where s.name = crew.ship) from crew group by ship")
    with pytest.raises(Error, match=r"Column 'crew\.nick' must appear in the GROUP BY clause"):
        bind("select ship, (select tons from ship s where s.name = crew.nick) from crew group by ship")


def test_an_aggregate_of_outer_columns_belongs_to_the_outer_query() -> None:
    plan = grouping(
        "select ship from crew group by ship"
        " having 1 = (select count(*) from ship where tons = sum(crew.rank))"
    )
    assert show(plan.aggregates) == "(AggregateCall(sum, (rank)))"


def test_aggregate_types() -> None:
    assert types_of("select count(*), sum(rank), avg(rank), min(nick) from crew") == [
        "INTEGER",
        "NUMERIC?",
        "REAL?",
        "TEXT?",
    ]


def test_having_without_group_by_judges_the_one_group() -> None:
    assert (
        shape(bind("select count(*) from crew having count(*) > 1"))
        == "Project(Filter(Aggregate(TableScan crew)))"
    )
