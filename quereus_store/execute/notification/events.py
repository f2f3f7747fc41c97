"""What listeners are told.  All of it is immutable, and shared by all listeners of one commit.

Chapters: store-and-modules, section 11; views-and-maintained-tables, section 15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from quereus_store.execute.notification.scopes import Watch
from quereus_store.modules.contract import Batch, Row
from quereus_store.schema.objects import TableSchema


class DataChange(NamedTuple):
    """One row of a table that was inserted, updated or deleted.  (A tuple, since there may be very many.)

    ``key`` is the primary key as ``new_row`` has it, for a delete as ``old_row`` has it.  An update
    never moves a row: one that gets another key is a delete and an insert.  ``changed_columns`` names the
    columns of an update that are different; none, where equal values were written.  ``remote``: a host has
    stored the row itself and reported it (``Connection.ingest_external_row_changes``).
    """

    type: Literal["insert", "update", "delete"]
    module_name: str
    schema_name: str
    table_name: str
    key: tuple[Any, ...]
    old_row: Row | None = None
    new_row: Row | None = None
    changed_columns: tuple[str, ...] | None = None
    remote: bool = False


@dataclass(frozen=True, slots=True)
class SchemaEvent:
    """One schema statement on a table, an index or a column; ``ddl`` is the text of an ALTER."""

    type: Literal["create", "alter", "drop"]
    object_type: Literal["table", "index", "column"]
    module_name: str
    schema_name: str
    object_name: str
    old_object_name: str | None = None
    column_name: str | None = None
    old_column_name: str | None = None
    ddl: str | None = None
    remote: bool = False


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """One catalog object that a commit left different from what it was.

    ``type`` is such as ``table_added``, ``view_modified``, ``materialized_view_refreshed``,
    ``function_added``; the objects are those of the catalog before and after.
    """

    type: str
    schema_name: str
    object_name: str
    old_object: Any = None
    new_object: Any = None


@dataclass(frozen=True, slots=True)
class RowMerge:
    """A row of a maintained table that has taken the place of another, since its key compares more coarsely.

    Both come of rows that the source's key tells apart; ``weakened_columns`` are the columns of the key under
    which they are equal, ``key`` is the new row's.
    """

    schema_name: str
    table_name: str
    key: tuple[Any, ...]
    weakened_columns: tuple[str, ...]
    old_row: Row
    new_row: Row


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one commit did: schema events, then data events, each in the order of the work.

    ``complete`` is False where the transaction had begun before anybody listened: it may have changed
    rows of which nothing is told.
    """

    txn_id: str
    schema_events: tuple[SchemaEvent, ...] = ()
    data_events: tuple[DataChange, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """A watch that a commit touched; ``hits`` are the rows or groups in question, none for a full watch."""

    watch: Watch
    hits: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Notification:
    """What a watcher is told of a commit.

    ``commits`` is greater than 1 where a reader was slow and several commits became one notification;
    ``txn_id`` is the last one's then.
    """

    matched: tuple[Match, ...]
    txn_id: str
    commits: int = 1


# --- what transactions keep for them ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reshape:
    """An ALTER TABLE that rewrote rows, when the log had ``position`` entries.

    Rows that were logged before are brought into the new shape by the same ``transform``.
    """

    position: int
    before: TableSchema
    after: TableSchema
    transform: Callable[[Batch], Batch] | None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A maintained table that REFRESH computed anew."""

    table: TableSchema


Announcement = SchemaEvent | Reshape | Refreshed | RowMerge
"""What a transaction notes besides its changes of rows."""
