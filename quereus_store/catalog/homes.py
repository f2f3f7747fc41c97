"""Where a database's objects are in a catalog, and what they are called in its own key space.

There its schema is ``main`` and its module ``store``, always.  A database that is connected to has its
objects under the same names in the catalog.  One that is *attached* to another is a single schema of that
one's catalog, called as ATTACH says, with a module of its own; so entries are renamed on their way in and
out, and the file does not tell that it was ever attached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from quereus_store.catalog.bundles import SchemaObject, renamed_home
from quereus_store.catalog.entries import Entry
from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.manager import MAIN, TEMP
from quereus_store.schema.objects import Catalog, Schema, TableSchema, fold

_STORE = "store"


class Home(Protocol):
    """The part of a catalog that one database keeps."""

    @property
    def name(self) -> str:
        """The schema that is there even if nothing is in it."""
        ...

    def schemas(self, catalog: Catalog) -> dict[str, Schema]:
        """The schemas that are kept, by their names in the key space."""
        ...

    def schema_name(self, stored: str) -> str:
        """What a schema of the key space is called in the catalog; UNSUPPORTED for one that has no place."""
        ...

    def to_stored(self, entry: Entry) -> Entry:
        """An entry of the catalog as it is kept."""
        ...

    def from_stored(self, entry: Entry) -> Entry:
        """An entry that is kept, as one of the catalog."""
        ...

    def check(self, found: SchemaObject) -> None:
        """Raise UNSUPPORTED for an object that cannot be used here."""
        ...


class OwnHome:
    """The database itself: all schemas but ``temp`` and those of attached databases."""

    name = MAIN

    def schemas(self, catalog: Catalog) -> dict[str, Schema]:
        """See :class:`Home`."""
        return {
            name: schema for name, schema in catalog.schemas.items() if name != TEMP and not schema.attached
        }

    def schema_name(self, stored: str) -> str:
        """See :class:`Home`."""
        return stored

    def to_stored(self, entry: Entry) -> Entry:
        """See :class:`Home`."""
        return entry

    def from_stored(self, entry: Entry) -> Entry:
        """See :class:`Home`."""
        return entry

    def check(self, found: SchemaObject) -> None:
        """See :class:`Home`."""


@dataclass(frozen=True, slots=True)
class AttachedHome:
    """A database that is schema ``name`` of another one, with its tables in ``module``."""

    name: str
    module: str

    def schemas(self, catalog: Catalog) -> dict[str, Schema]:
        """See :class:`Home`."""
        schema = catalog.schema(self.name)
        return {} if schema is None else {MAIN: schema}

    def schema_name(self, stored: str) -> str:
        """See :class:`Home`."""
        if stored != MAIN:
            raise sql_error(
                StatusCode.UNSUPPORTED,
                f"database {self.name} has a further schema, {stored}, and cannot be attached: connect to it",
            )
        return self.name

    def to_stored(self, entry: Entry) -> Entry:
        """See :class:`Home`."""
        return renamed_home(entry, (fold(self.name), MAIN), (self.module, _STORE))

    def from_stored(self, entry: Entry) -> Entry:
        """See :class:`Home`."""
        return renamed_home(entry, (MAIN, self.name), (_STORE, self.module))

    def check(self, found: SchemaObject) -> None:
        """See :class:`Home`."""
        if isinstance(found, TableSchema) and fold(found.module) != self.module:
            raise sql_error(
                StatusCode.UNSUPPORTED,
                f"table '{found.name}' of module '{found.module}' is there only where its database is main",
            )
