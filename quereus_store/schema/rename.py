"""RENAME TO and RENAME COLUMN: the whole catalog after the change.

Everything that refers to the renamed thing is rewritten, in every schema: CHECKs, DEFAULTs,
generated expressions, index predicates, foreign keys, views, maintained tables and assertions.
:mod:`quereus_store.schema.scopes` follows the names inside a tree; here is what surrounds a tree
(:class:`ChangedWorld`) and the walk over all objects.

A view that publishes a renamed column passes the rename on to its readers, so the columns of a
view are worked out from its rewritten body, when first asked for.

Chapter: alter-and-ddl-lifecycle, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.schema.constraints import (
    arranged,
    backing_name,
    check_backing_names,
    check_index_name,
)
from quereus_store.schema.manager import DEFAULT_PATH, find_relation, home_path, tables_of, views_of
from quereus_store.schema.naming import check_rename
from quereus_store.schema.objects import (
    Catalog,
    CheckConstraint,
    ColumnSchema,
    Derivation,
    ForeignKey,
    IndexPart,
    IndexSchema,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.schema.scopes import Follower, Outputs, RelationKey, Scope, Source, published
from quereus_store.sql import nodes

ROW_NAMES = frozenset(("new", "old"))


def key_of(relation: TableSchema | ViewSchema) -> RelationKey:
    """A relation's key."""
    return fold(relation.schema), fold(relation.name)


class ChangedWorld:
    """A catalog in which one table, or one of its columns, gets another name."""

    def __init__(
        self,
        catalog: Catalog,
        path: Sequence[str] = DEFAULT_PATH,
        *,
        tables: Mapping[RelationKey, str] | None = None,
        columns: Mapping[RelationKey, Mapping[str, str]] | None = None,
        through_views: bool = True,
    ) -> None:
        self.catalog = catalog
        self.path = tuple(path)
        self._tables = dict(tables or {})
        self._columns = dict(columns or {})
        self._after = {(key[0], fold(name)): key for key, name in self._tables.items()}
        self._through_views = through_views
        self._known: dict[RelationKey, Outputs] = {}

    def find(self, path: Sequence[str], schema: str | None, name: str) -> RelationKey | None:
        """The relation that a name means before the change."""
        found = find_relation(self.catalog, path, schema, name)
        return None if found is None else key_of(found)

    def find_after(self, path: Sequence[str], schema: str | None, name: str) -> RelationKey | None:
        """The relation that a name means after the change, by its key of before."""
        for place in path if schema is None else (schema,):
            key = (fold(place), fold(name))
            if key in self._after:
                return self._after[key]
            if key not in self._tables and self.find((), place, name) is not None:
                return key
        return None

    def name_of(self, key: RelationKey) -> str:
        """The relation's name after the change."""
        return self._tables.get(key) or self._relation(key).name

    def columns_of(self, key: RelationKey) -> Outputs:
        """The relation's columns, before and after; None while they are being worked out."""
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._work_out(key)
        return self._known[key]

    def _relation(self, key: RelationKey) -> TableSchema | ViewSchema:
        found = find_relation(self.catalog, (), *key)
        assert found is not None
        return found

    def _work_out(self, key: RelationKey) -> Outputs:
        relation = self._relation(key)
        if isinstance(relation, ViewSchema):
            if relation.columns is not None:
                return tuple((name, name) for name in relation.columns)
            outputs = published(self.body(relation.schema, relation.query)[1])
            return outputs if self._through_views or outputs is None else _unchanged(outputs)
        renamed = self._columns.get(key, {})
        columns = [(column.name, renamed.get(fold(column.name), column.name)) for column in relation.columns]
        derivation = relation.derivation
        if derivation is not None and derivation.columns is None and self._through_views:
            outputs = published(self.body(relation.schema, derivation.query)[1]) or ()
            for position, (old, new) in enumerate(outputs[: len(columns)]):
                if fold(old) != fold(new):
                    columns[position] = (columns[position][0], new)
        return tuple(columns)

    def body(self, schema: str, query: nodes.Query) -> tuple[nodes.Query, Outputs]:
        """A stored body after the change, and what it publishes."""
        return Follower(self).query(query, self.body_scope(schema))

    def body_scope(self, schema: str) -> Scope:
        """The scope of a stored body of a schema."""
        return Scope(home_path(self.catalog, schema, self.path))

    def row_scope(self, table: TableSchema, *, versions: bool = True, variables: bool = False) -> Scope:
        """The scope of an expression over a table's row.

        ``versions``: ``new`` and ``old`` are known; ``variables``: those of the mutation context are.
        """
        key = key_of(table)
        columns = self.columns_of(key)
        row = Source(
            (table.name, self.name_of(key)),
            columns,
            columns,
            key,
            ROW_NAMES if versions else frozenset(),
            frozenset([fold(each.name) for each in table.context]) if variables else frozenset(),
        )
        return Scope((table.schema,), (row,))


