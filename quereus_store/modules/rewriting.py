"""What the engine does with modules that have some optional abilities and lack others.

A module that builds no indexes still keeps tables, and one that cannot carry its rows over to another schema
still has its tables altered: a new one is made and gets the rows of the old one.

Chapter: store-and-modules, section 10; seed: module-authoring, Schema Changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.modules.contract import Batch, IndexHost, Module, TableRewriter
from quereus_store.schema.objects import TableSchema


def index_host(module: Module, table: TableSchema, position: SourcePosition | None = None) -> IndexHost:
    """The module as what builds and drops indexes; raises ERROR where it does not."""
    if not isinstance(module, IndexHost):
        raise sql_error(
            StatusCode.ERROR,
            f"Virtual table module '{module.name}' for table '{table.name}' does not support CREATE INDEX.",
            position,
        )
    return module


def rewrite_table(
    module: Module,
    transaction: Any,
    old: TableSchema,
    new: TableSchema,
    transform: Callable[[Batch], Batch] | None,
) -> TableSchema:
    """:meth:`TableRewriter.rewrite_table`, of any module."""
    if isinstance(module, TableRewriter):
        return module.rewrite_table(transaction, old, new, transform)
    batches = list(module.table(old).scan(transaction))
    module.drop_table(transaction, old)
    indexes = tuple(replace(index, storage_id=0) for index in new.indexes)
    made = module.create_table(transaction, replace(new, storage_id=0, layout=None, indexes=indexes))
    handle = module.table(made)
    for batch in batches:
        handle.insert(transaction, transform(batch) if transform else batch)
    return made
