"""Connections that change hands between threads, and threads that end before their transaction."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, OperationalError
from quereus_store.errors import StatusCode
from quereus_store.store.open import open_store
from tests.bad_input.support import CREW, crew, make, refused


def in_thread(work: Callable[[], object]) -> None:
    """Run something in a thread of its own, to its end."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


@pytest.fixture
def path(tmp_path: Path, backend: str) -> Path:
    make(tmp_path / "db", backend)
    return tmp_path / "db"


def begin_and_write(connection: Connection) -> None:
    connection.begin()
    connection.execute("insert into crew values (4, 'Cy')")


@pytest.mark.parametrize("end", ["commit", "rollback", "close", "forget"])
def test_a_transaction_is_ended_by_another_thread_than_began_it(end: str, path: Path, backend: str) -> None:
    with quereus_store.connect(path, backend=backend, timeout=0) as other:
        held = [quereus_store.connect(path, backend=backend)]
        in_thread(lambda: begin_and_write(held[0]))
        with refused(OperationalError, StatusCode.BUSY, "database is locked"):
            other.execute("insert into crew values (5, 'Di')")
        if end == "forget":
            held.clear()
            gc.collect()
        else:
            getattr(held[0], end)()
        expected = [*CREW, (4, "Cy")] if end == "commit" else CREW
        assert crew(other) == expected
        other.execute("insert into crew values (5, 'Di')")
        assert crew(other) == [*expected, (5, "Di")]
    with quereus_store.connect(path, backend=backend) as again:
        assert crew(again) == [*expected, (5, "Di")]
        assert again.database.check() == []


def test_the_last_connection_is_closed_by_another_thread(path: Path, backend: str) -> None:
    connection = quereus_store.connect(path, backend=backend)
    in_thread(lambda: begin_and_write(connection))
    in_thread(connection.close)
    with quereus_store.connect(path, backend=backend, timeout=0) as again:
        assert crew(again) == CREW
        again.execute("insert into crew values (5, 'Di')")


def test_a_database_that_could_not_be_closed_is_found_again(path: Path, backend: str) -> None:
    """The thread that writes still runs: where that keeps the storage open, nobody is shut out of it."""
    connection = quereus_store.connect(path, backend=backend)
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        begin_and_write(connection)
        begun.set()
        done.wait(60)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(60)
    with contextlib.suppress(OperationalError):
        connection.close()
    with quereus_store.connect(path, backend=backend) as again:
        assert crew(again) == CREW
        done.set()
        thread.join(60)
        again.execute("insert into crew values (5, 'Di')")
        assert crew(again) == [*CREW, (5, "Di")]
    with quereus_store.connect(path, backend=backend) as again:
        assert crew(again) == [*CREW, (5, "Di")]


def test_the_garbage_collector_closes_connections_in_the_middle_of_opening_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening makes objects, so the collector may run there and close connections that only cycles hold."""

    def opening(*arguments: Any, **options: Any) -> Any:
        gc.collect()
        return open_store(*arguments, **options)

    class Holder:
        def __init__(self, connection: Connection) -> None:
            self.connection, self.cycle = connection, self

    def work() -> None:
        for number in range(9):
            connection = quereus_store.connect(tmp_path / f"{number % 3}.qdb")
            connection.execute("create table if not exists t (id integer primary key)")
            connection.execute("insert into t values (?)", (number,))
            Holder(connection)
            del connection

    monkeypatch.setattr("quereus_store.api.opening.open_store", opening)
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()
    gc.collect()
    for number in range(3):
        with quereus_store.connect(tmp_path / f"{number}.qdb") as connection:
            assert connection.execute("select count(*) from t").fetchone() == (3,)


@pytest.mark.parametrize("storage", ["memory", "lmdb", "leveldb"])
def test_a_further_connection_may_be_closed_without_closing_the_database(
    storage: str, tmp_path: Path
) -> None:
    place: str | Path = ":memory:"
    options: dict[str, str] = {}
    if storage != "memory":
        place, options = tmp_path / "db", {"backend": storage}
    first = quereus_store.connect(place, **options)
    first.execute("create table t (id integer primary key)")
    told: list[object] = []
    first.database.watch("select * from t", told.append)
    second = quereus_store.Connection(first.database)
    second.execute("insert into t values (1)")
    second.close()
    first.execute("insert into t values (2)")
    assert first.execute("select count(*) from t").fetchone() == (2,)
    assert len(told) == 2
    first.close()
    if storage != "memory":
        with pytest.raises(quereus_store.InterfaceError, match="Database is closed"):
            quereus_store.Connection(first.database)
        with contextlib.closing(quereus_store.connect(place, **options)) as again:
            assert again.execute("select count(*) from t").fetchone() == (2,)
