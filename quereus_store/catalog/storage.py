"""Loading and saving catalogs.

**Saving** takes two immutable catalogs and writes what differs.  Untouched objects are the very
same objects in both, so comparing identities finds the changes; an entry whose bytes
would be the same is not written.

**Loading** reads all entries and builds what each says: tables, then views, then assertions, each in
the order in which they were made.  An entry that fails is reported (its text, or its name where not even
that can be read) and the others live.  Entries are remembered by their bytes, so after a schema change by
another process only what it changed is parsed again, and everything else stays the same object.

What belongs here: tables that the store keeps, and maintained tables that another module keeps
(their rows are computed again).  Tables of other modules live as long as the process, and
so does everything in schema ``temp``.  A schema has an entry of its own, so it lasts when it is empty;
``main`` needs none.

**Attached**, a database is one schema of another one's catalog.  In its own key space that schema is called
``main`` and its module ``store``, as ever, so entries are renamed on their way in and out.

Chapter: store-and-modules, sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from quereus_store.backends.contract import ReadTransaction, WriteTransaction
from quereus_store.catalog.bundles import CatalogServices, SchemaObject, describe, rebuild, renamed_home
from quereus_store.catalog.entries import Entry, pack_entry, unpack_entry
from quereus_store.catalog.layout import CATALOG_RANGE, EntryKind, entry_key, parse_entry_key
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import CatalogProblem, EngineServices, LoadedCatalog
from quereus_store.schema.manager import MAIN, TEMP
from quereus_store.schema.objects import Catalog, Schema, TableSchema, fold

STORE = "store"

_Key: TypeAlias = tuple[EntryKind, str, str]

_LOAD_ORDER = (EntryKind.SCHEMA, EntryKind.TABLE, EntryKind.VIEW, EntryKind.ASSERTION)


class StoredCatalog:
    """The entries of one database, to and from catalogs; ``module`` is the store module's name.

    With ``attached`` they are those of that schema alone.
    """

    def __init__(self, module: str, services: EngineServices, attached: str | None = None) -> None:
        self._module = fold(module)
        self._attached = attached
        self._services = CatalogServices.of(services)
        self._known: dict[bytes, tuple[bytes, SchemaObject]] = {}
        self._places: dict[bytes, int] = {}

    # --- saving ----------------------------------------------------------------------------------------

    def save(self, transaction: WriteTransaction, before: Catalog, after: Catalog) -> bool:
        """Write what differs; whether anything did.

        Raises ERROR for names or text that cannot be stored, CORRUPT where a damaged entry, whose rows
        may yet be saved, has the name of a new object.
        """
        old, new = self._kept(before), self._kept(after)
        changed = False
        for key in old.keys() - new.keys():
            transaction.delete(entry_key(*key))
            changed = True
        for key, found in new.items():
            if old.get(key) is not found:
                if key not in old:
                    self._check_free(transaction, key)
                changed |= self._write(transaction, entry_key(*key), found)
        return changed

    def _check_free(self, transaction: WriteTransaction, key: _Key) -> None:
        """No entry that could not be brought back is overwritten."""
        value, known = transaction.get(entry_key(*key)), self._known.get(entry_key(*key))
        if value is not None and (known is None or known[0] != value):
            _, schema_name, name = key
            raise sql_error(
                StatusCode.CORRUPT,
                f"cannot create {schema_name}.{name}: "
                "there is a catalog entry of that name which cannot be read",
            )

    def _write(self, transaction: WriteTransaction, key: bytes, found: SchemaObject) -> bool:
        stored = isinstance(found, TableSchema) and fold(found.module) == self._module
        present = transaction.get(key)
        if present is None:
            self._places[key] = max(self._places.values(), default=0) + 1
        entry = replace(describe(found, stored), place=self._places.get(key, 0))
        if self._attached is not None:
            entry = renamed_home(entry, (fold(self._attached), MAIN), (self._module, STORE))
        value = pack_entry(entry)
        if present == value:
            return False
        transaction.put(key, value)
        self._known[key] = (value, found)
        return True

    def _kept(self, catalog: Catalog) -> dict[_Key, SchemaObject]:
        """The objects that have an entry."""
        if self._attached is None:
            kept = {
                name: schema
                for name, schema in catalog.schemas.items()
                if name != TEMP and not schema.attached
            }
        else:
            schema = catalog.schema(self._attached)
            kept = {MAIN: schema} if schema is not None else {}
        return {
            (kind, schema_name, name): found
            for schema_name, schema in kept.items()
            for kind, objects in _objects(schema)
            for name, found in objects.items()
            if not isinstance(found, TableSchema) or self._keeps(found)
        }

    def _keeps(self, table: TableSchema) -> bool:
        return fold(table.module) == self._module or table.derivation is not None

    # --- loading ---------------------------------------------------------------------------------------

    def load(self, transaction: ReadTransaction, version: int) -> LoadedCatalog:
        """The catalog that the entries describe, and the entries that failed."""
        problems: list[CatalogProblem] = []
        found: dict[EntryKind, list[tuple[bytes, str, str, Entry, bytes]]] = {kind: [] for kind in EntryKind}
        for key, value in _entries(transaction):
            try:
                kind, schema_name, name = parse_entry_key(key)
                readable = f"{schema_name}.{name}"
                found[kind].append((key, schema_name, name, unpack_entry(value, readable), value))
            except (Error, ValueError) as error:
                problems.append(_problem(key, error))
        home = MAIN if self._attached is None else fold(self._attached)
        objects: dict[str, dict[EntryKind, dict[str, Any]]] = {home: _no_objects()}
        known: dict[bytes, tuple[bytes, SchemaObject]] = {}
        self._places = {key: entry.place for entries in found.values() for key, _, _, entry, _ in entries}
        for kind in _LOAD_ORDER:
            for key, schema_name, name, entry, value in sorted(found[kind], key=_place):
                remembered = self._known.get(key)
                if self._attached is not None:
                    self._check_alone(schema_name)
                    schema_name = home
                try:
                    if remembered is None or remembered[0] != value:
                        remembered = (value, self._rebuilt(kind, entry, schema_name))
                except Error as error:
                    problems.append(CatalogProblem(entry.ddl, error))
                    continue
                known[key] = remembered
                objects.setdefault(schema_name, _no_objects())[kind][name] = remembered[1]
        self._known = known
        schemas = {schema_name: _schema(schema_name, kinds) for schema_name, kinds in objects.items()}
        return LoadedCatalog(Catalog(schemas, version), tuple(problems))

    def _rebuilt(self, kind: EntryKind, entry: Entry, schema_name: str) -> SchemaObject:
        if self._attached is None:
            return rebuild(kind, entry, schema_name, self._services)
        entry = renamed_home(entry, (MAIN, self._attached), (STORE, self._module))
        found = rebuild(kind, entry, self._attached, self._services)
        if isinstance(found, TableSchema) and fold(found.module) != self._module:
            raise sql_error(
                StatusCode.UNSUPPORTED,
                f"table '{found.name}' of module '{found.module}' is there only where its database is main",
            )
        return found

    def _check_alone(self, schema_name: str) -> None:
        if schema_name != MAIN:
            raise sql_error(
                StatusCode.UNSUPPORTED,
                f"database {self._attached} has a further schema, {schema_name}, and cannot be attached:"
                " connect to it",
            )


def _objects(schema: Schema) -> list[tuple[EntryKind, Mapping[str, SchemaObject]]]:
    itself = (
        {} if schema.attached or fold(schema.name) == MAIN else {"": Schema(schema.name, lens=schema.lens)}
    )
    return [
        (EntryKind.SCHEMA, itself),
        (EntryKind.TABLE, schema.tables),
        (EntryKind.VIEW, schema.views),
        (EntryKind.ASSERTION, schema.assertions),
    ]


def _entries(transaction: ReadTransaction) -> Iterator[tuple[bytes, bytes]]:
    for batch in transaction.scan(*CATALOG_RANGE):
        yield from batch


def _place(found: tuple[bytes, str, str, Entry, bytes]) -> int:
    return found[3].place


def _problem(key: bytes, error: Exception) -> CatalogProblem:
    if isinstance(error, Error):
        _, schema_name, name = parse_entry_key(key)
        return CatalogProblem(f"{schema_name}.{name}", error)
    message = f"a catalog entry is corrupt: its key {key.hex(' ')} names no object"
    return CatalogProblem(key.hex(" "), sql_error(StatusCode.CORRUPT, message))


def _no_objects() -> dict[EntryKind, dict[str, Any]]:
    return {kind: {} for kind in EntryKind}


def _schema(folded: str, objects: dict[EntryKind, dict[str, Any]]) -> Schema:
    itself = objects[EntryKind.SCHEMA].get("")
    name = itself.name if itself else folded
    tables, views, assertions = (
        objects[kind] for kind in (EntryKind.TABLE, EntryKind.VIEW, EntryKind.ASSERTION)
    )
    return Schema(name, tables, views, assertions, itself.lens if itself else None)
