"""ORDER BY, DISTINCT, LIMIT (queries, section 9)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.plan.nodes import PlanNode, Sort, inputs
from tests.plan.binding import bind, names, shape, show


def order(sql: str) -> list[str]:
    """The terms of a query's sort, as text."""
    plan: PlanNode = bind(sql)
    while not isinstance(plan, Sort):
        plan = inputs(plan)[0]
    return [
        show(term.expression)
        + (" desc" if term.descending else "")
        + (" nulls last" if term.nulls_last else "")
        + (f" collate {term.using}" if term.using != "BINARY" else "")
        for term in plan.terms
    ]


def test_terms() -> None:
    assert order("select id, nick from crew order by 2 desc, id nulls last") == ["nick desc", "id nulls last"]
    assert order("select n from words order by n, n collate rtrim desc") == [
        "n collate NOCASE",
        "n desc collate RTRIM",
    ]


def test_aliases_win_over_columns_and_a_qualifier_over_both() -> None:
    assert (
        shape(bind("select nick as id, id as nick from crew order by id")) == "Sort(Project(TableScan crew))"
    )
    assert order("select nick as id, id as nick from crew order by id desc") == ["id desc"]
    plan = bind("select -id as id from crew order by crew.id")
    assert shape(plan) == "Project(Sort(Project(TableScan crew)))"
    assert names("select -id as id from crew order by crew.id") == ["id"]


def test_terms_that_only_use_outputs_need_no_hidden_column() -> None:
    assert shape(bind("select -id as x from crew order by x + 1")) == "Sort(Project(TableScan crew))"
    assert shape(bind("select -id as x, nick from crew order by rank, x")) == (
        "Project(Sort(Project(TableScan crew)))"
    )
    assert shape(bind("select id from crew order by id + rank")) == "Project(Sort(Project(TableScan crew)))"


def test_distinct_comes_before_the_sort_unless_it_needs_hidden_columns() -> None:
    assert shape(bind("select distinct ship from crew order by ship")) == (
        "Sort(Distinct(Project(TableScan crew)))"
    )
    assert shape(bind("select distinct ship from crew order by id")) == (
        "Distinct(Project(Sort(Project(TableScan crew))))"
    )


@pytest.mark.parametrize("position", ["0", "-1", "5"])
def test_positions_out_of_range(position: str) -> None:
    with pytest.raises(Error, match=rf"ORDER BY position {position} is not in the SELECT list \(1\.\.4\)"):
        bind(f"select * from crew order by {position}")


def test_a_number_that_is_no_position_is_a_constant() -> None:
    assert order("select id from crew order by 1.5, '1', 1 + 1") == [
        "1.5",
        "'1'",
        "Arithmetic(+, 1, 1)",
    ]


def test_limit() -> None:
    assert shape(bind("select id from crew order by id limit ? offset 1 + 1")) == (
        "Limit(Sort(Project(TableScan crew)))"
    )
    with pytest.raises(Error, match="Column not found: id"):
        bind("select id from crew limit id")


def test_order_by_of_values_and_compounds_sees_output_names_only() -> None:
    assert order("values (1), (2) order by column_0 desc") == ["column_0 desc"]
    assert order("select id as a from crew union select tons from ship order by a + 1, 1") == [
        "Arithmetic(+, a, 1)",
        "a",
    ]
    with pytest.raises(Error, match="Column not found: nick"):
        bind("select id from crew union select tons from ship order by nick")
