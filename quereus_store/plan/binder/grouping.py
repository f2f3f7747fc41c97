"""Grouping: keys, aggregates, and what may be read afterwards (queries, section 8).

The keys and aggregate arguments see the rows of FROM.  Everything after grouping
sees a :class:`GroupedScope`: a name that is a key means the key's column, any
other name of the FROM clause is an error; an expression that is written like a
key *is* that key.  A key that is a bare column keeps the column's number, unless
grouping sets may make it NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.functions.aggregates.indicators import GROUPING, indicator
from quereus_store.functions.registry import AggregateFunction
from quereus_store.plan.binder.calls import bind_aggregate, collation_name
from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.scopes import FromScope, KeyedScope, Scope, ambiguous_column, column_text
from quereus_store.plan.binder.select_list import Item
from quereus_store.plan.binder.syntax import ordinal_of, same_expression
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Column,
    ColumnRef,
    Literal,
    Places,
    reference,
)
from quereus_store.plan.nodes import Aggregate, PlanNode
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes
from quereus_store.types import INTEGER
from quereus_store.types.values import int_to_text

GroupElement = nodes.Expression | nodes.GroupingSet | nodes.Rollup | nodes.Cube | nodes.GroupingSets


class Grouping:
    """The grouping of one SELECT: its keys, and the aggregates that its clauses turn out to need."""

    __slots__ = (
        "_calls",
        "aggregate_columns",
        "by_input",
        "environment",
        "expression_keys",
        "input",
        "key_columns",
        "keys",
        "sets",
    )

    def __init__(self, environment: Environment, scope: FromScope) -> None:
        self.environment = environment
        self.input = scope
        self.keys: list[BoundExpression] = []
        self.key_columns: list[Column] = []
        self.by_input: dict[int, Column] = {}
        self.expression_keys: list[tuple[nodes.Expression, Column]] = []
        self.sets: tuple[tuple[int, ...], ...] | None = None
        self._calls = Places()
        self.aggregate_columns: list[Column] = []

    @property
    def aggregates(self) -> list[AggregateCall]:
        """The calls, each once."""
        return self._calls.items

    def add(self, call: AggregateCall) -> BoundExpression:
        """The column of an aggregate; the same call twice is one."""
        place = self._calls.of(call)
        if place == len(self.aggregate_columns):
            self.aggregate_columns.append(
                self.environment.column(call.function.name, call.type, call.nullable)
            )
        return reference(self.aggregate_columns[place])

    def indicator(self, node: nodes.FunctionCall) -> BoundExpression:
        """``grouping(key, ...)``; raises ERROR for an argument that is no key."""
        if node.distinct or node.filter is not None or node.order_by or not node.arguments:
            raise sql_error(StatusCode.ERROR, "grouping() takes nothing but keys", node.position)
        arguments = ExpressionBinder(self.environment, self.input).bind_all(node.arguments)
        positions = []
        for argument, written in zip(arguments, node.arguments, strict=True):
            if argument not in self.keys:
                raise sql_error(
                    StatusCode.ERROR,
                    "Arguments of grouping() must be expressions of the GROUP BY clause",
                    written.position,
                )
            positions.append(self.keys.index(argument))
        if self.sets is None:
            return Literal(INTEGER, False, None, 0)
        return self.add(AggregateCall(INTEGER, False, None, indicator(positions), arguments))

    def produces(self, column: int) -> bool:
        """Whether a number is that of an aggregate's column."""
        return any(column == own.id for own in self.aggregate_columns)

    def argument_binder(self, binder: ExpressionBinder) -> ExpressionBinder:
        """The binder for an aggregate's arguments: over the rows of FROM."""
        return ExpressionBinder(self.environment, self.input)

    def plan(self, source: PlanNode) -> PlanNode:
        """The grouping over its input."""
        return Aggregate(
            (*self.key_columns, *self.aggregate_columns),
            source,
            tuple(self.keys),
            tuple(self.aggregates),
            tuple(map(collation_name, self.keys)),
            self.sets,
        )

    # --- keys ---

    def add_elements(self, elements: Sequence[GroupElement], items: Sequence[Item]) -> None:
        """Bind the elements of GROUP BY; stars, ordinals and aliases refer to ``items``."""
        alternatives = [self._element(element, items) for element in elements]
        if any(isinstance(element, _SET_ELEMENTS) for element in elements):
            self.sets = tuple(
                [
                    tuple(dict.fromkeys(key for part in choice for key in part))
                    for choice in product(*alternatives)
                ]
            )
            self._renumber()

    def _element(self, element: GroupElement, items: Sequence[Item]) -> list[tuple[int, ...]]:
        """The alternatives of one element, each a tuple of key positions."""
        if isinstance(element, nodes.GroupingSet):
            return [self._set(element, items)]
        if isinstance(element, nodes.Rollup):
            parts = [self._set(part, items) for part in element.elements]
            return [sum(parts[:length], ()) for length in range(len(parts), -1, -1)]
        if isinstance(element, nodes.Cube):
            parts = [self._set(part, items) for part in element.elements]
            return [
                sum(chosen, ())
                for length in range(len(parts), -1, -1)
                for chosen in combinations(parts, length)
            ]
        if isinstance(element, nodes.GroupingSets):
            return [choice for part in element.elements for choice in self._element(part, items)]
        return [(self._key(element, items),)]

    def _set(self, element: nodes.GroupingSet, items: Sequence[Item]) -> tuple[int, ...]:
        return tuple([self._key(expression, items) for expression in element.expressions])

    def _key(self, node: nodes.Expression, items: Sequence[Item]) -> int:
        binder = ExpressionBinder(self.environment, self.input)
        written: nodes.Expression | None = node
        bound: BoundExpression | None = None
        position = ordinal_of(node)
        if position is not None:
            if not 1 <= position <= len(items):
                raise sql_error(
                    StatusCode.ERROR,
                    f"GROUP BY position {int_to_text(position)} is not in the SELECT list (1..{len(items)})",
                    node.position,
                )
            item = items[position - 1]
            written = item.node
            if item.column is not None:
                bound = reference(item.column)
        else:
            alias = self._alias(node, items)
            written = alias if alias is not None else node
        if bound is None and written is not None:
            bound = binder.bind(written)
        assert bound is not None
        return self._add_key(written, bound)

    def _alias(self, node: nodes.Expression, items: Sequence[Item]) -> nodes.Expression | None:
        """What a bare name means that is no column of FROM but a select alias."""
        if not isinstance(node, nodes.ColumnReference) or node.table is not None:
            return None
        folded = fold(node.column)
        named = [item for item in items if item.alias is not None and fold(item.alias) == folded]
        if not named or self.input.find_column(node) is not None:
            return None
        return named[0].node

    def _add_key(self, written: nodes.Expression | None, bound: BoundExpression) -> int:
        for index, known in enumerate(self.keys):
            if known == bound:
                return index
        bare = isinstance(bound, ColumnRef) and not isinstance(written, nodes.Collate)
        if bare and isinstance(bound, ColumnRef) and self._is_input(bound.id):
            column = Column(bound.id, bound.name, bound.type, bound.nullable, bound.collation)
            self.by_input[bound.id] = column
        else:
            name = bound.name if isinstance(bound, ColumnRef) else "key"
            column = self.environment.column(name, bound.type, bound.nullable, bound.collation)
            if written is not None:
                self.expression_keys.append((written, column))
        self.keys.append(bound)
        self.key_columns.append(column)
        return len(self.keys) - 1

    def _is_input(self, column: int) -> bool:
        return any(column == own.id for source in self.input.sources for own in source.columns) or any(
            column == own.id for own in self.input.columns
        )

    def _renumber(self) -> None:
        """Give all key columns numbers of their own, since grouping sets make them NULL in places."""
        number = self.environment.context.number
        fresh = {column.id: replace(column, id=number(), nullable=True) for column in self.key_columns}
        self.by_input = {key: fresh[column.id] for key, column in self.by_input.items()}
        self.expression_keys = [(node, fresh[column.id]) for node, column in self.expression_keys]
        self.key_columns = [fresh[column.id] for column in self.key_columns]


