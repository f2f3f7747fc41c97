"""The differ: what it asks for, and the law that a schema is as declared after its migration.

The statements are run, so these tests take a whole engine.
"""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import Error
from quereus_store.schema.declared import text_hash
from tests.execute.database import Database


def declared(db: Database, items: str) -> list[str]:
    """Declare schema main; the statements that would make it so."""
    db.run(f"declare schema main {{ {items} }}")
    return [ddl for (ddl,) in db.rows("diff schema main")]


@pytest.fixture
def db() -> Database:
    return Database()


def test_hash_starts_from_the_offset_basis() -> None:
    # 64-bit FNV-1a of nothing is its offset basis.
    offset_basis = bytes.fromhex("cbf29ce484222325")
    assert text_hash("") == base64.urlsafe_b64encode(offset_basis)[:8].decode()
    assert text_hash("a") != text_hash("b")
    assert len(text_hash("ä€😀")) == 8


def test_hash_ignores_tags_and_seeds(db: Database) -> None:
    hashes = set()
    for items in (
        "table t { id integer primary key }",
        "table t { id integer primary key with tags (a = 1) } with tags (b = 2)",
        "table T2 { id integer primary key }",
        "table t { id integer primary key } seed t ((1))",
    ):
        db.run(f"declare schema main {{ {items} }}")
        hashes.add(db.rows("explain schema main")[0][0])
    assert len(hashes) == 2


def test_renames_are_no_other_differences(db: Database) -> None:
    db.run(
        """
        create table old (a integer primary key, b integer null, constraint c1 check (b > 0));
        create table child (id integer primary key, constraint fk foreign key (id) references old (a));
        create index i on old (b) where b > 1;
        create view v as select a, b from old;
        """
    )
    assert declared(
        db,
        """
        table new {
            x integer primary key with tags ("quereus.previous_name" = 'a'),
            y integer null with tags ("quereus.previous_name" = 'b'),
            constraint c2 check (y > 0) with tags ("quereus.previous_name" = 'c1')
        } with tags ("quereus.previous_name" = 'nothing, old')
        table child { id integer primary key, constraint fk foreign key (id) references new (x) }
        index i on new (y) where y > 1
        view v as select x, y from new
        """,
    ) == [
        "ALTER TABLE old RENAME TO new",
        "ALTER TABLE new RENAME COLUMN a TO x",
        "ALTER TABLE new RENAME COLUMN b TO y",
        "ALTER TABLE new RENAME CONSTRAINT c1 TO c2",
    ]
    db.run("apply schema main")
    assert db.rows("diff schema main") == []


def test_an_id_outweighs_a_previous_name(db: Database) -> None:
    db.run(
        """
        create table one (id integer primary key) with tags ("quereus.id" = 'x');
        create table two (id integer primary key);
        """
    )
    tags = "with tags (\"quereus.id\" = 'x', \"quereus.previous_name\" = 'two')"
    items = f"table three {{ id integer primary key }} {tags}"
    assert declared(db, items) == [
        "ALTER TABLE one RENAME TO three",
        "DROP TABLE IF EXISTS two",
    ]


def test_policies(db: Database) -> None:
    db.run("create table one (id integer primary key)")
    hinted = "table two { id integer primary key } with tags (\"quereus.previous_name\" = 'one')"
    db.run(f"declare schema main {{ {hinted} }}")
    db.run("insert into one values (1)")
    db.run("apply schema main options (rename_policy = 'require-hint')")
    assert db.rows("select * from two") == [(1,)]
    db.run("declare schema main { table three { id integer primary key } }")
    assert "would be dropped" in db.fails("apply schema main options (rename_policy = 'require-hint')")
    again = "table four { id integer primary key } with tags (\"quereus.previous_name\" = 'two')"
    db.run(f"declare schema main {{ {again} }}")
    db.run("apply schema main options (rename_policy = 'deny')")
    assert db.rows("select * from four") == []


