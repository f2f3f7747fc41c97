"""Following a rename through a query: which names mean the renamed thing, and what they become.

Names in a tree mean something only through the scopes around them: a FROM clause binds
qualifiers and columns, a WITH clause hides tables, a subquery sees what is around it.
:class:`Follower` walks a tree with these scopes and writes each name that means a renamed object
anew.  It needs to know of the catalog only what :class:`World` tells: which relation a name means,
and what its columns were and are called.

Every query yields *outputs*, pairs of an old and a new column name.  They are how a rename
travels: a subquery, CTE or view that publishes a renamed column under its own name has an output
whose two names differ, and references to it from outside change in turn.  An alias or a column
list stops the journey, since there both names are the same.

A tree in which nothing changes is returned as the same object.

Chapter: alter-and-ddl-lifecycle, section 7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from quereus_store.schema.objects import fold
from quereus_store.sql import nodes
from quereus_store.sql.renderer import column_name_text, unique_names
from quereus_store.sql.traversal import children

RelationKey: TypeAlias = tuple[str, str]
"""Folded schema and name of a table or view, before the change."""
Name: TypeAlias = tuple[str, str]
"""A column's name before and after the change."""
Outputs: TypeAlias = "tuple[Name, ...] | None"
"""The columns that a relation publishes; None where they are unknown."""

_AnyNode = TypeVar("_AnyNode", bound=nodes.Node)


class World(Protocol):
    """The catalog around a tree, before and after the change."""

    def find(self, path: Sequence[str], schema: str | None, name: str) -> RelationKey | None:
        """The relation that a name means before the change."""
        ...

    def find_after(self, path: Sequence[str], schema: str | None, name: str) -> RelationKey | None:
        """The relation that a name means after the change, by its key of before."""
        ...

    def name_of(self, key: RelationKey) -> str:
        """The relation's name after the change."""
        ...

    def columns_of(self, key: RelationKey) -> Outputs:
        """The relation's columns, before and after."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """What a FROM clause (or the row of a CHECK) binds.

    ``qualifier`` is its name before and after; ``fixed`` are further qualifiers that never change
    (``new``, ``old``).  ``columns`` are what references may use, ``published`` what ``*`` stands for.
    ``hidden`` are names, in lower case, that mean something else when they are bare (context variables).
    """

    qualifier: Name | None
    columns: Outputs
    published: Outputs
    key: RelationKey | None = None
    fixed: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that can be seen at one place."""

    path: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    tables: Mapping[str, Outputs] = field(default_factory=dict)
    parent: Scope | None = None

    def inner(self, sources: tuple[Source, ...] = ()) -> Scope:
        """A scope within this one."""
        return Scope(self.path, sources, self.tables, self)


