"""The engine: what all connections to one database share.

It knows the modules, the functions, collations and types that statements may
name, and the committed catalog.  It lends its knowledge to the layers below by
implementing what they ask for: :class:`OptimizerServices` for rules,
:class:`CompilerServices` for the code generator, :class:`EngineServices` for
modules.

Where a module keeps the catalog (:class:`PersistentCatalog`), that module's
snapshot decides which catalog a transaction sees: the engine keeps the
catalogs of the last few versions and loads a version it has not met, which is
how a schema change by another process arrives.  Tables of modules that do not
persist are kept beside it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quereus_store.errors import DatabaseError, StatusCode, sql_error
from quereus_store.execute.attached import Attachments, CatalogKeeper, Opener, own_part, own_part_differs
from quereus_store.execute.codegen.rowfunctions import compile_row_function
from quereus_store.execute.maintenance import Maintenance
from quereus_store.execute.notification.notifier import Notifier
from quereus_store.execute.transactions import ReadView
from quereus_store.execute.versions import with_version
from quereus_store.functions.builtins import builtin_functions
from quereus_store.functions.registry import FunctionRegistry
from quereus_store.modules.contract import (
    REQUIRED,
    AccessPlan,
    AccessRequest,
    CatalogProblem,
    Module,
    PersistentCatalog,
    Row,
    RowFunction,
    StatisticsSource,
    Table,
)
from quereus_store.plan.binder import BindContext
from quereus_store.plan.binder.rows import bind_row_expression
from quereus_store.plan.expressions import BoundExpression, ColumnRef
from quereus_store.plan.nodes import substitute
from quereus_store.schema.manager import MAIN, TEMP, empty_catalog
from quereus_store.schema.objects import AssertionSchema, Catalog, IndexSchema, Schema, TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.types import Collation, CollationRegistry, TypeRegistry

_FIRST_ROWS = 256
_ALL_ROWS = AccessRequest(())


class Engine:
    """One database: modules, registries, committed catalog.

    ``file`` is the file of the default module, if it has one; ``opener`` opens what is to be attached.
    """

    def __init__(
        self,
        modules: Iterable[Module],
        default_module: str,
        *,
        file: str = "",
        opener: Opener | None = None,
    ) -> None:
        self.file = file
        self.registry = FunctionRegistry(parent=builtin_functions())
        self.collations = CollationRegistry()
        self.types = TypeRegistry()
        self.default_module = default_module
        self.modules: dict[str, Module] = {}
        self.publishing = threading.Lock()
        self.publications = 0
        # The garbage collector closes connections, at any moment.
        self._loading = threading.RLock()
        self.problems: tuple[CatalogProblem, ...] = ()
        self.records_changes = False
        self.notifier = Notifier(self)
        self.session_options: dict[str, Any] = {}
        self.declarations: dict[str, nodes.DeclareSchema] = {}
        self.lenses: dict[str, nodes.DeclareLens] = {}
        self.assertions_held: dict[tuple[str, str, int], AssertionSchema] = {}
        self.maintenance: Maintenance | None = None
        self._versions = itertools.count(1)
        self.attachments = Attachments(self, opener)
        self._catalog = self.versioned(empty_catalog())
        self._persistent: CatalogKeeper | None = None
        self.primary_name = fold(default_module)
        self._loaded: dict[int, Catalog] = {}
        self._actions: tuple[Any, dict[Any, Any]] = (None, {})
        self._statistics: tuple[int, dict[tuple[str, int], Mapping[str, Any] | None]] = (0, {})
        for module in modules:
            self.register_module(module)

    # -- modules ---------------------------------------------------------------

    def register_module(self, module: Module) -> None:
        """Make a module known under its name; raises MISUSE for a name that is taken or empty, or a lack."""
        self.add_module(module)
        if module.persistent and isinstance(module, PersistentCatalog):
            self._persistent = module

    def add_module(self, module: Module) -> None:
        """Make a module known that does not keep this database's catalog."""
        if not module.name or fold(module.name) in self.modules:
            raise sql_error(StatusCode.MISUSE, f"a module cannot be registered as '{module.name}'")
        missing = [method for method in REQUIRED if not callable(getattr(module, method, None))]
        if missing:
            raise sql_error(
                StatusCode.MISUSE,
                f"module '{module.name}' has no method {', '.join(missing)}, which every module has",
            )
        with self._loading:
            if fold(module.name) in self.modules:
                raise sql_error(StatusCode.MISUSE, f"a module cannot be registered as '{module.name}'")
            self.modules = {**self.modules, fold(module.name): module}
        module.attach(self)

    def remove_module(self, module: Module) -> None:
        """Forget a module whose tables are gone."""
        with self._loading:
            self.modules = {name: known for name, known in self.modules.items() if known is not module}

    def module(self, name: str) -> Module:
        """The module of that name; raises ERROR when there is none."""
        found = self.modules.get(fold(name))
        if found is None:
            raise sql_error(StatusCode.ERROR, f"No virtual table module named '{name}'")
        return found

    @property
    def persistent_module(self) -> CatalogKeeper | None:
        """The module that keeps the catalog, if any."""
        return self._persistent

    def close(self) -> None:
        """End all subscriptions, detach what is attached and close every module."""
        self.notifier.close()
        self.attachments.close()
        for module in self.modules.values():
            module.close()

    # -- catalog ---------------------------------------------------------------

    def versioned(self, catalog: Catalog) -> Catalog:
        """The catalog under a version that no other catalog of this engine has."""
        return replace(catalog, version=next(self._versions))

    def pin(self) -> tuple[Catalog, Any]:
        """A snapshot of the default module and the catalog that goes with it."""
        primary = self.modules[self.primary_name]
        if self._persistent is not None:
            snapshot = primary.begin_read()
            try:
                return self.catalog_for(snapshot), snapshot
            except BaseException:
                snapshot.rollback()
                raise
        # Nobody may have published in between; a commit holds the lock while it does.
        catalog, snapshot = self._catalog, primary.begin_read()
        if self._catalog is catalog and not self.publishing.locked():
            return catalog, snapshot
        snapshot.rollback()
        with self.publishing:
            return self._catalog, primary.begin_read()

    def current_catalog(self) -> Catalog:
        """The committed catalog, with the schemas of attached databases."""
        view = ReadView(self)
        view.release()
        return view.catalog

    def catalog_of_writer(self, writer: Any) -> Catalog:
        """The catalog that goes with a writing transaction of the default module that has just begun."""
        self.await_publication()
        return self.catalog_for(writer)

    def catalog_for(self, transaction: Any) -> Catalog:
        """The catalog of a snapshot of the persistent module; without such a module, the current one."""
        if self._persistent is None:
            return self._catalog
        version = self._persistent.catalog_version(transaction)
        known = self._loaded.get(version)
        if known is not None:
            return known
        with self._loading:
            # Another thread may have been faster.
            known = self._loaded.get(version)
            return known if known is not None else self._load(version, transaction)

    def _load(self, version: int, transaction: Any) -> Catalog:
        assert self._persistent is not None
        loaded = self._persistent.load_catalog(transaction)
        self.problems = loaded.problems
        catalog = self._with_volatile(loaded.catalog)
        if self.maintenance is not None:
            catalog, problems = self.maintenance.restore(self.versioned(catalog), transaction)
            self.problems += problems
        catalog = self.versioned(catalog)
        if version >= max(self._loaded, default=version):
            self._catalog = catalog
        self._loaded = with_version(self._loaded, version, catalog)
        return catalog

    def _with_volatile(self, catalog: Catalog) -> Catalog:
        """A loaded catalog together with the tables that live in this process only."""
        schemas = dict(catalog.schemas)
        for name, schema in self._catalog.schemas.items():
            if name == TEMP:
                schemas[name] = schema
                continue
            merged = schemas.get(name, Schema(schema.name))
            for key, table in schema.tables.items():
                if self.modules[fold(table.module)].persistent:
                    continue
                # A maintained table may be defined for good and have its rows in this process.
                loaded = merged.tables.get(key)
                if loaded is None or (
                    loaded.module == table.module
                    and loaded.derivation is not None
                    and loaded.derivation == table.derivation
                    and loaded.columns == table.columns
                ):
                    merged = merged.with_table(table)
            schemas[name] = merged
        return Catalog(schemas)

    def keepers(self, before: Catalog, after: Catalog) -> Iterable[CatalogKeeper]:
        """The modules in which a changed catalog is to be saved.

        Raises ERROR where an object refers to one of another database.
        """
        if self.attachments.databases:
            return self.attachments.keepers(self._persistent, before, after)
        return () if self._persistent is None else (self._persistent,)

    def commit_order(self, writing: Container[str]) -> list[str]:
        """The modules that a transaction writes in: the own database, attached ones as they came, memory."""
        modules = self.modules.items()
        return [
            name
            for lasts in (True, False)
            for name, module in modules
            if name in writing and module.persistent is lasts
        ]

    def persistent_version(self, transaction: Any) -> int | None:
        """The catalog version that a transaction of the persistent module sees."""
        return self._persistent.catalog_version(transaction) if self._persistent else None

    def await_publication(self) -> None:
        """Let a commit that has let its writer go already publish its catalog, too."""
        if self.publishing.locked():
            with self.publishing:
                pass

    def publish(self, before: Catalog, after: Catalog, version: int | None) -> None:
        """Make a committed catalog the current one; attached databases keep their parts of it themselves.

        A transaction that has left the own part as it was does not bring it back, since others may have
        changed it meanwhile: all statements are prepared anew, and that is all.
        """
        with self._loading:
            current = self._catalog
            if own_part_differs(before, after):
                self.publications += 1
                # Plans for the joined catalog are none for a part of it.
                made = self.versioned(own_part(after)) if self.attachments.databases else after
                self._catalog = made
            else:
                base = current if version is None else self._loaded.get(version, current)
                made = self.versioned(base)
                if base is current:
                    self._catalog = made
            if version is not None:
                self._loaded = with_version(self._loaded, version, made)

    # -- what the layers below ask for ------------------------------------------

    def collation(self, name: str) -> Collation:
        """A registered collation; raises ERROR for an unknown one."""
        return self.collations.get(name)

    def table(self, schema: TableSchema) -> Table:
        """The module's handle for a table."""
        return self.module(schema.module).table(schema)

    def plan_access(self, table: TableSchema, request: AccessRequest) -> AccessPlan:
        """How a table's module would serve a request."""
        return self.module(table.module).plan_access(table, request)

    def row_count(self, table: TableSchema) -> float:
        """About how many rows a table has, as its module plans with."""
        return self.plan_access(table, _ALL_ROWS).rows

    def first_rows(self, table: TableSchema) -> Sequence[Row]:
        """Some rows with which a table begins, as last committed; none where it is not committed as it is.

        Rows that cannot be read give none either: that is for the statement to tell that reads them.
        """
        view = ReadView(self)
        try:
            if view.catalog.table(table.schema, table.name) != table:
                return ()
            scan = self.table(table).scan
            rows = itertools.chain.from_iterable(scan(view.snapshot(table.module)))
            return list(itertools.islice(rows, _FIRST_ROWS))
        except DatabaseError:
            return ()
        finally:
            view.release()

    def statistics(self, table: TableSchema) -> Mapping[str, Any] | None:
        """What ANALYZE found out about a table; looked up once for each version of the catalog."""
        version, known = self._statistics
        if version != self._catalog.version:
            version, known = self._statistics = (self._catalog.version, {})
        key = (table.module, table.storage_id)
        if key not in known:
            module = self.module(table.module)
            known[key] = module.statistics(table) if isinstance(module, StatisticsSource) else None
        return known[key]

    def forget_statistics(self) -> None:
        """Look them up again."""
        self._statistics = (0, {})

    def index_predicate(self, table: TableSchema, index: IndexSchema) -> BoundExpression | None:
        """The bound predicate of a partial index over columns numbered by position."""
        if index.where is None:
            return None
        expression, columns = bind_row_expression(self.bind_context(), table, index.where)
        mapping: dict[int, BoundExpression] = {
            column.id: ColumnRef(column.type, column.nullable, column.collation, position, column.name)
            for position, column in enumerate(columns)
        }
        return substitute(expression, mapping)

    def row_function(self, table: TableSchema, expression: nodes.Expression) -> RowFunction:
        """An expression over a table's row as a function of a batch."""
        bound, columns = bind_row_expression(self.bind_context(), table, expression)
        return compile_row_function(bound, columns, self)

    def actions(self, context: BindContext) -> dict[Any, Any]:
        """Where the compiled actions of foreign keys are kept, for all statements over one catalog."""
        valid_for = (context.catalog.version, tuple(sorted(context.options.items())))
        kept, actions = self._actions
        if kept != valid_for:
            actions = {}
            self._actions = (valid_for, actions)
        return actions

    def bind_context(
        self,
        catalog: Catalog | None = None,
        schema_path: Sequence[str] = (MAIN,),
        options: Mapping[str, Any] | None = None,
        parameters: Mapping[int | str, Any] | None = None,
        committed: Catalog | None = None,
    ) -> BindContext:
        """A context for binding one statement, within a transaction that found ``committed``."""
        return BindContext(
            catalog=catalog or self._catalog,
            registry=self.registry,
            collations=self.collations,
            types=self.types,
            schema_path=tuple(schema_path),
            options=options or {},
            parameters=parameters or {},
            committed=None if committed is catalog else committed,
        )
