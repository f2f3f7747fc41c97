"""Connections after ``fork``: the child goes on or is told why not, and the parent goes on in any case."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


def in_child(work: Callable[[], object]) -> str:
    """What the work gives in a forked child, or the error it ends with."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(write_end, answer.encode())
        os._exit(0)
    os.close(write_end)
    with open(read_end, encoding="utf-8") as answers:
        told = answers.read()
    os.waitpid(child, 0)
    return told


def add(con: Connection, *numbers: int) -> list[tuple[int]]:
    for number in numbers:
        con.execute("insert into t values (?, 'x')", (number,))
    return con.execute("select id from t order by id").fetchall()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "db"


def opened(place: Path, backend: str) -> Connection:
    con = quereus_store.connect(place, backend=backend)
    con.executescript("create table t (id integer primary key, v text); create index by_v on t (v);")
    add(con, 1)
    return con


def sound(con: Connection) -> bool:
    return con.database.check() == []


def test_an_idle_connection_to_lmdb_goes_on_on_both_sides(place: Path) -> None:
    con = opened(place, "lmdb")
    assert in_child(lambda: add(con, 2)) == "[(1,), (2,)]"
    assert add(con, 3) == [(1,), (2,), (3,)]
    assert sound(con)


def test_a_child_that_goes_on_may_connect_once_more(place: Path) -> None:
    con = opened(place, "lmdb")

    def work() -> list[tuple[int]]:
        add(con, 2)
        with quereus_store.connect(place) as second:
            add(second, 3)
        con.close()
        with quereus_store.connect(place) as third:
            return add(third, 4)

    assert in_child(work) == "[(1,), (2,), (3,), (4,)]"
    assert add(con, 5) == [(1,), (2,), (3,), (4,), (5,)]


def test_attached_files_after_a_fork(place: Path) -> None:
    con = opened(place, "lmdb")
    for backend in ("lmdb", "leveldb"):
        con.execute(f"attach ? as {backend} (backend = {backend})", (f"{place}-{backend}",))
        con.execute(f"create table {backend}.u (id integer primary key)")
    with quereus_store.connect(f"{place}-lmdb") as direct:
        child = "cannot use '[^']*-leveldb' in this process"
        assert re.search(child, in_child(lambda: con.execute("select * from t").fetchall()))
        assert in_child(lambda: direct.execute("select * from u").fetchall()) == "[]"
        con.execute("detach leveldb")
        con.begin()
        con.execute("insert into u values (1)")
        assert "forked" in in_child(con.commit)
        con.commit()
        assert direct.execute("select * from u").fetchall() == [(1,)]

        def work() -> list[tuple[int]]:
            con.execute("insert into lmdb.u values (2)")
            with quereus_store.connect(f"{place}-lmdb") as again:
                return again.execute("select id from u").fetchall()

        assert in_child(work) == "[(1,), (2,)]"
        assert direct.execute("select * from u").fetchall() == [(1,), (2,)]


def test_a_transaction_stays_with_the_parent(place: Path) -> None:
    con = opened(place, "lmdb")
    con.begin()
    add(con, 2)
    told = "InterfaceError: a write transaction cannot be used in a forked process"
    assert in_child(con.commit) == told
    assert "forked" in in_child(lambda: con.execute("select * from t").fetchall())
    told = (
        f"InterfaceError: cannot open '{place}' in this process: it was forked while a transaction was open; "
        "end transactions before forking, or start processes with the 'spawn' method"
    )
    assert in_child(lambda: quereus_store.connect(place)) == told
    assert in_child(lambda: in_child(lambda: quereus_store.connect(place))) == repr(told)
    with quereus_store.connect(":memory:") as other:
        assert in_child(lambda: other.execute("attach ? as a", (str(place),))) == told
    assert add(con, 3) == [(1,), (2,), (3,)]
    con.commit()
    con.close()
    with quereus_store.connect(place) as again:
        assert add(again, 4) == [(1,), (2,), (3,), (4,)]
        assert sound(again)


@pytest.mark.parametrize("frozen", [False, True])
def test_rows_that_are_being_read_stay_with_the_parent(frozen: bool, place: Path) -> None:
    """Nothing in the child would keep their pages from being written over."""
    con = opened(place, "lmdb")
    con.executemany("insert into t values (?, 'y')", [(number,) for number in range(10, 5000)])
    con.close()
    con = quereus_store.connect(place, cache_size=0)
    cursor = con.execute("select id from t order by id")
    assert cursor.fetchone() == (1,)
    if frozen:
        gc.freeze()
    refused = in_child(lambda: len(cursor.fetchall()))
    gc.unfreeze()
    assert refused == "InterfaceError: a snapshot cannot be used in a forked process"
    with quereus_store.connect(place) as other:
        other.execute("delete from t where id > 100")
    assert len(cursor.fetchall()) == 4990
    assert con.execute("select count(*) from t").fetchone() == (92,)
    assert sound(con)


def test_a_transaction_that_has_only_read_stays_with_the_parent(place: Path) -> None:
    con = opened(place, "lmdb")
    con.begin()
    sql = "select id from t where id = ?"
    assert con.execute(sql, (1,)).fetchall() == [(1,)]
    refused = "InterfaceError: a snapshot cannot be used in a forked process"
    assert in_child(lambda: con.execute(sql, (1,)).fetchall()) == refused
    assert con.execute(sql, (1,)).fetchall() == [(1,)]
    con.commit()
    assert add(con, 2) == [(1,), (2,)]


def test_leveldb_stays_with_the_parent(place: Path) -> None:
    con = opened(place, "leveldb")
    con.executemany("insert into t values (?, 'y')", [(number,) for number in range(10, 5000)])
    cursor = con.execute("select v from t order by id")
    assert cursor.fetchone() == ("x",)
    assert "Error: " in in_child(lambda: add(con, 2))
    assert "Error: " in in_child(lambda: cursor.fetchall())
    assert len(cursor.fetchall()) == 4990
    con.execute("delete from t where id > 9")
    assert "Error: " in in_child(lambda: quereus_store.connect(place, backend="leveldb"))
    assert add(con, 3) == [(1,), (3,)]
    assert sound(con)


def test_memory_is_copied(place: Path) -> None:
    with quereus_store.connect(":memory:") as con:
        con.execute("create table t (id integer primary key, v text)")
        assert in_child(lambda: add(con, 2)) == "[(2,)]"
        assert add(con, 3) == [(3,)]
