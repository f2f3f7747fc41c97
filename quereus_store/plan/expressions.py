"""Bound expressions: what the binder makes of a syntax tree's expressions.

Names are resolved (a column is a number), coercions are explicit (:class:`Cast`
nodes that the binder inserted), and each node knows its static type, whether it
can be NULL, and which collation it contributes to a comparison.  Rules and the
code generator need to look nothing up.

Columns are identified by numbers that are unique within a statement, not by
positions.  So a rule may move an expression anywhere in the plan where the
columns are produced, and a subquery is correlated exactly when its plan uses
column numbers that it does not produce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields, replace
from enum import StrEnum
from operator import is_not
from typing import TYPE_CHECKING, Any, TypeVar

from quereus_store.errors import SourcePosition
from quereus_store.functions.registry import AggregateFunction, ScalarFunction
from quereus_store.records import record
from quereus_store.types import CollationContribution, LogicalType
from quereus_store.types.comparison import ListPlan

if TYPE_CHECKING:
    from quereus_store.plan.nodes import PlanNode


@record(frozen=True, slots=True)
class Column:
    """A column flowing through a plan: its number, output name and static properties."""

    id: int
    name: str
    type: LogicalType
    nullable: bool = True
    collation: CollationContribution | None = None


@record(frozen=True, slots=True)
class BoundExpression:
    """Base of all bound expressions: static type, nullability, contributed collation."""

    type: LogicalType
    nullable: bool
    collation: CollationContribution | None


@record(frozen=True, slots=True, eq=False)
class Literal(BoundExpression):
    """A constant; the documents 1, 1.0 and ``true`` are three, though Python has them equal."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Literal
            and type(self.value) is type(other.value)
            and self.value == other.value
            and self.type == other.type
            and self.nullable == other.nullable
            and self.collation == other.collation
        )

    def __hash__(self) -> int:
        known = len(self.value) if isinstance(self.value, list | dict) else self.value
        return hash((type(self.value), known, self.type))


@record(frozen=True, slots=True)
class Parameter(BoundExpression):
    """A bound parameter: its position from 0, or its name."""

    slot: int | str


@record(frozen=True, slots=True)
class ContextValue(BoundExpression):
    """A value of the mutation context, which is evaluated once before the statement: its number there."""

    number: int
    name: str


@record(frozen=True, slots=True)
class ColumnRef(BoundExpression):
    """The value of a column."""

    id: int
    name: str


def reference(column: Column) -> ColumnRef:
    """The expression that reads a column."""
    return ColumnRef(column.type, column.nullable, column.collation, column.id, column.name)


@record(frozen=True, slots=True)
class Cast(BoundExpression):
    """Lenient conversion to ``type`` (types-and-values, section 13)."""

    operand: BoundExpression


@record(frozen=True, slots=True)
class Arithmetic(BoundExpression):
    """A binary ``+ - * / % & | << >>``."""

    operator: str
    left: BoundExpression
    right: BoundExpression


@record(frozen=True, slots=True)
class Negation(BoundExpression):
    """A prefix ``-``, ``+`` or ``~``."""

    operator: str
    operand: BoundExpression


@record(frozen=True, slots=True)
class Concat(BoundExpression):
    """``left || right``."""

    left: BoundExpression
    right: BoundExpression


@record(frozen=True, slots=True)
class Comparison(BoundExpression):
    """``= != < <= > >=`` under a collation, or the null-safe ``is`` / ``is not`` (IS DISTINCT FROM)."""

    operator: str
    left: BoundExpression
    right: BoundExpression
    using: str = "BINARY"


@record(frozen=True, slots=True)
class Between(BoundExpression):
    """``low <= operand <= high``, each bound with its own collation; operand evaluated once.

    The operand stands twice because each side may coerce it in its own way.
    """

    low: Comparison
    high: Comparison


@record(frozen=True, slots=True)
class InList(BoundExpression):
    """``operand in (items)``; ``using`` is the merged collation, coercions are already applied."""

    operand: BoundExpression
    items: tuple[BoundExpression, ...]
    using: str = "BINARY"


@record(frozen=True, slots=True)
class Conjunction(BoundExpression):
    """AND of two or more operands, three-valued."""

    operands: tuple[BoundExpression, ...]


@record(frozen=True, slots=True)
class Disjunction(BoundExpression):
    """OR of two or more operands, three-valued."""

    operands: tuple[BoundExpression, ...]


