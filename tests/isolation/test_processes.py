"""Several processes on one LMDB file: readers never wait, writers take turns, schema changes are seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, OperationalError
from quereus_store.errors import StatusCode
from tests.isolation.workers import Worker, start


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "db.qdb"


@pytest.fixture(scope="module")
def processes(path: Path) -> Iterator[tuple[Connection, Worker]]:
    """A connection here, and another process that has the same file open and does not wait for locks."""
    with quereus_store.connect(path, timeout=0.0, synchronous="off") as connection:
        worker = start(path, timeout=0.0)
        yield connection, worker
        worker.end()


@pytest.fixture
def here(processes: tuple[Connection, Worker]) -> Iterator[Connection]:
    connection, worker = processes
    connection.execute("create table item (id integer primary key, n integer)")
    connection.executemany("insert into item values (?, ?)", [(key, 0) for key in range(100)])
    yield connection
    connection.rollback()
    worker.run("rollback")
    connection.execute("drop table item")


@pytest.fixture
def there(processes: tuple[Connection, Worker]) -> Worker:
    return processes[1]


def total(connection: Connection) -> int:
    return int(connection.execute("select sum(n) from item").fetchone()[0])


def test_readers_are_not_blocked_by_a_writer(here: Connection, there: Worker) -> None:
    there.run("begin")
    there.run("update item set n = 1")
    assert total(here) == 0
    assert there.run("select sum(n) from item") == [(100,)]
    there.run("commit")
    assert total(here) == 100


def test_a_writer_is_not_blocked_by_readers(here: Connection, there: Worker) -> None:
    there.run("begin")
    assert there.run("select sum(n) from item") == [(0,)]
    here.execute("update item set n = 1")
    here.execute("delete from item where id >= 50")
    assert there.run("select sum(n), count(*) from item") == [(0, 100)]
    there.run("commit")
    assert there.run("select sum(n), count(*) from item") == [(50, 50)]


def test_a_second_writer_is_refused(here: Connection, there: Worker) -> None:
    there.run("begin")
    there.run("update item set n = 1 where id = 1")
    with pytest.raises(OperationalError, match="database is locked") as refused:
        here.execute("update item set n = 2 where id = 2")
    assert refused.value.code is StatusCode.BUSY
    there.run("rollback")
    here.execute("update item set n = 2 where id = 2")
    assert there.run("select id, n from item where n > 0") == [(2, 2)]


def test_a_second_writer_waits_for_its_turn(here: Connection, there: Worker, path: Path) -> None:
    with quereus_store.connect(path, timeout=30.0) as patient:
        there.run("begin")
        there.run("update item set n = n + 1 where id = 1")
        there.send("commit")
        patient.execute("update item set n = n + 10 where id = 1")
        there.answer()
    assert here.execute("select n from item where id = 1").fetchone() == (11,)


def test_an_update_is_not_lost(here: Connection, there: Worker) -> None:
    there.run("begin")
    assert there.run("select n from item where id = 1") == [(0,)]
    here.execute("update item set n = n + 1 where id = 1")
    with pytest.raises(OperationalError, match="another connection has committed since this one read"):
        there.run("update item set n = ? where id = 1", 0 + 1)
    there.run("rollback")
    assert there.run("update item set n = n + 1 where id = 1 returning n") == [(2,)]


def test_a_schema_change_is_seen_at_the_next_statement(here: Connection, there: Worker) -> None:
    assert there.run("select * from item where id = 7") == [(7, 0)]
    here.execute("alter table item add column note text default 'new'")
    assert there.run("select * from item where id = 7") == [(7, 0, "new")]
    there.run("create unique index by_note on item (note, id)")
    there.run("insert into item values (100, 1, 'x')")
    assert here.execute("select id from item where note = 'x'").fetchall() == [(100,)]
    with pytest.raises(quereus_store.IntegrityError, match="UNIQUE constraint failed"):
        here.execute("update item set note = 'x', id = 100 where id = 1")
    here.execute("alter table item rename column note to label")
    assert there.run("select label from item where id = 100") == [("x",)]
    there.run("drop index by_note")
    assert here.database.check() == []


def test_a_table_that_another_process_dropped(here: Connection, there: Worker) -> None:
    here.execute("create table gone (id integer primary key)")
    assert there.run("select * from gone") == []
    there.run("begin")
    assert there.run("select * from gone") == []
    here.execute("drop table gone")
    assert there.run("select * from gone") == []
    there.run("commit")
    with pytest.raises(quereus_store.ProgrammingError, match="Table 'gone' not found"):
        there.run("select * from gone")


def test_a_killed_process_leaves_no_lock_behind(here: Connection, path: Path) -> None:
    doomed = start(path, timeout=0.0)
    doomed.run("begin")
    doomed.run("update item set n = 1")
    doomed.process.kill()
    doomed.process.communicate(timeout=60)
    here.execute("update item set n = 2 where id = 1")
    assert total(here) == 2
    assert here.database.check() == []


def test_processes_that_count_together(here: Connection, there: Worker, path: Path) -> None:
    """Increments from two processes, each in autocommit with a timeout: none is lost."""
    other = start(path, timeout=60.0)
    with quereus_store.connect(path, timeout=60.0) as patient:
        for _ in range(30):
            other.send("update item set n = n + 1 where id = 1")
            patient.execute("update item set n = n + 1 where id = 1")
            assert other.answer() == []
    other.end()
    assert here.execute("select n from item where id = 1").fetchone() == (60,)
