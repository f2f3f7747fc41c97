"""The log of changes that events and maintained tables read."""

from typing import Any

import pytest

from quereus_store.execute.dml.changes import Change
from tests.execute.database import Database


@pytest.fixture
def logging(db: Database) -> Database:
    db.engine.notifier.subscribe("data", lambda event: None)
    return db


def changes(db: Database, *statements: str) -> list[tuple[str, str, list[Any], list[Any]]]:
    """What the statements log within one transaction."""
    db.run("begin")
    for sql in statements:
        db.rows(sql)
    assert db.session.transaction is not None
    found: list[Change] = list(db.session.transaction.changes)
    db.run("commit")
    return [(c.table.name, c.operation.value, list(c.old), list(c.new)) for c in found if c.old or c.new]


def test_each_statement_logs_its_batch(logging: Database) -> None:
    logging.run("create table t (id integer primary key, v integer)")
    assert changes(
        logging,
        "insert into t values (1, 1), (2, 2)",
        "update t set v = v * 10 where id = 2",
        "delete from t where id = 1",
    ) == [
        ("t", "insert", [], [(1, 1), (2, 2)]),
        ("t", "update", [(2, 2)], [(2, 20)]),
        ("t", "delete", [(1, 1)], []),
    ]


def test_failed_statements_log_nothing(logging: Database) -> None:
    logging.run("create table t (id integer primary key, v integer); insert into t values (1, 1)")
    logging.run("begin")
    logging.fails("insert or replace into t values (1, 5), (2, null)")
    assert logging.session.transaction is not None
    assert logging.session.transaction.changes == []


def test_replace_is_an_update_and_an_eviction_a_delete(logging: Database) -> None:
    logging.run("create table t (id integer primary key, u text unique)")
    logging.run("insert into t values (1, 'a'), (2, 'b')")
    assert changes(logging, "insert or replace into t values (1, 'b')") == [
        ("t", "delete", [(2, "b")], []),
        ("t", "update", [(1, "a")], [(1, "b")]),
    ]


def test_upserts_log_updates(logging: Database) -> None:
    logging.run("create table t (id integer primary key, v integer); insert into t values (1, 1)")
    upsert = "insert into t values (1, 5), (2, 6) on conflict (id) do update set v = excluded.v"
    assert changes(logging, upsert) == [
        ("t", "insert", [], [(2, 6)]),
        ("t", "update", [(1, 1)], [(1, 5)]),
    ]


def test_children_come_before_their_parents(logging: Database) -> None:
    logging.run("create table a (id integer primary key)")
    logging.run("create table b (id integer primary key, a integer references a (id) on delete cascade)")
    logging.run(
        "create table c (id integer primary key, b integer null references b (id) on delete set null)"
    )
    logging.run("insert into a values (1); insert into b values (2, 1); insert into c values (3, 2)")
    assert changes(logging, "delete from a") == [
        ("c", "update", [(3, 2)], [(3, None)]),
        ("b", "delete", [(2, 1)], []),
        ("a", "delete", [(1,)], []),
    ]
