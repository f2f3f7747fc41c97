"""Catalog entries and rows damaged on disk: told apart, all others live, nothing is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, OperationalError, ProgrammingError
from quereus_store.catalog.layout import EntryKind, entry_key, store_range
from quereus_store.cli.main import main
from quereus_store.errors import StatusCode
from tests.bad_input.support import CREW, crew, make, refused, storage

CREW_ENTRY = entry_key(EntryKind.TABLE, "main", "crew")


def spoil_entry(path: Path, backend: str, how: str) -> bytes:
    """Damage the catalog entry of table ``crew``; what it was."""
    with storage(path, backend) as transaction:
        entry = transaction.get(CREW_ENTRY)
        assert entry is not None
        damaged = {"short": entry[:9], "empty": b"", "flipped": entry[:-1] + bytes([entry[-1] ^ 1])}
        transaction.put(CREW_ENTRY, damaged[how])
    return entry


@pytest.mark.parametrize("how", ["short", "empty", "flipped"])
def test_a_corrupt_catalog_entry(
    how: str, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "db"
    make(path, backend)
    entry = spoil_entry(path, backend, how)
    with quereus_store.connect(path, backend=backend) as connection:
        (problem,) = connection.database.problems
        assert problem.ddl == "main.crew"
        assert problem.error.code is StatusCode.CORRUPT
        assert "the catalog entry of main.crew is corrupt" in str(problem.error)
        with refused(ProgrammingError, StatusCode.NOTFOUND, "Table 'crew' not found"):
            crew(connection)
        # The others live, and go on living.
        connection.execute("insert into ship values ('Odin')")
        connection.execute("create table more (id integer primary key)")
        connection.execute("insert into more values (7)")
        assert connection.execute("select * from ship").fetchall() == [("Argo",), ("Odin",)]
    assert main(["check", str(path)]) == 1
    assert "catalog: the catalog entry of main.crew is corrupt" in capsys.readouterr().out
    # Once the entry is repaired, its rows are there as they were.
    with storage(path, backend) as transaction:
        transaction.put(CREW_ENTRY, entry)
    with quereus_store.connect(path, backend=backend) as connection:
        assert connection.database.problems == ()
        assert crew(connection) == CREW
        assert connection.execute("select id from more").fetchall() == [(7,)]
        assert connection.database.check() == []


def test_a_corrupt_entry_is_not_overwritten(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path, backend)
    spoil_entry(path, backend, "short")
    with quereus_store.connect(path, backend=backend) as connection:
        for sql in (
            "create table crew (id integer primary key)",
            "create table if not exists crew (id integer primary key)",
            "alter table ship rename to crew",
        ):
            with refused(OperationalError, StatusCode.CORRUPT, "main.crew", "which cannot be read"):
                connection.execute(sql)
        assert connection.execute("select * from ship").fetchall() == [("Argo",)]


def test_a_corrupt_entry_is_called_as_its_database_is_attached(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path, backend)
    spoil_entry(path, backend, "short")
    with quereus_store.connect(":memory:") as connection:
        connection.execute(f"attach ? as other (backend = {backend})", (str(path),))
        with refused(
            OperationalError, StatusCode.CORRUPT, "cannot create other.crew: ", "which cannot be read"
        ):
            connection.execute("create table other.crew (id integer primary key)")
        assert connection.execute("select * from other.ship").fetchall() == [("Argo",)]


# --- rows -----------------------------------------------------------------------------------------------


def spoil_row(path: Path, backend: str, damaged: bytes) -> bytes:
    """Damage the second row of ``crew``; what it was."""
    with quereus_store.connect(path, backend=backend) as connection:
        store = connection.database.catalog.schemas["main"].tables["crew"].storage_id
    with storage(path, backend) as transaction:
        key, row = [item for batch in transaction.scan(*store_range(store)) for item in batch][1]
        transaction.put(key, damaged)
    return row


@pytest.mark.parametrize("damaged", [b"", b"\xc1", b"\x92\x02", b"no row at all"])
def test_a_corrupt_row(
    damaged: bytes, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "db"
    make(path, backend)
    spoil_row(path, backend, damaged)
    message = "the row of table main.crew with key (2) is corrupt: "
    with quereus_store.connect(path, backend=backend) as connection:
        for sql in (
            "select * from crew",
            "select nick from crew where id = 2",
            "select * from crew where nick = 'Bo'",
            "update crew set nick = 'x'",
            "delete from crew where id = 2",
            "insert or replace into crew values (2, 'new')",
        ):
            with refused(OperationalError, StatusCode.CORRUPT, message):
                connection.execute(sql).fetchall()
        # The others are as they were, and may be changed.
        assert one(connection, 1) == ("Ann",)
        assert one(connection, 3) == (None,)
        connection.execute("update crew set nick = 'Cy' where id = 3")
        assert one(connection, 3) == ("Cy",)
        (finding,) = connection.database.check()
        assert finding.place == "main.crew"
        assert finding.what.startswith("the row with key (2) is corrupt: ")
    assert main(["check", str(path)]) == 1
    assert "main.crew: the row with key (2) is corrupt" in capsys.readouterr().out


def one(connection: Connection, key: int) -> object:
    return connection.execute("select nick from crew where id = ?", (key,)).fetchone()
