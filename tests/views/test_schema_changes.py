"""What each kind of schema change does to a view over the table: live as before, or stale until a refresh."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quereus_store
from quereus_store.sql.renderer import canonical_text

TABLES = """
create table if not exists other (id integer primary key);
create table t (
  id integer primary key, a integer not null, b text not null, c integer not null default 1, u text not null,
  d integer null, constraint small check (a < 1000), constraint one_u unique (u),
  constraint to_other foreign key (d) references other (id));
create index t_c on t (c);
insert into t (id, a, b, u) values (1, 10, 'x', 'p'), (2, 20, 'y', 'q');
"""
LAST = "insert into t (id, a, b, u) values (3, 30, 'z', 'r')"

NAMED = "select id, a, b from t"
STAR = "select * from t"
LIVE = [
    ("alter table t add constraint positive check (a > 0)", NAMED),
    ("alter table t drop constraint small", NAMED),
    ("alter table t rename constraint small to little", NAMED),
    ("alter table t add constraint d_too foreign key (c) references other (id)", NAMED),
    ("alter table t drop constraint to_other", NAMED),
    ("alter table t add constraint one_b unique (b)", NAMED),
    ("alter table t drop constraint one_u", NAMED),
    ("alter table t set tags (kind = 'x')", NAMED),
    ("alter table t alter column c set default 5", NAMED),
    ("analyze t", NAMED),
    ("create index t_b on t (b)", NAMED),
    ("drop index t_c", NAMED),
    ("alter table t add column e integer null", NAMED),
    ("alter table t drop column c", NAMED),
    ("alter table t alter column c set data type text", NAMED),
    ("alter table t alter column c drop not null", NAMED),
    ("alter table t alter column u set collate nocase", NAMED),
    ("alter table t rename column a to aa", NAMED),
    ("alter table t rename column c to cc", "select id, a, c as mine from t where c > 0"),
    ("alter table t set tags (kind = 'x')", STAR),
]
STALE = [
    ("alter table t drop constraint one_u", "select u, a from t"),
    ("alter table t alter primary key (a)", NAMED),
    ("alter table t add constraint high check (a > 5)", "select id, b from t where a < 5"),
    ("alter table t add column e integer null", STAR),
    ("alter table t drop column d", STAR),
    ("alter table t drop column b", NAMED),
    ("alter table t drop column c", "select id, a from t where c > 0"),
    ("alter table t alter column a set data type real", NAMED),
    (
        "alter table t alter column c set data type text",
        "select id, a from t where (select max(c) from t) > 0",
    ),
    ("alter table t alter column b set collate nocase", NAMED),
    ("alter table t alter column b set collate nocase", "select id, a from t where b <> 'Q'"),
    ("alter table t alter column a drop not null", NAMED),
    ("drop table t", NAMED),
]
UNPLANNABLE = ("alter table t drop column b", "alter table t drop column c")


@pytest.fixture
def con() -> Any:
    connection = quereus_store.connect(":memory:")
    connection.executescript(TABLES)
    return connection


def make(con: Any, body: str) -> None:
    con.execute("pragma materialized_view_rebuild_row_threshold = 0")
    con.execute(f"create materialized view v as {body}")
    con.execute("create materialized view above as select count(*) as n from v")


def is_stale(con: Any, name: str) -> bool:
    return bool(con.database.catalog.table("main", name).derivation.stale)


@pytest.mark.parametrize(("change", "body"), LIVE)
def test_views_that_stay_live(con: Any, change: str, body: str) -> None:
    make(con, body)
    con.execute("pragma foreign_keys = off")
    con.execute(change)
    assert not is_stale(con, "v")
    con.execute(LAST.replace("a, b", "aa, b") if "to aa" in change else LAST)
    assert con.execute("select count(*) from v where id = 3").fetchone() == (1,)
    assert con.execute("select n from above").fetchone() == (3,)
    assert con.database.check() == []


@pytest.mark.parametrize(("change", "body"), STALE)
def test_views_that_go_stale_and_all_over_them(con: Any, change: str, body: str) -> None:
    make(con, body)
    frozen = con.execute("select * from v").fetchall()
    con.execute(change)
    assert is_stale(con, "v")
    assert is_stale(con, "above")
    if change == "drop table t":
        con.executescript(TABLES)
    elif "column b" not in change:
        con.execute(LAST)
    if change in UNPLANNABLE:
        for name in ("v", "above"):
            with pytest.raises(quereus_store.Error, match=f"materialized view '{name}' is stale; a source"):
                con.execute(f"select * from {name}")
        return
    assert con.execute("select * from v").fetchall() == frozen
    assert con.execute("select n from above").fetchone() == (len(frozen),)


def test_going_stale_is_undone_with_the_change(con: Any) -> None:
    make(con, NAMED)
    con.execute("begin")
    con.execute("alter table t drop column b")
    assert con.session.transaction.catalog.table("main", "v").derivation.stale
    con.execute("rollback")
    con.execute(LAST)
    assert con.execute("select n from above").fetchone() == (3,)


# --- any changes in any order ------------------------------------------------------------------------------

CHANGES = (
    "alter table t add column e integer default 4",
    "alter table t drop column e",
    "alter table t drop column c",
    "alter table t add column c integer default 2",
    "alter table t rename column a to aa",
    "alter table t rename column aa to a",
    "alter table t rename to tt",
    "alter table tt rename to t",
    "alter table t alter column a set data type real",
    "alter table t alter column a set data type integer",
    "alter table t alter column b set collate nocase",
    "alter table t alter column b drop not null",
    "alter table t alter column b set not null",
    "alter table t drop constraint one_u",
    "alter table t add constraint one_u unique (u)",
    "alter table t add constraint high check (a > 100)",
    "alter table t drop constraint high",
    "alter table t alter primary key (id, u)",
    "alter table t alter primary key (id)",
    "create index t_b on t (b)",
    "drop index t_b",
    "drop table t",
    "create table t (id integer primary key, a integer, b text, c integer default 1, u text null)",
    "alter table v rename to v9",
    "alter table v9 rename to v",
    "alter table w drop maintained",
    "alter table w set maintained as select b, count(*) as n, sum(a) as s from t group by b",
    "create view p as select id, b as label from t where a < 50",
    "drop view p",
    "create materialized view x as select label, count(*) as n from p group by label",
)
ROWS = (
    "insert or replace into t (id, a, b, u) values (3, 30, 'x', 'r')",
    "insert or ignore into t (id, a, b, u) values (4, 5, 'X', 's')",
    "update t set a = a + 1, b = b || 'y' where id < 3",
    "update t set u = u || '!', id = id + 10 where id > 1",
    "delete from t where id in (1, 4)",
)
REFRESHES = tuple(f"refresh materialized view {name}" for name in "vwyzx")
CONTROL = ("begin", "commit", "rollback", "savepoint s", "rollback to s")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(*map(st.sampled_from, (CHANGES, ROWS, REFRESHES, CONTROL, ROWS))), min_size=3, max_size=25
    )
)
def test_live_views_equal_their_bodies_whatever_happens_to_the_schema(steps: list[str]) -> None:
    connection = quereus_store.connect(":memory:")
    connection.executescript(TABLES)
    connection.executescript(
        "create materialized view v as select id, a, b from t where a > 5;"
        "create materialized view w as select b, count(*) as n, sum(a) as s from t group by b;"
        "create materialized view y as select v.id, t.c, w.n from v join t on t.id = v.id"
        " join w on w.b = v.b;"
        "create materialized view z as select * from t;"
    )
    done = []
    for step in steps:
        try:
            connection.execute(step)
        except quereus_store.InternalError:
            raise
        except quereus_store.Error:
            continue
        done.append(step)
        check = connection.execute("select name from schema() where type = 'materialized_view'").fetchall()
        for (name,) in check:
            compare(connection, name, done)
    if connection.in_transaction:
        connection.execute("commit")
    assert connection.database.check() == [], done
    connection.close()


def compare(connection: Any, name: str, done: list[str]) -> None:
    """A live view, in the midst of a transaction too, against its body."""
    transaction = connection.session.transaction
    catalog = connection.database.catalog if transaction is None else transaction.catalog
    table = catalog.table("main", name)
    if table.derivation.stale or table.derivation.views:
        return
    body = connection.execute(canonical_text(table.derivation.query)).fetchall()
    stored = connection.execute(f"select * from {name}").fetchall()
    assert sorted(map(repr, stored)) == sorted(map(repr, body)), (name, done)
