"""What concurrent transactions can see of each other: snapshot isolation, where the first committer wins.

Each test is one anomaly of the literature with two connections (*a* and *b*) to one database.  All but one
cannot happen; the last shows the one that can, and how to prevent it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, IntegrityError, OperationalError
from quereus_store.errors import StatusCode

Pair = tuple[Connection, Connection]


@pytest.fixture(params=["memory", "lmdb", "leveldb"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Two connections to a database with two accounts; neither waits for the other's writes."""
    in_memory = request.param == "memory"
    place = ":memory:" if in_memory else tmp_path / "db"
    options = {} if in_memory else {"backend": request.param, "synchronous": "off"}
    with (
        closing(quereus_store.connect(place, timeout=0.0, **options)) as a,
        closing(
            Connection(a.database, timeout=0.0) if in_memory else quereus_store.connect(place, timeout=0.0)
        ) as b,
    ):
        a.executescript("""
            create table account (name text primary key, balance integer, check (balance >= 0));
            create index by_balance on account (balance);
            insert into account values ('x', 50), ('y', 50);
        """)
        yield a, b


def balance(connection: Connection, name: str) -> int:
    (found,) = connection.execute("select balance from account where name = ?", (name,)).fetchone()
    return int(found)


def total(connection: Connection) -> int:
    return int(connection.execute("select sum(balance) from account").fetchone()[0])


def set_balance(connection: Connection, name: str, amount: int) -> None:
    connection.execute("update account set balance = ? where name = ?", (amount, name))


def test_no_dirty_read(pair: Pair) -> None:
    a, b = pair
    a.begin()
    set_balance(a, "x", 0)
    assert (balance(a, "x"), balance(b, "x")) == (0, 50)
    assert b.execute("select name from account where balance < 50").fetchall() == []
    a.rollback()
    assert balance(b, "x") == 50


def test_no_dirty_write(pair: Pair) -> None:
    """A second writer is refused (or waits) until the first has ended, so changes are never mixed."""
    a, b = pair
    a.begin()
    set_balance(a, "x", 1)
    b.begin()
    with pytest.raises(OperationalError, match="database is locked") as refused:
        set_balance(b, "y", 2)
    assert refused.value.code is StatusCode.BUSY
    a.commit()
    b.rollback()
    assert (balance(b, "x"), balance(b, "y")) == (1, 50)


def test_no_intermediate_read(pair: Pair) -> None:
    a, b = pair
    a.begin()
    set_balance(a, "x", 1)
    assert balance(b, "x") == 50
    set_balance(a, "x", 2)
    a.commit()
    assert balance(b, "x") == 2


def test_reads_are_repeatable(pair: Pair) -> None:
    a, b = pair
    b.begin()
    assert balance(b, "x") == 50
    set_balance(a, "x", 7)
    assert balance(b, "x") == 50
    b.commit()
    assert balance(b, "x") == 7


def test_no_read_skew(pair: Pair) -> None:
    """One transaction sees both accounts at one moment, although a transfer falls between its reads."""
    a, b = pair
    b.begin()
    seen = balance(b, "x")
    with a.transaction():
        set_balance(a, "x", 20)
        set_balance(a, "y", 80)
    assert seen + balance(b, "y") == 100
    assert total(b) == 100
    b.commit()


def test_no_phantoms(pair: Pair) -> None:
    a, b = pair
    b.begin()
    assert b.execute("select count(*) from account where balance > 10").fetchone() == (2,)
    a.execute("insert into account values ('z', 90)")
    a.execute("delete from account where name = 'x'")
    assert b.execute("select name from account where balance > 10 order by name").fetchall() == [
        ("x",),
        ("y",),
    ]
    b.commit()
    assert b.execute("select name from account where balance > 10 order by name").fetchall() == [
        ("y",),
        ("z",),
    ]


