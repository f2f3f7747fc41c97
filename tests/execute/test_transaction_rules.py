"""Rules of transactions that scripts cannot show: depth, the policy of schema changes, committed rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, Error, IntegrityError
from quereus_store.modules.contract import DdlTransactionality
from quereus_store.modules.memory import MemoryModule
from tests.connecting import STORAGES, connected


@pytest.fixture(params=STORAGES)
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with connected(request.param, tmp_path) as connection:
        connection.execute("create table t (id integer primary key, v integer)")
        yield connection


def numbers(con: Connection) -> list[int]:
    return [row[0] for row in con.execute("select id from t").fetchall()]


def test_savepoints_nest_to_any_depth(con: Connection) -> None:
    depth = 1500
    con.execute("begin")
    for n in range(depth):
        con.execute(f"savepoint s{n}")
        con.execute("insert into t values (?, 0)", (n,))
    con.execute("rollback to s1200")
    assert numbers(con) == list(range(1200))
    con.execute("release s700")
    con.execute("rollback to s600")
    assert numbers(con) == list(range(600))
    con.execute("commit")
    assert numbers(con) == list(range(600))


def test_blocks_nest(con: Connection) -> None:
    with con.transaction():
        con.execute("insert into t values (1, 0)")
        with pytest.raises(IntegrityError):
            _two_blocks(con)
        with con.transaction():
            con.execute("insert into t values (4, 0)")
    assert numbers(con) == [1, 4]


def _two_blocks(con: Connection) -> None:
    with con.transaction():
        con.execute("insert into t values (2, 0)")
        with con.transaction():
            con.execute("insert into t values (3, 0)")
        con.execute("insert into t values (1, 0)")


def test_the_committed_state_is_a_snapshot(con: Connection) -> None:
    """It stays what it was when the transaction began to read, whatever is written here or there."""
    con.execute("insert into t values (1, 10), (2, 20)")
    con.execute("begin")
    con.execute("update t set v = v + 1")
    con.execute("insert into t select id + 10, v from committed.t")
    con.execute("savepoint s")
    con.execute("delete from t")
    committed = "select * from committed.t"
    assert con.execute(committed).fetchall() == [(1, 10), (2, 20)]
    con.execute("rollback to s")
    changes = "select n.id, n.v - o.v from t as n left join committed.t as o on o.id = n.id"
    assert con.execute(changes).fetchall() == [(1, 1), (2, 1), (11, None), (12, None)]
    con.execute("commit")
    assert con.execute("select count(*) from committed.t").fetchone() == (4,)


def test_the_committed_state_of_a_reader_is_pinned(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "db") as one, quereus_store.connect(tmp_path / "db") as other:
        one.execute("create table t (id integer primary key)")
        one.execute("insert into t values (1)")
        other.execute("begin")
        assert other.execute("select * from committed.t").fetchall() == [(1,)]
        one.execute("insert into t values (2)")
        assert other.execute("select * from committed.t").fetchall() == [(1,)]
        other.execute("commit")
        assert other.execute("select * from committed.t").fetchall() == [(1,), (2,)]


def test_checks_and_assertions_read_the_committed_state(con: Connection) -> None:
    con.execute(
        "create table level (id integer primary key, h integer, constraint grows"
        " check (h >= coalesce((select max(h) from committed.level), 0)))"
    )
    con.execute(
        "create assertion slow check ((select count(*) from t) <= (select count(*) from committed.t) + 1)"
    )
    con.execute("insert into level values (1, 5)")
    with pytest.raises(IntegrityError, match="grows"):
        con.execute("update level set h = 4")
    con.execute("update level set h = 6")
    con.execute("insert into t values (1, 1)")
    with pytest.raises(IntegrityError, match="slow"):
        con.execute("insert into t values (2, 1), (3, 1)")
    assert numbers(con) == [1]


class WeakerModule(MemoryModule):
    """Memory tables of a module that says its schema changes escape a transaction."""

    def __init__(self, name: str, tier: DdlTransactionality) -> None:
        super().__init__()
        self.name = name
        self.ddl_transactionality = tier


@pytest.mark.parametrize(
    ("tier", "why"),
    [
        (DdlTransactionality.NON_TRANSACTIONAL, "(it survives rollback)"),
        (DdlTransactionality.AUTO_COMMIT, "(it survives rollback and force-commits buffered writes)"),
    ],
)
def test_a_strict_policy_refuses_what_would_escape(
    con: Connection, tier: DdlTransactionality, why: str
) -> None:
    con.database.register_module(WeakerModule("weak", tier))
    con.execute("create table w (id integer primary key, v integer null) using weak")
    con.execute("pragma ddl_transaction_policy = 'strict'")
    con.execute("insert into w values (1, 1)")
    con.execute("begin")
    con.execute("create table mine (id integer primary key)")
    con.execute("alter table t add column more integer null")
    for sql, label in {
        "create table x (id integer primary key) using weak": "CREATE TABLE x",
        "create table if not exists w (id integer primary key) using weak": "CREATE TABLE w",
        "drop table w": "DROP TABLE w",
        "create index i on w (v)": "CREATE INDEX i",
        "alter table w rename to z": "ALTER TABLE w (renameTable)",
        "alter table w rename column v to z": "ALTER TABLE w (renameColumn)",
        "alter table w add column z integer null": "ALTER TABLE w (addColumn)",
        "alter table w drop column v": "ALTER TABLE w (dropColumn)",
        "alter table w alter column v set not null": "ALTER TABLE w (alterColumn)",
        "alter table w alter primary key (v, id)": "ALTER TABLE w (alterPrimaryKey)",
        "alter table w add constraint c check (v > 0)": "ALTER TABLE w ADD CONSTRAINT",
        "alter table w set tags (a = 1)": "ALTER TABLE w (setTags)",
    }.items():
        with pytest.raises(Error) as caught:
            con.execute(sql)
        assert caught.value.message.startswith(f"{label} is not allowed inside an explicit transaction under")
        assert f"module 'weak' declares ddlTransactionality = '{tier.value}'" in caught.value.message
        assert why in caught.value.message
    con.execute("drop table if exists nothing")
    con.execute("create view v as select * from w")
    con.execute("commit")
    con.execute("alter table w add column z integer null")
    con.execute("pragma ddl_transaction_policy = 'permissive'")
    con.execute("begin")
    con.execute("alter table w drop column z")
    con.execute("rollback")
    with pytest.raises(Error, match="Unknown pragma: ddl_transaction_policy"):
        con.execute("pragma ddl_transaction_policy = 'sometimes'")
