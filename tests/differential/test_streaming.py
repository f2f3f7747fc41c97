"""Results that are read while other things happen: writes, commits, DDL, other connections.

A result shows what was there when its statement ran, whenever it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store

COUNT = 3000
Connection = quereus_store.Connection


@pytest.fixture(params=["memory", "lmdb", "leveldb"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    if request.param == "memory":
        opened = quereus_store.connect(":memory:")
    else:
        opened = quereus_store.connect(tmp_path / "db.qdb", backend=request.param, synchronous="off")
    opened.execute("create table t (id integer primary key, a integer null)")
    opened.executemany("insert into t values (?, ?)", [(number, number % 7) for number in range(COUNT)])
    yield opened
    opened.close()


def begun(connection: Connection, sql: str = "select * from t order by id") -> quereus_store.Cursor:
    """A cursor that has read ten rows."""
    cursor = connection.execute(sql)
    assert len(cursor.fetchmany(10)) == 10
    return cursor


def count(connection: Connection) -> int:
    return connection.execute("select count(*) from t").fetchone()[0]


def delete_many(connection: Connection) -> None:
    connection.execute("delete from t where id < 2000")


def insert_many(connection: Connection) -> None:
    connection.executemany("insert into t values (?, 0)", [(COUNT + number,) for number in range(2000)])


def update_keys(connection: Connection) -> None:
    connection.execute("update t set id = id + 100000 where id % 2 = 0")


def add_column(connection: Connection) -> None:
    connection.execute("alter table t add column b integer default 3")


def drop_table(connection: Connection) -> None:
    connection.execute("drop table t")


CHANGES = [delete_many, insert_many, update_keys, add_column, drop_table]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_on_the_same_connection(connection: Connection, change: Callable[[Connection], None]) -> None:
    cursor = begun(connection)
    change(connection)
    assert cursor.fetchall() == [(number, number % 7) for number in range(10, COUNT)]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("written", [False, True])
def test_changes_within_a_transaction(
    connection: Connection, change: Callable[[Connection], None], end: str, written: bool
) -> None:
    """Whether or not the transaction had written before the result was opened."""
    connection.begin()
    if written:
        connection.execute("update t set a = 50 where id = 2999")
    cursor = begun(connection)
    change(connection)
    other = begun(connection) if change is not drop_table else None
    connection.execute(end)
    rows = cursor.fetchall()
    assert len(rows) == COUNT - 10
    assert rows[-1] == (2999, 50 if written else 2999 % 7)
    if other is not None:
        other.fetchall()


def test_rolling_back_to_a_savepoint(connection: Connection) -> None:
    connection.begin()
    connection.execute("savepoint here")
    connection.execute("insert into t values (100000, 1)")
    cursor = begun(connection)
    connection.execute("rollback to here")
    assert len(cursor.fetchall()) == COUNT + 1 - 10
    assert count(connection) == COUNT
    connection.commit()


def test_a_loop_that_updates_what_it_reads(connection: Connection) -> None:
    for (number,) in connection.execute("select id from t where a = 3"):
        connection.execute("update t set a = 3, id = id + 10000 where id = ?", (number,))
    assert connection.execute("select count(*) from t where id > 9999").fetchone() == (
        len(range(3, COUNT, 7)),
    )


def test_a_loop_that_commits(connection: Connection) -> None:
    connection.begin()
    for (number,) in connection.execute("select id from t where id < 1500"):
        connection.execute("update t set a = 99 where id = ?", (number,))
        if number % 400 == 0:
            connection.commit()
            connection.begin()
    connection.commit()
    assert connection.execute("select count(*) from t where a = 99").fetchone() == (1500,)


def test_what_fails_in_a_result_fails_where_it_is_read(connection: Connection) -> None:
    """Not in the commit that has the rest of it read ahead."""
    connection.begin()
    connection.execute("insert into t values (100000, 1)")
    cursor = begun(connection, "select id, date(case when id > 2500 then 'x' else '2024-01-01' end) from t")
    connection.commit()
    with pytest.raises(quereus_store.Error, match="Cannot convert 'x' to DATE"):
        cursor.fetchall()
    assert count(connection) == COUNT + 1


def test_another_connection_writes(tmp_path: Path) -> None:
    for backend in ("lmdb", "leveldb"):
        path = tmp_path / backend
        reader = quereus_store.connect(path, backend=backend, synchronous="off")
        reader.execute("create table t (id integer primary key, a integer null)")
        reader.executemany("insert into t values (?, ?)", [(number, number % 7) for number in range(COUNT)])
        writer = quereus_store.connect(path, backend=backend, synchronous="off")
        for change in (delete_many, insert_many, add_column, drop_table):
            before = count(reader)
            cursor = begun(reader)
            change(writer)
            assert len(cursor.fetchall()) == before - 10
        with pytest.raises(quereus_store.Error, match="'t' not found"):
            reader.execute("select * from t")
        writer.execute("create table t (k text primary key)")
        writer.execute("insert into t values ('a')")
        assert reader.execute("select * from t").fetchall() == [("a",)]
        reader.close()
        writer.close()


def test_closing(connection: Connection) -> None:
    cursor = begun(connection)
    cursor.close()
    with pytest.raises(quereus_store.InterfaceError, match="the cursor is closed"):
        cursor.fetchone()
    other = begun(connection)
    connection.close()
    with pytest.raises(quereus_store.InterfaceError, match="Database is closed"):
        other.fetchall()


def test_a_cached_statement_follows_its_table(connection: Connection) -> None:
    """The same text after each change of the schema."""
    sql = "select * from t where id = 1"
    seen = [connection.execute(sql).fetchall()]
    for statement in (
        "alter table t add column b text default 'x'",
        "alter table t rename column a to aa",
        "create index by_aa on t (aa)",
        "alter table t drop column b",
        "drop table t",
        "create table t (name text, id integer primary key)",
        "insert into t values ('new', 1)",
    ):
        connection.execute(statement)
        try:
            cursor = connection.execute(sql)
            seen.append([tuple(column[0] for column in cursor.description or ()), *cursor.fetchall()])
        except quereus_store.Error as error:
            seen.append([str(error.message)])
    assert seen == [
        [(1, 1)],
        [("id", "a", "b"), (1, 1, "x")],
        [("id", "aa", "b"), (1, 1, "x")],
        [("id", "aa", "b"), (1, 1, "x")],
        [("id", "aa"), (1, 1)],
        ["Table 't' not found in schema path: main"],
        [("name", "id")],
        [("name", "id"), ("new", 1)],
    ]


def test_parameters_of_changing_types(connection: Connection) -> None:
    found = [
        connection.execute("select id from t where id = ?", (value,)).fetchall()
        for value in (1, "1", 1.0, None, True, b"1", "x", 1.5, [1], 1)
    ]
    assert found == [[(1,)], [(1,)], [(1,)], [], [(1,)], [], [(0,)], [], [], [(1,)]]


@pytest.mark.parametrize("value", [[1, {2: 3}], {"a": object()}, [(1, 2)], {"a": b"x"}, {None: 1}])
def test_documents_that_are_no_json(connection: Connection, value: Any) -> None:
    connection.execute("create table d (id integer primary key, j json null, v any null)")
    for run in (
        lambda: connection.execute("insert into d values (1, ?, 1)", (value,)),
        lambda: connection.execute("insert into d values (1, null, :v)", {"v": value}),
        lambda: connection.executemany("insert into d values (?, ?, 1)", [(1, [1]), (2, value)]),
        lambda: connection.executemany("insert into d values (?, 1, ?)", [(1, 1), (2, value)]),
    ):
        with pytest.raises(quereus_store.InterfaceError, match="expected SqlValue, got JSON"):
            run()
    assert connection.execute("select * from d").fetchall() == []


def test_documents_nest_to_a_limit(connection: Connection) -> None:
    connection.execute("create table d (id integer primary key, j json)")
    deep: list[Any] = []
    for _ in range(199):
        deep = [deep]
    connection.execute("insert into d values (1, ?)", (deep,))
    connection.execute("insert into d values (2, ?)", ("[" * 200 + "]" * 200,))
    assert connection.execute("select count(distinct j) from d").fetchone() == (1,)
    endless: list[Any] = []
    endless += [endless, endless]
    for value in ([deep], endless):
        with pytest.raises(quereus_store.InterfaceError, match="JSON nested too deeply"):
            connection.execute("insert into d values (3, ?)", (value,))
    with pytest.raises(quereus_store.DataError, match="invalid JSON syntax"):
        connection.execute("insert into d values (3, ?)", ("[" * 201 + "]" * 201,))


def test_documents_are_copies(connection: Connection) -> None:
    """What the caller does to what it gave or was given does not reach the table."""
    connection.execute("create table d (id integer primary key, j json null, v any null)")
    given: dict[str, Any] = {"a": [1]}
    connection.execute("insert into d values (1, ?, ?)", (given, given))
    connection.executemany("insert into d values (?, ?, ?)", [(2, given, given)])
    given["a"].append(2)
    for sql in (
        "select j, v from d",
        "select j, v from d where id = 1",
        "update d set id = id returning j, v",
        "select max(j), json_extract(max(v), '$') from d group by id",
    ):
        for _ in range(2):
            for row in connection.execute(sql):
                assert row == ({"a": [1]}, {"a": [1]})
                row[0]["a"].append(3)
                row[1]["b"] = 4
