"""How many rows a plan may give: coarse figures for comparing plans, not promises.

The number of rows of a table is the one of the moment.  What ANALYZE has found out about a
column (how many values it has, how many NULLs, their distribution) says what share of the
rows a condition lets through; without it a condition on a key is known to find one row, and
others get a usual share.

==========================  ===============================================================
condition                   share of the rows
==========================  ===============================================================
``column = value``          one of the column's values; next to nothing outside its range
``column < value``          by the histogram, or by the place between least and greatest
``column is null``          as counted
``column in (...)``         as many values
``column = column``         one of the values of the side that has more
==========================  ===============================================================
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import sqrt
from operator import ne
from typing import TYPE_CHECKING, Any

from quereus_store.errors import DatabaseError
from quereus_store.modules.access import ROWS_PER_VALUE
from quereus_store.modules.contract import AccessPlan, AccessRequest, ColumnConstraint
from quereus_store.plan import nodes
from quereus_store.plan.conditions import MIRRORED, conjuncts
from quereus_store.plan.expressions import (
    BoundExpression,
    ColumnRef,
    Comparison,
    Disjunction,
    Exists,
    InList,
    InSubquery,
    IsTest,
    Literal,
    Not,
    PatternMatch,
    Truth,
    reference,
)
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind
from quereus_store.records import record
from quereus_store.schema.objects import TableSchema
from quereus_store.types.sortkeys import order_key

if TYPE_CHECKING:
    from quereus_store.plan.optimizer import OptimizerServices

_DEFAULT = 1000.0
_TELLING = 100
"""So many of the first rows tell how many values a key's first column has."""
_FUNCTION_ROWS = 100.0
_EQUAL_SHARE = 0.1
_LIST_SHARE = 0.2
_PATTERN_SHARE = 0.1
_OTHER_SHARE = 0.3
_MATCHED_SHARE = 0.5


@record(frozen=True, slots=True)
class ColumnEstimate:
    """What is known of a table's column; ``distinct`` is a guess, or None, unless ANALYZE has ``counted``."""

    rows: float
    distinct: float | None = None
    nulls: float = 0.0
    unique: bool = False
    least: Any = None
    greatest: Any = None
    bounds: Sequence[Any] = ()
    order: Callable[[Any], Any] | None = None
    counted: bool = False

    @property
    def values(self) -> float | None:
        """How many values the column has, if that is known."""
        return self.rows if self.unique else self.distinct

    @property
    def present(self) -> float:
        """The share of rows that are not NULL."""
        return 1.0 - self.nulls

    def equal(self, value: BoundExpression | None = None) -> float | None:
        """The share of rows with one value."""
        if self.values is None:
            return None
        literal = value.value if isinstance(value, Literal) else None
        if literal is not None and self.least is not None and self._outside(literal):
            return 1.0 / max(1.0, self.rows)
        return self.present / max(1.0, self.values)

    def _outside(self, value: Any) -> bool:
        try:
            key = self._key(value)
            return bool(key < self._key(self.least) or key > self._key(self.greatest))
        except TypeError:
            return False

    def below(self, value: BoundExpression, inclusive: bool) -> float | None:
        """The share of rows with a smaller value (or the same)."""
        if not isinstance(value, Literal) or value.value is None or self.least is None:
            return None
        try:
            if self.bounds:
                side = bisect_right if inclusive else bisect_left
                passed = side(self.bounds, self._key(value.value), key=self._key)
                return self.present * passed / len(self.bounds)
            least, greatest, wanted = self.least, self.greatest, value.value
            if all(type(number) in (int, float) for number in (least, greatest, wanted)) and greatest > least:
                place = float((wanted - least) / (greatest - least))
                return self.present * min(1.0, max(0.0, place))
        except (TypeError, OverflowError):
            pass
        return None

    def _key(self, value: Any) -> Any:
        """Where a value stands in the column's order; TypeError for one that it cannot hold."""
        if self.order is None:
            return value
        try:
            return self.order(value)
        except (AttributeError, ValueError, DatabaseError) as error:
            raise TypeError("a value of another type") from error


