"""Output names and stars (queries, section 4)."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from tests.plan.binding import bind, names, shape


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, NICK from crew", ["id", "NICK"]),
        ("select crew.id, c.id from crew join crew c on true", ["id", "id:1"]),
        ("select id, id, id from crew", ["id", "id:1", "id:2"]),
        ("select id as a, rank a from crew", ["a", "a:1"]),
        ("select b as a, * from (select 1 as a, 2 as b) t", ["a", "a:1", "b"]),
        ("select Id, iD from crew", ["Id", "iD"]),
        ("select 1.50, '''x''', COUNT ( * ) from crew", ["1.50", "'''x'''", "count(*)"]),
        ("select id+1, id <> 2 from crew", ["id + 1", "id != 2"]),
        ("select *, 1 as one from ship", ["name", "tons", "one"]),
        ("select s.* from crew join ship s on true", ["name", "tons"]),
        ("values (1, 2), (3, 4)", ["column_0", "column_1"]),
        ("select id from crew union select tons from ship", ["id"]),
        ("select * from (select 1 as a, 2 as b) as t(x)", ["x", "b"]),
        ("select * from generate_series(1, 3) g(n)", ["n"]),
        ('select q."id:1" from (select id, id from crew) q', ["id:1"]),
    ],
)
def test_output_names(sql: str, expected: list[str]) -> None:
    assert names(sql) == expected


def test_star_needs_a_known_qualifier() -> None:
    with pytest.raises(Error, match=r"Table 'x' not found in FROM clause for qualified SELECT \*") as caught:
        bind("select x.* from crew")
    assert (caught.value.line, caught.value.column) == (1, 8)


def test_names_that_differ_in_case_cannot_enter_one_scope() -> None:
    with pytest.raises(Error, match=r"Symbol 'id' already exists in the same scope\."):
        bind("select * from (select Id, iD from crew) t")


def test_a_projection_that_changes_nothing_is_no_node() -> None:
    assert shape(bind("select * from crew")) == "TableScan crew"
    assert shape(bind("select id, nick, rank, ship from crew")) == "TableScan crew"
    assert shape(bind("select nick, id, rank, ship from crew")) == "Project(TableScan crew)"


def test_a_column_that_is_passed_on_keeps_its_number() -> None:
    plan = bind("select nick, id, id from crew")
    scan = plan.input  # type: ignore[attr-defined]
    assert [column.id for column in plan.columns[:2]] == [scan.columns[1].id, scan.columns[0].id]
    assert plan.columns[2].id not in {column.id for column in scan.columns}


def test_no_from_is_one_row_without_columns() -> None:
    assert shape(bind("select 1")) == "Project(Values)"
    assert names("select *") == []
