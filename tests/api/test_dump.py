"""``iterdump``: a database as SQL, of one state, whatever goes on meanwhile."""

from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection

SCRIPT = """
create table crew (id integer primary key, nick text, skills json null);
create index by_nick on crew (nick);
create view nicks as select nick from crew;
insert into crew values (1, 'Ann', '["sail"]'), (2, 'it''s
two lines', null);
"""


@pytest.fixture
def con(tmp_path: Path) -> Connection:
    connection = quereus_store.connect(tmp_path / "db")
    connection.executescript(SCRIPT)
    return connection


def test_the_statements_make_the_same_database(con: Connection) -> None:
    con.row_factory = quereus_store.dict_row
    script = "\n".join(con.iterdump())
    with quereus_store.connect(":memory:") as copy:
        copy.executescript(script)
        assert copy.execute("select * from crew").fetchall() == [
            (1, "Ann", ["sail"]),
            (2, "it's\ntwo lines", None),
        ]
        assert copy.execute("select count(*) from nicks").fetchone() == (2,)
        assert sorted(copy.iterdump()) == sorted(con.iterdump())


def test_it_is_of_one_state(con: Connection, tmp_path: Path) -> None:
    before = list(con.iterdump())
    dump = con.iterdump()
    taken = [next(dump)]
    with quereus_store.connect(tmp_path / "db") as other:
        other.execute("delete from crew")
        other.execute("drop view nicks")
    assert [*taken, *dump] == before
    assert not con.in_transaction
    assert con.execute("select count(*) from crew").fetchone() == (0,)


def test_an_open_transaction_is_dumped_as_it_is(con: Connection) -> None:
    con.begin()
    con.execute("create table more (id integer primary key)")
    con.execute("insert into more values (7)")
    assert 'insert into "more" ("id") values\n  (7);' in list(con.iterdump())
    assert con.in_transaction
    con.rollback()
    assert "more" not in "".join(con.iterdump())


def test_a_dump_that_is_given_up_leaves_nothing_open(con: Connection) -> None:
    dump = con.iterdump()
    next(dump)
    del dump
    assert not con.in_transaction
    con.close()
    with pytest.raises(quereus_store.InterfaceError, match="closed"):
        con.iterdump()
