"""Change scopes: which rows of which tables a statement's result depends on."""

import pytest

import quereus_store
from quereus_store import Connection
from quereus_store.errors import Error
from quereus_store.events import ChangeScope, Full, Groups, Notification, Rows, Source, UnboundValue, Watch


@pytest.fixture
def con() -> Connection:
    con = quereus_store.connect(":memory:")
    con.executescript("""
        create table tank (id integer primary key, name text unique, litres real, yard integer null);
        create table pipe (a integer, b integer, width real, primary key (a, b));
        create view full_tank as select * from tank where litres > 100;
        create materialized view by_yard as select yard, count(*) as n from tank group by yard;
    """)
    return con


def only(con: Connection, sql: str) -> Watch:
    (watch,) = con.database.change_scope(sql).watches
    return watch


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("id = 3", (3,)),
        ("3 = id and litres > 5", (3,)),
        ("id = ?", (UnboundValue(1, "ANY", True),)),
        ("id = :id", (UnboundValue("id", "ANY", True),)),
    ],
)
def test_equality_on_the_whole_key_watches_rows(con: Connection, condition: str, values: object) -> None:
    assert only(con, f"select name from tank where {condition}").scope == Rows(("id",), (values,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "condition", ["id in (3)", "id = 3 or id = 4", "id > 3", "name = 'a'", "id = (select 3)", "true"]
)
def test_anything_else_watches_the_table(con: Connection, condition: str) -> None:
    assert only(con, f"select name from tank where {condition}").scope == Full()


def test_casts_are_taken_as_the_statement_takes_them(con: Connection) -> None:
    assert only(con, "select name from tank where id = cast('3' as integer)").scope == Rows(("id",), ((3,),))
    found: list[Notification] = []
    lenient = "select count(*) from tank where id = cast(? as integer)"
    con.database.watch(lenient, found.append, parameters=["3 tons"])
    con.execute("insert into tank values (3, 'c', 1, null)")
    assert len(found) >= con.execute(lenient, ("3 tons",)).fetchone()[0]
    twice = "select name from tank where id = cast(cast(? as text) as integer)"
    assert only(con, twice).scope == Full()


def test_every_column_of_the_key_has_to_be_pinned(con: Connection) -> None:
    assert only(con, "select width from pipe where a = 1").scope == Full()
    assert only(con, "select width from pipe where b = 2 and a = 1").scope == Rows(("a", "b"), ((1, 2),))


def test_conditions_reach_through_views_joins_and_subqueries(con: Connection) -> None:
    assert only(con, "select name from full_tank where id = 3").scope == Rows(("id",), ((3,),))
    joined = con.database.change_scope("select * from tank t join pipe p on p.a = t.id where t.id = 3")
    assert [watch.scope for watch in joined.watches] == [Full(), Rows(("id",), ((3,),))]
    nested = con.database.change_scope(
        "select 1 where exists (select 1 from tank where id = 4) or exists (select 1 from tank where id = 3)"
    )
    assert [watch.scope for watch in nested.watches] == [Rows(("id",), ((3,), (4,)))]


def test_the_condition_of_an_outer_join_pins_its_inner_side_only(con: Connection) -> None:
    scope = con.database.change_scope(
        "select t.id from tank t left join pipe p on p.a = 1 and p.b = 2 and t.id = 5"
    )
    assert [watch.scope for watch in scope.watches] == [Rows(("a", "b"), ((1, 2),)), Full()]


def test_grouping_by_a_key_watches_groups(con: Connection) -> None:
    assert only(con, "select id, name, sum(litres) from tank group by id, name").scope == Groups(("id",))
    assert only(con, "select name, sum(litres) from tank group by name").scope == Groups(("name",))
    assert only(con, "select yard, sum(litres) from tank group by yard").scope == Full()


def test_columns_are_those_read_anywhere(con: Connection) -> None:
    assert only(con, "select NAME from tank where litres > 1 order by id").columns == ("id", "litres", "name")
    assert only(con, "select * from tank").columns == "all"
    assert only(con, "select count(*) from tank").columns == "all"


def test_maintained_tables_stand_for_their_sources(con: Connection) -> None:
    assert only(con, "select * from by_yard where yard = 3") == Watch("main", "tank", ("yard",), Full())


def test_other_sources_are_listed(con: Connection) -> None:
    con.database.create_function("dice", 0, lambda: 4, deterministic=False)
    scope = con.database.change_scope(
        "select dice(), random(), date('now') from tank where litres > ?2 and id = ?1"
    )
    assert scope.non_deterministic_sources == (
        Source("parameter", index=2),
        Source("random"),
        Source("time"),
        Source("volatileUdf", name="dice"),
    )
    assert scope.unbound_parameters == (1,)
    assert not scope.describes_everything


def test_row_changes_have_a_scope_with_returning_only(con: Connection) -> None:
    assert con.database.change_scope("update tank set litres = 0").is_empty
    assert only(con, "update tank set litres = 0 returning id").table == "tank"


def test_statements_without_rows_have_none(con: Connection) -> None:
    with pytest.raises(Error, match="only a query or a row change has a change scope"):
        con.database.change_scope("drop table tank")


def test_scopes_as_json(con: Connection) -> None:
    assert con.database.change_scope("select name from tank where id = ?").as_json() == {
        "watches": [
            {
                "table": {"schema": "main", "table": "tank"},
                "columns": ["id", "name"],
                "scope": {
                    "kind": "rows",
                    "key": ["id"],
                    "values": [[{"p": 1, "t": {"typeName": "ANY", "nullable": True}}]],
                },
            }
        ],
        "nonDeterministicSources": [],
        "unboundParameters": [1],
    }


def test_binding_parameters(con: Connection) -> None:
    scope = con.database.change_scope("select name from tank where id = ?")
    bound = scope.bind_parameters([3])
    assert (bound.watches[0].scope, bound.unbound_parameters) == (Rows(("id",), ((3,),)), ())
    assert scope.bind_parameters({1: 3}) == bound
    assert con.database.change_scope("select name from tank where id = ?", [3]) == bound
    with pytest.raises(Error, match="no value for parameter 1"):
        scope.bind_parameters([])


def test_union_and_intersection() -> None:
    def rows(*values: int) -> ChangeScope:
        return ChangeScope.of(
            [Watch("main", "t", ("a",), Rows(("id",), tuple((value,) for value in values)))]
        )

    whole = ChangeScope.of([Watch("main", "t", ("b",))])
    assert rows(1).union(rows(2)) == rows(1, 2)
    assert rows(1).union(whole) == ChangeScope.of([Watch("main", "t", ("a", "b"))])
    assert rows(1, 2).intersect(rows(2, 3)) == rows(2)
    assert rows(1).intersect(rows(2)).is_empty
    assert whole.intersect(rows(2)).watches[0].scope == Rows(("id",), ((2,),))
    assert whole.intersect(ChangeScope()).is_empty
