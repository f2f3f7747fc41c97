"""A full disk, simulated: the statement is refused, the last commit stays, with room again work goes on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, InterfaceError, OperationalError
from quereus_store.errors import StatusCode
from tests.bad_input.support import CREW, SCHEMA, crew, refused


class Disk:
    """Refuses one kind of operation (``"write"`` or ``"commit"``) as a full disk does."""

    def __init__(self) -> None:
        self.full_at: str | None = None

    def __call__(self, operation: str) -> None:
        if operation == self.full_at:
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def connection(backend: str, tmp_path: Path, disk: Disk) -> Iterator[Connection]:
    with quereus_store.connect(tmp_path / "db", backend=backend, faults=disk) as connection:
        connection.executescript(SCHEMA)
        yield connection


STATEMENTS = (
    "insert into crew values (4, 'Cy')",
    "insert or replace into crew values (1, 'Cy')",
    "insert into crew values (1, 'Cy') on conflict do update set nick = excluded.nick",
    "update crew set nick = 'x'",
    "delete from crew",
    "create table more (id integer primary key)",
    "create index again on crew (nick, id)",
    "alter table crew add column more text default 'x'",
    "drop table crew",
)


@pytest.mark.parametrize("operation", ["write", "commit"])
def test_a_statement_that_finds_no_room(
    connection: Connection, disk: Disk, operation: str, backend: str, tmp_path: Path
) -> None:
    if (backend, operation) == ("leveldb", "write"):
        pytest.skip("LevelDB collects writes in memory")
    disk.full_at = operation
    for sql in STATEMENTS:
        with refused(OperationalError, StatusCode.FULL, f"cannot write to '{tmp_path / 'db'}'"):
            connection.execute(sql)
    with refused(OperationalError, StatusCode.FULL):
        connection.executemany("insert into crew values (?, ?)", [(key, "x") for key in range(10, 200)])
    assert crew(connection) == CREW
    assert connection.database.check() == []
    disk.full_at = None
    connection.execute("insert into crew values (4, 'Cy')")
    assert crew(connection) == [*CREW, (4, "Cy")]


def test_a_transaction_that_finds_no_room_at_its_end(connection: Connection, disk: Disk) -> None:
    connection.begin()
    connection.execute("insert into crew values (4, 'Cy')")
    connection.execute("create table more (id integer primary key)")
    disk.full_at = "commit"
    with refused(OperationalError, StatusCode.FULL, "cannot write to"):
        connection.commit()
    assert not connection.in_transaction
    assert crew(connection) == CREW
    assert "more" not in connection.database.catalog.schemas["main"].tables


@pytest.mark.parametrize("backend", ["lmdb"], indirect=True)
def test_a_transaction_that_finds_no_room_in_its_middle(connection: Connection, disk: Disk) -> None:
    """LMDB cannot go on then; nothing that follows may pass for a part of the transaction."""
    connection.begin()
    connection.execute("insert into crew values (4, 'Cy')")
    disk.full_at = "write"
    with refused(OperationalError, StatusCode.FULL, "the disk is full"):
        connection.execute("insert into crew values (5, 'Di')")
    disk.full_at = None
    gone = "the transaction was aborted because a write failed"
    with refused(InterfaceError, StatusCode.MISUSE, gone):
        connection.execute("insert into crew values (6, 'Ed')")
    with refused(InterfaceError, StatusCode.MISUSE, gone):
        connection.execute("select * from crew").fetchall()
    with refused(InterfaceError, StatusCode.MISUSE, gone):
        connection.commit()
    assert crew(connection) == CREW
    connection.execute("insert into crew values (4, 'Cy')")


@pytest.mark.parametrize("backend", ["lmdb"], indirect=True)
def test_a_block_that_finds_no_room(connection: Connection, disk: Disk) -> None:
    with refused(OperationalError, StatusCode.FULL, "the disk is full"), connection.transaction():
        connection.execute("insert into crew values (4, 'Cy')")
        with connection.transaction():
            disk.full_at = "write"
            connection.execute("insert into crew values (5, 'Di')")
    assert not connection.in_transaction
    assert crew(connection) == CREW


def test_the_file_is_sound_afterwards(
    backend: str, connection: Connection, disk: Disk, tmp_path: Path
) -> None:
    disk.full_at = "commit"
    with refused(OperationalError, StatusCode.FULL):
        connection.execute("update crew set nick = 'x'")
    connection.close()
    with quereus_store.connect(tmp_path / "db", backend=backend) as again:
        assert crew(again) == CREW
        assert again.database.check() == []
