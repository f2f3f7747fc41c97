"""Transactions of memory tables: snapshots, the one writer, and undo.

The committed state is a :class:`Root`, an immutable mapping from storage id to
:class:`TableState`.  A reader keeps a reference to the root it began with.  The writer starts
from the same mapping, forks the state of a table when it first changes it, and commits by making
its mapping the module's new root.

Undo serves savepoints only (a rollback just forgets the writer's mapping).  While a savepoint is
open each change appends the call that takes it back: ``(SortedRows.delete, tree, key)`` for one
inserted row, ``(SortedRows.restore, tree, frozen state)`` for a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.memory.sorted_rows import SortedRows


class TableState:
    """The trees of one table; ``owner`` is the token of the writer that may change them."""

    __slots__ = ("indexes", "owner", "primary")

    def __init__(self, primary: SortedRows, indexes: dict[int, SortedRows], owner: object) -> None:
        self.primary = primary
        self.indexes = indexes
        self.owner = owner

    def fork(self, owner: object) -> TableState:
        """A copy for a writer, sharing all rows."""
        indexes = {storage_id: tree.fork() for storage_id, tree in self.indexes.items()}
        return TableState(self.primary.fork(), indexes, owner)


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """One committed state of a module; compared by identity."""

    tables: Mapping[int, TableState]


class Snapshot:
    """A reader's transaction."""

    __slots__ = ("_tables", "root")

    writable = False

    def __init__(self, root: Root) -> None:
        self.root: Root | None = root
        self._tables: Mapping[int, TableState] = root.tables

    def state(self, storage_id: int) -> TableState:
        """The trees of a table as this transaction sees them."""
        try:
            return self._tables[storage_id]
        except KeyError:
            raise _no_table(self.root is None, storage_id) from None

    def writable_state(self, storage_id: int) -> TableState:
        """Refused: a snapshot is read only (MISUSE)."""
        raise sql_error(StatusCode.MISUSE, "a read transaction cannot write")

    def savepoint(self) -> int:
        """Nothing to undo, so any token does."""
        return 0

    def rollback_to(self, token: int) -> None:
        """Nothing to undo."""

    def release(self, token: int) -> None:
        """Nothing to forget."""

    def commit(self) -> None:
        """Release the snapshot."""
        self.rollback()

    def rollback(self) -> None:
        """Release the snapshot; may be repeated."""
        self.root = None
        self._tables = {}


class Writer:
    """The writing transaction of a module."""

    __slots__ = ("_finish", "_marks", "_tables", "_undo", "changed", "notes", "owner", "root")

    writable = True

    def __init__(self, root: Root, finish: Callable[[Root | None], None]) -> None:
        self.root: Root | None = root
        self._finish: Callable[[Root | None], None] | None = finish
        self._tables: dict[int, TableState] = dict(root.tables)
        self._undo: list[tuple[Any, ...]] = []
        self._marks: list[int] = []
        self.notes: list[tuple[Any, ...]] | None = None
        """Where to note the calls that take back changes; None if nobody may want them."""
        self.changed = False
        # A token, not the writer itself: states outlive it and must not keep its root alive.
        self.owner = object()

    # --- tables ----------------------------------------------------------------------------------------

    def state(self, storage_id: int) -> TableState:
        """The trees of a table as this transaction sees them."""
        try:
            return self._tables[storage_id]
        except KeyError:
            raise _no_table(self._finish is None, storage_id) from None

    def writable_state(self, storage_id: int) -> TableState:
        """The trees of a table, to be changed."""
        state = self.state(storage_id)
        if state.owner is not self.owner:
            state = self._tables[storage_id] = state.fork(self.owner)
            self.changed = True
        return state

    def put_table(self, storage_id: int, state: TableState) -> None:
        """Add a table's trees or put others in their place."""
        self._check_open()
        self.changed = True
        self.log(self._put_back, storage_id, self._tables.get(storage_id))
        self._tables[storage_id] = state

    def drop_table(self, storage_id: int) -> None:
        """Forget a table's trees."""
        self.changed = True
        self.log(self._put_back, storage_id, self.state(storage_id))
        del self._tables[storage_id]

    def _put_back(self, storage_id: int, state: TableState | None) -> None:
        if state is None:
            del self._tables[storage_id]
        else:
            self._tables[storage_id] = state

    # --- undo ------------------------------------------------------------------------------------------

    def log(self, function: Callable[..., object], *arguments: Any) -> None:
        """Remember the call that takes back a change, if a savepoint may want it."""
        if self.notes is not None:
            self.notes.append((function, *arguments))

    def savepoint(self) -> int:
        """Mark the present state."""
        if self._finish is None:
            raise _finished()
        self._marks.append(len(self._undo))
        self.notes = self._undo
        return len(self._marks) - 1

    def rollback_to(self, token: int) -> None:
        """Undo what happened since the mark; the mark stays."""
        self._check_token(token)
        undo, mark = self._undo, self._marks[token]
        del self._marks[token + 1 :]
        while len(undo) > mark:
            function, *arguments = undo.pop()
            function(*arguments)

    def release(self, token: int) -> None:
        """Forget the mark and the later ones."""
        marks = self._marks
        if token != len(marks) - 1 or token < 0:
            self._check_token(token)
        del marks[token:]
        if not marks:
            self._undo.clear()
            self.notes = None

    def _check_token(self, token: int) -> None:
        self._check_open()
        if not 0 <= token < len(self._marks):
            raise sql_error(StatusCode.MISUSE, f"no such savepoint token: {token}")

    # --- the end ---------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Make the changes the module's state and let the next writer in."""
        self._end(Root(self._tables) if self.changed else None)

    def rollback(self) -> None:
        """Drop the changes and let the next writer in."""
        self._end(None)

    def _end(self, published: Root | None) -> None:
        self._check_open()
        finish, self._finish = self._finish, None
        self._tables, self._undo, self._marks = {}, [], []
        self.notes = None
        self.root = None
        assert finish is not None
        finish(published)

    def _check_open(self) -> None:
        if self._finish is None:
            raise _finished()


def _finished() -> Error:
    return sql_error(StatusCode.MISUSE, "the transaction is finished")


def _no_table(finished: bool, storage_id: int) -> Error:
    if finished:
        return _finished()
    return sql_error(
        StatusCode.SCHEMA, f"memory table {storage_id} is not part of this transaction's snapshot"
    )
