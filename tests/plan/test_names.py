"""What names mean, and what is said of those that mean nothing (queries, sections 5 and 7)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error, StatusCode
from tests.plan.binding import bind


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("select x from crew", 1, "Column not found: x (at line 1, column 8)"),
        ("select crew.x from crew", 1, "crew.x isn't a column (at line 1, column 8)"),
        ("select crew.id from crew c", 1, "crew.id isn't a column (at line 1, column 8)"),
        ("select id from crew, crew c", 1, "ambiguous column name: id (at line 1, column 8)"),
        ("select * from nope", 12, "Table 'nope' not found in schema path: main (at line 1, column 15)"),
        ("select * from s.x", 12, "Table not found: s.x (at line 1, column 15)"),
        (
            "select * from far",
            12,
            "Table 'far' not found in schema path: main\n  Did you mean: temp.far?\n"
            "  Or add 'temp' to your WITH SCHEMA clause (at line 1, column 15)",
        ),
        ("select abs(1, 2)", 1, "Function not found: abs/2 (at line 1, column 8)"),
        ("select sum(*) from crew", 1, "Function not found: sum/0 (at line 1, column 8)"),
        ("select * from abs(1)", 1, "Function abs/1 is not a table-valued function (at line 1, column 15)"),
        ("select abs('x')", 20, "Invalid argument types for function abs (at line 1, column 8)"),
        ("select id collate foo from crew", 1, "no such collation sequence: FOO (at line 1, column 8)"),
        ("select 1 limit x", 1, "Column not found: x (at line 1, column 16)"),
        (
            "select * from pairs",
            1,
            "View 'pairs' has 3 declared columns but body produces 2 (at line 1, column 15)",
        ),
        ("select (1, 2)", 1, "A row value may only stand in a comparison or IN. (at line 1, column 8)"),
    ],
)
def test_errors(sql: str, code: int, message: str) -> None:
    with pytest.raises(Error) as caught:
        bind(sql)
    assert str(caught.value) == message
    assert caught.value.code is StatusCode(code)


def test_the_innermost_level_that_knows_a_name_decides() -> None:
    bind("select (select tons from ship where name = ship) from crew")
    with pytest.raises(Error, match=r"crew\.tons isn't a column"):
        bind("select (select crew.tons from ship crew2) from crew")


def test_the_same_table_twice_is_read_leftmost() -> None:
    plan = bind("select crew.id from crew join crew on true")
    assert plan.columns[0].id == plan.input.left.columns[0].id  # type: ignore[attr-defined]


def test_schema_qualified_columns() -> None:
    bind("select main.crew.id from crew")
    with pytest.raises(Error, match=r"other\.crew\.id isn't a column"):
        bind("select other.crew.id from crew")


def test_with_schema_replaces_the_path() -> None:
    bind('select * from far with schema "temp"')


def test_a_view_sees_nothing_of_its_reader() -> None:
    bind("with crew as (select 1 as other) select nick from kites")


def test_a_stored_body_searches_its_own_schema_whatever_the_reader_s_path() -> None:
    bind('select nick from main.kites with schema "temp"')


def test_views_that_reach_themselves() -> None:
    from tests.plan.binding import catalog_of

    catalog = catalog_of("create view a as select * from b; create view b as select * from a")
    with pytest.raises(Error, match=r"View 'main\.a' is defined by itself"):
        bind("select * from a", catalog)
