"""Connections in several threads of one process: readers see whole commits, writers take turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, OperationalError
from quereus_store.errors import StatusCode

Connect = Callable[..., Connection]


@pytest.fixture(params=["lmdb", "leveldb"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Opens one more connection to a database with ten rows of 0."""

    def open_another(timeout: float = 60.0) -> Connection:
        return quereus_store.connect(
            tmp_path / "db", backend=request.param, timeout=timeout, synchronous="off"
        )

    with open_another() as first:
        first.execute("create table item (id integer primary key, n integer)")
        first.executemany("insert into item values (?, 0)", [(key,) for key in range(10)])
        yield open_another
        assert first.database.check() == []


def in_threads(*works: Callable[[], None]) -> None:
    """Run all at once; the first failure is raised when all have ended."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_writers_take_turns(connect: Connect) -> None:
    def count() -> None:
        with connect() as connection:
            for _ in range(25):
                connection.execute("update item set n = n + 1 where id = 1")

    in_threads(count, count, count, count)
    with connect() as connection:
        assert connection.execute("select n from item where id = 1").fetchone() == (100,)


def test_read_and_write_with_another_try(connect: Connect) -> None:
    """Read, compute, write in one transaction: it is refused when somebody was faster, and tried again."""

    def count() -> None:
        with connect() as connection:
            done = 0
            while done < 10:
                try:
                    with connection.transaction():
                        (n,) = connection.execute("select n from item where id = 1").fetchone()
                        connection.execute("update item set n = ? where id = 1", (n + 1,))
                except OperationalError as error:
                    if error.code is not StatusCode.BUSY:
                        raise
                else:
                    done += 1

    in_threads(count, count, count)
    with connect() as connection:
        assert connection.execute("select n from item where id = 1").fetchone() == (30,)


def test_readers_see_whole_commits(connect: Connect) -> None:
    """Every commit sets all rows to one number; no reader ever finds two, nor goes back in time."""
    ended = threading.Event()

    def write() -> None:
        try:
            with connect() as connection:
                for number in range(1, 41):
                    with connection.transaction():
                        connection.execute("update item set n = ? where id < 5", (number,))
                        connection.execute("update item set n = ? where id >= 5", (number,))
        finally:
            ended.set()

    def read() -> None:
        latest = 0
        with connect() as connection:
            while True:
                last_round = ended.is_set()
                least, most, rows = connection.execute("select min(n), max(n), count(*) from item").fetchone()
                assert least == most >= latest
                assert rows == 10
                latest = most
                if last_round:
                    break
        assert latest == 40

    in_threads(write, read, read)


def test_a_reader_is_not_blocked_by_a_writer_of_another_thread(connect: Connect) -> None:
    written, read = threading.Event(), threading.Event()

    def write() -> None:
        with connect() as connection, connection.transaction():
            connection.execute("update item set n = 9")
            written.set()
            assert read.wait(60)

    def look() -> None:
        with connect(timeout=0.0) as connection:
            assert written.wait(60)
            try:
                assert connection.execute("select max(n) from item").fetchone() == (0,)
                with pytest.raises(OperationalError, match="database is locked"):
                    connection.execute("delete from item")
            finally:
                read.set()

    in_threads(write, look)
    with connect() as connection:
        assert connection.execute("select min(n) from item").fetchone() == (9,)


def test_a_schema_change_of_another_thread(connect: Connect) -> None:
    changed = threading.Event()

    def change() -> None:
        with connect() as connection:
            connection.execute("alter table item add column note text default 'x'")
        changed.set()

    with connect() as connection:
        assert connection.execute("select * from item where id = 1").fetchall() == [(1, 0)]
        in_threads(change)
        assert changed.is_set()
        assert connection.execute("select * from item where id = 1").fetchall() == [(1, 0, "x")]


def test_a_kept_statement_that_writes_begins_as_the_writer(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = "update item set n = n + 1 where id = ?"
    with connect() as a, connect() as b:
        a.execute(add, (1,))
        b.execute(add, (1,))
        b.execute("alter table item add column note text null")
        b.execute("create index by_note on item (note)")
        a.execute(add, (1,))

        with monkeypatch.context() as patch:
            patch.setattr(a.database.engine, "pin", lambda: pytest.fail("a snapshot was taken"))
            a.execute(add, (1,))

        assert b.execute("select * from item where id = 1").fetchall() == [(1, 4, None)]
        # A failure gives the writer back.
        with pytest.raises(quereus_store.IntegrityError):
            a.execute("insert into item (id, n) values (?, 0)", (1,))
        with pytest.raises(quereus_store.IntegrityError):
            a.execute("insert into item (id, n) values (?, 0)", (1,))
        b.execute(add, (2,))
