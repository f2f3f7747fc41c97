"""Reopening: which maintained tables are there already, and which are filled anew.

The rows of a maintained table in the store were committed together with the rows of its
sources, so they are right after any crash, and are adopted as they are.  One whose rows live
in memory exists as a definition only: it is filled when the catalog that defines it is
loaded, sources before readers; one that cannot be (its source is gone) is left out and reported.

Chapter: store-and-modules, section 7; views-and-maintained-tables, section 13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error
from quereus_store.execute.transactions import ReadView
from quereus_store.modules.contract import CatalogProblem
from quereus_store.schema.ddl import table_ddl
from quereus_store.schema.manager import MAIN, put_table, remove_table, tables_of
from quereus_store.schema.objects import Catalog, TableSchema, fold
from quereus_store.views.body import bind_derivation, key_of
from quereus_store.views.hosts import backing_host
from quereus_store.views.programs import Program

if TYPE_CHECKING:
    from quereus_store.views.maintainer import Maintainer

_TIMEOUT = 5.0


class _LoadingView(ReadView):
    """Reads the snapshot that a catalog is loaded from; other modules by snapshots of their own."""

    __slots__ = ()

    def __init__(self, engine: Any, catalog: Catalog, primary: Any) -> None:
        self.engine = engine
        self.catalog = catalog
        self.primary = primary
        self._readers = None

    def release(self) -> None:
        """Let go of what was opened for loading; the primary snapshot is its owner's."""
        for reader in (self._readers or {}).values():
            reader.rollback()
        self._readers = None


class _LoadingSession:
    """What a body's functions may ask for while no session exists."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.options: dict[str, Any] = {}
        self.schema_path = (MAIN,)
        self.last_changes = 0


def restore(
    maintainer: Maintainer, catalog: Catalog, snapshot: Any
) -> tuple[Catalog, tuple[CatalogProblem, ...]]:
    """The catalog with every such table filled; and the tables that could not be."""
    pending = {key_of(table): table for table in tables_of(catalog) if _is_empty(maintainer, table)}
    failures: dict[Any, Error] = {}
    for table in pending.values():
        catalog = remove_table(catalog, table)
    while pending:
        ready = list(pending)
        for key in ready:
            try:
                catalog = put_table(catalog, _filled(maintainer, catalog, pending[key], snapshot))
            except Error as error:
                failures[key] = error
            else:
                del pending[key]
        if len(pending) == len(ready):
            break
    return catalog, tuple([CatalogProblem(table_ddl(table), failures[key]) for key, table in pending.items()])


def _is_empty(maintainer: Maintainer, table: TableSchema) -> bool:
    module = maintainer.engine.modules.get(fold(table.module))
    return (
        table.derivation is not None and table.storage_id == 0 and (module is None or not module.persistent)
    )


def _filled(maintainer: Maintainer, catalog: Catalog, table: TableSchema, snapshot: Any) -> TableSchema:
    assert table.derivation is not None
    engine = maintainer.engine
    module = engine.module(table.module)
    body = bind_derivation(engine, catalog, table.schema, table.derivation)
    view = _LoadingView(engine, catalog, snapshot)
    try:
        rows = Program(engine, body.context, body.plan).rows(_LoadingSession(engine), view)
    finally:
        view.release()
    writer = module.begin_write(_TIMEOUT)
    try:
        table = module.create_table(writer, table)
        if rows:
            backing_host(engine, table).insert(writer, rows)
    except BaseException:
        writer.rollback()
        raise
    writer.commit()
    return table
