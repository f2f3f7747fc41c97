"""The floor: what the storage library and the codec cost without any SQL above them.

The keys and values are those that the engine itself wrote: for scans those of a table without
indexes, for writes those of the load case (rows and one secondary index), in the order in which a
load brings them: some thousands of rows in key order, then their index entries in no order.  They
are read and put with the plain library; so the figures say how much of a scan or a load is ours to
save.  The floor of durable autocommit is one put and one durable commit for each of its rows: LMDB
flushes the file twice for that, ``sqlite3``'s log once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path
from struct import Struct
from typing import Any

import lmdb
import msgpack

from quereus_store.cli.bench.case import ITEM_COLUMNS
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import ENGINES, Database, Engine
from quereus_store.cli.bench.foundation_cases import AUTOCOMMITS

Item = tuple[bytes, bytes]
ReadAll = Callable[[Path], list[Item]]
PutAll = Callable[[Path, list[Item]], None]

MAP_SIZE = 1 << 32
_ROWS_AT_ONCE = 10_000
FIRST_ROWS = 16  # keys of tables start with a byte from here on; below are the catalog's
_ARRAY_HEADER = Struct(">BI")


@dataclass(frozen=True, slots=True)
class Floor:
    """One figure of the floor, with the engine's own time for the same work beside it."""

    name: str
    seconds: float
    engine_case: str = ""
    engine: str = ""


def measure_floor(data: Data, folder: Path, repeat: int) -> Iterator[Floor]:
    """Time the raw work of LMDB and LevelDB for the rows of the load case."""
    for engine in ENGINES:
        if engine.name not in RAW_STORES:
            continue
        read_all, put_all = RAW_STORES[engine.name]
        scanned = _filled(engine, folder / engine.name / "scan", data, index=False)
        items = in_load_order(read_all(_filled(engine, folder / engine.name / "load", data, index=True)))
        fresh = (folder / f"{engine.name}-put-{number}" for number in range(repeat))
        yield Floor(f"{engine.title}: iterate over the rows", best_of(repeat, partial(read_all, scanned)))
        yield Floor(
            f"{engine.title}: iterate and unpack the rows",
            best_of(repeat, partial(_decode, read_all, scanned)),
            "full scan, just opened",
            engine.name,
        )
        title = f"{engine.title}: put the same {len(items):,} keys and values"
        yield Floor(title, best_of(repeat, partial(_put_next, put_all, fresh, items)), "load", engine.name)
        yield Floor(
            f"{engine.title}: put {AUTOCOMMITS} rows, each with a durable commit",
            _commit_each(engine.name, folder / f"{engine.name}-commits", items[:AUTOCOMMITS], repeat),
            "durable autocommit",
            engine.name,
        )


def best_of(repeat: int, work: Callable[[], Any]) -> float:
    """The shortest time of some rounds of work, in seconds."""
    times: list[float] = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _filled(engine: Engine, folder: Path, data: Data, *, index: bool) -> Path:
    """A closed database of the rows of the load case; returns its path."""
    database = Database(engine, folder)
    execute = database.connection.execute
    execute(f"create table loaded {ITEM_COLUMNS}")
    if index:
        execute("create index loaded_code on loaded (code)")
    with database.connection.transaction():
        database.connection.executemany("insert into loaded values (?, ?, ?, ?)", data.items)
    database.close()
    (path,) = [entry for entry in folder.iterdir() if not entry.name.endswith("-lock")]
    return path


def in_load_order(items: list[Item]) -> list[Item]:
    """Items in the order of a load: batches of rows, each followed by the index entries of these rows."""
    keys = {key for key, _ in items}
    rows = [item for item in items if item[1] not in keys]
    entry_of = {item[1]: item for item in items if item[1] in keys}
    ordered: list[Item] = []
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = rows[start : start + _ROWS_AT_ONCE]
        ordered += batch
        ordered += [entry_of[key] for key, _ in batch if key in entry_of]
    return ordered


def _decode(read_all: ReadAll, path: Path) -> list[Any]:
    """All rows of a file, unpacked a thousand at a time: joined rows behind an array header are an array."""
    values = [value for key, value in read_all(path) if key[0] >= FIRST_ROWS]
    rows: list[Any] = []
    for start in range(0, len(values), 1000):
        batch = values[start : start + 1000]
        rows += msgpack.unpackb(_ARRAY_HEADER.pack(0xDD, len(batch)) + b"".join(batch), use_list=False)
    return rows


def _put_next(put_all: PutAll, paths: Iterator[Path], items: list[Item]) -> None:
    put_all(next(paths), items)


def _commit_each(engine: str, path: Path, items: list[Item], repeat: int) -> float:
    """The shortest time for putting items one by one, as for :func:`best_of`."""
    with closing(RAW_COMMITS[engine](path)) as store:
        return best_of(repeat, lambda: deque(starmap(store.put, items), maxlen=0))


class _LmdbCommits:
    """A file of LMDB in which every put is committed."""

    def __init__(self, path: Path) -> None:
        self._environment = lmdb.open(str(path), subdir=False, map_size=MAP_SIZE)

    def put(self, key: bytes, value: bytes) -> None:
        with self._environment.begin(write=True) as transaction:
            transaction.put(key, value)

    def close(self) -> None:
        self._environment.close()


class _LeveldbCommits:
    """A folder of LevelDB in which every put is on disk when it returns."""

    def __init__(self, path: Path) -> None:
        self._database = leveldb().DB(str(path), create_if_missing=True)

    def put(self, key: bytes, value: bytes) -> None:
        self._database.put(key, value, sync=True)

    def close(self) -> None:
        self._database.close()


def _lmdb_items(path: Path) -> list[Item]:
    with (
        lmdb.open(str(path), subdir=False, readonly=True, lock=False, map_size=MAP_SIZE) as environment,
        environment.begin() as transaction,
    ):
        return list(transaction.cursor())


def _lmdb_put(path: Path, items: list[Item]) -> None:
    with (
        lmdb.open(str(path), subdir=False, map_size=MAP_SIZE) as environment,
        environment.begin(write=True) as transaction,
    ):
        transaction.cursor().putmulti(items)


def _leveldb_items(path: Path) -> list[Item]:
    with closing(leveldb().DB(str(path))) as database, database.iterator() as iterator:
        return list(iterator)


def _leveldb_put(path: Path, items: list[Item]) -> None:
    with (
        closing(leveldb().DB(str(path), create_if_missing=True)) as database,
        database.write_batch(sync=True) as batch,
    ):
        for key, value in items:
            batch.put(key, value)


def leveldb() -> Any:
    """The binding of LevelDB, under the name it has for this Python."""
    try:
        import plyvel
    except ImportError:
        import plyvel_next as plyvel
    return plyvel


RAW_STORES: dict[str, tuple[ReadAll, PutAll]] = {
    "lmdb": (_lmdb_items, _lmdb_put),
    "leveldb": (_leveldb_items, _leveldb_put),
}
RAW_COMMITS: dict[str, Callable[[Path], Any]] = {"lmdb": _LmdbCommits, "leveldb": _LeveldbCommits}
