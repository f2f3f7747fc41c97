"""A kept statement whose plan reads a whole table is planned again once the table has grown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.execute.database import Database

RUNS = 20  # of which one looks at the tables


def fill(db: Database, rows: int) -> None:
    db.session.execute_batch("insert into t values (?, ?)", [(n, f"c{n % 100}") for n in range(rows)])


def kept_after(db: Database, sql: str, parameters: tuple[Any, ...], runs: int = RUNS) -> Any:
    """The kept statement, after some runs."""
    for _ in range(runs):
        db.session.execute(sql, parameters).all_rows()
    (kept,) = [made for (text, _), made in db.session._statements.items() if text == sql]
    return kept


@pytest.mark.parametrize(
    "sql",
    [
        "select id from t where code = ?",
        "select (select count(*) from t where code = ?)",
        "update t set id = id where code = ?",
    ],
)
def test_an_index_is_used_once_there_are_rows_enough(db: Database, sql: str) -> None:
    db.session.execute("create table t (id integer primary key, code text)")
    db.session.execute("create index t_code on t (code)")
    assert ".scan(" in kept_after(db, sql, ("c5",)).source
    fill(db, 100)
    assert ".scan(" in kept_after(db, sql, ("c5",)).source
    db.session.execute("delete from t")
    fill(db, 2000)
    assert ".scan(" not in kept_after(db, sql, ("c5",)).source


@pytest.mark.parametrize("sql", ["select id from t where code = ?", "update t set id = id where code = ?"])
def test_growth_within_the_own_transaction_counts(db: Database, sql: str) -> None:
    db.session.execute("create table t (id integer primary key, code text)")
    db.session.execute("create index t_code on t (code)")
    db.session.execute("begin")
    assert ".scan(" in kept_after(db, sql, ("c5",), runs=1).source
    fill(db, 2000)
    assert ".scan(" not in kept_after(db, sql, ("c5",)).source
    db.session.execute("commit")
    assert ".scan(" not in kept_after(db, sql, ("c5",)).source


def test_a_statement_prepared_after_the_own_rows_knows_of_them(db: Database) -> None:
    db.session.execute("create table t (id integer primary key, code text)")
    db.session.execute("create index t_code on t (code)")
    db.session.execute("begin")
    fill(db, 2000)
    assert ".scan(" not in kept_after(db, "select id from t where code = ?", ("c5",), runs=1).source


def test_statements_of_a_batch_use_an_index_too(db: Database) -> None:
    db.session.execute("create table t (id integer primary key, code text)")
    db.session.execute("create index t_code on t (code)")
    sql = "update t set id = id where code = ?"
    db.session.execute_batch(sql, [("c5",)] * RUNS)
    fill(db, 2000)
    db.session.execute_batch(sql, [("c5",)] * RUNS)
    assert ".scan(" not in db.session._statements[sql, (str,)].source


def test_a_plan_is_kept_where_growth_changes_nothing(db: Database) -> None:
    db.session.execute("create table t (id integer primary key, code text)")
    sql = "select count(*) from t where code > ?"
    kept_after(db, sql, ("c5",))
    fill(db, 2000)
    kept = kept_after(db, sql, ("c5",))
    assert [rows for _, rows in kept.scanned.tables] == [2000]
    assert kept_after(db, sql, ("c5",)) is kept


def test_statements_that_read_no_whole_table_look_at_nothing(db: Database) -> None:
    db.session.execute("create table t (id integer primary key, code text)")
    assert kept_after(db, "select * from t where id = ?", (1,), runs=1).scanned is None
