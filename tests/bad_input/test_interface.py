"""PEP 249 to the letter, and objects of the interface in places where they do not belong."""

from __future__ import annotations

import copy
import pickle
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, DataError, InterfaceError, OperationalError, ProgrammingError
from quereus_store.errors import Error, StatusCode
from tests.bad_input.support import refused

NAMES = (
    *(
        "apilevel",
        "threadsafety",
        "paramstyle",
        "connect",
        "Warning",
        "Error",
        "InterfaceError",
        "DatabaseError",
    ),
    *("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError"),
    *(
        "NotSupportedError",
        "Date",
        "Time",
        "Timestamp",
        "DateFromTicks",
        "TimeFromTicks",
        "TimestampFromTicks",
    ),
    *("Binary", "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID"),
)


@pytest.fixture
def connection() -> Connection:
    connection = quereus_store.connect(":memory:")
    connection.execute("create table crew (id integer primary key, nick text null)")
    connection.execute("insert into crew values (1, 'Ann'), (2, 'Bo'), (3, null)")
    return connection


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_module(name: str) -> None:
    assert hasattr(quereus_store, name)
    assert name in quereus_store.__all__


def test_type_codes(connection: Connection) -> None:
    connection.execute(
        "create table v (i integer, r real, t text, b blob, d date, n datetime, k integer primary key)"
    )
    codes = [column[1] for column in connection.execute("select * from v").description or ()]
    objects = [
        [
            kind
            for kind in ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID")
            if code == getattr(quereus_store, kind)
        ]
        for code in codes
    ]
    assert objects == [["NUMBER"], ["NUMBER"], ["STRING"], ["BINARY"], ["DATETIME"], ["DATETIME"], ["NUMBER"]]
    assert quereus_store.NUMBER == quereus_store.NUMBER
    assert quereus_store.NUMBER != quereus_store.STRING


def test_constructors_make_values_that_columns_take(connection: Connection) -> None:
    connection.execute("create table v (d date, t time, s datetime, b blob, k integer primary key)")
    values = (
        quereus_store.Date(2024, 2, 29),
        quereus_store.Time(1, 2, 3),
        quereus_store.Timestamp(2024, 2, 29, 1, 2, 3),
        quereus_store.Binary(bytearray(b"\x00\xff")),
    )
    connection.execute("insert into v values (?, ?, ?, ?, 1)", values)
    row = connection.execute("select d, t, s, b from v").fetchone()
    assert row == ("2024-02-29", "01:02:03", "2024-02-29T01:02:03", b"\x00\xff")
    # Local time, whatever it is here: the three agree.
    stamp = quereus_store.TimestampFromTicks(1_700_000_000)
    assert (
        stamp == f"{quereus_store.DateFromTicks(1_700_000_000)}T{quereus_store.TimeFromTicks(1_700_000_000)}"
    )


def test_arraysize_says_how_many_fetchmany_gives(connection: Connection) -> None:
    cursor = connection.cursor()
    assert cursor.arraysize == 1
    cursor.execute("select id from crew")
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 5
    assert cursor.fetchmany() == [(2,), (3,)]
    assert cursor.fetchmany() == []


def test_a_cursor_is_an_iterator(connection: Connection) -> None:
    cursor = connection.execute("select id from crew")
    assert next(cursor) == (1,)
    assert list(cursor) == [(2,), (3,)]
    with pytest.raises(StopIteration):
        next(cursor)


def test_row_counts_and_descriptions(connection: Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.rowcount, cursor.description, cursor.lastrowid) == (-1, None, None)
    cursor.execute("select id as n, nick from crew")
    assert cursor.rowcount == -1
    assert [column[0] for column in cursor.description or ()] == ["n", "nick"]
    cursor.execute("update crew set nick = 'x' where id > 1")
    assert (cursor.rowcount, cursor.description) == (2, None)
    assert cursor.fetchall() == []
    cursor.executemany("insert into crew values (?, ?)", [(7, "a"), (8, "b")])
    assert cursor.rowcount == 2
    cursor.execute("delete from crew where id > 6 returning id")
    assert cursor.rowcount == 2
    assert [column[0] for column in cursor.description or ()] == ["id"]