def test_a_statement_reads_one_moment(pair: Pair) -> None:
    """Rows that are still being fetched are those of the moment when the statement began."""
    a, b = pair
    cursor = b.execute("select name from account order by name")
    assert cursor.fetchone() == ("x",)
    a.execute("delete from account")
    assert cursor.fetchall() == [("y",)]
    assert b.execute("select * from account").fetchall() == []


def test_no_lost_update(pair: Pair) -> None:
    """Both read, both write what they read plus something: the second is refused, and may try again."""
    a, b = pair
    a.begin()
    b.begin()
    read_by_a, read_by_b = balance(a, "x"), balance(b, "x")
    set_balance(a, "x", read_by_a + 10)
    a.commit()
    with pytest.raises(
        OperationalError, match="another connection has committed since this one read"
    ) as refused:
        set_balance(b, "x", read_by_b + 10)
    assert refused.value.code is StatusCode.BUSY
    b.rollback()
    with b.transaction():
        set_balance(b, "x", balance(b, "x") + 10)
    assert balance(a, "x") == 70


def test_a_refused_writer_keeps_its_snapshot(pair: Pair) -> None:
    a, b = pair
    b.begin()
    assert balance(b, "x") == 50
    set_balance(a, "x", 1)
    for _ in range(2):
        with pytest.raises(OperationalError, match="database is locked"):
            b.execute("delete from account")
        assert (balance(b, "x"), total(b)) == (50, 100)
    b.rollback()
    assert balance(b, "x") == 1


def test_no_write_skew_between_writers(pair: Pair) -> None:
    """Each may withdraw from one account as long as both together hold enough: only one of them can."""
    a, b = pair
    a.begin()
    b.begin()
    assert (total(a), total(b)) == (100, 100)
    set_balance(a, "x", 0)
    a.commit()
    with pytest.raises(OperationalError, match="database is locked"):
        set_balance(b, "y", 0)
    b.rollback()
    assert total(a) == 50


def test_what_a_reader_concludes_may_be_out_of_date(pair: Pair) -> None:
    """The one anomaly: what a transaction read, and acts upon after its end, binds nobody else.

    To decide by what was read, decide in the transaction that writes (as in the tests above).
    """
    a, b = pair
    with b.transaction():
        enough = total(b) >= 100
    with a.transaction():
        set_balance(a, "x", 0)
    if enough:
        set_balance(b, "y", 0)
    assert total(a) == 0


def test_constraints_see_what_others_committed(pair: Pair) -> None:
    a, b = pair
    a.execute("insert into account values ('z', 1)")
    with pytest.raises(IntegrityError, match="UNIQUE constraint failed"):
        b.execute("insert into account values ('z', 2)")
    assert balance(b, "z") == 1


def test_a_schema_change_is_isolated(pair: Pair) -> None:
    """A transaction keeps the schema it began with; others see a new one when it is committed."""
    a, b = pair
    b.begin()
    assert b.execute("select * from account where name = 'x'").fetchall() == [("x", 50)]
    with a.transaction():
        a.execute("alter table account add column note text default 'none'")
        a.execute("create table more (id integer primary key)")
        assert a.execute("select note from account where name = 'x'").fetchall() == [("none",)]
        assert b.execute("select * from account where name = 'x'").fetchall() == [("x", 50)]
    assert b.execute("select * from account where name = 'x'").fetchall() == [("x", 50)]
    with pytest.raises(quereus_store.ProgrammingError, match="Table 'more' not found"):
        b.execute("select * from more")
    b.commit()
    assert b.execute("select * from account where name = 'x'").fetchall() == [("x", 50, "none")]
    assert b.execute("select * from more").fetchall() == []


