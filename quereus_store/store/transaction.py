"""Transactions of the store: a pinned snapshot, and the one writer.

Both are thin.  A :class:`StoreReader` is a backend snapshot and nothing else, since every
point read makes one.  A :class:`StoreWriter` adds what a commit must write besides the
rows: for each table that was changed its next change counter and its exact row count,
and the head of the database (commit number, schema version).  All of that is part of
the same atomic backend commit.

Row counts are kept in a dictionary while the transaction runs; savepoints keep a copy of
it (a transaction touches few tables), the rows themselves are restored by the backend.

Chapter: store-and-modules, sections 5, 9 and 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from quereus_store.backends.contract import ReadTransaction, Savepoint, WriteTransaction
from quereus_store.catalog.layout import HEAD, HEAD_KEY, STATE, state_key
from quereus_store.catalog.meta import Head, read_head
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import Batch
from quereus_store.store.scans import OpenScans

NO_STATE = (0, 0)

_unpack_head = HEAD.unpack

_States = dict[int, tuple[int, int]]
"""Change counter and row count by table, as they are to be committed."""

_Mark = tuple[int, Savepoint, _States, int]
"""Token, the backend's savepoint, states of changed tables and number of schema changes at that moment."""


def table_state(kv: ReadTransaction, store: int) -> tuple[int, int]:
    """Change counter and row count of a table as last committed (zeros for a new one)."""
    value = kv.get(state_key(store))
    return STATE.unpack(value) if value else NO_STATE


class StoreReader:
    """A snapshot of the last commit; ``kv`` is the backend's side of it."""

    __slots__ = ("kv",)

    writable = False

    def __init__(self, kv: ReadTransaction) -> None:
        self.kv = kv

    def changed(self, store: int) -> bool:
        """Whether this transaction has changed the table."""
        return False

    def watch(self, store: int, batches: Iterator[Batch]) -> Iterator[Batch]:
        """A snapshot never changes, so nothing has to be done for a scan of it."""
        return batches

    def row_count(self, store: int) -> int:
        """Exact number of rows of a table."""
        return table_state(self.kv, store)[1]

    def schema_version(self) -> int:
        """The version of the schema that this snapshot has."""
        # Asked by every statement, so without the detour of read_head.
        value = self.kv.get(HEAD_KEY)
        return 0 if value is None else _unpack_head(value)[1]

    def savepoint(self) -> int:
        """A reader has nothing to return to; any token will do."""
        return 0

    def rollback_to(self, token: int) -> None:
        """Nothing was written."""

    def release(self, token: int) -> None:
        """Nothing was kept."""

    def commit(self) -> None:
        """Release the snapshot."""
        self.kv.close()

    def rollback(self) -> None:
        """Release the snapshot; may be repeated."""
        self.kv.close()


class StoreWriter:
    """The single writer's transaction."""

    __slots__ = (
        "_dirty",
        "_durable",
        "_ended",
        "_head",
        "_marks",
        "_schema_changes",
        "_states",
        "_tokens",
        "kv",
        "scans",
    )

    writable = True

    def __init__(self, kv: WriteTransaction, durable: bool) -> None:
        self.kv = kv
        self.scans = OpenScans()
        self._durable = durable
        self._head: Head = read_head(kv)
        self._states: _States = {}
        self._schema_changes = 0
        self._dirty = False
        self._ended = False
        self._marks: list[_Mark] = []
        self._tokens = 0

    @property
    def head(self) -> Head:
        """The head of the commit that this transaction builds on."""
        return self._head

    def changed(self, store: int) -> bool:
        """Whether this transaction has changed the table."""
        return store in self._states

    def watch(self, store: int, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Let a scan of a table give the rows as they are now, whatever is written meanwhile."""
        return self.scans.add(store, batches)

    def row_count(self, store: int) -> int:
        """Exact number of rows of a table, this transaction's changes included."""
        state = self._states.get(store)
        return (table_state(self.kv, store) if state is None else state)[1]

    def add_rows(self, store: int, difference: int) -> None:
        """Note, before writing, that rows of a table are added, removed or (0) only changed."""
        if self.scans:
            self.scans.freeze(store)
        state = self._states.get(store)
        if state is not None:
            self._states[store] = (state[0], state[1] + difference)
        else:
            changes, count = table_state(self.kv, store)
            self._states[store] = (changes + 1, count + difference)

    def forget_table(self, store: int) -> None:
        """A table is erased: its state goes with it."""
        self.scans.freeze(store)
        self._states.pop(store, None)
        self.kv.delete(state_key(store))
        self._dirty = True

    def change_indexes(self, store: int) -> None:
        """Note, before writing, that a table gets or loses an index."""
        self.scans.freeze(store)
        self._dirty = True

    def touch(self) -> None:
        """Something besides rows was written."""
        self._dirty = True

    def change_schema(self) -> None:
        """The catalog was changed: every process is to reload it after the commit."""
        self._schema_changes += 1

    def schema_version(self) -> int:
        """The version of the schema as this transaction leaves it."""
        return self._head.schema + self._schema_changes

    def savepoint(self) -> int:
        """Mark this state; the token orders after all earlier ones."""
        self._tokens = token = self._tokens + 1
        self._marks.append((token, self.kv.savepoint(), self._states.copy(), self._schema_changes))
        return token

    def rollback_to(self, token: int) -> None:
        """Return to a mark, which stays open; later ones are gone. MISUSE for an unknown one."""
        _, savepoint, states, schema_changes = self._find_mark(token)
        self.scans.freeze_all()
        self.kv.rollback_to(savepoint)
        self._states = states.copy()
        self._schema_changes = schema_changes

    def release(self, token: int) -> None:
        """Forget a mark and later ones, keeping what was written. MISUSE for an unknown one."""
        marks = self._marks
        if marks and marks[-1][0] == token:
            self.kv.release(marks.pop()[1])
            return
        savepoint = self._find_mark(token)[1]
        marks.pop()
        self.kv.release(savepoint)

    def _find_mark(self, token: int) -> _Mark:
        marks = self._marks
        while marks and marks[-1][0] > token:
            marks.pop()
        if not marks or marks[-1][0] != token:
            raise sql_error(StatusCode.MISUSE, f"unknown savepoint token {token}")
        return marks[-1]

    def commit(self) -> None:
        """Make everything visible at once; on error nothing of it remains.  MISUSE when it has ended."""
        if self._ended:
            raise sql_error(StatusCode.MISUSE, "the transaction has ended")
        self._ended = True
        kv = self.kv
        if not (self._states or self._schema_changes or self._dirty):
            kv.abort()
            return
        try:
            for store, state in self._states.items():
                kv.put(state_key(store), STATE.pack(*state))
            kv.put(HEAD_KEY, HEAD.pack(self._head.commit + 1, self.schema_version()))
        except BaseException:
            kv.abort()
            raise
        kv.commit(self._durable)

    def rollback(self) -> None:
        """Drop everything; may be repeated."""
        self._ended = True
        self.kv.abort()


Transaction = StoreReader | StoreWriter


@contextmanager
def all_or_nothing(transaction: StoreWriter | WriteTransaction) -> Iterator[None]:
    """Take back what the block wrote if it raises."""
    token: Any = transaction.savepoint()
    try:
        yield
    except BaseException:
        # A backend that cannot go on has ended the transaction; its own error is the one to show.
        with suppress(Error):
            transaction.rollback_to(token)
            transaction.release(token)
        raise
    transaction.release(token)