# --- errors travel, connections do not --------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "select nam from crew",
        "selec",
        "insert into crew values (1, 'x')",
        "insert into crew values ('x', 'x')",
        "create table t (a integer check (a > 0) primary key); ",
    ],
)
def test_errors_are_pickled_and_copied(connection: Connection, sql: str) -> None:
    """A worker process hands its error to the parent as it was."""
    connection.execute("create table t (id integer primary key)")
    with pytest.raises(Error) as caught:
        connection.execute(sql)
    error = caught.value
    error.add_note("seen in a worker")
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error), copy.copy(error)):
        assert type(twin) is type(error)
        assert (str(twin), twin.code, twin.line, twin.column) == (
            str(error),
            error.code,
            error.line,
            error.column,
        )
        assert dict(twin.details) == dict(error.details)
        assert twin.__notes__ == error.__notes__
        assert twin.__notes__[-1] == "seen in a worker"


def test_an_error_that_points_to_a_living_thing_is_pickled_without_it() -> None:
    error = quereus_store.OperationalError("stale", StatusCode.BUSY)
    error.details = {"module": object(), "table": "crew"}
    assert dict(pickle.loads(pickle.dumps(error)).details) == {"table": "crew"}


def test_connections_are_neither_copied_nor_pickled(connection: Connection) -> None:
    """A copy that is thrown away would close the database under the original."""
    for thing in (connection, connection.cursor(), connection.database):
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot copy or pickle a"):
                act(thing)
    assert connection.execute("select count(*) from crew").fetchone() == (3,)


# --- options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": "soon"}, "timeout is a number of seconds, not 'soon'"),
        ({"timeout": -1}, "timeout is a number of seconds, not -1"),
        ({"timeout": float("nan")}, "timeout is a number of seconds, not nan"),
        ({"cached_statements": -1}, "cached_statements is a number from 0, not -1"),
        ({"cached_statements": None}, "cached_statements is a number from 0, not None"),
        ({"cache_size": "big"}, "cache_size is a number from 0 to"),
        ({"cache_size": -1}, "cache_size is a number from 0 to"),
        ({"synchronous": "maybe"}, "synchronous must be one of full, normal, off, not 'maybe'"),
        ({"color": "red"}, "has no option 'color'"),
    ],
)
def test_options_that_mean_nothing(
    options: dict[str, Any], message: str, backend: str, tmp_path: Path
) -> None:
    with refused(InterfaceError, StatusCode.MISUSE, message):
        quereus_store.connect(tmp_path / "db", backend=backend, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [-1, 1.5, "1G", None, 2**70])
def test_sizes_that_no_map_can_have(size: Any, tmp_path: Path) -> None:
    with refused(InterfaceError, StatusCode.MISUSE, "map_size is a number from 0 to"):
        quereus_store.connect(tmp_path / "db", map_size=size)
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_memory_knows_the_options_of_storages_alone() -> None:
    quereus_store.connect(":memory:", synchronous="off", cache_size=0, map_size=2**30).close()
    with refused(InterfaceError, StatusCode.MISUSE, "a database in memory has no option 'color'"):
        quereus_store.connect(":memory:", color="red")


@pytest.mark.parametrize("name", ["a\0b", "\ud800.qdb"])
def test_names_that_no_file_can_have(name: str, backend: str, tmp_path: Path) -> None:
    with refused(OperationalError, StatusCode.CANTOPEN, "that is no name of a file"):
        quereus_store.connect(f"{tmp_path}/{name}", backend=backend)


def test_a_path_of_bytes(backend: str, tmp_path: Path) -> None:
    with quereus_store.connect(bytes(tmp_path / "db"), backend=backend) as connection:  # type: ignore[arg-type]
        connection.execute("create table t (id integer primary key)")
    with quereus_store.connect(tmp_path / "db", backend=backend) as connection:
        assert connection.execute("select * from t").fetchall() == []


