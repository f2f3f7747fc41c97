"""The default access planner: the cheapest way into a table for a set of constraints and an order.

Every *way* (the primary key, and each index that may serve) is tried like this: constraints pin
its leading parts (``=``, IS NULL, and at most one IN), bounds on the part after them cut a range,
and the key's order is compared with the order that is asked for.  What comes out is a list of
:class:`AccessPlan`; the cheapest wins, counting what sorting would cost where the order is not
delivered.

==================  ===================================================  ================
way                 rows read                                            order
==================  ===================================================  ================
POINT, POINTS       all parts of the primary key pinned                  of one row
RANGE               some leading parts pinned, bounds on the next        the key's
RANGES              the same for each value of an IN, without bounds     none
RANGE, unpinned     the whole index, for its order                       the key's
SCAN                everything                                           the primary key's
==================  ===================================================  ================

A key part serves a comparison only if it compares text the way the query does.  In a key NULL is
the smallest value and a descending part reverses that too, so ``order by c desc``, which wants
NULLs first, is served only where ``c`` cannot be NULL or a constraint keeps NULL out.

Chapter: store-and-modules, section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import log2, sqrt

from quereus_store.modules.contract import (
    AccessKind,
    AccessPath,
    AccessPlan,
    AccessRequest,
    ColumnConstraint,
    ColumnOrder,
    Comparison,
)
from quereus_store.records import record
from quereus_store.schema.objects import IndexPart, IndexSchema, TableSchema, fold
from quereus_store.types.collations import honours_collation

DEFAULT_ROWS = 1000
MORE_EQUAL_FRACTION = 0.1
ROWS_PER_VALUE = 10.0
"""How many rows with one value of its first column an index is taken to have, where nothing is known."""
BOUND_FRACTION = 0.3
WINDOW_FRACTION = 0.15
PARTIAL_FRACTION = 0.3

_PINNING = frozenset((Comparison.EQUAL, Comparison.IS_NULL))
_LOWER = frozenset((Comparison.GREATER, Comparison.GREATER_OR_EQUAL))
_UPPER = frozenset((Comparison.LESS, Comparison.LESS_OR_EQUAL))


@record(frozen=True, slots=True)
class Costs:
    """What reading costs, one scanned row being 1: fetching a row for an index entry, and finding a place."""

    point_read: float = 1.0
    seek: float = 0.5


_COSTS = Costs()
_LISTED = frozenset((Comparison.IN,))


@record(frozen=True, slots=True)
class _Way:
    """A key to go by; ``tail`` are the parts that order rows with equal keys."""

    index: IndexSchema | None
    parts: tuple[IndexPart, ...]
    tail: tuple[IndexPart, ...]
    unique: bool
    rows: float


@record(frozen=True, slots=True)
class _Match:
    """The constraints that a way uses, by their positions in the request."""

    prefix: tuple[int, ...]
    listed: int | None = None
    lower: int | None = None
    upper: int | None = None


def plan_access(
    schema: TableSchema,
    request: AccessRequest,
    row_count: int | None = None,
    *,
    costs: Costs | None = None,
    sorts: Callable[[str], bool] | None = None,
) -> AccessPlan:
    """The cheapest access plan for a request.

    ``row_count`` is the number of rows, if known.  ``sorts`` tells whether a module's keys under a
    collation sort as the collation does; the module whose keys always do leaves it out.
    """
    return _Planner(schema, request, row_count, costs or _COSTS, sorts or _always).cheapest()


def _always(collation: str) -> bool:
    return True


class _Planner:
    """Compares the ways to serve one request."""

    def __init__(
        self,
        schema: TableSchema,
        request: AccessRequest,
        row_count: int | None,
        costs: Costs,
        sorts: Callable[[str], bool],
    ) -> None:
        known = row_count if row_count is not None else request.estimated_rows
        self.schema = schema
        self.request = request
        self.constraints = request.constraints
        self.rows = float(max(1, DEFAULT_ROWS if known is None else known))
        self.costs = costs
        self.sorts = sorts

    def cheapest(self) -> AccessPlan:
        """The plan with the least cost, the sort it leaves to do included."""
        request = self.request
        if not (request.constraints or request.ordering or request.implied):
            return self._whole()
        plans = [plan for way in self._ways() for plan in self._plans(way)]
        return min(plans, key=self._total)

    def _whole(self) -> AccessPlan:
        """The plan for a request that asks for nothing in particular: all rows in key order."""
        path = AccessPath(AccessKind.SCAN)
        if not self.schema.primary_key.parts:
            return AccessPlan(path, ordered=True, at_most_one=True, cost=0.4, rows=1.0)
        return AccessPlan(path, cost=self.rows, rows=self.rows)

    def _total(self, plan: AccessPlan) -> float:
        cost = plan.cost
        limit = self.request.limit
        if self.request.ordering and not plan.ordered:
            return cost + 0.1 * plan.rows * log2(max(2.0, plan.rows))
        if limit is not None and plan.rows > 0:
            # Reading stops early, later the more constraints are left to the engine.
            used = len(plan.prefix) + (plan.lower is not None) + (plan.upper is not None)
            wanted = limit / BOUND_FRACTION ** (len(self.constraints) - used)
            return cost * min(1.0, wanted / plan.rows)
        return cost

    # --- ways ------------------------------------------------------------------------------------------

    def _ways(self) -> Iterator[_Way]:
        primary = tuple(self._primary_parts())
        yield _Way(None, primary, (), True, self.rows)
        if not self.schema.indexes:
            return
        implied = {fold(name) for name in self.request.implied}
        enforced = {fold(constraint.index) for constraint in self.schema.unique_constraints}
        for index in self.schema.indexes:
            if index.where is not None and fold(index.name) not in implied:
                continue
            rows = self.rows if index.where is None else max(1.0, self.rows * PARTIAL_FRACTION)
            unique = index.unique or fold(index.name) in enforced
            yield _Way(index, index.parts, primary, unique, rows)

    def _primary_parts(self) -> Iterator[IndexPart]:
        for part in self.schema.primary_key.parts:
            column = self.schema.columns[part.column]
            yield IndexPart(part.column, None, column.type, column.nullable, part.descending, part.collation)

    # --- plans of one way ------------------------------------------------------------------------------

    def _plans(self, way: _Way) -> Iterator[AccessPlan]:
        if way.index is None:
            if not way.parts:
                yield self._whole()
                return
            yield self._walk(way, AccessKind.SCAN)
        elif self.request.ordering or way.index.where is not None:
            yield self._walk(way, AccessKind.RANGE)
        for match in self._matches(way):
            yield self._plan(way, match)

    def _matches(self, way: _Way) -> Iterator[_Match]:
        """The longest use of a way's parts, with and without an IN."""
        prefix: list[int] = []
        for part in way.parts:
            position = self._find(part, _PINNING)
            if position is None:
                break
            prefix.append(position)
        matched = len(prefix)
        if matched < len(way.parts):
            part = way.parts[matched]
            listed = self._find(part, _LISTED)
            if listed is not None:
                longer = [*prefix, listed]
                for following in way.parts[matched + 1 :]:
                    position = self._find(following, _PINNING)
                    if position is None:
                        break
                    longer.append(position)
                yield _Match(tuple(longer), listed=listed)
            if self._sorted(part):
                lower, upper = self._find(part, _LOWER), self._find(part, _UPPER)
                if lower is not None or upper is not None:
                    yield _Match(tuple(prefix), lower=lower, upper=upper)
                    return
        if prefix:
            yield _Match(tuple(prefix))

    def _find(self, part: IndexPart, operators: Iterable[Comparison]) -> int | None:
        for position, constraint in enumerate(self.constraints):
            if constraint.operator in operators and _serves(part, constraint):
                return position
        return None

    def _sorted(self, part: IndexPart) -> bool:
        return not honours_collation(part.type) or self.sorts(part.collation)

    # --- one plan --------------------------------------------------------------------------------------

    def _walk(self, way: _Way, kind: AccessKind) -> AccessPlan:
        ordered, reverse = self._order(way, _Match(()))
        rows = way.rows
        cost = rows if way.index is None else 0.3 + 0.5 * rows + rows * self.costs.point_read
        name = None if way.index is None else way.index.name
        return AccessPlan(AccessPath(kind, name, reverse=reverse), ordered=ordered, cost=cost, rows=rows)

    def _plan(self, way: _Way, match: _Match) -> AccessPlan:
        pinned = len(match.prefix)
        complete = pinned == len(way.parts)
        lists = self.constraints[match.listed].values if match.listed is not None else 1
        null = any(self.constraints[position].operator is Comparison.IS_NULL for position in match.prefix)
        single = complete and way.unique and (way.index is None or not null)
        rows = 1.0 if single else self._estimate(way, match)
        rows = min(way.rows, rows * lists)
        ordered, reverse = (False, False) if lists > 1 else self._order(way, match)
        path = AccessPath(
            self._kind(way, match, complete),
            None if way.index is None else way.index.name,
            pinned,
            None if match.lower is None else self.constraints[match.lower].operator,
            None if match.upper is None else self.constraints[match.upper].operator,
            reverse,
        )
        return AccessPlan(
            path,
            match.prefix,
            match.lower,
            match.upper,
            ordered=ordered or (single and lists == 1),
            at_most_one=single and match.listed is None,
            cost=self._cost(way, match, rows, lists, single),
            rows=rows,
        )

    @staticmethod
    def _kind(way: _Way, match: _Match, complete: bool) -> AccessKind:
        whole = way.index is None and complete
        if match.listed is not None:
            return AccessKind.POINTS if whole else AccessKind.RANGES
        return AccessKind.POINT if whole else AccessKind.RANGE

    def _estimate(self, way: _Way, match: _Match) -> float:
        rows = way.rows * self._bounded_share(match)
        shares = [self.constraints[position].share for position in match.prefix]
        if match.prefix and None in shares:
            # As many rows per value as there are values, in an index just a few, for it is there to tell
            # rows apart; each further part tells a tenth of the rest apart.
            same = sqrt(way.rows) if way.index is None else min(ROWS_PER_VALUE, sqrt(way.rows))
            rows *= MORE_EQUAL_FRACTION ** (len(match.prefix) - 1) * same / max(1.0, way.rows)
        else:
            for share in shares:
                rows *= 1.0 if share is None else share
        return max(1.0, float(int(rows)))

    def _bounded_share(self, match: _Match) -> float:
        """The share of rows between the bounds."""
        bounds = [position for position in (match.lower, match.upper) if position is not None]
        shares = [share for position in bounds if (share := self.constraints[position].share) is not None]
        if len(shares) < len(bounds):
            return (1.0, BOUND_FRACTION, WINDOW_FRACTION)[len(bounds)]
        # What both bounds let through is what neither leaves out.
        return max(0.0, 1.0 - sum(1.0 - share for share in shares))

    def _cost(self, way: _Way, match: _Match, rows: float, lists: int, single: bool) -> float:
        fetch = 0.0 if way.index is None else rows * self.costs.point_read
        if match.listed is not None:
            return lists * self.costs.seek + 0.3 * rows + fetch
        if single:
            return (0.4 if way.index is None else 0.6) + fetch
        if match.lower is None and match.upper is None:
            return 0.3 + 0.3 * rows + fetch
        return 0.2 + 0.5 * rows + fetch

    # --- order -----------------------------------------------------------------------------------------

    def _order(self, way: _Way, match: _Match) -> tuple[bool, bool]:
        """Whether a way delivers the order asked for, and whether it has to be walked backwards for it."""
        terms = self.request.ordering
        if not terms:
            return False, False
        not_null = {c.column for c in self.constraints if c.operator is not Comparison.IS_NULL}
        constant = {
            self.constraints[position].column: way.parts[number].collation
            for number, position in enumerate(match.prefix)
        }
        rest = iter((*way.parts[len(match.prefix) :], *way.tail))
        left = len(way.parts) - len(match.prefix)
        direction: bool | None = None
        for term in terms:
            if _is_constant(term, constant, self.schema):
                continue
            part = next(rest, None)
            while part is not None and part.column in constant and constant[part.column] == part.collation:
                part, left = next(rest, None), left - 1
            if part is None or (way.unique and left <= 0 and self._never_null(way)):
                break
            if part.column != term.column or not self._orders_like(part, term):
                return False, False
            backwards = part.descending != term.descending
            if direction is not None and backwards != direction:
                return False, False
            if part.nullable and term.column not in not_null and term.nulls_last != term.descending:
                return False, False
            direction = backwards
            constant[part.column] = part.collation
            left -= 1
        return True, bool(direction)

    @staticmethod
    def _never_null(way: _Way) -> bool:
        return way.index is None or not any(part.nullable for part in way.parts)

    def _orders_like(self, part: IndexPart, term: ColumnOrder) -> bool:
        if honours_collation(part.type):
            return fold(part.collation) == fold(term.collation) and self.sorts(part.collation)
        return _plain_collation(part)


def _is_constant(term: ColumnOrder, constant: dict[int | None, str], schema: TableSchema) -> bool:
    """Whether all rows have the same value (as the term compares) in a term's column."""
    if term.column not in constant:
        return False
    if not honours_collation(schema.columns[term.column].type):
        return True
    return fold(constant[term.column]) == fold(term.collation)


def _serves(part: IndexPart, constraint: ColumnConstraint) -> bool:
    """Whether a key part can find what a constraint wants."""
    if part.column is not None:
        if constraint.column != part.column:
            return False
    elif constraint.expression is None or constraint.expression != part.expression:
        return False
    if honours_collation(part.type):
        return fold(part.collation) == fold(constraint.collation)
    return _plain_collation(part)


def _plain_collation(part: IndexPart) -> bool:
    # A collation means nothing to numbers; on JSON and temporal values a module may take it as it likes.
    return part.type.is_numeric or fold(part.collation) == "binary"
