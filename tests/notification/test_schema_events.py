"""Schema events of statements, and the catalog's own changes, views and functions among them."""

from typing import Any

import pytest

from quereus_store import Connection
from quereus_store.events import CatalogChange, SchemaEvent


@pytest.fixture
def told(con: Connection) -> list[SchemaEvent]:
    found: list[SchemaEvent] = []
    con.database.on_schema_change(found.append)
    return found


@pytest.fixture
def catalog(con: Connection) -> list[CatalogChange]:
    found: list[CatalogChange] = []
    con.database.events.on_catalog_change(found.append)
    return found


def test_tables_and_indexes_come_and_go(con: Connection, told: list[SchemaEvent]) -> None:
    con.execute("create table Valve (id integer primary key)")
    con.execute("create index tank_name on tank (name)")
    con.execute("drop index tank_name")
    con.execute("drop table valve")
    con.execute("drop table if exists valve")
    assert [(event.type, event.object_type, event.object_name) for event in told] == [
        ("create", "table", "Valve"),
        ("create", "index", "tank_name"),
        ("drop", "index", "tank_name"),
        ("drop", "table", "Valve"),
    ]
    assert {event.ddl for event in told} == {None}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER TABLE Tank RENAME TO basin", ("alter", "table", "basin", "tank", None, None)),
        ("alter table tank rename column NAME to title", ("alter", "column", "tank", None, "title", "name")),
        ("alter table tank add column d integer null unique", ("alter", "column", "tank", None, "d", None)),
        ("alter table tank drop column Litres", ("drop", "column", "tank", None, "litres", None)),
        (
            "alter table tank alter column litres drop not null",
            ("alter", "column", "tank", None, "litres", None),
        ),
        ("alter table tank alter primary key (name)", ("alter", "table", "tank", None, None, None)),
        (
            "alter table tank add constraint c check (litres > 0)",
            ("alter", "table", "tank", None, None, None),
        ),
    ],
)
def test_an_alter_is_one_event(
    con: Connection, told: list[SchemaEvent], statement: str, expected: tuple[Any, ...]
) -> None:
    con.execute(statement)
    (event,) = told
    assert (
        event.type,
        event.object_type,
        event.object_name,
        event.old_object_name,
        event.column_name,
        event.old_column_name,
    ) == expected


def test_the_text_of_an_alter_is_canonical_and_qualified_outside_main(
    con: Connection, told: list[SchemaEvent]
) -> None:
    con.executescript("declare schema yard { table t { id integer primary key } }; apply schema yard;")
    told.clear()
    con.execute("ALTER  TABLE yard.T ADD COLUMN v INTEGER NULL")
    con.execute("ALTER TABLE main.tank RENAME COLUMN litres TO volume")
    assert [event.ddl for event in told] == [
        "alter table yard.t add column v INTEGER null",
        "alter table tank rename column litres to volume",
    ]


def test_views_assertions_and_tags_are_silent(con: Connection, told: list[SchemaEvent]) -> None:
    con.execute("create view v as select * from tank")
    con.execute("create assertion a check (not exists (select 1 from tank where litres < 0))")
    con.execute("alter table tank set tags (purpose = 'water')")
    con.execute("drop view v")
    assert told == []


def test_a_materialized_view_is_told_of_as_a_table(con: Connection, told: list[SchemaEvent]) -> None:
    con.execute("create materialized view m as select id from tank")
    con.execute("create materialized view if not exists m as select id from tank")
    con.execute("refresh materialized view m")
    con.execute("drop materialized view m")
    con.execute("drop materialized view if exists m")
    assert [(event.type, event.object_type, event.object_name) for event in told] == [
        ("create", "table", "m"),
        ("drop", "table", "m"),
    ]


def test_a_failed_or_undone_statement_announces_nothing(con: Connection, told: list[SchemaEvent]) -> None:
    con.execute("insert into tank values (1, 'a', 1), (2, 'a', 1)")
    with pytest.raises(Exception, match="UNIQUE"):
        con.execute("create unique index u on tank (name)")
    con.executescript("begin; savepoint s; create table x (id integer primary key); rollback to s; commit;")
    con.executescript("begin; drop table tank; rollback;")
    assert told == []


def test_the_catalog_tells_of_every_kind_of_object(con: Connection, catalog: list[CatalogChange]) -> None:
    con.execute("create view v as select * from tank")
    con.execute("create materialized view m as select id from tank")
    con.execute("refresh materialized view m")
    con.execute("alter table tank set tags (purpose = 'water')")
    con.execute("create assertion a check (not exists (select 1 from tank where litres < 0))")
    con.execute("drop view v")
    con.database.create_function("twice", 1, lambda value: value * 2)
    con.database.create_function("twice", 1, lambda value: value + value)
    con.database.create_collation("backwards", lambda a, b: (a < b) - (a > b))
    assert [(change.type, change.object_name) for change in catalog] == [
        ("view_added", "v"),
        ("materialized_view_added", "m"),
        ("materialized_view_refreshed", "m"),
        ("table_modified", "tank"),
        ("assertion_added", "a"),
        ("view_removed", "v"),
        ("function_added", "twice"),
        ("function_modified", "twice"),
        ("collation_added", "BACKWARDS"),
    ]
    modified = catalog[3]
    assert (dict(modified.old_object.tags), dict(modified.new_object.tags)) == ({}, {"purpose": "water"})


def test_the_catalog_tells_of_what_a_transaction_leaves_behind(
    con: Connection, catalog: list[CatalogChange]
) -> None:
    con.executescript("begin; create table brief (id integer primary key); drop table brief; commit;")
    assert catalog == []