def test_an_index_made_by_another_is_used_and_kept(pair: Pair) -> None:
    a, b = pair
    b.execute("select name from account where balance = 50").fetchall()
    a.execute("drop index by_balance")
    assert b.execute("select name from account where balance = 50 order by name").fetchall() == [
        ("x",),
        ("y",),
    ]
    a.execute("create index by_name on account (balance, name)")
    b.execute("insert into account values ('z', 50)")
    assert a.execute("select name from account where balance = 50").fetchall() == [("x",), ("y",), ("z",)]
    assert a.database.check() == []


def test_a_transaction_that_has_seen_nothing_starts_where_it_gets_its_turn(pair: Pair) -> None:
    """What counts is the first statement, not BEGIN: a write that comes first works on what is there then."""
    a, b = pair
    b.begin()
    a.execute("update account set balance = balance + 1 where name = 'x'")
    a.execute("alter table account add column note text default 'new'")
    assert b.execute("update account set balance = balance + 1 where name = 'x' returning *").fetchall() == [
        ("x", 52, "new")
    ]
    b.commit()
    assert balance(a, "x") == 52


def test_a_schema_change_starts_where_it_gets_its_turn(pair: Pair) -> None:
    """First in its transaction, it does not mind what others have committed meanwhile."""
    a, b = pair
    changes = (
        "create index {} on account (balance, name)",
        "create unique index {} on account (name)",
        "create table {} (id integer primary key)",
        "create view {} as select name from account",
        "create materialized view {} as select balance, count(*) as n from account group by balance",
        "alter table account add column {} integer null",
        "create assertion {} check (not exists (select 1 from account where balance > 99))",
    )
    for number, change in enumerate(changes):
        b.begin()
        a.execute("update account set balance = balance + 1 where name = 'x'")
        b.execute(change.format(f"made_{number}"))
        b.commit()
    assert balance(b, "x") == 57
    assert b.execute("select sum(n) from made_4").fetchone() == (2,)
    assert a.database.check() == []


def test_but_not_one_that_has(pair: Pair) -> None:
    a, b = pair
    b.begin()
    b.execute("savepoint here")
    a.execute("update account set balance = balance + 1 where name = 'x'")
    with pytest.raises(OperationalError, match="another connection has committed since this one read"):
        b.execute("update account set balance = balance + 1 where name = 'x'")
    b.rollback()


@pytest.mark.parametrize("attached", [False, True])
@pytest.mark.parametrize("made", ["view temp.{}", "view {}", "table {} (id)"])
def test_no_schema_change_is_lost(made: str, attached: bool, pair: Pair) -> None:
    """A catalog is published as a whole, so whoever changes it does so as the writer."""
    a, b = pair

    def make(connection: Connection, name: str) -> None:
        connection.execute(f"create {made.format(name)}{'' if 'table' in made else ' as select 1 as id'}")

    if attached:
        a.execute("attach ':memory:' as other")
    a.begin()
    assert total(a) == 100
    make(b, "first")
    with pytest.raises(OperationalError, match="another connection has committed") as caught:
        make(a, "second")
    assert caught.value.code is StatusCode.BUSY
    a.rollback()

    a.begin()
    make(a, "second")
    with pytest.raises(OperationalError, match="locked"):
        make(b, "third")
    a.commit()

    # One that has seen nothing yet starts where it gets its turn.
    a.begin()
    make(b, "third")
    make(a, "fourth")
    a.commit()
    for name in ("first", "second", "third", "fourth"):
        place = f"temp.{name}" if "temp" in made else name
        for connection in pair:
            connection.execute(f"select * from {place}")


def test_what_another_defines_outlives_a_change_of_an_attached_database(pair: Pair) -> None:
    a, b = pair
    a.execute("attach ':memory:' as other")
    a.begin()
    assert total(a) == 100
    b.execute("create table first (id integer primary key)")
    b.execute("create view temp.second as select 1 as one")
    a.execute("create table other.third (id integer primary key)")
    a.execute("analyze other.third")
    a.commit()
    for connection in pair:
        for name in ("first", "temp.second", "other.third"):
            connection.execute(f"select * from {name}")
