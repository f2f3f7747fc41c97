"""Declared schemas without a database: the hash, rename hints, and the order of a migration."""

from __future__ import annotations

import pytest

from quereus_store.errors import Error
from quereus_store.schema.declared import declaration_hash
from quereus_store.schema.differ import RenamePolicy, migration
from quereus_store.schema.objects import Catalog
from quereus_store.sql import nodes, parse_statement
from tests.schema.support import catalog


def declared(items: str, kind: str = "schema") -> nodes.DeclareSchema:
    statement = parse_statement(f"declare {kind} main {{ {items} }}")
    assert isinstance(statement, nodes.DeclareSchema)
    return statement


def steps(before: Catalog, items: str, policy: RenamePolicy = RenamePolicy.ALLOW) -> list[str]:
    return list(migration(before, declared(items), policy=policy).statements)


# --- the hash ---------------------------------------------------------------------------------------------

TABLE = "table t { id integer primary key, a text default 'x' }"


def test_the_hash_of_nothing_is_the_offset_of_the_function() -> None:
    assert declaration_hash(declared("")) == "y_Kc5IQi"


@pytest.mark.parametrize(
    "same",
    [
        "table T_ { id integer primary key }".replace("T_", "t").replace(" }", ", a text default 'x' }"),
        "TABLE t ( id integer primary key, a text default 'x' );",
        f"{TABLE} seed t ((1, 'y'))",
        "table t { id integer primary key with tags (k = 1), a text default 'x' } with tags (owner = 'me')",
    ],
)
def test_what_the_hash_does_not_see(same: str) -> None:
    assert declaration_hash(declared(same)) == declaration_hash(declared(TABLE))


@pytest.mark.parametrize(
    "other",
    [
        TABLE.replace("'x'", "'y'"),
        TABLE.replace("a text", "A text"),
        TABLE + " index i on t (a)",
        TABLE + " domain d as text",
        TABLE.replace("a text", "a text collate nocase"),
    ],
)
def test_what_changes_the_hash(other: str) -> None:
    assert declaration_hash(declared(other)) != declaration_hash(declared(TABLE))


def test_a_logical_schema_has_another_hash() -> None:
    assert declaration_hash(declared(TABLE, "logical schema")) != declaration_hash(declared(TABLE))


def test_the_hash_reads_text_in_utf16() -> None:
    hashes = {
        declaration_hash(declared(f"view v as select '{text}' as a")) for text in ("é", "e", "😀", "\ude00")
    }
    assert len(hashes) == 4


# --- hints ------------------------------------------------------------------------------------------------


def test_the_id_counts_before_a_previous_name() -> None:
    before = catalog(
        """
        create table one (id integer not null primary key) with tags ("quereus.id" = 'x');
        create table two (id integer not null primary key);
        """
    )
    hints = """with tags ("quereus.id" = 'x', "quereus.previous_name" = 'two')"""
    assert steps(before, f"table three {{ id integer primary key }} {hints}") == [
        "ALTER TABLE one RENAME TO three",
        "DROP TABLE IF EXISTS two",
    ]


def test_previous_names_are_a_list_and_names_have_no_case() -> None:
    before = catalog("create table Crew (id integer not null primary key, Nick text not null)")
    item = """
        table sailor {
            id integer primary key,
            name text with tags ("quereus.previous_name" = 'handle, NICK')
        } with tags ("quereus.previous_name" = 'person,CREW')
    """
    assert steps(before, item) == [
        "ALTER TABLE Crew RENAME TO sailor",
        "ALTER TABLE sailor RENAME COLUMN Nick TO name",
    ]


def test_a_hint_that_means_two_objects_is_refused() -> None:
    before = catalog(
        "create table a (id integer not null primary key); create table b (id integer not null primary key)"
    )
    item = """table a { id integer primary key } with tags ("quereus.previous_name" = 'b')"""
    with pytest.raises(
        Error, match=r"table 'a' exists, and its rename hint means table 'b', which exists too"
    ):
        steps(before, item)
    assert steps(before, item, RenamePolicy.DENY) == ["DROP TABLE IF EXISTS b"]


@pytest.mark.parametrize(
    ("before", "item", "kind"),
    [
        ("create table t (a integer primary key)", "table u { a integer primary key }", "table"),
        ("create view v as select 1 as x", "view w as select 1 as x", "view"),
        (
            "create table t (a integer not null primary key); create index i on t (a)",
            "table t { a integer primary key } index j on t (a)",
            "index",
        ),
        (
            "create table t (a integer not null primary key, b text not null)",
            "table t { a integer primary key, c text }",
            "column of table 't'",
        ),
        (
            "create table t (a integer not null primary key, constraint c check (a > 1))",
            "table t { a integer primary key, constraint d check (a > 1) }",
            "constraint of table 't'",
        ),
    ],
)
def test_hints_can_be_demanded(before: str, item: str, kind: str) -> None:
    assert len(steps(catalog(before), item)) == 2
    with pytest.raises(Error, match=f"rename_policy = 'require-hint': {kind} '"):
        steps(catalog(before), item, RenamePolicy.REQUIRE_HINT)


