"""ALTER PRIMARY KEY: what a key takes from its table, and what is undone with it."""

from __future__ import annotations

from tests.execute.database import Database


def test_a_new_key_has_the_key_collation_of_its_table() -> None:
    db = Database("store")
    db.run(
        """
        create table t (id integer primary key, name text) using store (collation = 'NOCASE');
        insert into t values (1, 'a'), (2, 'B');
        alter table t alter primary key (name);
        """
    )
    assert db.rows("select name from t") == [("a",), ("B",)]
    assert "UNIQUE constraint failed: t PK." in db.fails("insert into t values (3, 'A')")


def test_foreign_keys_without_columns_mean_the_new_key(db: Database) -> None:
    db.run(
        """
        create table parent (id integer primary key, code text);
        create table child (id integer primary key, code text references parent);
        insert into parent values (1, 'x');
        alter table parent alter primary key (code);
        insert into child values (1, 'x');
        """
    )
    assert "_fk_child_code" in db.fails("insert into child values (2, '1')")


def test_rows_come_back_under_the_old_key(db: Database) -> None:
    db.run("create table t (a integer primary key, b integer); insert into t values (1, 9), (2, 8)")
    db.run("begin; insert into t values (3, 7); savepoint s")
    db.run("alter table t alter primary key (b); insert into t values (1, 1)")
    assert db.rows("select a from t") == [(1,), (3,), (2,), (1,)]
    db.run("rollback to s")
    assert db.rows("select a from t") == [(1,), (2,), (3,)]
    db.run("rollback")
    assert db.rows("select a from t") == [(1,), (2,)]
    assert db.fails("insert into t values (1, 1)") == "UNIQUE constraint failed: t PK."


def test_a_deferred_check_follows_the_rows_to_their_new_key(db: Database) -> None:
    db.run(
        """
        create table t (a integer primary key, b integer,
            constraint few check (b < (select count(*) + 2 from t)));
        begin;
        insert into t values (1, 9);
        alter table t alter primary key (b);
        """
    )
    assert "few" in db.fails("commit")
    assert db.rows("select * from t") == []


def test_a_table_without_a_key_keeps_the_one_it_has(db: Database) -> None:
    db.run("create table t (a integer, b integer); insert into t values (1, 1), (1, 2)")
    db.run("alter table t add column c integer default 0")
    assert db.fails("insert into t values (1, 1, 5)") == "UNIQUE constraint failed: t PK."
    assert db.fails("alter table t drop column b") == "Cannot drop PRIMARY KEY column 'b'"
    db.run("alter table t drop column c")
    assert db.rows("select * from t") == [(1, 1), (1, 2)]
