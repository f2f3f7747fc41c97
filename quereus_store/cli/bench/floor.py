"""The floor: what the storage library and the codec cost without any SQL above them.

The keys and values are those that the engine itself wrote for the table of the load case, read
back with the plain library; so the figures say how much of a scan or a load is ours to save.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import msgpack

from quereus_store.cli.bench.cases import CASES
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import ENGINES, Database

Item = tuple[bytes, bytes]
ReadAll = Callable[[Path], list[Item]]
DecodeAll = Callable[[Path, int], list[Any]]
PutAll = Callable[[Path, list[Item]], None]

_MAP_SIZE = 1 << 32


@dataclass(frozen=True, slots=True)
class Floor:
    """One figure of the floor, with the engine's own time for the same work beside it."""

    name: str
    seconds: float
    engine_case: str = ""
    engine: str = ""


def measure_floor(data: Data, folder: Path, repeat: int) -> list[Floor]:
    """Time the raw work of LMDB and LevelDB for the rows of the load case."""
    floors: list[Floor] = []
    load = next(case for case in CASES if case.name == "load")
    for engine in ENGINES:
        if engine.name not in RAW_STORES:
            continue
        database = Database(engine, folder / engine.name)
        load.before(database, data)
        load.run(database, data)
        database.close()
        read_all, decode_all, put_all = RAW_STORES[engine.name]
        (path,) = [entry for entry in (folder / engine.name).iterdir() if not entry.name.endswith("-lock")]
        items = read_all(path)
        fresh = (folder / f"{engine.name}-put-{number}" for number in range(repeat))
        decode = partial(decode_all, path, len(data.items))

        def put(items: list[Item] = items, put_all: PutAll = put_all, paths: Iterator[Path] = fresh) -> None:
            put_all(next(paths), items)

        title = f"{engine.title}: put the same {len(items):,} keys and values"
        floors += [
            Floor(f"{engine.title}: iterate", best_of(repeat, partial(read_all, path))),
            Floor(
                f"{engine.title}: iterate and unpack the rows",
                best_of(repeat, decode),
                "full scan, just opened",
                engine.name,
            ),
            Floor(title, best_of(repeat, put), "load", engine.name),
        ]
    return floors


def best_of(repeat: int, work: Callable[[], Any]) -> float:
    """The shortest time of some rounds of work, in seconds."""
    times: list[float] = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _largest_store(items: list[Item]) -> list[bytes]:
    """Values of the key range with the most bytes in its values: the rows of the table."""
    stores: dict[int, list[bytes]] = {}
    for key, value in items:
        stores.setdefault(key[0], []).append(value)
    return max(stores.values(), key=lambda values: sum(map(len, values)))


def _lmdb_items(path: Path) -> list[Item]:
    with (
        lmdb.open(str(path), subdir=False, readonly=True, lock=False, map_size=_MAP_SIZE) as environment,
        environment.begin() as transaction,
    ):
        return list(transaction.cursor())


def _lmdb_put(path: Path, items: list[Item]) -> None:
    with (
        lmdb.open(str(path), subdir=False, map_size=_MAP_SIZE) as environment,
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


def _decoding(read_all: ReadAll) -> DecodeAll:
    def decode(path: Path, rows: int) -> list[Any]:
        values = _largest_store(read_all(path))
        assert len(values) >= rows
        return list(map(msgpack.unpackb, values))

    return decode


RAW_STORES: dict[str, tuple[ReadAll, DecodeAll, PutAll]] = {
    "lmdb": (_lmdb_items, _decoding(_lmdb_items), _lmdb_put),
    "leveldb": (_leveldb_items, _decoding(_leveldb_items), _leveldb_put),
}
