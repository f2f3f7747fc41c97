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

An attached database keeps one schema of another one's catalog (:mod:`~quereus_store.catalog.homes`).

Chapter: store-and-modules, sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from quereus_store.backends.contract import ReadTransaction, WriteTransaction
from quereus_store.catalog.bundles import CatalogServices, SchemaObject, describe, rebuild
from quereus_store.catalog.entries import Entry, pack_entry, unpack_entry
from quereus_store.catalog.homes import AttachedHome, Home, OwnHome
from quereus_store.catalog.layout import CATALOG_RANGE, EntryKind, entry_key, parse_entry_key
from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.modules.contract import CatalogProblem, EngineServices, LoadedCatalog
from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import Catalog, Schema, TableSchema, fold

_Key: TypeAlias = tuple[EntryKind, str, str]

_LOAD_ORDER = (EntryKind.SCHEMA, EntryKind.TABLE, EntryKind.VIEW, EntryKind.ASSERTION)


class _StoredEntry(NamedTuple):
    key: bytes
    schema: str
    name: str
    entry: Entry
    value: bytes


class StoredCatalog:
    """The entries of one database, to and from catalogs; ``module`` is the store module's name.

    With ``attached`` they are those of that schema alone.
    """

    def __init__(self, module: str, services: EngineServices, attached: str | None = None) -> None:
        self._module = fold(module)
        self._home: Home = OwnHome() if attached is None else AttachedHome(attached, self._module)
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
                f"cannot create {self._title(schema_name, name)}: "
                "there is a catalog entry of that name which cannot be read",
            )

    def _title(self, stored_schema: str, name: str) -> str:
        """What messages call an object: as it is called where the database is attached."""
        return f"{self._home.name if stored_schema == MAIN else stored_schema}.{name}"

    def _write(self, transaction: WriteTransaction, key: bytes, found: SchemaObject) -> bool:
        stored = isinstance(found, TableSchema) and fold(found.module) == self._module
        present = transaction.get(key)
        if present is None:
            self._places[key] = max(self._places.values(), default=0) + 1
        entry = replace(describe(found, stored), place=self._places.get(key, 0))
        value = pack_entry(self._home.to_stored(entry))
        if present == value:
            return False
        transaction.put(key, value)
        self._known[key] = (value, found)
        return True

    def _kept(self, catalog: Catalog) -> dict[_Key, SchemaObject]:
        """The objects that have an entry."""
        return {
            (kind, schema_name, name): found
            for schema_name, schema in self._home.schemas(catalog).items()
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
        found: dict[EntryKind, list[_StoredEntry]] = {kind: [] for kind in EntryKind}
        for key, value in _entries(transaction):
            try:
                kind, schema_name, name = parse_entry_key(key)
                entry = unpack_entry(value, self._title(schema_name, name))
                found[kind].append(_StoredEntry(key, schema_name, name, entry, value))
            except (Error, ValueError) as error:
                problems.append(self._problem(key, error))
        objects: dict[str, dict[EntryKind, dict[str, Any]]] = {fold(self._home.name): _no_objects()}
        known: dict[bytes, tuple[bytes, SchemaObject]] = {}
        self._places = {each.key: each.entry.place for entries in found.values() for each in entries}
        for kind in _LOAD_ORDER:
            for stored in sorted(found[kind], key=lambda each: each.entry.place):
                schema_name = self._home.schema_name(stored.schema)
                try:
                    known[stored.key] = stored.value, self._rebuilt(kind, stored, schema_name)
                except Error as error:
                    problems.append(CatalogProblem(stored.entry.ddl, error))
                    continue
                of_kind = objects.setdefault(fold(schema_name), _no_objects())[kind]
                _, of_kind[stored.name] = known[stored.key]
        self._known = known
        schemas = {schema_name: _schema(schema_name, kinds) for schema_name, kinds in objects.items()}
        return LoadedCatalog(Catalog(schemas, version), tuple(problems))

    def _problem(self, key: bytes, error: Exception) -> CatalogProblem:
        if isinstance(error, Error):
            _, schema_name, name = parse_entry_key(key)
            return CatalogProblem(self._title(schema_name, name), error)
        message = f"a catalog entry is corrupt: its key {key.hex(' ')} names no object"
        return CatalogProblem(key.hex(" "), sql_error(StatusCode.CORRUPT, message))

    def _rebuilt(self, kind: EntryKind, stored: _StoredEntry, schema_name: str) -> SchemaObject:
        remembered = self._known.get(stored.key)
        if remembered is not None and remembered[0] == stored.value:
            return remembered[1]
        found = rebuild(kind, self._home.from_stored(stored.entry), schema_name, self._services)
        self._home.check(found)
        return found


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


def _no_objects() -> dict[EntryKind, dict[str, Any]]:
    return {kind: {} for kind in EntryKind}


def _schema(folded: str, objects: dict[EntryKind, dict[str, Any]]) -> Schema:
    itself = objects[EntryKind.SCHEMA].get("")
    name = itself.name if itself else folded
    tables, views, assertions = (
        objects[kind] for kind in (EntryKind.TABLE, EntryKind.VIEW, EntryKind.ASSERTION)
    )
    return Schema(name, tables, views, assertions, itself.lens if itself else None)