# --- numbers that are too much -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["0", "00", "9999999999", "9" * 5000])
def test_parameters_with_impossible_numbers(connection: Connection, number: str) -> None:
    for prefix in "?:":
        with refused(
            ProgrammingError, StatusCode.ERROR, "No parameter has the number", "(at line 1, column 8)"
        ):
            connection.execute(f"select {prefix}{number}", (1,))
    assert connection.execute("select ?01", (1,)).fetchone() == (1,)


def test_literals_of_thousands_of_digits(connection: Connection) -> None:
    large = "1" + "0" * 5000
    assert connection.execute(f"select {large} > 5, -{large} < 5").fetchone() == (True, True)
    assert connection.execute(f"select id from crew where id < {large}").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_limits_beyond_all_rows(connection: Connection, digits: int) -> None:
    large = 10**digits
    all_rows = [(1,), (2,), (3,)]
    for order in ("", " order by nick, id"):
        sql = f"select id from crew{order}"
        assert sorted(connection.execute(f"{sql} limit ?", (large,))) == all_rows
        assert connection.execute(f"{sql} limit ?", (-large,)).fetchall() == []
        assert connection.execute(f"{sql} limit 5 offset ?", (large,)).fetchall() == []
        assert connection.execute(f"{sql} limit null offset ?", (large,)).fetchall() == []
        assert sorted(connection.execute(f"{sql} limit ? offset ?", (large, -large))) == all_rows


def test_complements_of_large_numbers(connection: Connection) -> None:
    assert connection.execute("select ~?", (10**400,)).fetchone() == (-(10**400) - 1,)
    assert connection.execute("select ~?", (float("inf"),)).fetchone() == (None,)


@pytest.mark.parametrize("count", [10**10, 2**70])
@pytest.mark.parametrize("call", ["repeat('abc', ?)", "lpad('a', ?)", "rpad('a', ?, 'xy')", "zeroblob(?)"])
def test_values_beyond_all_memory(connection: Connection, call: str, count: int) -> None:
    name = call.partition("(")[0]
    message = f"Function {name} failed: string or blob too big (at line 1, column 8)"
    with refused(ProgrammingError, StatusCode.ERROR, message):
        connection.execute(f"select {call}", (count,))


def test_sizes_that_are_no_number(connection: Connection) -> None:
    assert connection.execute("select zeroblob(?), repeat('a', -5)", (float("inf"),)).fetchone() == (None, "")
    with refused(DataError, StatusCode.MISMATCH, "Cannot convert"):
        connection.execute("insert into crew values (zeroblob(2), 'x')")


def test_connections_to_one_file_agree_on_what_it_is_open_for(tmp_path: Path) -> None:
    path = tmp_path / "one.qdb"
    with closing(quereus_store.connect(path)):
        for option, value in (("readonly", True), ("synchronous", "off")):
            with pytest.raises(InterfaceError, match=f"open in this process with {option} ="):
                quereus_store.connect(path, **{option: value})
        with closing(quereus_store.connect(path, readonly=False, synchronous="full", cache_size=1)):
            pass
    with closing(quereus_store.connect(path, readonly=True)), closing(quereus_store.connect(path)) as same:
        assert same.execute("select 1").fetchone() == (1,)
        with pytest.raises(OperationalError, match="read-only"):
            same.execute("create table t (a integer primary key)")


def test_an_error_shows_the_call_that_failed_and_not_the_way_inside() -> None:
    with quereus_store.connect(":memory:") as con:
        con.execute("create table t (a integer primary key, b text)")
        for run in (
            lambda: con.execute("insert into t values (1, null)"),
            lambda: con.executemany("insert into t values (?, ?)", [(1, None)]),
            lambda: con.executescript("select 1; select nothing from t"),
            lambda: con.cursor().execute("selec 1"),
        ):
            with pytest.raises(Error) as caught:
                run()
            shown = traceback.format_exception(caught.value)
            assert not [line for line in shown if "execute/" in line or "generated" in line], shown
