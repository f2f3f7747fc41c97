"""Autocommit, blocks that nest as savepoints, and PEP 249's transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection


def ids(con: Connection) -> list[int]:
    return [number for (number,) in con.execute("select id from crew order by id").fetchall()]


def add(con: Connection, *numbers: int) -> None:
    for number in numbers:
        con.execute("insert into crew values (?, 'new', null)", (number,))


def test_a_statement_commits_by_itself(con: Connection) -> None:
    add(con, 4)
    assert not con.in_transaction
    con.rollback()
    assert ids(con) == [1, 2, 3, 4]


def test_a_block_commits_or_undoes_all(con: Connection) -> None:
    with con.transaction():
        assert con.in_transaction
        add(con, 4, 5)

    def fail() -> None:
        with con.transaction():
            con.execute("delete from crew")
            con.execute("create table more (id integer primary key)")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert not con.in_transaction
    assert ids(con) == [1, 2, 3, 4, 5]
    with pytest.raises(quereus_store.ProgrammingError):
        con.execute("select * from more")


def test_a_block_within_a_block_is_a_savepoint(con: Connection) -> None:

    def fail() -> None:
        with con.transaction():
            add(con, 5)
            with con.transaction():
                add(con, 6)
            add(con, 1)

    with con.transaction():
        add(con, 4)
        with pytest.raises(quereus_store.IntegrityError):
            fail()
        with con.transaction():
            add(con, 7)
        assert ids(con) == [1, 2, 3, 4, 7]
    assert ids(con) == [1, 2, 3, 4, 7]


def test_a_statement_that_fails_undoes_itself_alone(con: Connection) -> None:
    with con.transaction():
        add(con, 4)
        with pytest.raises(quereus_store.IntegrityError):
            con.execute("insert into crew values (5, 'x', 1), (1, 'x', 1)")
        with pytest.raises(quereus_store.IntegrityError):
            con.executemany("insert into crew values (?, 'x', 1)", [(6,), (7,), (2,)])
        add(con, 8)
    assert ids(con) == [1, 2, 3, 4, 8]


def test_without_autocommit_the_first_statement_begins(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "db", autocommit=False) as con:
        assert not con.autocommit
        con.execute("create table crew (id integer primary key, nick text, rank integer null)")
        add(con, 1)
        assert con.in_transaction
        con.commit()
        add(con, 2)
        con.rollback()
        add(con, 3)
        with quereus_store.connect(tmp_path / "db") as other:
            assert ids(other) == [1]
    # Leaving the block commits what is open.
    with quereus_store.connect(tmp_path / "db") as con:
        assert ids(con) == [1, 3]


def test_closing_undoes_what_is_open(tmp_path: Path) -> None:
    con = quereus_store.connect(tmp_path / "db", autocommit=False)
    con.execute("create table crew (id integer primary key, nick text, rank integer null)")
    con.commit()
    add(con, 1)
    con.close()
    with quereus_store.connect(tmp_path / "db") as again:
        assert ids(again) == []


def test_turning_autocommit_on_commits(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "db", autocommit=False) as con:
        con.execute("create table crew (id integer primary key, nick text, rank integer null)")
        add(con, 1)
        con.autocommit = True
        assert not con.in_transaction
        con.rollback()
        assert ids(con) == [1]


def test_changes_are_counted(con: Connection) -> None:
    before = con.total_changes
    con.execute("update crew set rank = 1")
    con.execute("delete from crew where id = 1")
    con.executemany("insert into crew values (?, 'x', 1)", [(8,), (9,)])
    assert con.total_changes - before == 6
