"""What a path may turn out to be, what a disk may do, and that being refused loses nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from typing import Any

import lmdb
import pytest

from quereus_store.backends import open_backend
from quereus_store.catalog.layout import FORMAT_KEY, HEAD_KEY
from quereus_store.catalog.meta import CODEC_VERSION, FORMAT_VERSION
from quereus_store.errors import Error, OperationalError, StatusCode
from quereus_store.modules.contract import UniqueViolation
from quereus_store.schema.objects import TableSchema
from quereus_store.store import StoreModule
from quereus_store.store.check import check_store, check_table
from quereus_store.store.open import open_store
from quereus_store.types import INTEGER, TEXT
from tests.store.conftest import OpenModule
from tests.store.support import (
    Engine,
    all_rows,
    columns,
    create,
    index,
    reading,
    seek,
    table,
    with_indexes,
    writing,
)

ROWS = [(number, f"name {number}") for number in range(50)]

files = pytest.mark.parametrize("backend_name", ["lmdb", "leveldb"])
lmdb_only = pytest.mark.parametrize("backend_name", ["lmdb"])


def crew(module: StoreModule) -> TableSchema:
    schema = table("crew", columns(id=INTEGER, name=TEXT), "id")
    return create(module, with_indexes(schema, index(schema, "by_name", "name")), ROWS)


def refusal(open_it: Callable[[], object]) -> tuple[StatusCode, str]:
    with pytest.raises(Error) as caught:
        open_it()
    assert isinstance(caught.value, OperationalError)
    return caught.value.code, str(caught.value)


def tamper(path: Path, backend: str, key: bytes, value: bytes | None) -> bytes:
    """Change one key behind the module's back; returns what was there."""
    engine = open_backend(backend, path)
    with engine.write(1.0) as transaction:
        before = transaction.get(key)
        assert before is not None
        if value is None:
            transaction.delete(key)
        else:
            transaction.put(key, value)
        transaction.commit()
    engine.close()
    return before


# --- places -------------------------------------------------------------------------------------------------


@files
def test_what_was_committed_is_there_again(open_module: OpenModule, backend_name: str) -> None:
    schema = crew(open_module())
    assert all_rows(open_module(), schema) == ROWS
    assert seek(open_module(), schema, "by_name", "name 7") == [(7, "name 7")]