class Estimator:
    """The estimates of one statement's plans: each node and column is looked at once."""

    def __init__(self, services: OptimizerServices) -> None:
        self._services = services
        self._rows: dict[int, tuple[nodes.PlanNode, float]] = {}
        self._places: dict[int, tuple[TableSchema, int]] = {}
        self._columns: dict[int, ColumnEstimate] = {}
        self._counts: dict[int, tuple[TableSchema, float]] = {}
        self._accesses: dict[Any, tuple[TableSchema, AccessPlan]] = {}

    def rows(self, plan: nodes.PlanNode) -> float:
        """About how many rows a plan gives; at least 1."""
        known = self._rows.get(id(plan))
        if known is not None:
            return known[1]
        estimate = _ESTIMATES.get(type(plan))
        found = max(1.0, estimate(plan, self)) if estimate else self._unknown(plan)
        self._rows[id(plan)] = (plan, found)
        return found

    def _unknown(self, plan: nodes.PlanNode) -> float:
        for child in nodes.inputs(plan):
            self.rows(child)
        return _DEFAULT

    def table_rows(self, table: TableSchema) -> float:
        """About how many rows a table has."""
        known = self._counts.get(id(table))
        if known is None:
            known = self._counts[id(table)] = (table, self._services.row_count(table))
        return known[1]

    def look_up(self, table: TableSchema, constraints: tuple[ColumnConstraint, ...]) -> AccessPlan:
        """How a table finds the rows for some equalities; asked once for the same ones."""
        key = (id(table), constraints)
        known = self._accesses.get(key)
        if known is None:
            found = self._services.plan_access(table, AccessRequest(constraints))
            known = self._accesses[key] = (table, found)
        return known[1]

    def scan(self, plan: nodes.TableScan | nodes.IndexAccess) -> None:
        """Learn which columns stand for which columns of a table."""
        for column, position in zip(plan.columns, plan.positions, strict=True):
            self._places[column.id] = (plan.table, position)

    def rename(self, columns: Sequence[Any], expressions: Sequence[BoundExpression]) -> None:
        """Learn which columns are only other names of known ones."""
        for column, expression in zip(columns, expressions, strict=False):
            if isinstance(expression, ColumnRef) and expression.id in self._places:
                self._places[column.id] = self._places[expression.id]

    def column(self, expression: BoundExpression) -> ColumnEstimate | None:
        """What is known of an expression that is a table's column."""
        if not isinstance(expression, ColumnRef):
            return None
        known = self._columns.get(expression.id)
        if known is None:
            place = self._places.get(expression.id)
            if place is None:
                return None
            known = self._columns[expression.id] = self._column(*place)
        return known

    def _column(self, table: TableSchema, position: int) -> ColumnEstimate:
        rows = self.table_rows(table)
        column = table.columns[position]
        unique = is_unique_column(table, position)
        record = self._services.statistics(table)
        figures = (record or {}).get("columnStats", {}).get(column.name.lower())
        if not record or not figures or not record.get("rowCount"):
            distinct = rows if unique else self._values(table, position, rows)
            return ColumnEstimate(rows, distinct, unique=unique)
        counted = float(record["rowCount"])
        distinct = float(figures["distinctCount"])
        if distinct > 0.5 * counted:
            # Nearly every row has a value of its own, those that came later too.
            distinct *= max(1.0, rows / counted)
        return ColumnEstimate(
            rows,
            max(1.0, min(distinct, rows)),
            figures["nullCount"] / counted,
            unique,
            figures.get("minValue"),
            figures.get("maxValue"),
            figures.get("histogram", ()),
            order_key(column.type, False, self._services.collation(column.collation)).function,
            counted=True,
        )

    def _values(self, table: TableSchema, position: int, rows: float) -> float | None:
        """How many values a column seems to have; for the first of a key the first rows of the table tell."""
        parts = table.primary_key.parts
        if parts and parts[0].column == position and rows > _TELLING:
            sample = [row[position] for row in self._services.first_rows(table)]
            runs = 1 + sum(map(ne, sample, sample[1:]))
            if len(sample) > _TELLING:
                return rows * runs / len(sample) if runs > 1 else min(sqrt(rows), rows / len(sample))
        return max(sqrt(rows), rows / ROWS_PER_VALUE) if leads_index(table, position) else None

    # -- conditions -------------------------------------------------------------------------

    def selectivity(self, predicate: BoundExpression | None) -> float:
        """The share of rows that a predicate lets through."""
        share = 1.0
        for conjunct in conjuncts(predicate):
            share *= self._share(conjunct)
        return share

    def _share(self, predicate: BoundExpression) -> float:
        share = _SHARES.get(type(predicate))
        return _OTHER_SHARE if share is None else min(1.0, max(0.0, share(predicate, self)))


