"""The floor of the write cases: the same keys and values written with the plain library.

What a case writes is the difference between the database before it and after it.  That difference is put
into a copy of the file as it was before: new and changed items in the order of a load, removed keys in
key order, in one transaction that is not committed (the cases are rolled back as well).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import lmdb

from quereus_store.cli.bench.case import Case, set_up
from quereus_store.cli.bench.data import Data
from quereus_store.cli.bench.engines import ENGINES, Database, Engine
from quereus_store.cli.bench.floor import (
    FIRST_ROWS,
    MAP_SIZE,
    RAW_STORES,
    Floor,
    Item,
    in_load_order,
    leveldb,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change wrote: items put, keys removed."""

    put: list[Item]
    removed: list[bytes]


def measure_write_floor(cases: Sequence[Case], data: Data, folder: Path, repeat: int) -> Iterator[Floor]:
    """Time the raw writes of each case on LMDB and LevelDB."""
    for engine in ENGINES:
        if engine.name in _APPLY and cases:
            base = folder / engine.name
            database = Database(engine, base)
            set_up(database, data)
            database.close()
            for number, case in enumerate(cases):
                case_folder = folder / f"{engine.name}-{number}"
                shutil.copytree(base, case_folder)
                yield _floor_of(engine, case, data, case_folder, repeat)
                shutil.rmtree(case_folder)


def _floor_of(engine: Engine, case: Case, data: Data, folder: Path, repeat: int) -> Floor:
    database = Database(engine, folder)
    case.before(database, data)
    execute = database.connection.execute
    execute("commit")
    database.close()
    (path,) = [entry for entry in folder.iterdir() if not entry.name.endswith("-lock")]
    before = folder / "before"
    _copy(path, before)
    database = Database(engine, folder)
    database.connection.execute("begin")
    case.run(database, data)
    database.connection.execute("commit")
    database.close()
    read_all, _ = RAW_STORES[engine.name]
    difference = _difference(dict(read_all(before)), dict(read_all(path)))
    times = []
    for number in range(repeat):
        copy = folder / f"copy-{number}"
        _copy(before, copy)
        times.append(_APPLY[engine.name](copy, difference))
    written = len(difference.put) + len(difference.removed)
    return Floor(f"{engine.title}: {case.name}, {written:,} raw writes", min(times), case.name, engine.name)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _difference(before: dict[bytes, bytes], after: dict[bytes, bytes]) -> Difference:
    put = [(key, value) for key, value in after.items() if before.get(key) != value and key[0] >= FIRST_ROWS]
    return Difference(in_load_order(put), [key for key in before if key not in after])


def _apply_to_lmdb(path: Path, difference: Difference) -> float:
    with lmdb.open(str(path), subdir=False, map_size=MAP_SIZE) as environment:
        transaction = environment.begin(write=True)
        started = time.perf_counter()
        for key in difference.removed:
            transaction.delete(key)
        transaction.cursor().putmulti(difference.put)
        seconds = time.perf_counter() - started
        transaction.abort()
    return seconds


def _apply_to_leveldb(path: Path, difference: Difference) -> float:
    with closing(leveldb().DB(str(path))) as database:
        started = time.perf_counter()
        batch = database.write_batch(sync=False)
        for key in difference.removed:
            batch.delete(key)
        for key, value in difference.put:
            batch.put(key, value)
        batch.write()
        return time.perf_counter() - started


_APPLY: dict[str, Callable[[Path, Difference], float]] = {
    "lmdb": _apply_to_lmdb,
    "leveldb": _apply_to_leveldb,
}
