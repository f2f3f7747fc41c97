"""Places that are no database, or none that may be opened or written: refused, and left as they are."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import InterfaceError, OperationalError
from quereus_store.catalog.layout import FORMAT_KEY
from quereus_store.errors import StatusCode
from tests.bad_input.support import CREW, crew, make, refused, storage


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, files with their bytes."""
    return {
        str(place.relative_to(folder)): place.read_bytes() if place.is_file() else None
        for place in folder.rglob("*")
    }


@pytest.mark.parametrize("content", [b"x", b"Dear diary, " * 1000, bytes(4096)])
def test_a_file_that_is_not_a_database(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    before = tree(tmp_path)
    with refused(OperationalError, StatusCode.NOTADB, f"cannot open '{path}'", "it is not an LMDB file"):
        quereus_store.connect(path)
    assert tree(tmp_path) == before


def test_a_file_of_another_database(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("create table t (a)")
    other.commit()
    other.close()
    before = tree(tmp_path)
    with refused(OperationalError, StatusCode.NOTADB, path):
        quereus_store.connect(path)
    assert tree(tmp_path) == before


def test_a_storage_with_other_data(backend: str, tmp_path: Path) -> None:
    with storage(tmp_path / "foreign", backend) as transaction:
        transaction.put(b"mine", b"1")
    with refused(OperationalError, StatusCode.NOTADB, tmp_path / "foreign", "it holds other data"):
        quereus_store.connect(tmp_path / "foreign", backend=backend)
    with storage(tmp_path / "foreign", backend) as transaction:
        assert transaction.get(b"mine") == b"1"
        assert transaction.count(b"", None) == 1


def test_a_database_of_a_newer_format(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "newer"
    make(path, backend)
    with storage(path, backend) as transaction:
        stamp = transaction.get(FORMAT_KEY)
        assert stamp is not None
        transaction.put(FORMAT_KEY, stamp[:-8] + b"\0\0\0\7" + stamp[-4:])
    message = "it was written in format version 7, and this version of Quereus Store reads up to 1"
    with refused(OperationalError, StatusCode.CANTOPEN, path, message, "upgrade the package"):
        quereus_store.connect(path, backend=backend)
    with storage(path, backend) as transaction:
        transaction.put(FORMAT_KEY, stamp)
    with quereus_store.connect(path, backend=backend) as connection:
        assert crew(connection) == CREW


def test_a_folder_where_a_file_is_expected(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with refused(OperationalError, StatusCode.CANTOPEN, "it is a folder, and an LMDB database is one file"):
        quereus_store.connect(tmp_path / "folder")
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_file_where_a_folder_is_expected(tmp_path: Path) -> None:
    make(tmp_path / "file", "lmdb")
    with refused(OperationalError, StatusCode.CANTOPEN, "it is a file, and a LevelDB database is a folder"):
        quereus_store.connect(tmp_path / "file", backend="leveldb")
    with quereus_store.connect(tmp_path / "file") as connection:
        assert crew(connection) == CREW


def test_a_folder_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"...")
    before = tree(tmp_path)
    with refused(
        OperationalError, StatusCode.NOTADB, "the folder holds other things than a LevelDB database"
    ):
        quereus_store.connect(tmp_path / "photos", backend="leveldb")
    assert tree(tmp_path) == before


def test_a_folder_that_is_not_there(backend: str, tmp_path: Path) -> None:
    with refused(OperationalError, StatusCode.CANTOPEN, f"the folder '{tmp_path / 'no'}' does not exist"):
        quereus_store.connect(tmp_path / "no" / "db", backend=backend)


@pytest.mark.parametrize("options", [{"create": False}, {"readonly": True}])
def test_a_missing_database_that_must_not_be_made(
    options: dict[str, bool], backend: str, tmp_path: Path
) -> None:
    with refused(OperationalError, StatusCode.CANTOPEN, tmp_path / "db", "does not exist"):
        quereus_store.connect(tmp_path / "db", backend=backend, **options)
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_not_exist(backend: str, tmp_path: Path) -> None:
    with refused(InterfaceError, StatusCode.MISUSE, f"backend '{backend}' has no option 'colour'"):
        quereus_store.connect(tmp_path / "db", backend=backend, colour="red")
    with refused(
        InterfaceError, StatusCode.MISUSE, "synchronous must be one of full, normal, off, not 'yes'"
    ):
        quereus_store.connect(tmp_path / "db", backend=backend, synchronous="yes")
    with refused(InterfaceError, StatusCode.MISUSE, "unknown backend 'tape'"):
        quereus_store.connect(tmp_path / "db", backend="tape")
    assert list(tmp_path.iterdir()) == []


def test_opened_read_only(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "db"
    make(path, backend)
    with quereus_store.connect(path, backend=backend, readonly=True) as connection:
        assert crew(connection) == CREW
        for sql in (
            "insert into crew values (4, 'Cy')",
            "update crew set nick = 'x'",
            "delete from crew",
            "create table more (id integer primary key)",
            "create index again on crew (nick, id)",
            "alter table crew add column more text null",
            "drop table crew",
        ):
            with refused(
                OperationalError, StatusCode.READONLY, f"cannot write to '{path}': it was opened read-only"
            ):
                connection.execute(sql)
        assert connection.database.check() == []
        assert crew(connection) == CREW


@pytest.fixture
def bound_folder() -> Iterator[Path]:
    """A folder of a user whom permissions bind: the superuser steps down for the time of the test."""
    with tempfile.TemporaryDirectory() as name:
        superuser = hasattr(os, "geteuid") and os.geteuid() == 0
        if superuser:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if superuser:
                os.seteuid(0)
            for place in Path(name).rglob("*"):
                place.chmod(0o700)
            Path(name).chmod(0o700)


def test_a_read_only_file(bound_folder: Path) -> None:
    path = bound_folder / "db"
    make(path, "lmdb")
    path.chmod(0o444)
    with refused(OperationalError, StatusCode.READONLY, f"cannot open '{path}'"):
        quereus_store.connect(path)
    with quereus_store.connect(path, readonly=True) as connection:
        assert crew(connection) == CREW


def test_a_file_that_may_not_be_read(bound_folder: Path) -> None:
    path = bound_folder / "db"
    make(path, "lmdb")
    path.chmod(0)
    for options in ({}, {"readonly": True}):
        with refused(OperationalError, StatusCode.READONLY, f"cannot open '{path}'"):
            quereus_store.connect(path, **options)


def test_a_read_only_folder(backend: str, bound_folder: Path) -> None:
    path = bound_folder / "folder" / "db"
    path.parent.mkdir()
    make(path, backend)
    if path.is_dir():
        path.chmod(0o555)
    for leftover in path.parent.glob("*-lock"):
        leftover.unlink()
    path.parent.chmod(0o555)
    with refused(OperationalError, StatusCode.READONLY, f"cannot open '{path}'"):
        quereus_store.connect(path, backend=backend)
    with refused(OperationalError, StatusCode.READONLY, f"cannot open '{path.with_name('new')}'"):
        quereus_store.connect(path.with_name("new"), backend=backend)
    path.parent.chmod(0o700)
    path.chmod(0o700)
    with quereus_store.connect(path, backend=backend) as connection:
        assert crew(connection) == CREW