def is_unique_column(table: TableSchema, position: int) -> bool:
    """Whether no two rows of a table can have the same value in a column."""
    parts = table.primary_key.parts
    if len(parts) == 1 and parts[0].column == position:
        return True
    return any(unique.columns == (position,) for unique in table.unique_constraints)


def leads_index(table: TableSchema, position: int) -> bool:
    """Whether a column is the first of the primary key or of an index over all rows."""
    parts = table.primary_key.parts
    if parts and parts[0].column == position:
        return True
    return any(index.where is None and index.parts[0].column == position for index in table.indexes)


# -- shares -------------------------------------------------------------------------------------


def _comparison(predicate: Comparison, estimates: Estimator) -> float:
    left, right = estimates.column(predicate.left), estimates.column(predicate.right)
    if predicate.operator in ("=", "is"):
        return _equality(predicate, left, right)
    if predicate.operator in ("!=", "is not"):
        return 1.0 - _equality(predicate, left, right)
    for column, operator, value in (
        (left, predicate.operator, predicate.right),
        (right, MIRRORED[predicate.operator], predicate.left),
    ):
        if column is None:
            continue
        below = column.below(value, operator in ("<=", ">"))
        if below is not None:
            return below if operator in ("<", "<=") else column.present - below
    return _OTHER_SHARE


def _equality(predicate: Comparison, left: ColumnEstimate | None, right: ColumnEstimate | None) -> float:
    if left is not None and right is not None:
        values = [side.values for side in (left, right) if side.values is not None]
        if values:
            return left.present * right.present / max(1.0, *values)
        return 1.0 / max(10.0, min(left.rows, right.rows))
    column, value = (left, predicate.right) if left is not None else (right, predicate.left)
    share = None if column is None else column.equal(value)
    return _EQUAL_SHARE if share is None else share


def _in_list(predicate: InList, estimates: Estimator) -> float:
    column = estimates.column(predicate.operand)
    share = None if column is None else column.equal()
    return _LIST_SHARE if share is None else share * len(predicate.items)


def _is_test(predicate: IsTest, estimates: Estimator) -> float:
    column = estimates.column(predicate.operand)
    if predicate.test is not Truth.NULL or column is None or column.distinct is None:
        return _OTHER_SHARE
    return column.present if predicate.negated else column.nulls


def _not(predicate: Not, estimates: Estimator) -> float:
    return 1.0 - estimates.selectivity(predicate.operand)


def _or(predicate: Disjunction, estimates: Estimator) -> float:
    none = 1.0
    for operand in predicate.operands:
        none *= 1.0 - estimates.selectivity(operand)
    return 1.0 - none


_SHARES: dict[type[BoundExpression], Callable[[Any, Estimator], float]] = {
    Comparison: _comparison,
    InList: _in_list,
    InSubquery: lambda predicate, estimates: _LIST_SHARE,
    Exists: lambda predicate, estimates: 0.5,
    IsTest: _is_test,
    Not: _not,
    PatternMatch: lambda predicate, estimates: _PATTERN_SHARE,
    Disjunction: _or,
}


# -- operators ----------------------------------------------------------------------------------


def _scan(plan: nodes.TableScan, estimates: Estimator) -> float:
    estimates.scan(plan)
    return estimates.table_rows(plan.table)


def _access(plan: nodes.IndexAccess, estimates: Estimator) -> float:
    estimates.scan(plan)
    return plan.access.rows


def _input(plan: Any, estimates: Estimator) -> float:
    return estimates.rows(plan.input)


def _project(plan: nodes.Project, estimates: Estimator) -> float:
    rows = estimates.rows(plan.input)
    estimates.rename(plan.columns, plan.expressions)
    return rows


def _filter(plan: nodes.Filter, estimates: Estimator) -> float:
    return estimates.rows(plan.input) * estimates.selectivity(plan.predicate)


def _distinct(plan: nodes.Distinct, estimates: Estimator) -> float:
    rows = estimates.rows(plan.input)
    columns = [reference(c) for c in plan.columns]
    return _groups(columns, rows, rows * 0.5, estimates)


