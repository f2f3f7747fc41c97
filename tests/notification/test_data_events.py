"""Data events: one for each row that a commit changed, after the commit, in the order of the work."""

import logging
import threading
from typing import Any

import pytest

from quereus_store import Connection
from quereus_store.errors import InterfaceError
from quereus_store.events import DataChange
from tests.notification.conftest import another


@pytest.fixture
def told(con: Connection) -> list[DataChange]:
    found: list[DataChange] = []
    con.database.on_data_change(found.append)
    return found


def short(events: list[DataChange]) -> list[tuple[str, tuple[Any, ...], Any, Any]]:
    """Events without the table's names; empties the list."""
    shown = [(event.type, event.key, event.old_row, event.new_row) for event in events]
    events.clear()
    return shown


def test_insert_update_and_delete_carry_key_and_rows(con: Connection, told: list[DataChange]) -> None:
    con.execute("insert into tank values (1, 'north', 2.5), (2, 'south', 4)")
    assert short(told) == [
        ("insert", (1,), None, (1, "north", 2.5)),
        ("insert", (2,), None, (2, "south", 4.0)),
    ]
    con.execute("update tank set litres = litres + 1 where id = 2")
    assert (told[0].schema_name, told[0].table_name, told[0].remote) == ("main", "tank", False)
    assert told[0].changed_columns == ("litres",)
    assert short(told) == [("update", (2,), (2, "south", 4.0), (2, "south", 5.0))]
    con.execute("delete from tank where id = 1")
    assert short(told) == [("delete", (1,), (1, "north", 2.5), None)]


def test_an_update_to_equal_values_is_an_event_without_changed_columns(
    con: Connection, told: list[DataChange]
) -> None:
    con.execute("insert into tank values (1, 'north', 2.5)")
    told.clear()
    con.execute("update tank set litres = litres")
    assert [event.changed_columns for event in told] == [()]


def test_a_row_that_gets_another_key_is_deleted_and_inserted(con: Connection, told: list[DataChange]) -> None:
    con.execute("insert into tank values (2, 'north', 2.5), (3, 'south', 4)")
    told.clear()
    con.execute("update tank set id = 7, name = 'moved' where id = 2")
    assert short(told) == [
        ("delete", (2,), (2, "north", 2.5), None),
        ("insert", (7,), None, (7, "moved", 2.5)),
    ]