def test_a_view_that_is_renamed_is_dropped_and_created_with_the_names_of_now() -> None:
    before = catalog(
        "create table t (id integer not null primary key, a text not null);"
        "create view v as select a from t where a <> '';"
    )
    items = """
        table t { id integer primary key, b text with tags ("quereus.previous_name" = 'a') }
        view w as select b from t where b <> '' with tags ("quereus.previous_name" = 'v')
    """
    assert steps(before, items, RenamePolicy.REQUIRE_HINT) == [
        "DROP VIEW IF EXISTS v",
        "create view w as select a from t where a != '' with tags (\"quereus.previous_name\" = 'v')",
        "ALTER TABLE t RENAME COLUMN a TO b",
    ]


# --- order ------------------------------------------------------------------------------------------------


def test_a_column_that_another_table_needs_comes_before_it_is_needed() -> None:
    before = catalog(
        """
        create table child (id integer not null primary key, p integer);
        create table parent (id integer not null primary key, old integer not null);
        """
    )
    items = """
        table child { id integer primary key, p integer null references parent (code) }
        table parent { id integer primary key, code integer default 1 unique }
    """
    assert steps(before, items) == [
        "ALTER TABLE parent ADD COLUMN code integer default 1 unique",
        "ALTER TABLE parent DROP COLUMN old",
        "ALTER TABLE child ADD foreign key (p) references parent(code)",
    ]


def test_a_column_is_dropped_when_nothing_refers_to_it_any_more() -> None:
    before = catalog(
        """
        create table parent (id integer not null primary key, code integer not null unique);
        create table child (id integer not null primary key, p integer references parent (code));
        """
    )
    items = """
        table parent { id integer primary key }
        table child { id integer primary key, p integer null references parent (id) }
    """
    assert steps(before, items) == [
        "ALTER TABLE child DROP CONSTRAINT _fk_child_p",
        "ALTER TABLE child ADD foreign key (p) references parent(id)",
        "ALTER TABLE parent DROP COLUMN code",
    ]


def test_a_view_of_a_new_column_waits_for_the_column() -> None:
    before = catalog("create table t (id integer not null primary key); create view v as select id from t")
    items = """
        view above as select a from v
        view v as select id, a from t
        table t { id integer primary key, a integer null }
    """
    assert steps(before, items) == [
        "DROP VIEW IF EXISTS v",
        "ALTER TABLE t ADD COLUMN a integer null",
        "create view v as select id, a from t",
        "create view above as select a from v",
    ]


def test_an_assertion_over_a_view_that_changes_is_taken_off_meanwhile() -> None:
    before = catalog(
        """
        create table t (id integer not null primary key);
        create view v as select id from t;
        create assertion few check ((select count(*) from v) < 9);
        """
    )
    items = """
        table t { id integer primary key }
        view v as select id from t where id > 0
        assertion few check ((select count(*) from v) < 9)
    """
    assert steps(before, items) == [
        "DROP ASSERTION IF EXISTS few",
        "DROP VIEW IF EXISTS v",
        "create view v as select id from t where id > 0",
        "create assertion few check ((select count(*) from v) < 9)",
    ]


def test_a_generated_column_is_made_anew_with_what_stands_on_it() -> None:
    before = catalog(
        """
        create table t (id integer not null primary key, g integer generated always as (id + 1) stored,
                        constraint one unique (g, id), check (g > 0));
        create index i on t (g);
        """
    )
    items = """
        table t { id integer primary key, g integer null generated always as (id + 2) stored,
                  constraint one unique (g, id), check (g > 0) }
        index i on t (g)
    """
    assert steps(before, items) == [
        "ALTER TABLE t DROP CONSTRAINT _check_0",
        "DROP INDEX IF EXISTS i",
        "ALTER TABLE t DROP CONSTRAINT one",
        "ALTER TABLE t DROP COLUMN g",
        "ALTER TABLE t ADD COLUMN g integer null generated always as (id + 2) stored",
        "ALTER TABLE t ADD constraint one unique (g, id)",
        "ALTER TABLE t ADD check (g > 0)",
        "create index i on t (g)",
    ]


def test_an_ordinary_column_cannot_lose_its_values_to_nothing() -> None:
    before = catalog("create table t (id integer primary key, g integer generated always as (id + 1) stored)")
    with pytest.raises(Error, match=r"column 't\.g' cannot change between generated and ordinary"):
        steps(before, "table t { id integer primary key, g integer }")


def test_names_of_another_case_are_the_same() -> None:
    before = catalog(
        "create table Crew (Id integer not null primary key, Nick text not null,"
        " constraint Short check (Nick <> ''));"
        "create index By_Nick on Crew (Nick) where Nick <> 'x';"
    )
    items = """
        table crew { id integer primary key, nick text, constraint short check (NICK <> '') }
        index by_nick on crew (nick) where NICK <> 'x'
    """
    assert steps(before, items) == []
