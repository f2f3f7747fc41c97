"""Stopping statements: progress handlers, and ``interrupt`` from another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, Error, InterfaceError, OperationalError, StatusCode

ROWS = 2500


@pytest.fixture(params=["memory", "lmdb"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "watch.qdb")
    with quereus_store.connect(path) as connection:
        connection.execute("create table t (id integer primary key, n integer)")
        connection.executemany("insert into t values (?, ?)", [(n, n % 7) for n in range(ROWS)])
        connection.execute("create table copy (id integer primary key, n integer)")
        yield connection


class Calls:
    """A progress handler that counts, and says stop at one of its calls."""

    def __init__(self, stop_at: int = 0) -> None:
        self.count = 0
        self.stop_at = stop_at

    def __call__(self) -> bool:
        self.count += 1
        return self.count == self.stop_at


STATEMENTS = {
    "scan": "select * from t",
    "range": "select * from t where id > 10",
    "sort": "select * from t order by n",
    "group": "select n, count(*) from t group by n",
    "join": "select count(*) from t a join t b on a.n + 1 = b.id",
    "pairs": "select count(*) from t a, t b where a.id < 1100 and a.id + b.id < 0",
    "subquery": "select count(*) from t where n in (select id from t)",
    "table function": "select count(*) from generate_series(1, 2500)",
    "insert": "insert into copy select * from t",
    "update": "update t set n = n + 1",
    "delete": "delete from t where n > 2",
    "new column": "alter table t add column m integer default (new.id * 2)",
    "type": "alter table t alter column n set data type text",
    "primary key": "alter table t alter primary key (n, id)",
    "analyze": "analyze t",
    "view": "create materialized view v as select n, count(*) as c from t group by n",
    "explain": "explain analyze select * from t",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_handler_is_called_and_stops(con: Connection, name: str) -> None:
    sql = STATEMENTS[name]
    before = con.execute("select sum(n), count(*) from t").fetchall()
    schema = con.execute(
        "select name, sql from schema() where schema = 'main' and type <> 'function'"
    ).fetchall()
    stopping = Calls(stop_at=1)
    con.set_progress_handler(stopping, 500)
    with pytest.raises(OperationalError, match="interrupted") as caught:
        con.execute(sql).fetchall()
    assert caught.value.code is StatusCode.INTERRUPT
    assert stopping.count == 1
    con.set_progress_handler(None, 0)
    assert con.execute("select sum(n), count(*) from t").fetchall() == before
    assert con.execute("select count(*) from copy").fetchone() == (0,)
    assert (
        con.execute("select name, sql from schema() where schema = 'main' and type <> 'function'").fetchall()
        == schema
    )
    counting = Calls()
    con.set_progress_handler(counting, 1)
    con.execute(sql).fetchall()
    assert counting.count >= 2


def test_endless_recursion(con: Connection) -> None:
    con.set_progress_handler(Calls(stop_at=2), 1)
    with pytest.raises(OperationalError, match="interrupted"):
        con.execute("with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r")


def test_a_transaction_goes_on_without_the_statement(con: Connection) -> None:
    with con.transaction():
        con.execute("insert into copy values (1, 1)")
        con.set_progress_handler(Calls(stop_at=1), 1)
        with pytest.raises(OperationalError):
            con.execute("insert into copy select id + 10, n from t")
        con.set_progress_handler(None, 0)
    assert con.execute("select * from copy").fetchall() == [(1, 1)]


def test_many_sets_of_parameters(con: Connection) -> None:
    con.set_progress_handler(Calls(stop_at=2), 2)
    with pytest.raises(OperationalError):
        con.executemany("update t set n = -1 where id = ?", [(n,) for n in range(3000)])
    con.set_progress_handler(Calls(stop_at=2), 2)
    with pytest.raises(OperationalError):
        con.executemany("update t set n = -1 where id >= ?", [(n,) for n in range(100)])
    con.set_progress_handler(None, 0)
    assert con.execute("select count(*) from t where n = -1").fetchone() == (0,)


def test_about_how_often(con: Connection) -> None:
    calls = Calls()
    con.set_progress_handler(calls, 2000)
    con.execute("select count(id + n) from t").fetchall()
    assert calls.count == 1


def test_a_handler_that_fails_interrupts(con: Connection) -> None:
    def handler() -> bool:
        raise KeyError("oh")

    con.set_progress_handler(handler, 1)
    with pytest.raises(OperationalError, match="interrupted") as caught:
        con.execute("select * from t").fetchall()
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_handler_may_ask_the_database(con: Connection) -> None:
    seen = []
    con.set_progress_handler(
        lambda: seen.append(con.execute("select count(*) from t where n = 1").fetchone()), 1
    )
    assert len(con.execute("select * from t").fetchall()) == ROWS
    assert seen
    assert set(seen) == {(len(range(1, ROWS, 7)),)}


def test_no_handler_for_less_than_a_row(con: Connection) -> None:
    con.set_progress_handler(Calls(stop_at=1), 0)
    assert len(con.execute("select * from t").fetchall()) == ROWS


def test_interrupt_from_another_thread(con: Connection) -> None:
    """The statement would take hours; the other thread waits until it runs."""
    running = threading.Event()
    con.create_function("started", 1, lambda n: running.set() or n)
    other = threading.Thread(target=lambda: (running.wait(), con.interrupt()))
    other.start()
    with pytest.raises(OperationalError, match="interrupted") as caught:
        con.execute(
            "select count(started(a.id)) from t a, t b, t c where a.n + b.n + c.n < 0 or started(1) = 0"
        )
    other.join()
    assert caught.value.code is StatusCode.INTERRUPT
    assert con.execute("select count(*) from t").fetchone() == (ROWS,)


def test_interrupt_while_a_cursor_is_read(con: Connection) -> None:
    cursor = con.execute("select * from t where n >= 0")
    cursor.fetchone()
    con.interrupt()
    with pytest.raises(OperationalError):
        cursor.fetchall()


def test_interrupt_of_nothing(con: Connection) -> None:
    con.interrupt()
    assert len(con.execute("select * from t").fetchall()) == ROWS
    con.interrupt()
    assert len(con.execute("select n from t where id > 0").fetchall()) == ROWS - 1
    con.interrupt()
    con.executescript("delete from copy where n > 0; select * from t")


def test_a_closed_connection_is_not_interrupted() -> None:
    con = quereus_store.connect()
    con.close()
    for act in (con.interrupt, lambda: con.set_progress_handler(None, 0)):
        with pytest.raises(InterfaceError):
            act()


def test_the_error_names_no_function(con: Connection) -> None:
    """A trace that is interrupted is an interrupted statement."""
    con.set_progress_handler(Calls(stop_at=1), 1)
    with pytest.raises(Error, match="interrupted"):
        con.execute("select * from execution_trace('select * from t')").fetchall()
