"""Which way into a table the planner takes, and what it says about it."""

from dataclasses import replace

import pytest

from quereus_store.modules.access import Costs, plan_access
from quereus_store.modules.conformance.harness import table_of
from quereus_store.modules.contract import (
    AccessKind,
    AccessPath,
    AccessRequest,
    ColumnConstraint,
    ColumnOrder,
    Comparison,
)
from quereus_store.sql.parser import parse_expression

CREW = table_of(
    "create table crew (ship integer not null, seat integer not null, name text, rank integer, born date,"
    " mail text collate nocase unique, primary key (ship, seat))",
    "create index by_name on crew (name)",
    "create index by_rank on crew (rank desc, born)",
    "create index officers on crew (born) where rank > 3",
    "create index lowered on crew (lower(name))",
)


def plan(*terms, table=CREW, order=(), rows=10_000, limit=None, implied=(), **options):
    """The plan for terms such as ``"ship = "`` and ``"name in 5"`` (an IN of five values)."""
    constraints = []
    for term in terms:
        column, operator, *rest = term.split()
        collation = next((word for word in rest if not word.isdigit()), "BINARY")
        values = next((int(word) for word in rest if word.isdigit()), 1)
        constraints.append(
            ColumnConstraint(table.column_index(column), Comparison(operator), collation, values=values)
        )
    request = AccessRequest(
        tuple(constraints), tuple(map(ordering, order)), limit, implied=frozenset(implied)
    )
    return plan_access(table, request, rows, **options)


def ordering(text):
    column, *words = text.split()
    collation = next((word for word in words if word.isupper()), "BINARY")
    return ColumnOrder(CREW.column_index(column), "desc" in words, "last" in words, collation)


def test_nothing_asked_is_a_scan():
    found = plan()
    assert found.path == AccessPath(AccessKind.SCAN)
    assert (found.cost, found.rows, found.ordered) == (10_000, 10_000, False)


def test_the_whole_key_is_a_point():
    found = plan("seat =", "ship =")
    assert found.path == AccessPath(AccessKind.POINT, equal=2)
    assert found.prefix == (1, 0)
    assert found.at_most_one


def test_a_list_of_values_on_the_key_is_many_points():
    found = plan("ship =", "seat in 7")
    assert found.path == AccessPath(AccessKind.POINTS, equal=2)
    assert (found.prefix, found.rows, found.at_most_one) == ((0, 1), 7, False)


def test_a_prefix_with_a_window_is_a_range():
    found = plan("ship =", "seat >=", "seat <")
    assert found.path == AccessPath(AccessKind.RANGE, None, 1, Comparison.GREATER_OR_EQUAL, Comparison.LESS)
    assert (found.prefix, found.lower, found.upper) == ((0,), 1, 2)


def test_an_equality_finds_its_index():
    found = plan("name =")
    assert found.path == AccessPath(AccessKind.RANGE, "by_name", 1)
    assert plan("name in 3").path == AccessPath(AccessKind.RANGES, "by_name", 1)


def test_the_hidden_index_of_a_unique_gives_one_row():
    found = plan("mail = NOCASE")
    assert found.path == AccessPath(AccessKind.RANGE, "_uc_mail", 1)
    assert (found.at_most_one, found.rows) == (True, 1)
    assert not plan("mail =").prefix, "the index compares otherwise than the query"
    several = plan("mail is-null".replace("is-null", "="), "rank =")
    assert not several.at_most_one or several.path.index != "_uc_mail"


def test_null_may_repeat_under_unique():
    constraint = ColumnConstraint(CREW.column_index("mail"), Comparison.IS_NULL, "NOCASE")
    found = plan_access(CREW, AccessRequest((constraint,)), 10_000)
    assert found.path == AccessPath(AccessKind.RANGE, "_uc_mail", 1)
    assert not found.at_most_one


