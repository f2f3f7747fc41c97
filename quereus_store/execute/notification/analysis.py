"""The change scope of a statement: what its bound plan says of each table that it reads.

The conditions that rows of a table must meet to count are carried down the plan to the table's scan:
through filters, projections and joins, not through groupings, limits and set operations.  Where they pin
every column of the primary key to constants or parameters, only these rows matter.  Below a grouping
by a key of the table, changes are told apart by group.  Everything else depends on the whole table.

A maintained table is read through: what matters are the tables that its body reads, in full.

Chapter: views-and-maintained-tables, section 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.notification.scopes import (
    ChangeScope,
    Columns,
    Full,
    Groups,
    Rows,
    Source,
    TableScope,
    UnboundValue,
    Watch,
)
from quereus_store.plan import nodes as plans
from quereus_store.plan.binder import BindContext, bind_mutation, bind_query
from quereus_store.plan.conditions import column_comparisons, conjuncts
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Call,
    Cast,
    ColumnRef,
    Literal,
    Parameter,
    subplans,
    walk,
)
from quereus_store.plan.mutations import MutationPlan
from quereus_store.schema.manager import DEFAULT_PATH, home_path
from quereus_store.schema.objects import TableSchema, fold
from quereus_store.sql import nodes
from quereus_store.sql.traversal import walk as walk_tree
from quereus_store.types import LogicalType, cast
from quereus_store.types.collations import honours_collation

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import ReadView

_RANDOM = frozenset({"random", "randomblob"})
_BUILTIN_TIME = frozenset(
    {
        "current_date",
        "current_time",
        "current_timestamp",
        "date",
        "datetime",
        "julianday",
        "now",
        "strftime",
        "time",
        "timestamp",
        "unixepoch",
    }
)
_Conditions = tuple[BoundExpression, ...]


def change_scope(session: Session, view: ReadView, statement: nodes.Statement) -> ChangeScope:
    """What a query, or a row change with RETURNING, depends on; raises MISUSE for other statements."""
    if not isinstance(statement, nodes.Query | nodes.DataModification):
        raise sql_error(
            StatusCode.MISUSE, "only a query or a row change has a change scope", statement.position
        )
    context = session.bind_context(view, {})
    reader = _Reader(context)
    if isinstance(statement, nodes.DataModification):
        if not statement.returning:
            return ChangeScope()
        reader.read_mutation(bind_mutation(context, statement))
    else:
        reader.read(bind_query(context, statement))
    return reader.scope(statement)


class _Reader:
    """Collects watches and other sources from plans that were bound in one context."""

    def __init__(self, context: BindContext) -> None:
        self._context = context
        self._found: list[tuple[plans.TableScan, TableScope]] = []
        self._read: set[int] = set()
        self._written: list[TableSchema] = []
        self._sources: set[Source] = set()
        self._parameters: dict[int, Parameter] = {}
        self._pinning: set[int] = set()

    # -- reading a plan ----------------------------------------------------------------

    def read(self, plan: plans.PlanNode) -> None:
        """Take in a plan with the plans of its subqueries."""
        self._note_expressions(plan)
        self._descend(plan, (), None)

    def read_mutation(self, plan: Any) -> None:
        """Take in a row change: its table, and what its rows come from."""
        for part in getattr(plan, "parts", (plan,)):
            if isinstance(part, MutationPlan):
                self._written.append(part.table)
                for table in part.common_tables:
                    self.read(table.plan)
                self.read(part.source)

    def _note_expressions(self, plan: plans.PlanNode) -> None:
        for node in plans.walk_plan(plan):
            if isinstance(node, plans.TableFunctionScan) and not node.function.deterministic:
                self._sources.add(_source_of(node.function.name))
            if isinstance(node, plans.MutationScan):
                self.read_mutation(node.mutation)
            for expression in plans.expressions(node):
                self._note(expression)

    def _note(self, expression: BoundExpression) -> None:
        for part in walk(expression):
            if isinstance(part, ColumnRef):
                self._read.add(part.id)
            elif isinstance(part, Parameter):
                self._parameters[id(part)] = part
            elif isinstance(part, Call | AggregateCall) and not part.function.deterministic:
                self._sources.add(_source_of(part.function.name))
        for plan in subplans(expression):
            self.read(plan)

    def _descend(
        self, plan: plans.PlanNode, conditions: _Conditions, grouping: plans.Aggregate | None
    ) -> None:
        if isinstance(plan, plans.TableScan):
            self._found.append((plan, self._scope_of(plan, conditions, grouping)))
        elif isinstance(plan, plans.Filter):
            self._descend(plan.input, (*conditions, *conjuncts(plan.predicate)), grouping)
        elif isinstance(plan, plans.Project):
            outputs = zip((column.id for column in plan.columns), plan.expressions, strict=True)
            below = dict(outputs)
            carried = tuple([plans.substitute(condition, below) for condition in conditions])
            self._descend(plan.input, carried, grouping)
        elif isinstance(plan, plans.Join):
            self._descend_join(plan, conditions, grouping)
        elif isinstance(plan, plans.Aggregate):
            self._descend(plan.input, (), plan if plan.sets is None else None)
        elif isinstance(plan, plans.Sort | plans.Distinct):
            self._descend(plan.input, conditions, grouping)
        else:
            for below_it in plans.inputs(plan):
                self._descend(below_it, (), None)

    def _descend_join(
        self, plan: plans.Join, conditions: _Conditions, grouping: plans.Aggregate | None
    ) -> None:
        on = tuple(conjuncts(plan.condition))
        kinds = plans.JoinKind
        # A condition of an outer join says nothing about the rows that are kept without a match.
        left = on if plan.kind in (kinds.INNER, kinds.SEMI, kinds.RIGHT) else ()
        right = on if plan.kind is not kinds.FULL and plan.kind is not kinds.RIGHT else ()
        self._descend(plan.left, (*conditions, *left), grouping)
        self._descend(plan.right, (*conditions, *right), grouping)

    # -- one table ---------------------------------------------------------------------

    def _scope_of(
        self, scan: plans.TableScan, conditions: _Conditions, grouping: plans.Aggregate | None
    ) -> TableScope:
        table = scan.table
        places = {column.id: place for column, place in zip(scan.columns, scan.positions, strict=True)}
        pinned = self._pinned(table, places, conditions)
        if pinned is not None:
            return pinned
        if grouping is not None:
            grouped = {
                (places[key.id], using)
                for key, using in zip(grouping.keys, grouping.using, strict=False)
                if isinstance(key, ColumnRef) and key.id in places
            }
            for positions in _unique_keys(table, grouped):
                return Groups(_names(table, positions))
        return Full()

    def _pinned(self, table: TableSchema, places: dict[int, int], conditions: _Conditions) -> Rows | None:
        """The one key that conditions leave; None where they do not pin every column of it."""
        parts = table.primary_key.parts
        values: dict[int, Any] = {}
        pinning: list[Parameter] = []
        for condition in conditions:
            for comparison in column_comparisons(condition, frozenset(places)):
                place = places[comparison.column.id]
                part = next((part for part in parts if part.column == place), None)
                constant = _constant(comparison.value, table.columns[place].type)
                if comparison.operator != "=" or part is None or constant is None or place in values:
                    continue
                if comparison.using != part.collation and honours_collation(table.columns[place].type):
                    continue
                if isinstance(constant, Parameter):
                    pinning.append(constant)
                    values[place] = _unbound(constant)
                else:
                    values[place] = constant[0]
        if not parts or len(values) < len(parts):
            return None
        self._pinning.update(map(id, pinning))
        row = tuple([values[part.column] for part in parts])
        return Rows(_names(table, [part.column for part in parts]), (row,))

    # -- the whole ---------------------------------------------------------------------

    def scope(self, statement: nodes.Statement) -> ChangeScope:
        """The change scope of all that was read."""
        starred = _starred(statement, self._context)
        watches: list[Watch] = []
        for scan, scope in self._found:
            if scan.table.derivation is not None:
                watches += self._sources_of(scan.table)
            else:
                watches.append(
                    Watch(fold(scan.table.schema), fold(scan.table.name), self._columns(scan, starred), scope)
                )
        watches += [Watch(fold(table.schema), fold(table.name)) for table in self._written]
        for number, parameter in self._parameters.items():
            if number not in self._pinning:
                slot = _unbound(parameter).parameter
                self._sources.add(Source("parameter", index=slot))
        return ChangeScope.of(watches, self._sources)

    def _sources_of(self, table: TableSchema) -> list[Watch]:
        """What a maintained table stands for; the table itself where its body cannot be bound any more."""
        assert table.derivation is not None
        path = home_path(self._context.catalog, table.schema, DEFAULT_PATH)
        context = replace(self._context, schema_path=path)
        body = table.derivation.query
        try:
            plan = bind_query(context, body)
        except Error:
            return [Watch(fold(table.schema), fold(table.name))]
        reader = _Reader(context)
        reader._note_expressions(plan)
        starred = _starred(body, context)
        return [
            Watch(fold(scan.table.schema), fold(scan.table.name), reader._columns(scan, starred))
            for scan in _scans(plan)
        ]

    def _columns(self, scan: plans.TableScan, starred: frozenset[str]) -> Columns:
        if fold(scan.table.name) in starred:
            return "all"
        read = {
            fold(scan.table.columns[place].name)
            for column, place in zip(scan.columns, scan.positions, strict=True)
            if column.id in self._read
        }
        return tuple(sorted(read)) or "all"


def _scans(plan: plans.PlanNode) -> Iterator[plans.TableScan]:
    """The table scans of a plan, those in subqueries too."""
    for node in plans.walk_plan(plan):
        if isinstance(node, plans.TableScan):
            yield node
        for expression in plans.expressions(node):
            for below in subplans(expression):
                yield from _scans(below)


def _constant(value: BoundExpression, column: LogicalType) -> tuple[Any] | Parameter | None:
    """A literal's value as a tuple of one, or a parameter, as it is or cast to the column's type."""
    if isinstance(value, Literal):
        return (value.value,)
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Cast):
        return None
    operand = _constant(value.operand, column)
    if isinstance(operand, tuple):
        return (cast(operand[0], value.type),)
    # Only such a cast is made good for when the watch begins.
    return operand if isinstance(value.operand, Parameter) and value.type is column else None


def _unbound(parameter: Parameter) -> UnboundValue:
    slot = parameter.slot
    number = slot if isinstance(slot, str) else slot + 1
    return UnboundValue(number, parameter.type.name, parameter.nullable)


def _names(table: TableSchema, positions: Iterable[int]) -> tuple[str, ...]:
    return tuple([fold(table.columns[position].name) for position in positions])


def _unique_keys(table: TableSchema, grouped: set[tuple[int, str]]) -> Iterator[Sequence[int]]:
    """The keys of a table, without NULLs, that grouping columns contain; the shortest first."""
    keys: list[list[tuple[int, str]]] = []
    if table.primary_key.parts:
        keys.append([(part.column, part.collation) for part in table.primary_key.parts])
    for constraint in table.unique_constraints:
        index = table.index(constraint.index)
        if index is None or index.where is None:
            keys.append([(column, table.columns[column].collation) for column in constraint.columns])
    for key in sorted(keys, key=len):
        if grouped.issuperset(key) and not any(table.columns[column].nullable for column, _ in key):
            yield [column for column, _ in key]


def _source_of(function: str) -> Source:
    name = fold(function)
    if name in _RANDOM:
        return Source("random")
    if name in _BUILTIN_TIME:
        return Source("time")
    return Source("volatileUdf", name=name)


def _starred(statement: nodes.Node, context: BindContext) -> frozenset[str]:
    """The folded names of tables that some ``*`` of a statement, or of a view that it reads, shows whole."""
    found: set[str] = set()
    for tree in (statement, *(view.query for view in context.references.views.values())):
        for node in walk_tree(tree):
            if not isinstance(node, nodes.Select) or node.source is None:
                continue
            stars = [item for item in node.items if isinstance(item, nodes.ResultStar)]
            for relation in walk_tree(node.source) if stars else ():
                if isinstance(relation, nodes.TableReference) and any(
                    star.table is None or fold(star.table) == fold(relation.alias or relation.name)
                    for star in stars
                ):
                    found.add(fold(relation.name))
    return frozenset(found)