class Follower:
    """Rewrites trees; ``touched`` collects the relations that they refer to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.touched: set[RelationKey] = set()

    # --- queries ---------------------------------------------------------------------------------------

    def query(self, query: nodes.Query, scope: Scope) -> tuple[nodes.Query, Outputs]:
        """A query and its outputs."""
        with_clause, scope = self._with(query.with_clause, scope)
        body, outputs, inner = self._body(query.body, scope)
        aliases = _aliases(query.body)
        order_by = tuple(self._ordering(term, inner, outputs, aliases) for term in query.order_by)
        changed = _replaced(
            query,
            body=body,
            with_clause=with_clause,
            order_by=_kept(query.order_by, order_by),
            limit=self._optional(query.limit, scope),
            offset=self._optional(query.offset, scope),
            defaults=self._assignments(query.defaults, inner, outputs),
        )
        return changed, outputs

    def _with(self, clause: nodes.WithClause | None, scope: Scope) -> tuple[nodes.WithClause | None, Scope]:
        if clause is None:
            return None, scope
        members = []
        for member in clause.members:
            if not isinstance(member.query, nodes.Query):
                changed, outputs = member, None
            else:
                inside = scope
                if clause.recursive:
                    inside = _with_table(scope, member.name, self._anchor(member, member.query, scope))
                query, outputs = self.query(member.query, inside)
                changed = _replaced(member, query=query)
            outputs = _same(member.columns) if member.columns else published(outputs)
            scope = _with_table(scope, member.name, outputs)
            members.append(changed)
        return _replaced(clause, members=_kept(clause.members, tuple(members))), scope

    def _anchor(self, member: nodes.CommonTableExpression, query: nodes.Query, scope: Scope) -> Outputs:
        """What a recursive table publishes, by the part that does not read it."""
        if member.columns:
            return _same(member.columns)
        if isinstance(query.body, nodes.SetOperation):
            return published(self._body(query.body.left, scope)[1])
        return None

    def _body(self, body: nodes.QueryBody, scope: Scope) -> tuple[nodes.QueryBody, Outputs, Scope]:
        """A body, its outputs, and the scope that its ORDER BY sees."""
        match body:
            case nodes.Select():
                return self._select(body, scope)
            case nodes.SetOperation():
                left, outputs, _ = self._body(body.left, scope)
                right, _, _ = self._body(body.right, scope)
                return _replaced(body, left=left, right=right), outputs, scope
            case nodes.Query():
                query, outputs = self.query(body, scope)
                return query, outputs, scope
            case nodes.Values():
                rows = tuple(
                    _kept(row, tuple(self.expression(item, scope) for item in row)) for row in body.rows
                )
                return _replaced(body, rows=_kept(body.rows, rows)), None, scope
            case _:
                return body, None, scope

    def _select(self, select: nodes.Select, outer: Scope) -> tuple[nodes.Select, Outputs, Scope]:
        if select.schema_path:
            outer = replace(outer, path=select.schema_path)
        source: nodes.Relation | None = None
        sources: tuple[Source, ...] = ()
        if select.source is not None:
            siblings = tuple(_qualifiers(select.source))
            source, sources = self.relation(select.source, outer, (), siblings)
        scope = outer.inner(sources)
        items = tuple(self._item(item, scope) for item in select.items)
        outputs = _outputs(select.items, items, sources)
        items = tuple(
            _replaced(item, inverse=self._assignments(item.inverse, scope, outputs))
            if isinstance(item, nodes.ResultColumn)
            else item
            for item in items
        )
        changed = _replaced(
            select,
            items=_kept(select.items, items),
            source=source,
            where=self._optional(select.where, scope),
            group_by=self._all(select.group_by, scope),
            having=self._optional(select.having, scope),
            windows=self._all(select.windows, scope),
            qualify=self._optional(select.qualify, scope),
        )
        return changed, outputs, scope

    def _item(
        self, item: nodes.ResultColumn | nodes.ResultStar, scope: Scope
    ) -> nodes.ResultColumn | nodes.ResultStar:
        if isinstance(item, nodes.ResultColumn):
            return _replaced(item, expression=self.expression(item.expression, scope))
        if item.table is not None:
            for source in scope.sources:
                if source.qualifier is not None and fold(source.qualifier[0]) == fold(item.table):
                    return _replaced(item, table=_respelled(item.table, source.qualifier))
        return item

    def _ordering(
        self, term: nodes.OrderingTerm, scope: Scope, outputs: Outputs, aliases: frozenset[str]
    ) -> nodes.OrderingTerm:
        expression = term.expression
        if isinstance(expression, nodes.ColumnReference) and expression.table is None:
            # An output's name comes first; only one without an alias follows what it stands for.
            if fold(expression.column) in aliases:
                return term
            found = _lookup(outputs, expression.column)
            if found is not None:
                name = _respelled(expression.column, found)
                return _replaced(term, expression=_replaced(expression, column=name))
        return _replaced(term, expression=self.expression(expression, scope))

    def _assignments(
        self, assignments: tuple[nodes.Assignment, ...], scope: Scope, outputs: Outputs
    ) -> tuple[nodes.Assignment, ...]:
        """WITH INVERSE and WITH DEFAULTS: targets are columns below, ``new.`` is a row of the outputs."""
        row = Source(None, outputs, outputs, fixed=frozenset(("new", "old")))
        inside = Scope(scope.path, (row,), scope.tables, scope)
        changed = []
        for assignment in assignments:
            column = assignment.column
            for source in scope.sources:
                found = _lookup(source.columns, column)
                if found is not None:
                    column = _respelled(column, found)
                    break
            value = self.expression(assignment.value, inside)
            changed.append(_replaced(assignment, column=column, value=value))
        return _kept(assignments, tuple(changed))

    # --- FROM ------------------------------------------------------------------------------------------

    def relation(
        self,
        relation: nodes.Relation,
        outer: Scope,
        left: tuple[Source, ...],
        siblings: tuple[str, ...],
    ) -> tuple[nodes.Relation, tuple[Source, ...]]:
        """A relation of a FROM clause and what it binds.

        ``outer`` is the scope around the whole SELECT, ``left`` what stands to the left of this relation,
        ``siblings`` are the qualifiers of the whole clause.
        """
        match relation:
            case nodes.TableReference():
                changed, source = self._table(relation, outer, siblings)
                return changed, (source,)
            case nodes.SubquerySource():
                return self._subquery(relation, outer.inner(left) if relation.lateral else outer)
            case nodes.FunctionSource():
                call = self.expression(relation.call, outer.inner(left))
                qualifier = relation.alias or relation.call.name
                columns = _same(relation.columns) if relation.columns else None
                return _replaced(relation, call=call), (Source((qualifier, qualifier), columns, columns),)
            case nodes.Join():
                return self._join(relation, outer, left, siblings)
            case _:
                return relation, ()

    def _table(
        self, table: nodes.TableReference, scope: Scope, siblings: tuple[str, ...]
    ) -> tuple[nodes.TableReference, Source]:
        qualifier = table.alias or table.name
        if table.schema is None and fold(table.name) in scope.tables:
            published = scope.tables[fold(table.name)]
            return table, _source((qualifier, qualifier), table.columns, published, None)
        committed = table.schema is not None and fold(table.schema) == "committed"
        schema = None if committed else table.schema
        key = self.world.find(scope.path, schema, table.name)
        if key is None:
            return table, _source((qualifier, qualifier), table.columns, None, None)
        self.touched.add(key)
        changed = _replaced(table, name=_respelled(table.name, (key[1], self.world.name_of(key))))
        if table.alias is None and changed is not table:
            if fold(changed.name) in [fold(sibling) for sibling in siblings]:
                # The new name is another source's qualifier here: go on under the old one.
                changed = replace(changed, alias=table.name)
            else:
                qualifier = changed.name
        if schema is None and not committed:
            hidden = fold(changed.name) in scope.tables
            if hidden or self.world.find_after(scope.path, None, changed.name) != key:
                changed = replace(changed, schema=key[0])
        names = (table.alias or table.name, qualifier)
        return changed, _source(names, table.columns, self.world.columns_of(key), key)

    def _subquery(
        self, relation: nodes.SubquerySource, around: Scope
    ) -> tuple[nodes.Relation, tuple[Source, ...]]:
        if not isinstance(relation.query, nodes.Query):
            return relation, (_source(_name(relation.alias), relation.columns, None, None),)
        query, outputs = self.query(relation.query, around)
        source = _source(_name(relation.alias), relation.columns, published(outputs), None)
        return _replaced(relation, query=query), (source,)

    def _join(
        self, join: nodes.Join, outer: Scope, before: tuple[Source, ...], siblings: tuple[str, ...]
    ) -> tuple[nodes.Relation, tuple[Source, ...]]:
        left, left_sources = self.relation(join.left, outer, before, siblings)
        right, right_sources = self.relation(join.right, outer, before + left_sources, siblings)
        sources = left_sources + right_sources
        condition = self._optional(join.condition, outer.inner(before + sources))
        changed = _replaced(join, left=left, right=right, condition=condition)
        if join.using:
            changed = self._using(changed, left_sources, right_sources)
        return changed, sources

    @staticmethod
    def _using(join: nodes.Join, left: tuple[Source, ...], right: tuple[Source, ...]) -> nodes.Join:
        """USING follows a rename of both sides; where one side moves away, the names are spelled out."""
        conditions: list[nodes.Expression] = []
        shared: list[str] = []
        for name in join.using:
            ours, theirs = _find_source(left, name), _find_source(right, name)
            if ours is None or theirs is None or fold(ours[1][1]) == fold(theirs[1][1]):
                shared.append(name if ours is None else _respelled(name, ours[1]))
                continue
            sides = [
                nodes.ColumnReference(found[1], source.qualifier[1] if source.qualifier else None)
                for source, found in (ours, theirs)
            ]
            conditions.append(nodes.BinaryOperation(nodes.BinaryOperator.EQUAL, *sides))
        if not conditions:
            return _replaced(join, using=_kept(join.using, tuple(shared)))
        for name in shared:
            ours, theirs = _find_source(left, name), _find_source(right, name)
            sides = [
                nodes.ColumnReference(name, found[0].qualifier[1] if found and found[0].qualifier else None)
                for found in (ours, theirs)
            ]
            conditions.append(nodes.BinaryOperation(nodes.BinaryOperator.EQUAL, *sides))
        condition = conditions[0]
        for further in conditions[1:]:
            condition = nodes.BinaryOperation(nodes.BinaryOperator.AND, condition, further)
        return replace(join, using=(), condition=condition)

    # --- expressions -----------------------------------------------------------------------------------

    def expression(self, root: _AnyNode, scope: Scope) -> _AnyNode:
        """An expression, or any node made of expressions."""
        changed: dict[int, nodes.Node] = {}
        for node in reversed(list(_row_nodes(root))):
            if isinstance(node, nodes.Query):
                changed[id(node)] = self.query(node, scope.inner())[0]
            elif isinstance(node, nodes.Statement):
                changed[id(node)] = node
            else:
                rebuilt = _rebuilt(node, changed)
                if isinstance(rebuilt, nodes.ColumnReference):
                    rebuilt = self._column(rebuilt, scope)
                changed[id(node)] = rebuilt
        return cast("_AnyNode", changed[id(root)])

    def _column(self, reference: nodes.ColumnReference, scope: Scope | None) -> nodes.ColumnReference:
        while scope is not None:
            for source in scope.sources:
                if not _qualifies(source, reference):
                    continue
                if reference.table is None and fold(reference.column) in source.hidden:
                    return reference
                found = _lookup(source.columns, reference.column)
                if found is None and (reference.table is None or source.fixed):
                    continue
                return _referring(reference, source, found)
            if reference.table is None and any(source.columns is None for source in scope.sources):
                return reference
            scope = scope.parent
        return reference

    def _optional(self, node: _AnyNode | None, scope: Scope) -> _AnyNode | None:
        return None if node is None else self.expression(node, scope)

    def _all(self, items: tuple[_AnyNode, ...], scope: Scope) -> tuple[_AnyNode, ...]:
        return _kept(items, tuple(self.expression(item, scope) for item in items))


# --- helpers ----------------------------------------------------------------------------------------------


def _row_nodes(root: nodes.Node) -> Iterator[nodes.Node]:
    """A node and those below it, each before its children; subqueries as one."""
    stack = [root]
    while stack:
        current = stack.pop()
        yield current
        if not isinstance(current, nodes.Statement):
            stack.extend(reversed(tuple(children(current))))


def _rebuilt(node: nodes.Node, changed: Mapping[int, nodes.Node]) -> nodes.Node:
    fields: dict[str, Any] = {}
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        if isinstance(value, nodes.Node):
            after: Any = changed.get(id(value), value)
        elif isinstance(value, tuple):
            after = _kept(value, tuple(changed.get(id(part), part) for part in value))
        else:
            continue
        if after is not value:
            fields[item.name] = after
    return replace(node, **fields) if fields else node


def _replaced(node: _AnyNode, **fields: Any) -> _AnyNode:
    """The node with these fields; the same object if nothing changes."""
    if all(getattr(node, name) is value or getattr(node, name) == value for name, value in fields.items()):
        return node
    return replace(node, **fields)


def _kept(before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Any, ...]:
    same = len(before) == len(after) and all(map(_identical, before, after))
    return before if same else after


def _identical(left: object, right: object) -> bool:
    return left is right or (isinstance(left, str) and left == right)


def _respelled(written: str, name: Name) -> str:
    """What is written for a name after the change; the spelling stays where the name does."""
    return written if fold(name[0]) == fold(name[1]) else name[1]


def _same(names: Sequence[str]) -> tuple[Name, ...]:
    return tuple((name, name) for name in names)


def _name(alias: str | None) -> Name | None:
    return None if alias is None else (alias, alias)


def _source(
    qualifier: Name | None, renamed: tuple[str, ...], published: Outputs, key: RelationKey | None
) -> Source:
    return Source(qualifier, _same(renamed) if renamed else published, published, key)


def _lookup(columns: Outputs, name: str) -> Name | None:
    folded = fold(name)
    return next((column for column in columns or () if fold(column[0]) == folded), None)


def _find_source(sources: tuple[Source, ...], column: str) -> tuple[Source, Name] | None:
    for source in sources:
        found = _lookup(source.columns, column)
        if found is not None:
            return source, found
    return None


def _qualifies(source: Source, reference: nodes.ColumnReference) -> bool:
    """Whether a reference may mean a column of a source, going by its qualifier."""
    if reference.table is None:
        return True
    folded = fold(reference.table)
    if reference.schema is not None:
        return source.key == (fold(reference.schema), folded)
    if folded in source.fixed:
        return True
    return source.qualifier is not None and fold(source.qualifier[0]) == folded


def _referring(reference: nodes.ColumnReference, source: Source, found: Name | None) -> nodes.ColumnReference:
    column = reference.column if found is None else _respelled(reference.column, found)
    table = reference.table
    if source.qualifier is not None:
        if table is None and fold(column) in source.hidden:
            # Bare, the new name would mean something else.
            table = source.qualifier[1]
        elif table is not None and fold(table) not in source.fixed:
            table = _respelled(table, source.qualifier)
    return _replaced(reference, column=column, table=table)


def _with_table(scope: Scope, name: str, outputs: Outputs) -> Scope:
    return replace(scope, tables={**scope.tables, fold(name): outputs})


def _qualifiers(relation: nodes.Relation) -> Iterator[str]:
    match relation:
        case nodes.Join():
            yield from _qualifiers(relation.left)
            yield from _qualifiers(relation.right)
        case nodes.TableReference():
            yield relation.alias or relation.name
        case nodes.SubquerySource(alias=str() as alias) | nodes.FunctionSource(alias=str() as alias):
            yield alias


def _aliases(body: nodes.QueryBody) -> frozenset[str]:
    if not isinstance(body, nodes.Select):
        return frozenset()
    return frozenset(
        fold(item.alias)
        for item in body.items
        if isinstance(item, nodes.ResultColumn) and item.alias is not None
    )


def _outputs(
    before: Sequence[nodes.ResultColumn | nodes.ResultStar],
    after: Sequence[nodes.ResultColumn | nodes.ResultStar],
    sources: tuple[Source, ...],
) -> Outputs:
    """What a select list publishes; None where a ``*`` covers something unknown."""
    outputs: list[Name] = []
    for old, new in zip(before, after, strict=True):
        if isinstance(old, nodes.ResultStar):
            for source in sources:
                if old.table is None or _is_called(source, old.table):
                    if source.published is None:
                        return None
                    outputs.extend(source.published)
        elif old.alias is not None:
            outputs.append((old.alias, old.alias))
        else:
            assert isinstance(new, nodes.ResultColumn)
            outputs.append((column_name_text(old.expression), column_name_text(new.expression)))
    return tuple(outputs)


def published(outputs: Outputs) -> Outputs:
    """What a query's outputs are called from outside: repeated names are told apart, before and after."""
    if outputs is None:
        return None
    before, after = [old for old, _ in outputs], [new for _, new in outputs]
    return tuple(zip(unique_names(before), unique_names(after), strict=True))


def _is_called(source: Source, name: str) -> bool:
    return source.qualifier is not None and fold(source.qualifier[0]) == fold(name)