def test_an_expression_finds_the_index_with_an_equal_tree():
    for text, expected in (("lower(name)", "lowered"), ("upper(name)", None)):
        constraint = ColumnConstraint(None, Comparison.EQUAL, expression=parse_expression(text))
        assert plan_access(CREW, AccessRequest((constraint,)), 10_000).path.index == expected


def test_a_partial_index_serves_only_where_it_is_implied():
    assert plan("born =").path.kind is AccessKind.SCAN
    assert plan("born =", implied=["officers"]).path.index == "officers"
    assert plan(implied=["Officers"]).path == AccessPath(AccessKind.RANGE, "officers"), "fewer rows to walk"


@pytest.mark.parametrize(
    ("order", "reverse"),
    [
        (["ship"], False),
        (["ship", "seat"], False),
        (["ship desc", "seat desc"], True),
        (["ship", "seat", "name desc"], False),
        (["ship last"], False),
    ],
)
def test_the_key_delivers_its_order(order, reverse):
    found = plan(order=order)
    assert (found.ordered, found.path) == (True, AccessPath(AccessKind.SCAN, reverse=reverse))


@pytest.mark.parametrize("order", [["seat"], ["ship", "seat desc"], ["ship desc", "seat"], ["born"]])
def test_other_orders_are_left_to_sorting(order):
    assert not plan(order=order).ordered


def test_pinned_columns_do_not_matter_to_an_order():
    assert plan("ship =", order=["seat desc"]).path.reverse
    assert plan("ship =", order=["seat", "ship desc"]).ordered
    assert plan("name =", order=["ship", "seat"]).ordered, "entries of one name are in key order"
    assert plan("name =", order=["name", "seat"]).ordered is False


def test_where_null_stands_decides_whether_an_index_serves_an_order():
    memory = Costs(point_read=0.0)
    assert plan(order=["name"], costs=memory).path == AccessPath(AccessKind.RANGE, "by_name")
    assert not plan(order=["name last"], costs=memory).ordered
    assert not plan(order=["name desc"], costs=memory).ordered, "NULLs come first, but last in the index"
    assert plan(order=["name desc last"], costs=memory).path.reverse
    assert not plan(order=["rank desc"], costs=memory).ordered
    assert plan(order=["rank desc last"], costs=memory).path == AccessPath(AccessKind.RANGE, "by_rank")
    bounded = plan("rank >", order=["rank desc"])
    assert (bounded.ordered, bounded.path.index) == (True, "by_rank"), "no NULL passes the bound"


def test_an_order_needs_the_collation_it_is_asked_in():
    memory = Costs(point_read=0.0)
    assert plan(order=["mail NOCASE"], costs=memory).path.index == "_uc_mail"
    assert not plan(order=["mail"], costs=memory).ordered


def test_a_limit_makes_walking_in_order_pay():
    dear = Costs(point_read=3.0)
    assert plan(order=["name"], costs=dear).path.kind is AccessKind.SCAN, "fetching costs more than sorting"
    assert plan(order=["name"], limit=10, costs=dear).path == AccessPath(AccessKind.RANGE, "by_name")


def test_keys_that_do_not_sort_still_find_equals():
    found = plan("name =", sorts=lambda collation: collation != "BINARY")
    assert found.path.index == "by_name"
    assert plan("name >", sorts=lambda collation: False).path.kind is AccessKind.SCAN
    assert plan("ship >", sorts=lambda collation: False).path.kind is AccessKind.RANGE, "numbers do sort"


def test_few_rows_are_scanned_rather_than_sought_one_by_one():
    assert plan("name in 50", rows=5).path.kind is AccessKind.SCAN
    assert plan("name in 50", rows=5000).path.kind is AccessKind.RANGES


def test_an_empty_key_means_one_row():
    single = replace(CREW, primary_key=replace(CREW.primary_key, parts=()))
    found = plan_access(single, AccessRequest((), (ColumnOrder(2),)), 1)
    assert (found.path.kind, found.at_most_one, found.ordered) == (AccessKind.SCAN, True, True)
