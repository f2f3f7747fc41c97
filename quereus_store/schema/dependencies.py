"""What refers to what: the dependents that stand in the way of a DROP.

A :class:`Dependent` is one expression somewhere in the catalog that refers to a relation or a
column, directly or through views.  The drop guards turn them into messages.

A relation is referred to by whatever names it in a FROM clause.  A column is referred to exactly
by what RENAME COLUMN would rewrite: so that is what is asked, with a name that nobody has.

Chapter: alter-and-ddl-lifecycle, sections 5 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quereus_store.schema.manager import DEFAULT_PATH, assertions_of, find_in_schema, tables_of, views_of
from quereus_store.schema.objects import AssertionSchema, Catalog, TableSchema, ViewSchema, fold
from quereus_store.schema.rename import ChangedWorld, key_of
from quereus_store.schema.scopes import Follower, RelationKey, Scope
from quereus_store.sql import nodes
from quereus_store.sql.renderer import canonical_text

_NOBODY = "\x00renamed"


class DependentKind(StrEnum):
    """Where a reference stands."""

    ASSERTION = "assertion"
    CHECK = "check"
    DEFAULT = "default"
    GENERATED = "generated"
    INDEX = "index"
    FOREIGN_KEY = "foreign key"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"


@dataclass(frozen=True, slots=True)
class Dependent:
    """A reference to a relation or column.

    ``label`` is what messages call the expression (``CHECK constraint 'c'``, ``the DEFAULT of column
    'd'``); ``through`` are the views, plain and maintained, on the way from the dependent on.
    ``breaks_view`` is set where dropping a column would leave a view on the way with more names than
    columns.
    """

    kind: DependentKind
    owner: TableSchema | ViewSchema | AssertionSchema
    label: str
    through: tuple[ViewSchema | TableSchema, ...] = ()
    breaks_view: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """An expression with its scope, to be walked by a Follower of any world."""

    kind: DependentKind
    owner: TableSchema | ViewSchema | AssertionSchema
    label: str
    walk: Callable[[ChangedWorld, Follower], bool]
    """Follows the expression and tells whether it changes."""


def relation_dependents(
    catalog: Catalog, schema: str, name: str, path: Sequence[str] = DEFAULT_PATH
) -> list[Dependent]:
    """Everything that refers to a table or view, assertions first, its own expressions left out."""
    target = find_in_schema(catalog, schema, name)
    if target is None:
        return []
    world = ChangedWorld(catalog, path)
    routes = _routes(world, key_of(target))
    found = []
    for place in _places(catalog):
        if not isinstance(place.owner, AssertionSchema) and key_of(place.owner) == key_of(target):
            continue
        through = _way(_touched(world, place), routes)
        if through is not None:
            found.append(Dependent(place.kind, place.owner, place.label, through))
    return found


def column_dependents(
    catalog: Catalog, table: TableSchema, column: str, path: Sequence[str] = DEFAULT_PATH
) -> list[Dependent]:
    """Everything that refers to a column, except its own DEFAULT and foreign keys from it."""
    renamed = {key_of(table): {fold(column): _NOBODY}}
    direct = ChangedWorld(catalog, path, columns=renamed, through_views=False)
    full = ChangedWorld(catalog, path, columns=renamed)
    routes = _routes(ChangedWorld(catalog, path), key_of(table))
    broken = _broken_views(full)
    own = f"the DEFAULT of column '{column}'"
    found = []
    for place in _places(catalog):
        if place.owner is table and place.kind is DependentKind.DEFAULT and fold(place.label) == fold(own):
            continue
        if place.walk(direct, Follower(direct)):
            found.append(Dependent(place.kind, place.owner, place.label))
            continue
        follower = Follower(full)
        changes = place.walk(full, follower)
        through = _way(follower.touched, routes) or ()
        if changes:
            found.append(Dependent(place.kind, place.owner, place.label, through))
        elif broken & follower.touched and place.kind is not DependentKind.VIEW:
            found.append(Dependent(place.kind, place.owner, place.label, through, breaks_view=True))
    found += _foreign_keys(catalog, table, column)
    return found


def relations_read(catalog: Catalog, schema: str, body: nodes.Node) -> frozenset[RelationKey]:
    """Folded (schema, name) of the tables and views that a stored body of a schema names."""
    world = ChangedWorld(catalog)
    follower = Follower(world)
    follower.expression(body, world.body_scope(schema))
    return frozenset(follower.touched)


def relations_named(
    catalog: Catalog, owner: TableSchema | ViewSchema | AssertionSchema
) -> frozenset[RelationKey]:
    """Folded (schema, name) of the tables and views that the expressions of an object name."""
    world = ChangedWorld(catalog)
    return frozenset().union(*(_touched(world, place) for place in _places_of(owner)))


# --- all expressions of a catalog -------------------------------------------------------------------------


def _places(catalog: Catalog) -> Iterator[_Place]:
    for owners in (assertions_of(catalog), tables_of(catalog), views_of(catalog)):
        for owner in owners:
            yield from _places_of(owner)


def _places_of(owner: TableSchema | ViewSchema | AssertionSchema) -> Iterator[_Place]:
    if isinstance(owner, TableSchema):
        yield from _table_places(owner)
    elif isinstance(owner, ViewSchema):
        yield _Place(DependentKind.VIEW, owner, f"view '{owner.name}'", _in_body(owner.schema, owner.query))
    else:
        walk = _in_body(owner.schema, owner.expression)
        yield _Place(DependentKind.ASSERTION, owner, f"assertion '{owner.name}'", walk)


def _table_places(table: TableSchema) -> Iterator[_Place]:
    for check in table.checks:
        label = f"CHECK constraint '{check.name}'"
        if check.positional:
            label = f"the CHECK constraint ({canonical_text(check.expression)})"
        yield _Place(DependentKind.CHECK, table, label, _in_row(table, check.expression, variables=True))
    for column in table.columns:
        if column.default is not None:
            label = f"the DEFAULT of column '{column.name}'"
            yield _Place(DependentKind.DEFAULT, table, label, _in_row(table, column.default, variables=True))
        if column.generated is not None:
            label = f"the GENERATED expression of column '{column.name}'"
            yield _Place(DependentKind.GENERATED, table, label, _in_row(table, column.generated))
    for index in table.indexes:
        expressions = [part.expression for part in index.parts if part.expression is not None]
        if index.where is not None:
            expressions.append(index.where)
        for expression in expressions:
            yield _Place(DependentKind.INDEX, table, index.name, _in_row(table, expression))
    if table.derivation is not None:
        label = f"materialized view '{table.name}'"
        walk = _in_body(table.schema, table.derivation.query)
        yield _Place(DependentKind.MATERIALIZED_VIEW, table, label, walk)


def _in_body(schema: str, body: nodes.Node) -> Callable[[ChangedWorld, Follower], bool]:
    def walk(world: ChangedWorld, follower: Follower) -> bool:
        return follower.expression(body, world.body_scope(schema)) is not body

    return walk


def _in_row(
    table: TableSchema, expression: nodes.Expression, *, variables: bool = False
) -> Callable[[ChangedWorld, Follower], bool]:
    def walk(world: ChangedWorld, follower: Follower) -> bool:
        scope: Scope = world.row_scope(table, variables=variables)
        return follower.expression(expression, scope) is not expression

    return walk


def _foreign_keys(catalog: Catalog, table: TableSchema, column: str) -> Iterator[Dependent]:
    target = key_of(table)
    for child in tables_of(catalog):
        for key in child.foreign_keys:
            parent = (fold(key.parent_schema or child.schema), fold(key.parent_table))
            if parent != target:
                continue
            if key.parent_columns is not None and fold(column) in map(fold, key.parent_columns):
                yield Dependent(DependentKind.FOREIGN_KEY, child, key.name)


# --- ways through views -----------------------------------------------------------------------------------


def _touched(world: ChangedWorld, place: _Place) -> set[RelationKey]:
    follower = Follower(world)
    place.walk(world, follower)
    return follower.touched


_Route = tuple[ViewSchema | TableSchema, ...]


def _routes(world: ChangedWorld, target: RelationKey) -> dict[RelationKey, _Route]:
    """From each relation from which views lead to the target, the views of a shortest way."""
    readers: dict[RelationKey, list[ViewSchema | TableSchema]] = {}
    for reader, query in _bodies(world.catalog):
        follower = Follower(world)
        follower.query(query, world.body_scope(reader.schema))
        for key in follower.touched:
            readers.setdefault(key, []).append(reader)
    routes: dict[RelationKey, _Route] = {target: ()}
    frontier = [target]
    while frontier:
        following = []
        for key in frontier:
            for reader in readers.get(key, ()):
                if key_of(reader) not in routes:
                    routes[key_of(reader)] = (reader, *routes[key])
                    following.append(key_of(reader))
        frontier = following
    return routes


def _bodies(catalog: Catalog) -> Iterator[tuple[ViewSchema | TableSchema, nodes.Query]]:
    """The views and maintained tables, with what they are computed from."""
    for view in views_of(catalog):
        yield view, view.query
    for table in tables_of(catalog):
        if table.derivation is not None:
            yield table, table.derivation.query


def _way(touched: set[RelationKey], routes: dict[RelationKey, _Route]) -> _Route | None:
    """The views on the shortest way from some of the touched relations; None when none leads there."""
    ways = [routes[key] for key in sorted(touched) if key in routes]
    return min(ways, key=len, default=None)


def _broken_views(world: ChangedWorld) -> set[RelationKey]:
    """Views with a column list over a ``*`` that covers the column."""
    broken = set()
    for view in views_of(world.catalog):
        body = view.query.body
        if view.columns is None or not isinstance(body, nodes.Select):
            continue
        if any(isinstance(item, nodes.ResultStar) for item in body.items):
            outputs = world.body(view.schema, view.query)[1]
            if any(new == _NOBODY for _, new in outputs or ()):
                broken.add(key_of(view))
    return broken
