"""What changed between two catalogs: told by comparing them, so events need no bookkeeping on the way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quereus_store.schema.objects import AssertionSchema, Catalog, TableSchema, ViewSchema


class ObjectKind(StrEnum):
    """The kinds of objects that events speak of."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized_view"
    ASSERTION = "assertion"


class ChangeKind(StrEnum):
    """What happened to an object."""

    ADDED = "added"
    MODIFIED = "modified"
    REMOVED = "removed"


SchemaObject = TableSchema | ViewSchema | AssertionSchema


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference between two catalogs; a rename is a removal and an addition."""

    change: ChangeKind
    kind: ObjectKind
    before: SchemaObject | None
    after: SchemaObject | None

    @property
    def object(self) -> SchemaObject:
        """The object as it is now, or was when it was removed."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def type(self) -> str:
        """The event's name, such as ``table_added``."""
        return f"{self.kind}_{self.change}"


def changes(before: Catalog, after: Catalog) -> list[SchemaChange]:
    """What differs between two catalogs, removals first."""
    old, new = _objects(before), _objects(after)
    removed = [
        SchemaChange(ChangeKind.REMOVED, _kind(found), found, None)
        for key, found in old.items()
        if key not in new
    ]
    added = [
        SchemaChange(ChangeKind.ADDED, _kind(found), None, found)
        for key, found in new.items()
        if key not in old
    ]
    modified = [
        SchemaChange(ChangeKind.MODIFIED, _kind(found), old[key], found)
        for key, found in new.items()
        if key in old and old[key] is not found and old[key] != found
    ]
    return removed + added + modified


def _objects(catalog: Catalog) -> dict[tuple[str, str, str], SchemaObject]:
    found: dict[tuple[str, str, str], SchemaObject] = {}
    for key, schema in catalog.schemas.items():
        found.update(((key, "relation", name), table) for name, table in schema.tables.items())
        found.update(((key, "relation", name), view) for name, view in schema.views.items())
        found.update(((key, "assertion", name), item) for name, item in schema.assertions.items())
    return found


def _kind(found: SchemaObject) -> ObjectKind:
    if isinstance(found, AssertionSchema):
        return ObjectKind.ASSERTION
    if isinstance(found, ViewSchema):
        return ObjectKind.VIEW
    return ObjectKind.MATERIALIZED_VIEW if found.derivation is not None else ObjectKind.TABLE