def _unchanged(outputs: Outputs) -> Outputs:
    return tuple((old, old) for old, _ in outputs or ())


# --- the two renames --------------------------------------------------------------------------------------


def rename_table(
    catalog: Catalog,
    table: TableSchema,
    new_name: str,
    path: Sequence[str] = DEFAULT_PATH,
    position: SourcePosition | None = None,
) -> Catalog:
    """The catalog after ``ALTER TABLE … RENAME TO``; raises ERROR for a name that is taken."""
    check_rename(catalog, table, new_name, position)
    return _changed_catalog(ChangedWorld(catalog, path, tables={key_of(table): new_name}))


def rename_column(
    catalog: Catalog,
    table: TableSchema,
    column: str,
    new_name: str,
    path: Sequence[str] = DEFAULT_PATH,
    position: SourcePosition | None = None,
) -> Catalog:
    """The catalog after ``ALTER TABLE … RENAME COLUMN``.

    Raises ERROR for an unknown column, a name that is taken, and a reader that would publish it twice;
    CONSTRAINT where an unnamed UNIQUE's index would collide.
    """
    place = table.column_index(column)
    if place is None:
        message = f"Column '{column}' not found in table '{table.name}'"
        raise sql_error(StatusCode.ERROR, message, position)
    if table.column_index(new_name) not in (None, place):
        message = f"Column '{new_name}' already exists in table '{table.name}'"
        raise sql_error(StatusCode.ERROR, message, position)
    if fold(new_name) == fold(column):
        return _respelled_column(catalog, table, place, new_name)
    key = key_of(table)
    world = ChangedWorld(catalog, path, columns={key: {fold(column): new_name}})
    _check_published_once(world, table, table.columns[place].name, new_name, position)
    after = _changed_catalog(world)
    renamed = after.table(table.schema, table.name)
    assert renamed is not None
    label = f"rename column '{column}' to '{new_name}' on table '{table.name}'"
    check_backing_names(renamed.unique_constraints, renamed, label)
    for constraint in renamed.unique_constraints:
        if not constraint.named:
            check_index_name(renamed, constraint.name, label)
    return after


def _respelled_column(catalog: Catalog, table: TableSchema, place: int, new_name: str) -> Catalog:
    """A change of case alone: nothing that refers to the column has to follow."""
    columns = list(table.columns)
    columns[place] = replace(columns[place], name=new_name)
    changed = _with_backing_names(replace(table, columns=tuple(columns)))
    schema = catalog.schema(table.schema)
    assert schema is not None
    return catalog.with_schema(schema.with_table(changed))


def _check_published_once(
    world: ChangedWorld, table: TableSchema, column: str, new_name: str, position: SourcePosition | None
) -> None:
    """No reader may end up with two columns of the new name (ERROR)."""
    for reader, query in _open_readers(world.catalog):
        follower = Follower(world)
        _, outputs = follower.query(query, world.body_scope(reader.schema))
        names = [(fold(old), fold(new)) for old, new in outputs or ()]
        moved = any(old != new == fold(new_name) for old, new in names)
        if not moved or not any(old == new == fold(new_name) for old, new in names):
            continue
        kind = "view" if isinstance(reader, ViewSchema) else "materialized view"
        raise sql_error(
            StatusCode.ERROR,
            f"cannot rename column '{table.name}.{column}' to '{new_name}': {kind}"
            f" '{reader.schema}.{reader.name}' already publishes a column named '{new_name}' and also"
            f" republishes the renamed column{_detour(world, follower, table)}, so following the rename"
            f" would make it publish two '{new_name}' columns. Alias one of the two in the {kind}'s body,"
            " or choose a different name.",
            position,
        )


def _open_readers(catalog: Catalog) -> Iterator[tuple[TableSchema | ViewSchema, nodes.Query]]:
    """The views and maintained tables whose columns are called as their bodies call them."""
    for view in views_of(catalog):
        if view.columns is None:
            yield view, view.query
    for table in tables_of(catalog):
        if table.derivation is not None and table.derivation.columns is None:
            yield table, table.derivation.query


def _detour(world: ChangedWorld, follower: Follower, table: TableSchema) -> str:
    """Through which view a reader comes by a column of the table."""
    if key_of(table) in follower.touched:
        return ""
    for key in sorted(follower.touched):
        if any(fold(old) != fold(new) for old, new in world.columns_of(key) or ()):
            return f" (through '{world.name_of(key)}')"
    return ""


# --- all objects ------------------------------------------------------------------------------------------


def _changed_catalog(world: ChangedWorld) -> Catalog:
    catalog = world.catalog
    schemas = {key: _changed_schema(world, schema) for key, schema in catalog.schemas.items()}
    return Catalog(schemas, catalog.version + 1)