def _groups(keys: Sequence[BoundExpression], rows: float, usual: float, estimates: Estimator) -> float:
    """How many combinations of values there are."""
    groups = 1.0
    for key in keys:
        column = estimates.column(key)
        if column is None or column.values is None:
            return usual
        groups *= column.values
    return min(rows, groups)


def _aggregate(plan: nodes.Aggregate, estimates: Estimator) -> float:
    rows = estimates.rows(plan.input)
    if not plan.keys:
        return 1.0
    estimates.rename(plan.columns, plan.keys)
    return _groups(plan.keys, rows, rows * 0.1, estimates) * max(1, len(plan.sets or ()))


def _join(plan: Any, estimates: Estimator) -> float:
    left, right = estimates.rows(plan.left), estimates.rows(plan.right)
    share = estimates.selectivity(plan.condition)
    if plan.kind in SEMI_JOINS:
        return left * _kept(plan.kind, right * share)
    return _joined(plan, left, right, share)


def _kept(kind: JoinKind, matches: float) -> float:
    """The share of rows that a semi- or anti-join keeps, for a number of matches for each.

    Only where matches are rare do they tell: some rows have many, and how many rows have none is unknown.
    """
    share = min(_MATCHED_SHARE, matches)
    return share if kind is JoinKind.SEMI else 1.0 - share


def _joined(plan: Any, left: float, right: float, share: float) -> float:
    rows = left * right * share
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        rows = max(rows, left)
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        rows = max(rows, right)
    return rows


def _keyed_join(plan: nodes.HashJoin | nodes.MergeJoin, estimates: Estimator) -> float:
    left, right = estimates.rows(plan.left), estimates.rows(plan.right)
    share = estimates.selectivity(plan.residual)
    for mine, theirs in zip(plan.left_keys, plan.right_keys, strict=True):
        share *= equal_share(mine, theirs, left, right, estimates)
    if plan.kind in SEMI_JOINS:
        return left * _kept(plan.kind, right * share)
    return _joined(plan, left, right, share)


def equal_share(
    left: BoundExpression, right: BoundExpression, left_rows: float, right_rows: float, estimates: Estimator
) -> float:
    """The share of pairs of rows that agree in an expression of each."""
    columns = [column for column in (estimates.column(left), estimates.column(right)) if column is not None]
    values = [column.values for column in columns if column.values is not None]
    return 1.0 / max(1.0, *values) if values else 1.0 / max(1.0, min(left_rows, right_rows))


def _index_join(plan: nodes.IndexJoin, estimates: Estimator) -> float:
    left = estimates.rows(plan.left)
    estimates.scan(plan.inner)
    matches = plan.inner.access.rows * estimates.selectivity(plan.residual)
    if plan.kind in SEMI_JOINS:
        return left * _kept(plan.kind, matches)
    found = left * matches
    return max(left, found) if plan.kind is JoinKind.LEFT else found


def _limit(plan: Any, estimates: Estimator) -> float:
    rows = estimates.rows(plan.input)
    if isinstance(plan.count, Literal) and isinstance(plan.count.value, int):
        return min(rows, float(plan.count.value))
    return rows


def _set_operation(plan: nodes.SetOperation, estimates: Estimator) -> float:
    return estimates.rows(plan.left) + estimates.rows(plan.right)


_ESTIMATES: dict[type[nodes.PlanNode], Callable[[Any, Estimator], float]] = {
    nodes.TableScan: _scan,
    nodes.IndexAccess: _access,
    nodes.Values: lambda plan, estimates: float(len(plan.rows)),
    nodes.ParameterRows: lambda plan, estimates: 1.0,
    nodes.GivenRows: lambda plan, estimates: plan.estimate,
    nodes.TableFunctionScan: lambda plan, estimates: _FUNCTION_ROWS,
    nodes.Filter: _filter,
    nodes.Project: _project,
    nodes.Sort: _input,
    nodes.Window: _input,
    nodes.Distinct: _distinct,
    nodes.Aggregate: _aggregate,
    nodes.Limit: _limit,
    nodes.SingleRow: lambda plan, estimates: min(1.0, estimates.rows(plan.input)),
    nodes.TopN: _limit,
    nodes.Join: _join,
    nodes.HashJoin: _keyed_join,
    nodes.MergeJoin: _keyed_join,
    nodes.IndexJoin: _index_join,
    nodes.SetOperation: _set_operation,
    nodes.With: lambda plan, estimates: estimates.rows(plan.body),
}