def test_no_database(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("This is no database.\n" * 500)
    code, message = refusal(lambda: open_store(text))
    assert code is StatusCode.NOTADB
    assert str(text) in message
    assert text.read_text().startswith("This is no database.")


def test_a_folder_where_a_file_is_expected(tmp_path: Path) -> None:
    code, message = refusal(lambda: open_store(tmp_path))
    assert code is StatusCode.CANTOPEN
    assert str(tmp_path) in message
    assert "folder" in message


def test_a_file_where_a_folder_is_expected(tmp_path: Path) -> None:
    open_store(tmp_path / "a.qdb").close()
    code, message = refusal(lambda: open_store(tmp_path / "a.qdb", "leveldb"))
    assert code is StatusCode.CANTOPEN
    assert str(tmp_path / "a.qdb") in message
    open_store(tmp_path / "a.qdb").close()


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    code, message = refusal(lambda: open_store(tmp_path / "nowhere" / "a.qdb"))
    assert code is StatusCode.CANTOPEN
    assert "nowhere" in message


def test_a_file_that_may_not_be_written() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.qdb"
        open_store(path).close()
        for place, mode in ((path, 0o444), (Path(f"{path}-lock"), 0o444), (Path(folder), 0o555)):
            place.chmod(mode)
        with without_privileges():
            code, message = refusal(lambda: open_store(path))
        Path(folder).chmod(0o755)
    assert code is StatusCode.READONLY
    assert str(path) in message


@contextmanager
def without_privileges() -> Iterator[None]:
    """The superuser may write to anything, so the test steps down for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_opened_read_only(tmp_path: Path) -> None:
    module = open_store(tmp_path / "a.qdb")
    module.attach(Engine())
    schema = crew(module)
    module.close()
    module = open_store(tmp_path / "a.qdb", readonly=True)
    module.attach(Engine())
    assert all_rows(module, schema) == ROWS
    code, message = refusal(lambda: module.begin_write(1.0))
    assert code is StatusCode.READONLY
    assert str(tmp_path / "a.qdb") in message
    module.close()


def test_an_lmdb_file_of_somebody_else(tmp_path: Path) -> None:
    path = str(tmp_path / "other.mdb")
    environment = lmdb.open(path, subdir=False)
    with environment.begin(write=True) as transaction:
        transaction.put(b"precious", b"data")
    environment.close()
    code, message = refusal(lambda: open_store(path))
    assert code is StatusCode.NOTADB
    assert message == f"'{path}' is not a Quereus Store database: it holds other data"
    environment = lmdb.open(path, subdir=False)
    with environment.begin() as transaction:
        assert list(transaction.cursor()) == [(b"precious", b"data")]
    environment.close()


def test_unknown_backends_and_options(tmp_path: Path) -> None:
    with pytest.raises(Error, match="unknown backend 'dbm'"):
        open_store(tmp_path / "a", "dbm")
    with pytest.raises(Error, match="speed"):
        open_store(tmp_path / "a", speed=11)


# --- versions -----------------------------------------------------------------------------------------------


@files
@pytest.mark.parametrize(
    ("versions", "what"),
    [((FORMAT_VERSION + 1, 1), "format version 2"), ((1, CODEC_VERSION + 6), "key encoding version 7")],
)
def test_a_newer_format(
    open_module: OpenModule, backend_name: str, tmp_path: Path, versions: tuple[int, int], what: str
) -> None:
    module = open_module()
    schema = crew(module)
    module.close()
    path = tmp_path / "test.qdb"
    before = tamper(path, backend_name, FORMAT_KEY, b"Quereus Store\0" + pack(">II", *versions))
    code, message = refusal(open_module)
    assert code is StatusCode.CANTOPEN
    assert message == (
        f"cannot open '{path}': it was written in {what}, and this version of Quereus Store reads "
        "up to 1; upgrade the package to open it"
    )
    tamper(path, backend_name, FORMAT_KEY, before)
    assert all_rows(open_module(), schema) == ROWS


@files
@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        (FORMAT_KEY, None, StatusCode.NOTADB),
        (FORMAT_KEY, b"Quereus Store\0\0", StatusCode.CORRUPT),
        (FORMAT_KEY, b"Quereus Store\0" + bytes(8), StatusCode.CORRUPT),
        (HEAD_KEY, b"short", StatusCode.CORRUPT),
        (HEAD_KEY, None, StatusCode.CORRUPT),
    ],
)
def test_a_damaged_stamp(
    open_module: OpenModule,
    backend_name: str,
    tmp_path: Path,
    key: bytes,
    value: bytes | None,
    code: StatusCode,
) -> None:
    open_module().close()
    tamper(tmp_path / "test.qdb", backend_name, key, value)
    found, message = refusal(open_module)
    assert found is code
    assert str(tmp_path / "test.qdb") in message


def test_a_creation_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    open_backend("lmdb", tmp_path / "a.qdb").close()
    open_store(tmp_path / "a.qdb").close()
    open_store(tmp_path / "a.qdb").close()


# --- damaged rows and indexes -------------------------------------------------------------------------------


def change(module: StoreModule, key: bytes, value: bytes | None) -> None:
    with module.backend.write(1.0) as transaction:
        if value is None:
            transaction.delete(key)
        else:
            transaction.put(key, value)
        transaction.commit()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xc1", "a stored row is damaged"),
        (b"\x93\x01\x02\x03", "it has 3 values, the table has 2 columns"),
        (b"\x05", "its value is no row"),
        (b"\x92\x01", "a stored row is damaged"),
        (b"", "a stored row is damaged"),
    ],
)
def test_a_damaged_row_is_named(module: StoreModule, value: bytes, reason: str) -> None:
    schema = crew(module)
    change(module, module.table(schema).rows.probe((7,)), value)
    handle = module.table(schema)
    with reading(module) as transaction:
        for read in (
            lambda: list(handle.scan(transaction)),
            lambda: handle.point(transaction, (7,)),
            lambda: handle.points(transaction, [(6,), (7,)]),
        ):
            code, message = refusal(read)
            assert code is StatusCode.CORRUPT
            assert message.startswith(f"the row of table main.crew with key (7) is corrupt: {reason}")
        assert handle.point(transaction, (8,)) == ROWS[8]
        (finding,) = check_table(module, transaction, schema)
        assert finding.place == "main.crew"
        assert finding.what.startswith(f"the row with key (7) is corrupt: {reason}")


def findings(module: StoreModule, schema: TableSchema) -> list[str]:
    with reading(module) as transaction:
        return [finding.what for finding in check_table(module, transaction, schema)]


def test_what_check_says_about_indexes(module: StoreModule) -> None:
    schema = crew(module)
    rows, by_name = module.table(schema).rows, module.table(schema).index("by_name")
    assert findings(module, schema) == []
    entry = by_name.entry(ROWS[3], rows.probe((3,)))
    assert entry is not None
    change(module, entry, None)
    assert findings(module, schema) == ["index by_name has no entry for the row with key (3)"]
    change(module, entry, rows.probe((4,)))
    assert findings(module, schema) == ["index by_name has row (4) where row (3) should be"]
    change(module, entry, rows.probe((3,)))
    stray = by_name.entry((3, "other"), rows.probe((3,)))
    assert stray is not None
    change(module, stray, rows.probe((3,)))
    assert findings(module, schema) == [
        "index by_name has an entry for the row with key (3) that does not fit the row"
    ]
    change(module, stray, rows.probe((99,)))
    assert findings(module, schema) == ["index by_name names a row with key (99), which does not exist"]
    with pytest.raises(
        Error, match=r"index by_name of table main.crew is corrupt: it names a row with key \(99"
    ):
        seek(module, schema, "by_name", "other")
    transaction = module.begin_write(1.0)
    module.table(schema).delete(transaction, [ROWS[3]])
    with pytest.raises(Error, match=r"index by_name of table main\.crew is corrupt: it has an entry"):
        module.table(schema).insert(transaction, [(3, "other"), (100, "fine")])
    transaction.rollback()


def test_what_check_says_about_rows_and_counts(module: StoreModule) -> None:
    schema = crew(module)
    rows = module.table(schema).rows
    change(module, rows.probe((70,)), rows.encode((7, "name 7")))
    assert findings(module, schema) == [
        "the row with key (7) is filed under key (70)",
        "index by_name has no entry for the row with key (70)",
        "its row count says 50, it has 51 rows",
    ]


def test_check_stops_after_enough(module: StoreModule) -> None:
    schema = create(module, table("t", columns(id=INTEGER), "id"), [(number,) for number in range(150)])
    for number in range(150):
        change(module, module.table(schema).rows.probe((number,)), b"\x05")
    found = findings(module, schema)
    assert len(found) == 101
    assert found[-1] == "there is more of this kind"


def test_check_finds_stores_that_nobody_knows(module: StoreModule) -> None:
    crew(module)
    with reading(module) as transaction:
        assert [finding.what for finding in check_store(module, transaction)] == [
            "the keys of store 16 belong to no table or index",
            "the keys of store 128 belong to no table or index",
            "there is a row count for store 128, which is no table's",
        ]


# --- a full disk --------------------------------------------------------------------------------------------


class Disk:
    """A disk that is full from a certain call on."""

    def __init__(self) -> None:
        self.left: int | None = None

    def __call__(self, doing: str) -> None:
        if self.left is None:
            return
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= 1


def fails_for_want_of_space(work: Callable[[], None]) -> bool:
    try:
        work()
    except OperationalError as error:
        return error.code is StatusCode.FULL
    return False


@files
@pytest.mark.parametrize("room", range(12))
def test_a_full_disk_loses_nothing(open_module: OpenModule, backend_name: str, room: int) -> None:
    disk = Disk()
    module = open_module(faults=disk)
    schema = crew(module)
    handle = module.table(schema)
    disk.left = room
    transaction = module.begin_write(1.0)

    def work() -> None:
        token: Any = transaction.savepoint()
        handle.insert(transaction, [(100, "new"), (101, "new")])
        handle.update(transaction, [ROWS[1], ROWS[0]], [(1, "changed"), (0, "changed")])
        handle.update(transaction, [ROWS[2]], [(200, "moved")])
        transaction.release(token)
        transaction.commit()

    failed = fails_for_want_of_space(work)
    transaction.rollback()
    disk.left = None
    changed = [(0, "changed"), (1, "changed"), *ROWS[3:], (100, "new"), (101, "new"), (200, "moved")]
    assert all_rows(module, schema) == (ROWS if failed else changed)
    assert findings(module, schema) == []
    with writing(module) as transaction:
        handle.insert(transaction, [(300, "later")])
    module = open_module()
    assert all_rows(module, schema)[-1] == (300, "later")
    assert findings(module, schema) == []


@files
def test_a_refused_row_on_a_good_disk_is_no_disk_error(open_module: OpenModule, backend_name: str) -> None:
    module = open_module(faults=Disk())
    schema = crew(module)
    with writing(module) as transaction, pytest.raises(UniqueViolation):
        module.table(schema).insert(transaction, [(7, "again")])
    assert all_rows(module, schema) == ROWS