@record(frozen=True, slots=True)
class ExclusiveOr(BoundExpression):
    """XOR, NULL if a side is NULL."""

    left: BoundExpression
    right: BoundExpression


@record(frozen=True, slots=True)
class Not(BoundExpression):
    """NOT, three-valued."""

    operand: BoundExpression


class Truth(StrEnum):
    """What IS tests for."""

    NULL = "null"
    TRUE = "true"
    FALSE = "false"


@record(frozen=True, slots=True)
class IsTest(BoundExpression):
    """``operand is [not] null/true/false``; never NULL."""

    operand: BoundExpression
    test: Truth
    negated: bool = False


class PatternKind(StrEnum):
    """The pattern languages."""

    LIKE = "like"
    ILIKE = "ilike"
    GLOB = "glob"
    REGEXP = "regexp"


@record(frozen=True, slots=True)
class PatternMatch(BoundExpression):
    """``operand like pattern escape e`` and its kin."""

    kind: PatternKind
    operand: BoundExpression
    pattern: BoundExpression
    escape: BoundExpression | None = None


@record(frozen=True, slots=True)
class Case(BoundExpression):
    """Searched CASE; the binder turns a simple CASE into comparisons.

    ``shared`` is the operand of a simple CASE when evaluating it once matters:
    conditions then refer to it by a :class:`ColumnRef` with id ``shared_id``.
    """

    branches: tuple[tuple[BoundExpression, BoundExpression], ...]
    otherwise: BoundExpression
    shared: BoundExpression | None = None
    shared_id: int = 0


@record(frozen=True, slots=True)
class Coalesce(BoundExpression):
    """The first operand that is not NULL; later ones are not evaluated."""

    operands: tuple[BoundExpression, ...]


@record(frozen=True, slots=True)
class Extremum(BoundExpression):
    """``greatest`` / ``least``: compares ``keys`` and gives the matching one of ``operands``; skips NULL."""

    greatest: bool
    operands: tuple[BoundExpression, ...]
    keys: tuple[BoundExpression, ...]
    plan: ListPlan
    using: str = "BINARY"


@record(frozen=True, slots=True)
class NullIf(BoundExpression):
    """``operand`` unless ``condition`` is true, then NULL."""

    operand: BoundExpression
    condition: BoundExpression


@record(frozen=True, slots=True)
class Call(BoundExpression):
    """A scalar function call; ``position`` is for the message when it fails."""

    function: ScalarFunction
    arguments: tuple[BoundExpression, ...]
    position: SourcePosition | None = field(default=None, compare=False)


@record(frozen=True, slots=True)
class SortTerm:
    """One term of an ORDER BY; NULLs come first unless ``nulls_last``."""

    expression: BoundExpression
    descending: bool = False
    nulls_last: bool = False
    using: str = "BINARY"


@record(frozen=True, slots=True)
class AggregateCall(BoundExpression):
    """An aggregate over the rows of a group; stands only in Aggregate and Window nodes."""

    function: AggregateFunction
    arguments: tuple[BoundExpression, ...]
    distinct: bool = False
    filter: BoundExpression | None = None
    order: tuple[SortTerm, ...] = ()
    using: str = "BINARY"
    position: SourcePosition | None = field(default=None, compare=False)


@record(frozen=True, slots=True)
class ScalarSubquery(BoundExpression):
    """The only value of a one-column query: NULL for no row, an error at ``position`` for several."""

    plan: PlanNode
    position: SourcePosition | None = field(default=None, compare=False)


@record(frozen=True, slots=True)
class Exists(BoundExpression):
    """Whether a query has a row."""

    plan: PlanNode


@record(frozen=True, slots=True)
class InSubquery(BoundExpression):
    """``operands in (query)``: one operand, or a row value of several.

    ``operands`` and the plan's output columns are already coerced to each other
    (the binder puts a Project with casts on the plan); ``using`` holds one
    collation name per operand.
    """

    operands: tuple[BoundExpression, ...]
    plan: PlanNode
    using: tuple[str, ...] = ("BINARY",)


@record(frozen=True, slots=True)
class Quantified(BoundExpression):
    """``operand op any/all (query)``: three-valued over the plan's single column ``column``."""

    operator: str
    every: bool
    operand: BoundExpression
    plan: PlanNode
    using: str = "BINARY"


SUBQUERIES = (ScalarSubquery, Exists, InSubquery, Quantified)