_SET_ELEMENTS = (nodes.GroupingSet, nodes.Rollup, nodes.Cube, nodes.GroupingSets)


class GroupedScope(KeyedScope):
    """The names of FROM after grouping: keys, and errors for the rest."""

    __slots__ = ("grouping", "parent", "refusal")

    def __init__(
        self, grouping: Grouping, refusal: Callable[[nodes.ColumnReference, Grouping], Error]
    ) -> None:
        self.grouping = grouping
        self.parent: Scope | None = grouping.input.parent
        self.refusal = refusal

    @property
    def has_expression_keys(self) -> bool:
        """Whether :meth:`match` can find anything."""
        return bool(self.grouping.expression_keys)

    def key(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """The key that a name means, None if it means no key."""
        grouping = self.grouping
        try:
            column = grouping.input.find_column(name)
        except Error:
            column = self._only_key(name)
            if column is None:
                raise
        if column is None:
            return None
        key = grouping.by_input.get(column.id)
        return None if key is None else reference(key)

    def find(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """See :class:`Scope`."""
        found = self.key(name)
        if found is None and self.grouping.input.find_column(name) is not None:
            raise self.refusal(name, self.grouping)
        return found

    def _only_key(self, name: nodes.ColumnReference) -> Column | None:
        """The one key among several columns of a name."""
        folded = fold(name.column)
        if name.table is not None:
            return None
        keys = [
            column
            for column in self.grouping.input.columns
            if fold(column.name) == folded and column.id in self.grouping.by_input
        ]
        if len(keys) > 1:
            raise ambiguous_column(name)
        return keys[0] if keys else None

    def match(self, node: nodes.Expression, scope: Scope | None) -> BoundExpression | None:
        """The expression key that a node is written like, seen from ``scope``."""
        for written, column in self.grouping.expression_keys:
            if type(written) is type(node) and same_expression(
                written, node, self._own_meaning, lambda name: self._meaning(name, scope)
            ):
                return reference(column)
        return None

    def aggregate(self, function: AggregateFunction, node: nodes.FunctionCall) -> BoundExpression:
        """An aggregate over the level's groups, called in a query inside it."""
        grouping = self.grouping
        if function is GROUPING:
            return grouping.indicator(node)
        binder = ExpressionBinder(grouping.environment, grouping.input)
        return grouping.add(bind_aggregate(binder, function, node))

    def _own_meaning(self, name: nodes.ColumnReference) -> int | None:
        """The number of the input column that a name means at this level."""
        try:
            column = self.grouping.input.find_column(name)
        except Error:
            return None
        return None if column is None else column.id

    def _meaning(self, name: nodes.ColumnReference, scope: Scope | None) -> int | None:
        """The number of the input column that a name means, seen from a scope inside this one."""
        while scope is not None and scope is not self:
            if isinstance(scope, GroupedScope):
                if scope._own_meaning(name) is not None:
                    return None
            elif not isinstance(scope, GroupedAliasScope) and (found := scope.find(name)) is not None:
                return found.id if isinstance(found, ColumnRef) else None
            scope = scope.parent
        return self._own_meaning(name)


def refuse_in_select(name: nodes.ColumnReference, grouping: Grouping) -> Error:
    """The error for a column that is no key, in the select list and ORDER BY."""
    if not grouping.keys and grouping.sets is None:
        return sql_error(
            StatusCode.ERROR,
            "Cannot mix aggregate and non-aggregate columns in SELECT list without GROUP BY",
            name.position,
        )
    return sql_error(
        StatusCode.ERROR,
        f"Column '{column_text(name)}' must appear in the GROUP BY clause"
        " or be used in an aggregate function",
        name.position,
    )


def refuse_in_having(name: nodes.ColumnReference, grouping: Grouping) -> Error:
    """The error for a column that is no key, in HAVING."""
    return sql_error(
        StatusCode.ERROR,
        f"HAVING references non-grouped column '{column_text(name)}';"
        " HAVING may only reference GROUP BY columns or aggregate expressions",
        name.position,
    )


class GroupedAliasScope(KeyedScope):
    """Names in HAVING and OVER of a grouped query: keys, then select aliases, then errors for other columns.

    An alias is bound when it is met.  ``refusal`` gives the error for a column that is
    neither; inside subqueries it is always that of the select list.
    """

    __slots__ = ("items", "keys", "parent", "refusal")

    def __init__(
        self,
        keys: GroupedScope,
        items: Sequence[Item],
        refusal: Callable[[nodes.ColumnReference, Grouping], Error] = refuse_in_select,
    ) -> None:
        self.keys = keys
        self.items = items
        self.refusal = refusal
        self.parent: Scope | None = keys

    @property
    def has_expression_keys(self) -> bool:
        """Never: the level around it has them."""
        return False

    def aggregate(self, function: AggregateFunction, node: nodes.FunctionCall) -> BoundExpression:
        """See :class:`KeyedScope`."""
        return self.keys.aggregate(function, node)

    def inside_subquery(self) -> GroupedAliasScope:
        """The scope as a subquery in the clause sees it."""
        return GroupedAliasScope(self.keys, self.items)

    def find(self, name: nodes.ColumnReference) -> BoundExpression | None:
        """See :class:`Scope`."""
        grouping = self.keys.grouping
        found = self.keys.key(name)
        if found is None and name.table is None:
            found = self._alias(name)
        if found is None and grouping.input.find_column(name) is not None:
            raise self.refusal(name, grouping)
        return found

    def _alias(self, name: nodes.ColumnReference) -> BoundExpression | None:
        folded = fold(name.column)
        binder = ExpressionBinder(self.keys.grouping.environment, self.keys, self.keys.grouping)
        meanings: list[BoundExpression] = []
        for item in self.items:
            if item.alias is not None and item.node is not None and fold(item.alias) == folded:
                meaning = binder.bind(item.node)
                if meaning not in meanings:
                    meanings.append(meaning)
        if len(meanings) > 1:
            raise ambiguous_column(name)
        return meanings[0] if meanings else None