def _changed_schema(world: ChangedWorld, schema: Schema) -> Schema:
    tables = {fold(t.name): t for t in (changed_table(world, t) for t in schema.tables.values())}
    views = {name: _changed_view(world, view) for name, view in schema.views.items()}
    assertions = {}
    for name, assertion in schema.assertions.items():
        scope = world.body_scope(assertion.schema)
        expression = Follower(world).expression(assertion.expression, scope)
        same = expression is assertion.expression
        assertions[name] = assertion if same else replace(assertion, expression=expression)
    return replace(schema, tables=tables, views=views, assertions=assertions)


def _changed_view(world: ChangedWorld, view: ViewSchema) -> ViewSchema:
    query, _ = world.body(view.schema, view.query)
    return view if query is view.query else replace(view, query=query)


def changed_table(world: ChangedWorld, table: TableSchema) -> TableSchema:
    """A table after the change; the same object if nothing in it changes."""
    key = key_of(table)
    follower = Follower(world)
    scope, index_scope = world.row_scope(table), world.row_scope(table, versions=False)
    written = world.row_scope(table, variables=True)
    names = [new for _, new in world.columns_of(key) or ()]
    changed = replace(
        table,
        name=world.name_of(key),
        columns=tuple(
            _changed_column(follower, scope, written, column, name)
            for column, name in zip(table.columns, names, strict=True)
        ),
        checks=tuple(_changed_check(follower, written, check) for check in table.checks),
        indexes=tuple(_changed_index(follower, index_scope, index) for index in table.indexes),
        foreign_keys=tuple(_changed_key(world, table, foreign) for foreign in table.foreign_keys),
        derivation=_changed_derivation(world, table.schema, table.derivation),
    )
    changed = _with_backing_names(changed)
    return table if changed == table and changed.name == table.name else changed


def _changed_column(
    follower: Follower, scope: Scope, written: Scope, column: ColumnSchema, name: str
) -> ColumnSchema:
    default = column.default and follower.expression(column.default, written)
    generated = column.generated and follower.expression(column.generated, scope)
    if name == column.name and default is column.default and generated is column.generated:
        return column
    return replace(column, name=name, default=default, generated=generated)


def _changed_check(follower: Follower, scope: Scope, check: CheckConstraint) -> CheckConstraint:
    expression = follower.expression(check.expression, scope)
    return check if expression is check.expression else replace(check, expression=expression)


def _changed_index(follower: Follower, scope: Scope, index: IndexSchema) -> IndexSchema:
    where = index.where and follower.expression(index.where, scope)
    parts = tuple(_changed_part(follower, scope, part) for part in index.parts)
    if where is index.where and all(new is old for new, old in zip(parts, index.parts, strict=True)):
        return index
    return replace(index, where=where, parts=parts)


def _changed_part(follower: Follower, scope: Scope, part: IndexPart) -> IndexPart:
    expression = part.expression and follower.expression(part.expression, scope)
    return part if expression is part.expression else replace(part, expression=expression)


def _changed_key(world: ChangedWorld, table: TableSchema, key: ForeignKey) -> ForeignKey:
    parent = world.find((), key.parent_schema or table.schema, key.parent_table)
    if parent is None:
        return key
    name = world.name_of(parent)
    columns = key.parent_columns
    if columns is not None:
        after = {fold(old): new for old, new in world.columns_of(parent) or () if fold(old) != fold(new)}
        columns = tuple(after.get(fold(column), column) for column in columns)
    if columns == key.parent_columns and fold(name) == fold(key.parent_table):
        return key
    return replace(key, parent_table=name, parent_columns=columns)


def _changed_derivation(world: ChangedWorld, schema: str, derivation: Derivation | None) -> Derivation | None:
    if derivation is None:
        return None
    query, _ = world.body(schema, derivation.query)
    views = tuple([_changed_view(world, view) for view in derivation.views])
    if query is derivation.query and all(map(is_, views, derivation.views)):
        return derivation
    return replace(derivation, query=query, views=views)


def _with_backing_names(table: TableSchema) -> TableSchema:
    """Hidden indexes of unnamed UNIQUEs are called after the columns' names of today."""
    names = {}
    constraints = []
    for constraint in table.unique_constraints:
        if not constraint.named and not constraint.from_index:
            own = backing_name(table.columns[column].name for column in constraint.columns)
            if own != constraint.name:
                leans = fold(constraint.index) == fold(constraint.name)
                if leans:
                    names[fold(constraint.name)] = own
                constraint = replace(constraint, name=own, index=own if leans else constraint.index)
        constraints.append(constraint)
    if tuple(constraints) == table.unique_constraints:
        return table
    indexes = tuple(
        replace(index, name=names[fold(index.name)]) if index.hidden and fold(index.name) in names else index
        for index in table.indexes
    )
    return arranged(replace(table, unique_constraints=tuple(constraints), indexes=indexes))