def test_a_hint_with_two_meanings(db: Database) -> None:
    db.run("create table one (id integer primary key); create table two (id integer primary key)")
    db.run(
        "declare schema main { table two { id integer primary key }"
        " with tags (\"quereus.previous_name\" = 'one') }"
    )
    assert "which exists too" in db.fails("diff schema main")


def test_a_view_over_a_new_column_comes_after_it(db: Database) -> None:
    db.run("create table t (id integer primary key); create view v as select id from t")
    statements = declared(
        db,
        """
        view w as select n from v
        view v as select id, n from t
        table t { id integer primary key, n integer null }
        index i on t (n)
        """,
    )
    assert statements == [
        "DROP VIEW IF EXISTS v",
        "ALTER TABLE t ADD COLUMN n integer null",
        "create view v as select id, n from t",
        "create view w as select n from v",
        "create index i on t (n)",
    ]


def test_constraints_by_name(db: Database) -> None:
    db.run(
        """
        create table t (id integer primary key, a integer, b integer,
            constraint same check (A > 0), constraint gone unique (a), constraint other check (b > 0))
        """
    )
    assert declared(
        db,
        """
        table t {
            id integer primary key, a integer, b integer,
            constraint same check (a > 0), constraint other check (b > 1), constraint fresh unique (b)
        }
        """,
    ) == [
        "ALTER TABLE t DROP CONSTRAINT gone",
        "ALTER TABLE t DROP CONSTRAINT other",
        "ALTER TABLE t ADD constraint other check (b > 1)",
        "ALTER TABLE t ADD constraint fresh unique (b)",
    ]


def test_an_index_is_as_wide_as_what_it_says(db: Database) -> None:
    db.run("create table t (id integer primary key, a text collate nocase); create index i on t (A)")
    table = "table t { id integer primary key, a text collate nocase }"
    assert declared(db, f"{table} index i on t (a)") == []
    assert declared(db, f"{table} index i on t (a collate nocase)") == []
    assert declared(db, f"{table} unique index i on t (a)") != []
    assert declared(db, f"{table} index i on t (a desc)") != []
    assert declared(db, f"{table} index i on t (a collate binary)") != []
    assert declared(db, f"{table} index i on t (a) where a > 'x'") != []


def test_settings_of_a_declaration() -> None:
    db = Database("store")
    db.run(
        "declare schema main using (default_vtab_module = 'memory') { table t { id integer primary key } }"
    )
    assert db.rows("diff schema main") == [("create table t (id integer primary key) using memory",)]
    db.run("apply schema main")
    assert db.rows("diff schema main") == []


# --- the law ----------------------------------------------------------------------------------------------

columns = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(("integer", "text", "real null", "text collate nocase null", "integer default 4")),
    ),
    max_size=4,
    unique_by=lambda column: column[0],
)
extras = st.lists(
    st.sampled_from(
        ("constraint u unique (id)", "constraint k check (id > 0)", "constraint k check (id >= 0)")
    ),
    max_size=1,
)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """The items of a declaration."""
    items = []
    for table in draw(st.lists(st.sampled_from(("t", "u", "v")), max_size=3, unique=True)):
        parts = ["id integer primary key"]
        chosen = draw(columns)
        parts += [f"{name} {kind}" for name, kind in chosen]
        parts += draw(extras)
        items.append(f"table {table} {{ {', '.join(parts)} }}")
        if chosen and draw(st.booleans()):
            items.append(f"index i{table} on {table} ({chosen[0][0]})")
        if draw(st.booleans()):
            items.append(f"view w{table} as select {chosen[-1][0] if chosen else 'id'} from {table}")
    return "\n".join(draw(st.permutations(items)))


@settings(max_examples=40, deadline=None)
@given(st.lists(tables(), min_size=2, max_size=4))
def test_after_a_migration_nothing_is_left_to_do(declarations: list[str]) -> None:
    db = Database()
    for items in declarations:
        db.run(f"declare schema main {{ {items} }}")
        planned = [ddl for (ddl,) in db.rows("diff schema main")]
        try:
            db.run("apply schema main")
        except Error as error:
            raise AssertionError((planned, str(error))) from error
        assert db.rows("diff schema main") == [], planned