def children(expression: BoundExpression) -> list[BoundExpression]:
    """The direct operands of an expression (not what is inside subquery plans)."""
    found: list[BoundExpression] = []
    for name in _OPERAND_FIELDS[type(expression)]:
        value = getattr(expression, name)
        if isinstance(value, BoundExpression):
            found.append(value)
        elif value is not None:
            found += _expressions_in(value)
    return found


_NEVER_OPERANDS = frozenset(
    (
        "type",
        "nullable",
        "collation",
        "position",
        "function",
        "using",
        "operator",
        "value",
        "name",
        "number",
        "id",
        "plan",
    )
)


class FieldsOf(dict[type, tuple[str, ...]]):
    """The names of those fields of a class that are wanted, looked up once a class."""

    def __init__(self, wanted: Callable[[Field[Any]], bool]) -> None:
        self._wanted = wanted

    def __missing__(self, kind: type) -> tuple[str, ...]:
        names = self[kind] = tuple([each.name for each in fields(kind) if self._wanted(each)])
        return names


_OPERAND_FIELDS = FieldsOf(lambda each: each.name not in _NEVER_OPERANDS)
_ALL_FIELDS = FieldsOf(lambda each: True)


def _expressions_in(value: Any) -> list[BoundExpression]:
    if isinstance(value, SortTerm):
        return [value.expression]
    found: list[BoundExpression] = []
    if isinstance(value, tuple):
        for item in value:
            if isinstance(item, BoundExpression):
                found.append(item)
            else:
                found += _expressions_in(item)
    return found


Part = TypeVar("Part")


def walk(expression: BoundExpression) -> list[BoundExpression]:
    """The expression and all its operands, outermost first (subquery plans are not entered)."""
    return outermost_first(expression, _OPERAND_FIELDS, children)


def outermost_first(
    root: Part, branches: Mapping[type, Any], below: Callable[[Part], list[Part]]
) -> list[Part]:
    """A node and all that ``below`` finds under it; only types that have ``branches`` are asked."""
    if not branches[type(root)]:
        return [root]
    parts = []
    waiting = [root]
    while waiting:
        part = waiting.pop()
        parts.append(part)
        if branches[type(part)]:
            found = below(part)
            found.reverse()
            waiting += found
    return parts


class Places:
    """Expressions or calls in order, each once: found by their hash, so that many are no trouble."""

    __slots__ = ("_places", "items")

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[int, list[int]] = {}

    def of(self, item: Any) -> int:
        """The place of an item, which is added if it is new."""
        try:
            key = hash(item)
        except TypeError:
            # The plan of a subquery names objects of the schema that have no hash.
            key = 0
        places = self._places.setdefault(key, [])
        for place in places:
            if self.items[place] == item:
                return place
        places.append(len(self.items))
        self.items.append(item)
        return places[-1]


def subplans(expression: BoundExpression) -> list[PlanNode]:
    """The plans of the subqueries directly in an expression."""
    return [part.plan for part in walk(expression) if isinstance(part, SUBQUERIES)]


Changed = TypeVar("Changed")


def with_changes(value: Changed, changes: Mapping[str, Any]) -> Changed:
    """A node or an expression with other values in some fields: ``dataclasses.replace`` in half its time."""
    kind = type(value)
    return kind(*[changes[name] if name in changes else getattr(value, name) for name in _ALL_FIELDS[kind]])


def map_children(
    expression: BoundExpression, function: Callable[[BoundExpression], BoundExpression]
) -> BoundExpression:
    """The expression with ``function`` applied to each direct operand; itself if nothing changed."""
    changes: dict[str, Any] = {}
    for name in _OPERAND_FIELDS[type(expression)]:
        value = getattr(expression, name)
        if value is None:
            continue
        changed = function(value) if isinstance(value, BoundExpression) else map_value(value, function)
        if changed is not value:
            changes[name] = changed
    return with_changes(expression, changes) if changes else expression


def map_value(value: Any, function: Callable[[BoundExpression], BoundExpression]) -> Any:
    """What a field holds with ``function`` applied to the expressions in it; itself if nothing changed."""
    if isinstance(value, BoundExpression):
        return function(value)
    if isinstance(value, tuple):
        mapped = [map_value(item, function) for item in value]
        return tuple(mapped) if any(map(is_not, mapped, value)) else value
    if isinstance(value, SortTerm):
        changed = function(value.expression)
        return value if changed is value.expression else replace(value, expression=changed)
    return value
