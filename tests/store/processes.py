"""What the tests with several processes run: ``python -m tests.store.processes <job> <backend> <path> ...``.

The content that a *crashing writer* makes is a function of the number of its commits, so that a test can tell
from the number alone what must be there, to the row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from quereus_store.errors import Error, StatusCode
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import TableSchema
from quereus_store.store import StoreModule
from quereus_store.store.open import open_store
from quereus_store.types import INTEGER, TEXT
from tests.store.support import Engine, columns, index, reading, table, with_indexes, writing

ROWS_EACH = 7
KEPT = 30

LOG = table("log", columns(id=INTEGER, commit=INTEGER, what=TEXT), "id")
LOG = with_indexes(LOG, index(LOG, "by_commit", "commit", "what"), index(LOG, "u", "what", unique=True))
LAST = table("last", columns(name=TEXT, commit=INTEGER), "name")


def opened(backend: str, path: str) -> StoreModule:
    module = open_store(path, backend, synchronous="normal")
    module.attach(Engine())
    return module


def schemas(module: StoreModule) -> list[TableSchema]:
    """The tables of the catalog, by name."""
    with reading(module) as transaction:
        catalog = module.load_catalog(transaction).catalog
    return [catalog.schemas["main"].tables[name] for name in sorted(catalog.schemas["main"].tables)]


def make(module: StoreModule, *tables: TableSchema) -> None:
    """Make tables and save them in the catalog, in one commit."""
    with writing(module) as transaction:
        before = module.load_catalog(transaction).catalog
        schema = before.schemas["main"]
        for made in tables:
            schema = schema.with_table(module.create_table(transaction, made))
        module.save_catalog(transaction, before, before.with_schema(schema))


# --- a writer that is going to be killed --------------------------------------------------------------------


def rows_of(commit: int) -> list[Row]:
    return [
        (commit * ROWS_EACH + number, commit, f"row {number} of commit {commit}{'.' * (commit * 37 % 900)}")
        for number in range(ROWS_EACH)
    ]


def content(commits: int) -> list[Row]:
    """All rows of the log after so many commits."""
    kept = range(max(0, commits - KEPT), commits)
    return [
        (row[0], row[1], row[2] if row[0] % 3 else row[2].upper()) if commit < commits - 1 else row
        for commit in kept
        for row in rows_of(commit)
    ]


def write_for_ever(backend: str, path: str) -> None:
    """Commit after commit, each told once it is done."""
    module = opened(backend, path)
    last, log = map(module.table, schemas(module))
    with reading(module) as transaction:
        row = last.point(transaction, ("writer",))
    commit = 0 if row is None else row[1]
    print("begun", commit, flush=True)
    while True:
        transaction = module.begin_write(1.0)
        log.insert(transaction, rows_of(commit))
        if commit:
            shouted = [row for row in rows_of(commit - 1) if not row[0] % 3]
            log.update(transaction, shouted, [(row[0], row[1], row[2].upper()) for row in shouted])
        if commit >= KEPT:
            gone = commit - KEPT
            log.delete(transaction, content(gone + 2)[-2 * ROWS_EACH : -ROWS_EACH])
        old, new = ("writer", commit), ("writer", commit + 1)
        if commit:
            last.update(transaction, [old], [new])
        else:
            last.insert(transaction, [new])
        transaction.commit()
        commit += 1
        print("done", commit, flush=True)


# --- processes that work together ---------------------------------------------------------------------------


def count_up(backend: str, path: str, times: str) -> None:
    """Add one to a number, so often; a lost update would be missed."""
    module = opened(backend, path)
    (last,) = map(module.table, schemas(module))
    done = 0
    while done < int(times):
        snapshot = module.begin_read()
        row = last.point(snapshot, ("counter",))
        assert row is not None
        try:
            transaction = module.begin_write(10.0, snapshot)
        except Error as error:
            if error.code is StatusCode.BUSY:
                continue
            raise
        finally:
            snapshot.rollback()
        last.update(transaction, [row], [("counter", row[1] + 1)])
        transaction.commit()
        done += 1


def add_column(backend: str, path: str) -> None:
    """Give table ``last`` one more column and add another table."""
    module = opened(backend, path)
    (last,) = schemas(module)
    with writing(module) as transaction:
        before = module.load_catalog(transaction).catalog
        wider = replace(last, columns=(*last.columns, replace(last.columns[1], name="more")))
        wider = module.rewrite_table(transaction, last, wider, lambda rows: [(*row, 7) for row in rows])
        other = module.create_table(transaction, LOG)
        schema = before.schemas["main"].with_table(wider).with_table(other)
        module.save_catalog(transaction, before, before.with_schema(schema))
    module.close()


JOBS: dict[str, Callable[..., None]] = {job.__name__: job for job in (write_for_ever, count_up, add_column)}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
