"""Ingestion: rows that a host has stored itself, followed as if a statement had written them.

A module may come by rows on a way of its own: a replica that applies what its peer sends, a cache over a
service.  Nobody knows of them until the host reports them, as full images of what is stored already.  What
comes after a write then happens, and nothing of what comes before: no constraint is judged again, no default
and no coercion applied, nothing is written to the table.

=====================  =================================================================================
of a statement         for a report
=====================  =================================================================================
maintained tables      follow at its end, all changes as one batch; what they refuse fails the report
capture                watches, data events (``remote``) and assertions at the commit learn of the rows
actions of keys        CASCADE, SET NULL, SET DEFAULT, if asked for; the host has done without RESTRICT
=====================  =================================================================================

The images are trusted.  Programs that work from the changed rows would carry a wrong image into the views;
those that read storage would not.

Chapter: views-and-maintained-tables, section 16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Literal, TypeAlias

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.assertions import AssertionFailure
from quereus_store.execute.dml.changes import Change, is_wanted
from quereus_store.execute.dml.foreign_keys.parents import ParentSide, parent_side
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import Row
from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import Catalog, Operation, TableSchema
from quereus_store.types.logical import (
    BLOB,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
)
from quereus_store.types.values import RANK_OF_CLASS

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

Image: TypeAlias = Sequence[object]
"""A full row as it is stored: a value for each column."""

_Place: TypeAlias = tuple[str, str, str]
"""Schema, table and operation of a change."""

_ANY_CLASS: frozenset[type] = frozenset(RANK_OF_CLASS)
_NUMBERS: frozenset[type] = frozenset({NoneType, bool, int, float})
_TEXTS: frozenset[type] = frozenset({NoneType, str})
_CLASSES: Mapping[LogicalType, frozenset[type]] = MappingProxyType(
    {
        **dict.fromkeys((INTEGER, REAL, NUMERIC, BOOLEAN, TIMESTAMP), _NUMBERS),
        **dict.fromkeys((TEXT, DATE, TIME, DATETIME, TIMESPAN), _TEXTS),
        BLOB: frozenset({NoneType, bytes}),
    }
)
"""Python classes of what programs of maintained tables can work with, by the type of a column."""

_NAME = "ingestExternalRowChanges"
_OPERATIONS = {operation.value: operation for operation in Operation}


@dataclass(frozen=True, slots=True)
class ExternalChange:
    """One row that a host has stored, replaced or removed: what was there before, what is there now."""

    table_name: str
    op: Literal["insert", "update", "delete"]
    old_row: Image | None = None
    new_row: Image | None = None
    schema_name: str = MAIN


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What follows a report; see :meth:`quereus_store.Connection.ingest_external_row_changes`."""

    maintain: bool = True
    capture: bool = True
    foreign_key_actions: bool = False
    reports_assertions: bool = False


def ingest(
    session: Session, changes: Sequence[ExternalChange], options: IngestOptions
) -> list[AssertionFailure]:
    """Follow rows that have been stored already, in the order in which they are reported.

    All of it is one statement: in the open transaction, or in one of its own.  Raises MISUSE for what is no
    report, NOTFOUND for unknown tables, and what maintained tables, actions and assertions raise; then
    nothing that followed stays.  Gives the assertions that the commit has broken, where these are reported.
    """
    failures: list[AssertionFailure] = []
    if not changes:
        return failures
    if options.reports_assertions and (session.transaction is not None or not options.capture):
        raise _misuse("assertion failures are reported only of a transaction of its own, with capture on")

    def change(transaction: Transaction) -> None:
        failures.clear()
        if options.reports_assertions:
            transaction.verify = partial(session.assertions.report, failures)
        _follow(session, transaction, _as_logged(transaction.catalog, changes), options)

    session.write(change)
    return failures


