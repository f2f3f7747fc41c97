"""Views, maintained tables, indexes and assertions: each is dropped and created anew when it changes.

A declared object is compared with the existing one as the renames of the same migration will
leave it.  What is created before columns get their new names has to use the old ones
(:class:`Respelling`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from quereus_store.schema.clauses import module_arguments, tags_of
from quereus_store.schema.differ.text import object_name
from quereus_store.schema.manager import find_in_schema
from quereus_store.schema.objects import (
    Catalog,
    Derivation,
    TableSchema,
    Tags,
    ViewSchema,
    fold,
)
from quereus_store.schema.rename import ChangedWorld
from quereus_store.schema.scopes import Follower, RelationKey
from quereus_store.sql import nodes

DeclaredView = nodes.CreateView | nodes.CreateMaterializedView
Bodied = DeclaredView | nodes.CreateTable
"""What has a body; a table has one if it is maintained."""


_OTHER_NAMES = {"mem": "memory"}


def query_of(item: Bodied) -> nodes.Query:
    """The body."""
    if not isinstance(item, nodes.CreateTable):
        return item.query
    assert item.maintained is not None
    return item.maintained.query


def view_changed(declared: DeclaredView, actual: ViewSchema | TableSchema) -> bool:
    """Whether a view's columns or body differ from those that exist."""
    columns = declared.columns or None
    if isinstance(actual, ViewSchema):
        return not isinstance(declared, nodes.CreateView) or (
            (columns, declared.query) != (actual.columns, actual.query)
        )
    derivation = actual.derivation
    if not isinstance(declared, nodes.CreateMaterializedView) or derivation is None:
        return True
    return (columns, declared.query) != (derivation.columns, derivation.query)


def derivation_changed(declared: nodes.MaintainedClause, actual: Derivation | None) -> bool:
    """Whether a table form of a maintained table has another body than it has now."""
    return actual is None or (declared.columns or None, declared.query) != (actual.columns, actual.query)


def module_moved(clause: nodes.ModuleClause | None, actual: TableSchema, default: str) -> bool:
    """Whether a maintained table is declared to live in another module, or with other arguments."""
    name, arguments = (default, {}) if clause is None else (clause.name, dict(module_arguments(clause)))
    name = _OTHER_NAMES.get(fold(name), fold(name))
    return (name, arguments) != (fold(actual.module), dict(actual.module_arguments))


def tags_of_item(item: nodes.CreateTable | DeclaredView | nodes.CreateIndex) -> Tags:
    """The tags of a declared item."""
    return tags_of(item.tags)


def placed(schema: str, item: nodes.Statement) -> nodes.Statement:
    """A declared item as the CREATE statement that makes it in a schema."""
    name = object_name(schema, item.name.name)  # type: ignore[attr-defined]
    if isinstance(item, nodes.CreateIndex):
        table = object_name(schema, item.table.name)
        return replace(item, name=nodes.ObjectName(item.name.name), table=table)
    return replace(item, name=name)  # type: ignore[call-arg]


class Respelling:
    """Declared bodies in the spelling that holds before the migration's RENAME COLUMN.

    ``target`` is a catalog with everything as declared, ``columns`` the old names by table and
    folded new name.
    """

    def __init__(self, target: Catalog, columns: Mapping[RelationKey, Mapping[str, str]]) -> None:
        self._columns = columns
        self._target = target
        self._world = ChangedWorld(target, columns=columns)

    def view(self, schema: str, item: nodes.CreateView) -> nodes.CreateView:
        """A plain view's statement."""
        if not self._columns:
            return item
        return replace(item, query=self._world.body(schema, item.query)[0])

    def index(self, schema: str, item: nodes.CreateIndex) -> nodes.CreateIndex:
        """An index's statement."""
        table = find_in_schema(self._target, schema, item.table.name)
        if not isinstance(table, TableSchema) or not self._columns:
            return item
        scope = self._world.row_scope(table, versions=False)
        follower = Follower(self._world)
        return replace(
            item,
            columns=tuple(
                replace(part, expression=follower.expression(part.expression, scope)) for part in item.columns
            ),
            where=item.where and follower.expression(item.where, scope),
        )


def in_creation_order(
    bodies: Mapping[str, Bodied], reads: Mapping[str, frozenset[RelationKey]], schema: str
) -> Iterator[Bodied]:
    """Each after those that it reads; those that read each other in their own order."""
    waiting = dict(bodies)
    while waiting:
        ready = [
            name
            for name in waiting
            if not any((fold(schema), other) in reads[name] for other in waiting if other != name)
        ]
        for name in ready or list(waiting):
            yield waiting.pop(name)