def test_deletes_of_moved_rows_come_before_their_inserts(con: Connection, told: list[DataChange]) -> None:
    con.execute("insert into tank values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    told.clear()
    con.execute("update tank set id = id * 10, litres = 0")
    assert [event.type for event in told] == ["delete"] * 3 + ["insert"] * 3


def test_a_key_that_is_equal_under_its_collation_has_not_moved(
    con: Connection, told: list[DataChange]
) -> None:
    con.execute("create table fruit (name text collate nocase primary key)")
    con.execute("insert into fruit values ('fig')")
    told.clear()
    con.execute("update fruit set name = 'FIG'")
    assert short(told) == [("update", ("FIG",), ("fig",), ("FIG",))]


def test_replace_is_an_update_and_an_eviction_a_delete_before_it(
    con: Connection, told: list[DataChange]
) -> None:
    con.execute("create table seat (id integer primary key, label text unique)")
    con.execute("insert into seat values (1, 'a'), (2, 'b')")
    told.clear()
    con.execute("insert or replace into seat values (1, 'b')")
    assert short(told) == [
        ("delete", (2,), (2, "b"), None),
        ("update", (1,), (1, "a"), (1, "b")),
    ]


def test_what_a_foreign_key_does_to_children_comes_before_the_parent(
    con: Connection, told: list[DataChange]
) -> None:
    con.execute(
        "create table valve (id integer primary key, tank integer references tank(id) on delete cascade)"
    )
    con.execute("insert into tank values (1, 'north', 1)")
    con.execute("insert into valve values (10, 1)")
    told.clear()
    con.execute("delete from tank")
    assert [(event.table_name, event.type) for event in told] == [("valve", "delete"), ("tank", "delete")]


def insert_and_fail(con: Connection) -> None:
    with con.transaction():
        con.execute("insert into tank values (2, 'south', 1)")
        raise ZeroDivisionError


def test_nothing_is_told_of_what_is_rolled_back(con: Connection, told: list[DataChange]) -> None:
    con.begin()
    con.execute("insert into tank values (1, 'north', 1)")
    con.rollback()
    with pytest.raises(ZeroDivisionError):
        insert_and_fail(con)
    with pytest.raises(Exception, match="UNIQUE"):
        con.execute("insert into tank values (3, 'x', 1), (3, 'y', 1)")
    assert told == []


def test_savepoints_take_their_events_with_them(con: Connection, told: list[DataChange]) -> None:
    con.executescript("""
        begin;
        insert into tank values (1, 'kept', 1);
        savepoint a;
        insert into tank values (2, 'gone', 1);
        savepoint b;
        insert into tank values (3, 'gone', 1);
        release b;
        rollback to a;
        insert into tank values (4, 'kept', 1);
        release a;
    """)
    assert told == []
    con.commit()
    assert [event.key for event in told] == [(1,), (4,)]


def test_derived_rows_raise_no_events(con: Connection, told: list[DataChange]) -> None:
    con.execute(
        "create materialized view total as select name, sum(litres) as litres from tank group by name"
    )
    con.execute("insert into tank values (1, 'north', 1)")
    assert {event.table_name for event in told} == {"tank"}


def test_create_table_as_tells_of_its_rows(con: Connection, told: list[DataChange]) -> None:
    con.execute("create table copied as select 1 as one union all select 2")
    assert [event.new_row for event in told] == [(1,), (2,)]


def test_rows_are_shown_as_a_later_alter_of_the_transaction_leaves_them(
    con: Connection, told: list[DataChange]
) -> None:
    order: list[str] = []
    con.database.on_schema_change(lambda event: order.append(event.ddl or ""))
    con.database.on_data_change(lambda event: order.append(event.type))
    with con.transaction():
        con.execute("insert into tank values (1, 'north', 2)")
        con.execute("alter table tank add column depth integer default 3")
        con.execute("alter table tank drop column name")
        con.execute("alter table tank rename to basin")
        con.execute("alter table basin rename to pool")
    assert order == [
        "alter table tank add column depth integer default 3",
        "alter table tank drop column name",
        "alter table tank rename to basin",
        "alter table basin rename to pool",
        "insert",
    ]
    assert told[0].table_name == "pool"
    assert short(told) == [("insert", (1,), None, (1, 2.0, 3))]


def test_an_alter_that_is_rolled_back_to_a_savepoint_reshapes_nothing(
    con: Connection, told: list[DataChange]
) -> None:
    con.executescript("""
        begin;
        insert into tank values (1, 'north', 2);
        savepoint a;
        alter table tank add column depth integer default 3;
        rollback to a;
        commit;
    """)
    assert short(told) == [("insert", (1,), None, (1, "north", 2.0))]


def test_documents_are_copies(con: Connection, told: list[DataChange]) -> None:
    con.execute("create table doc (id integer primary key, body json)")
    con.execute("insert into doc values (1, '[1, 2]')")
    assert told[0].new_row is not None
    told[0].new_row[1].append("changed by a listener")
    assert con.execute("select body from doc").fetchall() == [([1, 2],)]


def test_a_failing_listener_harms_neither_the_commit_nor_the_others(
    con: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []

    def failing(event: Any) -> None:
        raise ZeroDivisionError("a listener's own trouble")

    con.database.on_data_change(failing)
    con.database.on_data_change(told.append)
    with caplog.at_level(logging.ERROR, logger="quereus_store.events"):
        con.execute("insert into tank values (1, 'north', 1)")
    assert len(told) == 1
    assert con.execute("select count(*) from tank").fetchone() == (1,)
    assert "a listener's own trouble" in caplog.text


def test_a_listener_may_write_and_its_commit_is_told_of_next(con: Connection) -> None:
    keys: list[Any] = []

    def copy(event: DataChange) -> None:
        keys.append(event.key)
        if event.key[0] < 3:
            con.execute("insert into tank values (?, 'copy', 0)", (event.key[0] + 1,))

    con.database.on_data_change(copy)
    con.execute("insert into tank values (1, 'north', 1)")
    assert keys == [(1,), (2,), (3,)]


def test_who_unsubscribes_is_told_of_nothing_more(con: Connection) -> None:
    told: list[DataChange] = []
    unsubscribe = con.database.on_data_change(told.append)
    con.execute("insert into tank values (1, 'north', 1)")
    unsubscribe()
    unsubscribe()
    con.execute("insert into tank values (2, 'south', 1)")
    assert [event.key for event in told] == [(1,)]
    assert not con.database.engine.records_changes


def test_a_commit_is_told_of_as_a_whole(con: Connection) -> None:
    commits: list[Any] = []
    con.database.on_transaction_commit(commits.append)
    with con.transaction():
        con.execute("create table valve (id integer primary key)")
        con.execute("insert into tank values (1, 'north', 1)")
        con.execute("insert into valve values (9)")
    con.execute("select * from tank").fetchall()
    (commit,) = commits
    assert [event.object_name for event in commit.schema_events] == ["valve"]
    assert [event.key for event in commit.data_events] == [(1,), (9,)]
    assert commit.complete


def test_a_transaction_older_than_its_listener_is_told_of_as_incomplete(con: Connection) -> None:
    commits: list[Any] = []
    con.begin()
    con.execute("insert into tank values (1, 'unnoticed', 1)")
    con.database.on_transaction_commit(commits.append)
    con.execute("insert into tank values (2, 'noticed', 1)")
    con.commit()
    assert [event.key for event in commits[0].data_events] == [(2,)]
    assert not commits[0].complete


def test_commits_of_many_threads_are_told_in_their_order(con: Connection) -> None:
    con.execute("insert into tank values (0, 'counter', 0)")
    seen: list[float] = []
    con.database.on_data_change(lambda event: seen.append(event.new_row[2]))  # type: ignore[index]

    def work(connection: Connection) -> None:
        for _ in range(25):
            connection.execute("update tank set litres = litres + 1 where id = 0")

    connections = [con, *(another(con) for _ in range(2))]
    threads = [threading.Thread(target=work, args=(connection,)) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [float(number) for number in range(1, 76)]


def test_a_listener_is_a_plain_function(con: Connection) -> None:
    async def listener(event: Any) -> None: ...

    with pytest.raises(InterfaceError, match="async for"):
        con.database.on_data_change(listener)
    with pytest.raises(InterfaceError, match="plain function"):
        con.database.on_data_change(None)  # type: ignore[arg-type]


def test_very_many_listeners_are_warned_of(con: Connection, caplog: pytest.LogCaptureFixture) -> None:
    con.database.events.set_max_listeners(2)
    with caplog.at_level(logging.WARNING, logger="quereus_store.events"):
        for _ in range(3):
            con.database.on_data_change(lambda event: None)
    assert "3 data listeners" in caplog.text
