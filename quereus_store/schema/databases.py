"""One database's objects refer to its own objects only, since it must be whole where it is opened by itself.

Only a plain view of schema ``temp``, which is not kept, may read any database.
"""

from __future__ import annotations

from collections.abc import Iterator

from quereus_store.errors import StatusCode, sql_error
from quereus_store.schema.changes import SchemaObject, changes
from quereus_store.schema.dependencies import relations_named
from quereus_store.schema.manager import MAIN, TEMP
from quereus_store.schema.objects import Catalog, TableSchema, ViewSchema, fold


def check_one_database(before: Catalog, after: Catalog) -> None:
    """Raise ERROR where an object that is new or different refers to another database's."""
    for change in changes(before, after):
        found = change.after
        if found is None or (isinstance(found, ViewSchema) and fold(found.schema) == TEMP):
            continue
        home = _database(after, found.schema)
        for schema in _schemas_named(after, found):
            if _database(after, schema) != home:
                raise sql_error(
                    StatusCode.ERROR,
                    f"{change.kind.replace('_', ' ')} {found.name} cannot reference objects in database"
                    f" {_database(after, schema)}",
                )


def _database(catalog: Catalog, schema: str) -> str:
    return fold(schema) if catalog.is_attached(schema) else MAIN


def _schemas_named(catalog: Catalog, found: SchemaObject) -> Iterator[str]:
    for schema, _ in relations_named(catalog, found):
        yield schema
    if isinstance(found, TableSchema):
        for key in found.foreign_keys:
            yield key.parent_schema or found.schema
