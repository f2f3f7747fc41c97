"""The one place that every change of rows passes: the change log of a transaction.

Whoever wants to know what a statement did to which table (events, maintained
tables, assertions) reads :attr:`Transaction.changes`; it is kept only while the
engine says that somebody does (``Engine.records_changes``), a maintained table reads the
table, or the catalog has assertions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from quereus_store.modules.contract import Row
from quereus_store.schema.objects import Catalog, Operation, TableSchema


class Change(NamedTuple):
    """One write to one table: ``old`` and ``new`` rows, positional for an update, else one of them empty.

    ``remote``: no statement wrote it, its host has reported it (:mod:`quereus_store.execute.ingestion`).
    """

    table: TableSchema
    operation: Operation
    old: Sequence[Row]
    new: Sequence[Row]
    remote: bool = False


def record_changes(
    transaction: Any, table: TableSchema, operation: Operation, old: Sequence[Row], new: Sequence[Row]
) -> None:
    """Note a write that has just happened, if somebody wants to know."""
    if is_wanted(transaction, table):
        transaction.changes.append(Change(table, operation, old, new))


def is_wanted(transaction: Any, table: TableSchema) -> bool:
    """Whether a listener, a maintained table or an assertion wants a table's changes logged."""
    engine = transaction.engine
    return (engine.records_changes and engine.notifier.wants(table)) or is_watched(
        engine, transaction.catalog, table
    )


def is_watched(engine: Any, catalog: Catalog, table: TableSchema) -> bool:
    """Whether the catalog itself wants a table's changes logged: for maintained tables or assertions."""
    maintenance = engine.maintenance
    return catalog.has_assertions or (maintenance is not None and maintenance.watches(catalog, table))
