"""Wrong use from Python: closed things, parameters that do not fit, text that cannot be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, DataError, InterfaceError, ProgrammingError
from quereus_store.errors import Error, StatusCode
from tests.bad_input.support import CREW, SCHEMA, crew, refused

INSERT = "insert into crew values (?, ?)"


@pytest.fixture
def connection(backend: str, tmp_path: Path) -> Iterator[Connection]:
    with quereus_store.connect(tmp_path / "db", backend=backend, synchronous="off") as connection:
        connection.executescript(SCHEMA)
        yield connection


# --- closed things ----------------------------------------------------------------------------------------

ON_CONNECTION: dict[str, Callable[[Connection], Any]] = {
    "execute": lambda connection: connection.execute("select 1"),
    "executemany": lambda connection: connection.executemany(INSERT, [(4, "x")]),
    "executescript": lambda connection: connection.executescript("select 1"),
    "cursor": lambda connection: connection.cursor(),
    "begin": lambda connection: connection.begin(),
    "commit": lambda connection: connection.commit(),
    "rollback": lambda connection: connection.rollback(),
    "transaction": lambda connection: connection.transaction().__enter__(),
    "with": lambda connection: connection.__enter__(),
    "create_function": lambda connection: connection.create_function("f", 0, lambda: 1),
    "create_collation": lambda connection: connection.create_collation("C", lambda a, b: 0),
}


@pytest.mark.parametrize("use", ON_CONNECTION)
def test_a_closed_connection(use: str) -> None:
    connection = quereus_store.connect(":memory:")
    connection.close()
    connection.close()
    with refused(InterfaceError, StatusCode.MISUSE, "Database is closed"):
        ON_CONNECTION[use](connection)


def test_cursors_of_a_closed_connection(connection: Connection) -> None:
    read, fresh = connection.execute("select * from crew"), connection.cursor()
    read.fetchone()
    connection.close()
    for use in (fresh.fetchone, read.fetchall, lambda: list(fresh), lambda: fresh.execute("select 1")):
        with refused(InterfaceError, StatusCode.MISUSE, "Database is closed"):
            use()


def test_an_open_transaction_of_a_closed_connection_is_undone(
    connection: Connection, backend: str, tmp_path: Path
) -> None:
    connection.begin()
    connection.execute(INSERT, (4, "x"))
    connection.close()
    with quereus_store.connect(tmp_path / "db", backend=backend) as again:
        assert crew(again) == CREW


def test_a_closed_cursor(connection: Connection) -> None:
    cursor = connection.execute("select * from crew")
    cursor.close()
    cursor.close()
    for use in (
        cursor.fetchone,
        cursor.fetchall,
        lambda: cursor.fetchmany(2),
        lambda: list(cursor),
        lambda: cursor.execute("select 1"),
        lambda: cursor.executemany(INSERT, [(4, "x")]),
        lambda: cursor.executescript("delete from crew"),
    ):
        with refused(InterfaceError, StatusCode.MISUSE, "the cursor is closed"):
            use()
    assert crew(connection) == CREW


# --- parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "parameters", "kind", "code", "message"),
    [
        (
            INSERT,
            (4,),
            ProgrammingError,
            StatusCode.RANGE,
            "Parameter index 2 is out of bounds. (at line 1, column 29)",
        ),
        (
            INSERT,
            (),
            ProgrammingError,
            StatusCode.RANGE,
            "Parameter index 1 is out of bounds. (at line 1, column 26)",
        ),
        (
            "insert into crew values (:id, :nick)",
            {"id": 4, "nickname": "x"},
            ProgrammingError,
            StatusCode.NOTFOUND,
            "Parameter with name 'nick' not found. (at line 1, column 31)",
        ),
        (
            INSERT,
            {"id": 4, "nick": "x"},
            ProgrammingError,
            StatusCode.RANGE,
            "Parameter index 1 is out of bounds.",
        ),
        ("select :a", (1,), ProgrammingError, StatusCode.NOTFOUND, "Parameter with name 'a' not found."),
        (
            INSERT,
            4,
            InterfaceError,
            StatusCode.MISUSE,
            "Invalid parameters type for bindAll. Use array or object.",
        ),
        (
            INSERT,
            "4x",
            InterfaceError,
            StatusCode.MISUSE,
            "Invalid parameters type for bindAll. Use array or object.",
        ),
        (
            INSERT,
            (4, {1, 2}),
            InterfaceError,
            StatusCode.MISUSE,
            "invalid value at index 1: expected SqlValue, got set",
        ),
        (
            "select :a",
            {"a": Path()},
            InterfaceError,
            StatusCode.MISUSE,
            "invalid value for key 'a': expected SqlValue",
        ),
        (
            INSERT,
            ("four", "x"),
            DataError,
            StatusCode.MISMATCH,
            "Type conversion failed for column 'id': Cannot convert 'four' to INTEGER",
        ),
    ],
)
def test_parameters_that_do_not_fit(
    connection: Connection, sql: str, parameters: Any, kind: type[Error], code: StatusCode, message: str
) -> None:
    with refused(kind, code, message):
        connection.execute(sql, parameters)
    assert crew(connection) == CREW


def test_surplus_parameters_are_ignored(connection: Connection) -> None:
    connection.execute(INSERT, (4, "Cy", "and more"))
    assert crew(connection) == [*CREW, (4, "Cy")]


@pytest.mark.parametrize(
    ("sets", "kind", "code", "message"),
    [
        (
            [(4, "x"), (5,)],
            ProgrammingError,
            StatusCode.RANGE,
            "parameter set 2: Parameter index 2 is out of bounds.",
        ),
        (
            [(4, "x"), (5, "y"), 6],
            InterfaceError,
            StatusCode.MISUSE,
            "parameter set 3: Invalid parameters type",
        ),
        ([(4, "x"), {"id": 5}], ProgrammingError, StatusCode.RANGE, "parameter set 2: Parameter index 1"),
        (
            [(4, "x"), (5, Path())],
            InterfaceError,
            StatusCode.MISUSE,
            "parameter set 2: bindAll: invalid value at index 1",
        ),
        (4, InterfaceError, StatusCode.MISUSE, "executemany takes many sets of parameters, not int"),
        ([(4, "x"), ("five", "y")], DataError, StatusCode.MISMATCH, "Cannot convert 'five' to INTEGER"),
    ],
)
def test_sets_of_parameters_that_do_not_fit(
    connection: Connection, sets: Any, kind: type[Error], code: StatusCode, message: str
) -> None:
    """One set that does not fit, and none is used."""
    with refused(kind, code, message):
        connection.executemany(INSERT, sets)
    assert crew(connection) == CREW


def test_an_error_of_the_sets_own_making_is_passed_on(connection: Connection) -> None:
    def sets() -> Iterator[tuple[int, str]]:
        yield (4, "x")
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        connection.executemany(INSERT, sets())
    assert crew(connection) == CREW


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (None, "a statement is a str, not NoneType"),
        (b"select 1", "a statement is a str, not bytes"),
        ("", "there is no statement in the text"),
        ("-- nothing", "there is no statement in the text"),
        ("delete from crew; select 1", "the text holds several statements: use executescript for these"),
    ],
)
def test_what_is_no_statement(connection: Connection, sql: Any, message: str) -> None:
    with refused(InterfaceError, StatusCode.MISUSE, message):
        connection.execute(sql)
    assert crew(connection) == CREW


def test_many_sets_for_a_statement_that_takes_none(connection: Connection) -> None:
    with refused(InterfaceError, StatusCode.MISUSE, "executemany runs INSERT, UPDATE and DELETE"):
        connection.executemany("select ?", [(1,), (2,)])


# --- text ---------------------------------------------------------------------------------------------------

LONE = "x\ud800"
UNPAIRED = "containing an unpaired surrogate (U+D800 at offset 1)"


def test_text_that_no_key_can_hold(connection: Connection) -> None:
    for sql, parameters in (
        ("insert into ship values (?)", (LONE,)),
        ("update ship set name = ?", (LONE,)),
        (INSERT, (4, LONE)),  # the column is indexed
        ("update crew set nick = ? where id = 1", (LONE,)),
    ):
        with refused(ProgrammingError, StatusCode.ERROR, "cannot store a text value " + UNPAIRED):
            connection.execute(sql, parameters)
    with refused(ProgrammingError, StatusCode.ERROR, UNPAIRED):
        connection.executemany(INSERT, [(4, "fine"), (5, LONE), (6, "fine")])
    assert crew(connection) == CREW
    assert connection.execute("select * from ship").fetchall() == [("Argo",)]


def test_names_that_no_catalog_can_hold(connection: Connection) -> None:
    with refused(ProgrammingError, StatusCode.ERROR, UNPAIRED):
        connection.execute(f'create table "{LONE}" (id integer primary key)')
    with refused(ProgrammingError, StatusCode.ERROR, "unpaired surrogate"):
        connection.execute(f"create table t (id integer primary key, v text default '{LONE}')")
    assert list(connection.database.catalog.schemas["main"].tables) == ["crew", "ship"]


def test_text_outside_of_keys_comes_back_as_it_was(
    connection: Connection, backend: str, tmp_path: Path
) -> None:
    connection.execute("create table note (id integer primary key, body text)")
    connection.execute("insert into note values (1, ?)", (LONE,))
    connection.close()
    with quereus_store.connect(tmp_path / "db", backend=backend) as again:
        assert again.execute("select body from note").fetchall() == [(LONE,)]
        assert again.database.check() == []
