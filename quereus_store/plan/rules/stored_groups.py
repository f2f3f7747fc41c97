"""Read groups from a stored grouping: the same one, or a finer one whose groups are put together.

::

    select carrier, sum(minutes) from flight where day = 3 group by carrier
    AGGREGATE sum(minutes) by carrier  /  FILTER day = 3  /  SCAN main.per_day

where ``per_day`` stores ``sum(minutes)`` by carrier and day.  Conditions and keys may read whatever the
stored keys tell.  DISTINCT is a grouping by all its columns.

=========  ==============================  ===========================================
aggregate  of the same groups              of several stored groups
=========  ==============================  ===========================================
count      the stored one                  their sum
sum        the stored one                  their sum, where integers are added up
min, max   the stored one                  their minimum or maximum
avg        the stored one                  sum by count, where both are stored
others     the stored one, unless it       not at all
           depends on the order of rows
=========  ==============================  ===========================================

The answer has to be the very same, so keys whose equal values may look different (under a collation, or
1 and 1.0 in a column that takes both) are left alone, and so are sums of rounded sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from quereus_store.functions.aggregates.counting import COUNT_ROWS, COUNT_VALUES
from quereus_store.functions.aggregates.extremes import MAX, MIN
from quereus_store.functions.aggregates.sums import SUM
from quereus_store.functions.registry import AggregateFunction, ScalarFunction
from quereus_store.plan import nodes
from quereus_store.plan.analysis import is_deterministic_expression
from quereus_store.plan.expressions import (
    AggregateCall,
    BoundExpression,
    Call,
    Coalesce,
    Column,
    ColumnRef,
    Literal,
    reference,
)
from quereus_store.plan.optimizer import RuleContext, physical_cost
from quereus_store.plan.stored import (
    Block,
    Known,
    Remainder,
    StoredQuery,
    Unknown,
    block_of,
    cheapest,
    column_of,
    in_stored,
    narrowed,
    nothing_stored,
    order_matters,
    reads_much,
    remainder,
    scan_of,
)
from quereus_store.types import BLOB, BOOLEAN, DATE, DATETIME, INTEGER, REAL, TEXT, TIME, TIMESPAN
from quereus_store.types.collations import honours_collation

_PLAIN = frozenset({INTEGER, TEXT, BLOB, BOOLEAN, DATE, TIME, DATETIME, TIMESPAN})
"""Types of which equal values are the same value."""

_COUNTS = (COUNT_ROWS, COUNT_VALUES)
_EXTREMES = (MIN, MAX)
_ZERO = Literal(INTEGER, False, None, 0)
_Over = Callable[[AggregateCall], ColumnRef]
"""Adds an aggregate to the grouping that puts stored groups together, and refers to it."""


def use_stored_groups(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    """Replace groupings by stored ones."""
    if context.stored is nothing_stored or not reads_much(plan, context.estimates.table_rows):
        return plan
    return _visit(plan, context)


def _visit(plan: nodes.PlanNode, context: RuleContext) -> nodes.PlanNode:
    grouping = _as_grouping(plan)
    if grouping is not None:
        found = _replaced(grouping, context)
        if found is not None:
            return found
    if order_matters(plan):
        return plan
    return nodes.map_inputs(plan, lambda child: _visit(child, context))


def _as_grouping(plan: nodes.PlanNode) -> nodes.Aggregate | None:
    """A grouping, or DISTINCT as one by all columns."""
    if isinstance(plan, nodes.Distinct):
        keys = tuple(map(reference, plan.input.columns))
        return nodes.Aggregate(plan.columns, plan.input, keys, (), plan.using)
    return plan if isinstance(plan, nodes.Aggregate) else None


def _replaced(plan: nodes.Aggregate, context: RuleContext) -> nodes.PlanNode | None:
    if plan.sets is not None or not all(map(_is_plain, plan.keys, plan.using)):
        return None
    block = block_of(plan.input)
    if block is None:
        return None
    found = []
    for stored in context.stored(block.tables):
        other = _from_stored(plan, block, stored, context)
        if other is not None:
            found.append(other)
    return cheapest(plan, found, lambda way: physical_cost(way, context))


def _is_plain(key: BoundExpression, using: str) -> bool:
    return key.type in _PLAIN and (using == "BINARY" or not honours_collation(key.type))


def _from_stored(
    plan: nodes.Aggregate, block: Block, stored: StoredQuery, context: RuleContext
) -> nodes.PlanNode | None:
    grouping = _stored_grouping(stored)
    if grouping is None or not all(map(_is_plain, grouping.node.keys, grouping.node.using)):
        return None
    inner = block_of(grouping.node.input)
    rest = None if inner is None else remainder(block, inner)
    if rest is None:
        return None
    scan = scan_of(stored.table, context.number)
    try:
        return _Answer(plan, block, grouping, rest, scan, context).plan()
    except Unknown:
        return None


@dataclass(frozen=True, slots=True)
class _Grouping:
    """A stored grouping; ``places`` says where its columns are stored."""

    node: nodes.Aggregate
    places: dict[int, int]


def _stored_grouping(stored: StoredQuery) -> _Grouping | None:
    """A stored plan as a grouping with nothing over it but a choice of columns."""
    plan = stored.plan
    places = {column.id: place for place, column in reversed(list(enumerate(plan.columns)))}
    while isinstance(plan, nodes.Project | nodes.Sort):
        if isinstance(plan, nodes.Project):
            below: dict[int, int] = {}
            for column, expression in zip(plan.columns, plan.expressions, strict=True):
                if column.id in places and isinstance(expression, ColumnRef):
                    below.setdefault(expression.id, places[column.id])
            places = below
        plan = plan.input
    node = _as_grouping(plan)
    return None if node is None or node.sets is not None else _Grouping(node, places)


class _Answer:
    """Writes the plan that answers a grouping from a stored one; every step may raise Unknown."""

    def __init__(
        self,
        plan: nodes.Aggregate,
        block: Block,
        grouping: _Grouping,
        rest: Remainder,
        scan: nodes.TableScan,
        context: RuleContext,
    ) -> None:
        self._plan = plan
        self._grouping = grouping
        self._rest = rest
        self._scan = scan
        self._context = context
        self._keys = list(map(block.expanded, plan.keys))
        self._calls = [_expanded(call, block) for call in plan.aggregates]
        node = grouping.node
        self._stored_keys = list(map(rest.translated, node.keys))
        self._stored_calls: list[tuple[AggregateCall, int]] = []
        for call, column in zip(node.aggregates, node.columns[len(node.keys) :], strict=True):
            place = grouping.places.get(column.id)
            translated = rest.translated(call)
            if place is not None and isinstance(translated, AggregateCall):
                self._stored_calls.append((translated, place))
        self._known: Known = [
            (key, column_of(scan, grouping.places[column.id]))
            for key, column in zip(self._stored_keys, node.columns, strict=False)
            if column.id in grouping.places
        ]

    def plan(self) -> nodes.PlanNode:
        """The whole: stored rows, filtered, put together where need be."""
        if self._keys and not self._stored_keys:
            raise Unknown
        own = self._rest.own
        rows = narrowed(self._scan, self._rest, self._known)
        keys = [in_stored(key, self._known, own) for key in self._keys]
        if all(key in self._keys for key in self._stored_keys):
            values = [self._stored(call) for call in self._calls]
            return nodes.Project(self._plan.columns, rows, (*keys, *values))
        return self._together(rows, keys)

    # -- the same groups ---------------------------------------------------------

    def _stored(self, call: AggregateCall) -> BoundExpression:
        if call.function.ordered or not is_deterministic_expression(call):
            raise Unknown
        if call.function in _EXTREMES or call.distinct:
            _check_extreme(call)
        found = self._find(call)
        if found is None:
            raise Unknown
        return _typed(found, call)

    def _find(self, call: AggregateCall) -> ColumnRef | None:
        """The stored column of an aggregate."""
        for each, place in self._stored_calls:
            if each == call or (_counts_all(each) and _counts_all(call) and each.filter == call.filter):
                return column_of(self._scan, place)
        return None

    # -- several groups ----------------------------------------------------------

    def _together(self, rows: nodes.PlanNode, keys: Sequence[BoundExpression]) -> nodes.PlanNode:
        plan = self._plan
        width = len(plan.keys)
        columns = list(plan.columns[:width])
        calls: list[AggregateCall] = []

        def over(call: AggregateCall) -> ColumnRef:
            column = Column(self._context.number(), call.function.name, call.type, call.nullable)
            columns.append(column)
            calls.append(call)
            return ColumnRef(call.type, call.nullable, None, column.id, column.name)

        values = [self._merged(call, over) for call in self._calls]
        grouped = nodes.Aggregate(tuple(columns), rows, tuple(keys), tuple(calls), plan.using)
        passed = [reference(column) for column in columns[:width]]
        return nodes.Project(plan.columns, grouped, (*passed, *values))

    def _merged(self, call: AggregateCall, over: _Over) -> BoundExpression:
        if call.distinct or call.order or not is_deterministic_expression(call):
            raise Unknown
        if call.function in _COUNTS:
            return self._sum_of_counts(call, over)
        if call.function == SUM:
            if call.arguments[0].type is not INTEGER:
                raise Unknown
            return over(self._merging(SUM, call))
        if call.function in _EXTREMES:
            _check_extreme(call)
            return over(self._merging(call.function, call))
        return self._average(call, over)

    def _merging(self, function: AggregateFunction, call: AggregateCall) -> AggregateCall:
        """An aggregate over the stored values of a call."""
        found = self._find(call)
        if found is None:
            raise Unknown
        return replace(call, function=function, arguments=(_typed(found, call),), filter=None, nullable=True)

    def _sum_of_counts(self, call: AggregateCall, over: _Over) -> BoundExpression:
        total = over(self._merging(SUM, call))
        return Coalesce(call.type, False, call.collation, (total, _ZERO))

    def _average(self, call: AggregateCall, over: _Over) -> BoundExpression:
        algebra = call.function.algebra
        if call.function.name != "avg" or algebra is None or algebra.decompose is None:
            raise Unknown
        if call.arguments[0].type is not INTEGER:
            raise Unknown
        total = self._like(call, SUM)
        count = self._like(call, COUNT_VALUES)
        parts = (over(self._merging(SUM, total)), self._sum_of_counts(count, over))
        function = ScalarFunction("avg", algebra.decompose.combine, 2, 2, call.type, null_propagates=False)
        return Call(call.type, True, None, function, parts)

    def _like(self, call: AggregateCall, function: AggregateFunction) -> AggregateCall:
        """The stored call of another function over the same argument and filter."""
        for each, _ in self._stored_calls:
            same = each.arguments == call.arguments and each.filter == call.filter and not each.distinct
            if each.function == function and same:
                return each
            never_null = function == COUNT_VALUES and not call.arguments[0].nullable
            if never_null and _counts_all(each) and each.filter == call.filter:
                return each
        raise Unknown


def _expanded(call: AggregateCall, block: Block) -> AggregateCall:
    made = block.expanded(call)
    assert isinstance(made, AggregateCall)
    return made


def _counts_all(call: AggregateCall) -> bool:
    """Whether a call counts all rows that its filter lets through."""
    if call.distinct:
        return False
    return call.function == COUNT_ROWS or (call.function == COUNT_VALUES and not call.arguments[0].nullable)


def _check_extreme(call: AggregateCall) -> None:
    """Equal values have to be the same value; raises Unknown."""
    for argument in call.arguments:
        if argument.type is not REAL and not _is_plain(argument, call.using):
            raise Unknown


def _typed(column: ColumnRef, like: BoundExpression) -> ColumnRef:
    return replace(column, type=like.type, nullable=like.nullable, collation=None)