def _follow(
    session: Session, transaction: Transaction, changes: Sequence[Change], options: IngestOptions
) -> None:
    maintenance = session.engine.maintenance
    before, log = transaction.catalog, transaction.changes
    start = len(log)
    if options.maintain or options.capture:
        log += [change for change in changes if is_wanted(transaction, change.table)]
    reported = len(log) - start
    if not options.maintain:
        transaction.maintained = len(log)
        if maintenance is not None:
            maintenance.passed_over(transaction, [change.table for change in changes])
    if options.foreign_key_actions:
        _carry_actions_out(session, transaction, changes)
    if options.capture:
        return
    # Maintained tables are to learn of the rows, watches and assertions are not.
    if maintenance is not None and len(log) > transaction.maintained:
        maintenance.after_statement(session, transaction, before)
    del log[start : start + reported]
    transaction.maintained = len(log)
    session.assertions.forget_what_holds()


def _carry_actions_out(session: Session, transaction: Transaction, changes: Sequence[Change]) -> None:
    """What foreign keys onto the reported tables do to the rows that refer to theirs."""
    workshop = Workshop(session.engine, session.bind_context(transaction, {}))
    if not workshop.enforces_keys:
        return
    runtime = MutationRuntime(session, transaction, (), [])
    sides: dict[tuple[str, str, Operation], ParentSide | None] = {}
    for table, operation, old, new, _ in changes:
        if operation is Operation.INSERT:
            continue
        asked = (table.schema, table.name, operation)
        if asked not in sides:
            sides[asked] = parent_side(workshop, table, operation, range(len(table.columns)), True)
        side = sides[asked]
        if side is not None:
            side.after(runtime, old, new or None)


# --- reports as entries of the log ------------------------------------------------------------------------


def _as_logged(catalog: Catalog, changes: Iterable[ExternalChange]) -> list[Change]:
    """The reports as entries of a transaction's log.

    Inserts in a row are one entry, so are deletes; an update may build on the one before it.
    """
    return [entry for place, run in groupby(changes, _place) for entry in _entries(catalog, place, list(run))]


def _place(change: ExternalChange) -> _Place:
    if not isinstance(change, ExternalChange):
        raise _misuse(f"a change is an ExternalChange, not {type(change).__name__}")
    for label, name in (("schema", change.schema_name), ("table", change.table_name), ("op", change.op)):
        if not isinstance(name, str):
            raise _misuse(f"the {label} of a change is a str, not {type(name).__name__}")
    return change.schema_name, change.table_name, change.op


def _entries(catalog: Catalog, place: _Place, run: Sequence[ExternalChange]) -> list[Change]:
    """Changes of one kind to one table."""
    schema, name, op = place
    table = catalog.table(schema, name)
    if table is None:
        raise sql_error(StatusCode.NOTFOUND, f"{_NAME}: table '{schema}.{name}' not found")
    operation = _OPERATIONS.get(op)
    if operation is None:
        raise _misuse(f"unknown op '{op}'")
    old: list[Row] = []
    new: list[Row] = []
    if operation is not Operation.INSERT:
        old = _images(table, op, "oldRow", [change.old_row for change in run])
    if operation is not Operation.DELETE:
        new = _images(table, op, "newRow", [change.new_row for change in run])
    if operation is Operation.UPDATE:
        pairs = zip(old, new, strict=True)
        return [Change(table, operation, (before,), (after,), remote=True) for before, after in pairs]
    return [Change(table, operation, old, new, remote=True)]


def _images(table: TableSchema, op: str, label: str, images: Sequence[Image | None]) -> list[Row]:
    width = len(table.columns)
    found: list[Row] = []
    for image in images:
        if image is None:
            raise _misuse(f"{label} is required for op '{op}'")
        if not isinstance(image, Sequence) or isinstance(image, str | bytes):
            raise _misuse(f"{label} is a sequence of values, not {type(image).__name__}")
        if len(image) != width:
            raise _misuse(
                f"{label} arity {len(image)} does not match '{table.qualified_name}' column count {width}"
            )
        found.append(tuple(image))
    for column, values in zip(table.columns, zip(*found, strict=True), strict=True):
        strange = set(map(type, values)) - _CLASSES.get(column.type, _ANY_CLASS)
        if strange:
            kind = min(one.__name__ for one in strange)
            raise _misuse(f"{label} has a value of {kind} for column '{column.name}' ({column.type})")
    return found


def _misuse(text: str) -> Error:
    return sql_error(StatusCode.MISUSE, f"{_NAME}: {text}")
