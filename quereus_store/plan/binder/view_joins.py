"""Views of joins, taken apart for writing (view-updates-and-lenses, sections 7 and 8).

A :class:`JoinView` knows the tables of the join, its *sides*.  A side is *optional* where an outer
join may have no row of it; whether it has one is told by *presence flags*, which are added to the
body's FROM.  What is done with a view is in :mod:`~quereus_store.plan.binder.join_writes` and
:mod:`~quereus_store.plan.binder.join_inserts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from quereus_store.errors import Error, SourcePosition
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.relations import expand_view, find_relation
from quereus_store.plan.binder.view_bodies import (
    coded,
    inverted_column,
    plain_select,
    refusal,
    shown_column,
    with_listed_names,
)
from quereus_store.schema.manager import parent_key, parent_of
from quereus_store.schema.objects import Catalog, TableSchema, ViewSchema, fold
from quereus_store.sql import nodes, traversal

_SideColumn: TypeAlias = tuple[int, str]
"""A column of a side, by the side's number and the column's name."""


@dataclass(frozen=True, slots=True)
class Side:
    """One table of the join, under its name there; ``presence`` are the flags that tell of its row."""

    name: str
    table: TableSchema
    presence: tuple[str, ...] = ()

    @property
    def is_optional(self) -> bool:
        """Whether a row of the join may be without a row of this side."""
        return bool(self.presence)


@dataclass(frozen=True, slots=True)
class JoinOutput:
    """One output: its expression, the sides that it reads, the column that it shows.

    ``inverted`` says that it is a whole number away from the column, ``puts`` are the
    assignments of WITH INVERSE.  ``flag`` is the side whose existence it tells.
    """

    name: str
    expression: nodes.Expression
    sides: frozenset[int]
    column: str | None
    inverted: bool = False
    puts: tuple[nodes.Assignment, ...] = ()
    flag: int | None = None


@dataclass(frozen=True, slots=True)
class JoinView:
    """A view of a join, taken apart; ``merged`` are the columns that USING and NATURAL show once.

    ``relation`` is its FROM with the presence flags, ``flags`` the existence flags that it has of
    its own, by folded name with the first side that they tell of.
    """

    name: str
    schema: str
    environment: Environment
    relation: nodes.Relation
    sides: tuple[Side, ...]
    conditions: tuple[nodes.Expression, ...]
    merged: frozenset[tuple[int, str]]
    where: nodes.Expression | None
    outputs: tuple[JoinOutput, ...]
    flags: tuple[tuple[str, int], ...] = ()
    defaults: tuple[nodes.Assignment, ...] = ()

    def output(self, name: str) -> JoinOutput | None:
        """The output of that name, in any case."""
        return next((output for output in self.outputs if fold(output.name) == fold(name)), None)

    def unknown(self, name: nodes.ColumnReference) -> Error:
        """The error for a name that is no column of the view."""
        exposed = ", ".join(output.name for output in self.outputs)
        text = f"'{name.column}' is not a column of the view view '{self.name}' exposes: {exposed}."
        return refusal(self.name, "unknown-view-column", text, name.position)

    def side_of(self, name: nodes.ColumnReference) -> int | None:
        """The side that a column of the body belongs to."""
        return _side_of(self.sides, name)


# --- opening ------------------------------------------------------------------------------------------------


def join_of_view(
    environment: Environment, view: ViewSchema, position: SourcePosition | None, verb: str = "update"
) -> JoinView | None:
    """A view of a join, taken apart; None for another view.

    Raises ERROR for one that is not writable, in the words for what is done (``verb``).
    """
    body = view.query.body
    if not isinstance(body, nodes.Select) or not isinstance(body.source, nodes.Join):
        return None
    if view.query.limit is not None or view.query.offset is not None:
        text = "a LIMIT/OFFSET join body is not decomposable (a mutation would escape the limited window)"
        raise refusal(view.name, "unsupported-limit", text, position)
    if body.distinct:
        text = "a DISTINCT join body has no 1:1 base-row lineage"
        raise refusal(view.name, "unsupported-distinct", text, position)
    names = [column.name for column in expand_view(environment, view, position).columns]
    inner = environment.inside_stored_body(view.schema, (view.schema, view.name))
    select = plain_select(inner, view.query, view.name, "view", position)
    select = with_listed_names(inner, view.query, select, names)
    opening = _Opening(inner.with_schemas(select.schema_path), view.name, position, verb)
    return replace(opening.view(select, names, view.schema), defaults=view.query.defaults)


class _Opening:
    """Takes a body over a join apart; raises ERROR for one whose rows cannot be written."""

    def __init__(
        self, environment: Environment, name: str, position: SourcePosition | None, verb: str
    ) -> None:
        self.environment = environment
        self.name = name
        self.position = position
        self.verb = verb
        self.sides: list[Side] = []
        self.conditions: list[nodes.Expression] = []
        self.merged: set[tuple[int, str]] = set()
        self.flags: list[tuple[str, int]] = []
        self.joins = 0

    def view(self, select: nodes.Select, names: Sequence[str], schema: str) -> JoinView:
        """The whole."""
        if any(isinstance(item, nodes.ResultStar) for item in select.items):
            text = "list the join's output columns explicitly (a star has no stable meaning in a join)"
            raise refusal(self.name, "unsupported-join", text, self.position)
        assert select.source is not None
        relation = self._relation(select.source, ())
        flags = dict(self.flags)
        outputs = tuple(
            [
                _output(self.sides, flags, output_name, item)
                for output_name, item in zip(names, select.items, strict=True)
                if isinstance(item, nodes.ResultColumn)
            ]
        )
        return JoinView(
            self.name,
            schema,
            self.environment,
            relation,
            tuple(self.sides),
            tuple(self.conditions),
            frozenset(self.merged),
            select.where,
            outputs,
            tuple(self.flags),
        )

    def _relation(self, relation: nodes.Relation, presence: tuple[str, ...]) -> nodes.Relation:
        if not isinstance(relation, nodes.Join):
            self.sides.append(self._side(relation, presence))
            return relation
        self._check(relation)
        flag = f"\0present{self.joins}"
        self.joins += 1
        optional = _OPTIONAL.get(relation.kind)
        added = () if optional is None else (nodes.MembershipFlag(flag, optional),)
        start = len(self.sides)
        left = self._relation(relation.left, (*presence, flag) if optional is nodes.Side.LEFT else presence)
        middle = len(self.sides)
        right = self._relation(
            relation.right, (*presence, flag) if optional is nodes.Side.RIGHT else presence
        )
        if relation.condition is not None:
            self.conditions.append(relation.condition)
        self._merge(relation, start, middle)
        told = start if optional is nodes.Side.LEFT else middle
        self.flags += [(fold(own.name), told) for own in relation.flags]
        return replace(relation, left=left, right=right, flags=(*relation.flags, *added))

    def _merge(self, join: nodes.Join, start: int, middle: int) -> None:
        """USING and NATURAL as conditions; the pair is shown once."""
        names: Sequence[str] = join.using
        if join.natural:
            right = {fold(column.name) for side in self.sides[middle:] for column in side.table.columns}
            names = [
                column.name
                for side in self.sides[start:middle]
                for column in side.table.columns
                if fold(column.name) in right
            ]
        for name in names:
            left_side = self._having(name, start, middle)
            right_side = self._having(name, middle, len(self.sides))
            self.conditions.append(_equal(self.sides[left_side].name, self.sides[right_side].name, name))
            hidden = left_side if join.kind is nodes.JoinKind.RIGHT else right_side
            self.merged.add((hidden, fold(name)))
        if join.natural and not names:
            raise self._cross()

    def _having(self, name: str, start: int, stop: int) -> int:
        return next(
            index for index in range(start, stop) if self.sides[index].table.column_index(name) is not None
        )

    def _cross(self) -> Error:
        text = "only INNER/LEFT/RIGHT/FULL joins with an ON/USING predicate are decomposable"
        return refusal(self.name, "unsupported-join", text, self.position)

    def _check(self, join: nodes.Join) -> None:
        if join.kind is nodes.JoinKind.FULL:
            raise self._full(join)
        conditional = join.condition is not None or join.using or join.natural
        if join.kind is nodes.JoinKind.CROSS or not conditional:
            raise self._cross()

    def _full(self, join: nodes.Join) -> Error:
        if self.verb == "delete":
            message = f"cannot delete through view '{self.name}': a FULL outer join has no preserved side"
            return coded("unsupported-join", f"{message} whose rows could be removed", self.position)
        if self.verb == "insert":
            message = (
                f"cannot insert through view '{self.name}': a FULL outer join has no preserved anchor side"
            )
            return coded("unsupported-join", f"{message} to begin a row with", self.position)
        table = getattr(join.right, "name", "")
        text = (
            f"the non-preserved side (base table '{table}') is not related to a preserved side by an"
            " equi-join key, since a FULL join preserves both"
        )
        return refusal(self.name, "unsupported-outer-join-update", text, self.position)

    def _side(self, relation: nodes.Relation, presence: tuple[str, ...]) -> Side:
        if isinstance(relation, nodes.TableReference) and not relation.columns:
            found = find_relation(self.environment, relation.schema, relation.name, relation.position)
            if isinstance(found, TableSchema) and found.derivation is None:
                return Side(relation.alias or found.name, found, presence)
        raise refusal(self.name, "nested-view", "join sources must be plain base tables", self.position)


_OPTIONAL = {nodes.JoinKind.LEFT: nodes.Side.RIGHT, nodes.JoinKind.RIGHT: nodes.Side.LEFT}


def _equal(left: str, right: str, column: str) -> nodes.Expression:
    return nodes.BinaryOperation(
        nodes.BinaryOperator.EQUAL,
        nodes.ColumnReference(column, left),
        nodes.ColumnReference(column, right),
    )


def _side_of(sides: Sequence[Side], node: nodes.ColumnReference) -> int | None:
    for index, side in enumerate(sides):
        if node.table is not None and fold(node.table) != fold(side.name):
            continue
        if side.table.column_index(node.column) is not None:
            return index
    return None


def _output(sides: Sequence[Side], flags: dict[str, int], name: str, item: nodes.ResultColumn) -> JoinOutput:
    expression = item.expression
    if isinstance(expression, nodes.ColumnReference) and expression.table is None:
        flag = flags.get(fold(expression.column))
        if flag is not None and _side_of(sides, expression) is None:
            return JoinOutput(name, expression, frozenset(), None, flag=flag)
    read = frozenset(
        side
        for part in traversal.walk(expression)
        if isinstance(part, nodes.ColumnReference) and (side := _side_of(sides, part)) is not None
    )
    if item.inverse:
        return JoinOutput(name, expression, read, None, puts=item.inverse)
    if len(read) != 1:
        return JoinOutput(name, expression, read, None)
    (only,) = read
    table = sides[only].table
    shown = shown_column(expression, table)
    if shown is not None:
        return JoinOutput(name, expression, read, shown)
    inverted = inverted_column(expression, table)
    return JoinOutput(name, expression, read, inverted, inverted=inverted is not None)


# --- which side ---------------------------------------------------------------------------------------------


def finds_one(view: JoinView, side: int) -> bool:
    """Whether the join fixes a whole key of a side by columns of others."""
    table = view.sides[side].table
    fixed: set[int] = set()
    for condition in view.conditions:
        for left, right in equalities(condition):
            for own, other in ((left, right), (right, left)):
                if _side_of(view.sides, own) == side and _side_of(view.sides, other) != side:
                    found = table.column_index(own.column)
                    fixed |= set() if found is None else {found}
    keys = [{part.column for part in table.primary_key.parts}]
    keys += [set(unique.columns) for unique in table.unique_constraints if not unique.from_index]
    return any(key and key <= fixed for key in keys) or any(
        {part.column for part in index.parts} <= fixed
        for index in table.indexes
        if index.unique and index.where is None
    )


def equalities(
    condition: nodes.Expression,
) -> Iterator[tuple[nodes.ColumnReference, nodes.ColumnReference]]:
    """The columns that a condition, or a part that it is a conjunction of, says to be equal."""
    if not isinstance(condition, nodes.BinaryOperation):
        return
    if condition.operator is nodes.BinaryOperator.AND:
        yield from equalities(condition.left)
        yield from equalities(condition.right)
    elif condition.operator in (nodes.BinaryOperator.EQUAL, nodes.BinaryOperator.DOUBLE_EQUAL):
        left, right = condition.left, condition.right
        if isinstance(left, nodes.ColumnReference) and isinstance(right, nodes.ColumnReference):
            yield left, right


def equated_columns(view: JoinView) -> Iterator[tuple[_SideColumn, _SideColumn]]:
    """The pairs of columns, each with its side, that the join makes equal."""
    for condition in view.conditions:
        for left, right in equalities(condition):
            sides = _side_of(view.sides, left), _side_of(view.sides, right)
            if sides[0] is not None and sides[1] is not None and sides[0] != sides[1]:
                yield (sides[0], left.column), (sides[1], right.column)


def references_between(view: JoinView, catalog: Catalog) -> list[tuple[int, int]]:
    """The foreign keys between sides, as child and parent.

    Of two that point at each other, only the one along which the view joins binds its rows: in a self-join
    each side might refer to the other, and the condition says which one does.
    """
    equated = {_unordered(left, right) for left, right in equated_columns(view)}
    references = list(_references(view, catalog))
    joined = {ends for ends, columns in references if columns and columns <= equated}
    return [ends for ends, _ in references if ends in joined or ends[::-1] not in joined]


def _unordered(one: _SideColumn, other: _SideColumn) -> frozenset[_SideColumn]:
    return frozenset((side, fold(column)) for side, column in (one, other))


def _references(
    view: JoinView, catalog: Catalog
) -> Iterator[tuple[tuple[int, int], set[frozenset[_SideColumn]]]]:
    """Each foreign key between sides: child and parent, and the pairs of columns that it makes equal."""
    for child, side in enumerate(view.sides):
        for key in side.table.foreign_keys:
            for parent, other in enumerate(view.sides):
                if parent == child or parent_of(catalog, side.table, key) is not other.table:
                    continue
                pairs = zip(key.columns, parent_key(other.table, key) or (), strict=False)
                yield (
                    (child, parent),
                    {
                        _unordered(
                            (child, side.table.columns[own].name), (parent, other.table.columns[its].name)
                        )
                        for own, its in pairs
                    },
                )


def parents_first(view: JoinView, sides: Iterable[int], catalog: Catalog) -> list[int]:
    """Sides in the order of writing: parents before children, what comes later in FROM before the rest."""
    waiting = sorted(sides, reverse=True)
    references = references_between(view, catalog)
    order: list[int] = []
    while waiting:
        free = [
            side for side in waiting if not any((side, other) in references for other in waiting)
        ] or waiting
        order.append(free[0])
        waiting.remove(free[0])
    return order


def unfilled_column(view: JoinView, supplied: Set[str]) -> tuple[Side, str] | None:
    """The first column that needs a value and gets none where the outputs ``supplied`` (folded) have one."""
    filled = {
        (side, fold(output.column))
        for output in view.outputs
        if output.column is not None and not output.inverted and fold(output.name) in supplied
        for side in output.sides
    }
    equated = {
        (_side_of(view.sides, part), fold(part.column))
        for condition in view.conditions
        for pair in equalities(condition)
        for part in pair
    }
    for index, side in enumerate(view.sides):
        for column in side.table.columns:
            optional = column.nullable or column.default is not None or column.generated is not None
            if not optional and (index, fold(column.name)) not in filled | equated:
                return side, column.name
    return None
