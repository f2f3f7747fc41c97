"""What can be proved about the rows of a plan: which columns determine which.

A materialized view is a set of rows under a key, so a body must have a *provable*
key.  The proof is one closure over functional dependencies:

* each relation that contributes rows (a table scan, a grouping, …) is a *token*, a
  made-up column (a negative number) that stands for the identity of its row;
* a key of that relation determines its token, its token determines its columns;
* equalities, constants and projections are dependencies between columns.

A set of columns is a key of the whole exactly when its closure holds every token
that makes up a row.  So ``t join p on t.p_id = p.id`` has the key of ``t``: it
determines ``t``'s token, that ``p_id``, that ``p.id``, that ``p``'s token.

Values count as alike that their column's own collation takes for equal, as the stored key will.  So
``name collate nocase`` follows from a BINARY ``name`` and does not tell it.

Chapter: views-and-maintained-tables, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

from quereus_store.plan import nodes
from quereus_store.plan.analysis import has_subquery, is_deterministic_expression
from quereus_store.plan.conditions import conjuncts
from quereus_store.plan.expressions import (
    Arithmetic,
    BoundExpression,
    Cast,
    Column,
    ColumnRef,
    Comparison,
    IsTest,
    Literal,
    Negation,
    SortTerm,
    Truth,
)
from quereus_store.schema.objects import ColumnSchema, IndexPart, KeyPart, TableSchema
from quereus_store.types import ANY, INTEGER, NULL, NUMERIC, REAL, TEXT

Ids = frozenset[int]
NOTHING: Ids = frozenset()


class Dependency(NamedTuple):
    """The columns on the left determine those on the right."""

    left: Ids
    right: Ids


class Ordered(NamedTuple):
    """One column of the order in which rows come."""

    column: int
    descending: bool
    collation: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a plan's rows.

    ``tokens`` make up a row, in the order of their relations; ``keys`` holds the
    preferred key of a token, in key order; ``order`` is the order of the rows.
    """

    tokens: tuple[int, ...]
    dependencies: tuple[Dependency, ...]
    keys: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    order: tuple[Ordered, ...] = ()

    def adding(self, *dependencies: Dependency) -> Facts:
        """With more dependencies."""
        return Facts(self.tokens, (*self.dependencies, *dependencies), self.keys, self.order)

    def ordered(self, order: Iterable[Ordered]) -> Facts:
        """With another order."""
        return Facts(self.tokens, self.dependencies, self.keys, tuple(order))

    def renamed(self, numbers: Mapping[int, int]) -> Facts:
        """With other numbers for some columns."""
        if not numbers:
            return self

        def now(columns: Iterable[int]) -> list[int]:
            return [numbers.get(column, column) for column in columns]

        return Facts(
            self.tokens,
            tuple(
                [Dependency(frozenset(now(left)), frozenset(now(right))) for left, right in self.dependencies]
            ),
            {token: tuple(now(key)) for token, key in self.keys.items()},
            tuple([part._replace(column=now((part.column,))[0]) for part in self.order]),
        )

    def closure(self, columns: Iterable[int]) -> set[int]:
        """Everything that these columns determine."""
        known = set(columns)
        pending = list(self.dependencies)
        while True:
            waiting = []
            for dependency in pending:
                if dependency.left <= known:
                    known |= dependency.right
                else:
                    waiting.append(dependency)
            if len(waiting) == len(pending):
                return known
            pending = waiting

    def is_key(self, columns: Iterable[int]) -> bool:
        """Whether no two rows can be alike in these columns, each as its own collation compares."""
        return self.closure(columns).issuperset(self.tokens)

    def alike(self, one: int, other: int) -> bool:
        """Whether two columns determine each other."""
        return one == other or (other in self.closure((one,)) and one in self.closure((other,)))


class FactFinder:
    """Works the facts of one plan out, from its leaves up."""

    def __init__(self) -> None:
        self._token = count(-1, -1).__next__
        self._common_tables: dict[int, nodes.PlanNode] = {}

    def facts(self, plan: nodes.PlanNode) -> Facts:
        """The facts of a plan."""
        finder = _FINDERS.get(type(plan))
        return self.leaf(plan) if finder is None else finder(self, plan)

    def leaf(self, plan: nodes.PlanNode, *keys: tuple[int, ...], order: tuple[Ordered, ...] = ()) -> Facts:
        """The facts of a relation of which nothing but its keys is known."""
        token = self._token()
        dependencies = [Dependency(frozenset(key), frozenset((token,))) for key in keys]
        dependencies.append(Dependency(frozenset((token,)), _ids(plan)))
        return Facts((token,), tuple(dependencies), {token: keys[0]} if keys else {}, order)

    # -- leaves ------------------------------------------------------------------

    def table_scan(self, plan: nodes.TableScan) -> Facts:
        """A table: its primary key first, then every UNIQUE over NOT NULL columns."""
        ids = dict(zip(plan.positions, _in_order(plan), strict=True))
        keys = [key for key in map(list, table_keys(plan.table)) if ids.keys() >= set(key)]
        parts = plan.table.primary_key.parts
        order: list[Ordered] = []
        for part in parts:
            if part.column not in ids:
                break
            order.append(Ordered(ids[part.column], part.descending, part.collation))
        return self.leaf(plan, *(tuple([ids[column] for column in key]) for key in keys), order=tuple(order))

    def values(self, plan: nodes.Values) -> Facts:
        """Literal rows; a single one needs no key."""
        return self.leaf(plan, ()) if len(plan.rows) <= 1 else self.leaf(plan)

    def recursion(self, plan: nodes.Recursion) -> Facts:
        """A recursion that drops repeats is a set."""
        return self.leaf(plan, _in_order(plan)) if plan.distinct else self.leaf(plan)

    # -- one input ---------------------------------------------------------------

    def filter(self, plan: nodes.Filter) -> Facts:
        """Equalities hold for every row."""
        return self.facts(plan.input).adding(*equalities(plan.predicate, collations_of(plan.input)))

    def project(self, plan: nodes.Project) -> Facts:
        """Outputs are determined by what they are computed from, and some tell it back.

        A column that goes on under another collation keeps its number, so what it was gets one of its own.
        """
        before, after = collations_of(plan.input), collations_of(plan)
        numbers = {
            column: self._token() for column, name in after.items() if before.get(column, name) != name
        }
        inner = self.facts(plan.input).renamed(numbers)
        made = zip(plan.columns, plan.expressions, strict=True)
        return inner.adding(*_computed(inner, before, made, numbers))

    def aggregate(self, plan: nodes.Aggregate) -> Facts:
        """A group is known by its keys."""
        if plan.sets is not None:
            return self.leaf(plan)
        outputs = _in_order(plan)[: len(plan.keys)]
        own = self.leaf(plan, outputs)
        inner = self.facts(plan.input)
        computed = _computed(inner, collations_of(plan.input), zip(plan.columns, plan.keys, strict=False), {})
        return own.adding(*inner.dependencies, *computed)

    def window(self, plan: nodes.Window) -> Facts:
        """Window functions add columns."""
        inner = self.facts(plan.input)
        return inner.adding(Dependency(frozenset(inner.tokens), _ids(plan)))

    def distinct(self, plan: nodes.Distinct) -> Facts:
        """All columns are a key; so is what was one before."""
        inner = self.facts(plan.input)
        own = self.leaf(plan, _in_order(plan))
        return Facts(
            own.tokens,
            (
                *own.dependencies,
                *inner.dependencies,
                Dependency(frozenset(inner.tokens), frozenset(own.tokens)),
            ),
            {**inner.keys, **own.keys},
            inner.order,
        )

    def sort(self, plan: nodes.Sort) -> Facts:
        """Sorting changes the order only."""
        return self.facts(plan.input).ordered(_sort_order(plan.terms))

    def limit(self, plan: nodes.Limit) -> Facts:
        """LIMIT 1 leaves a single row."""
        inner = self.facts(plan.input)
        if isinstance(plan.count, Literal) and plan.count.value in (0, 1):
            return inner.adding(Dependency(NOTHING, frozenset(inner.tokens)))
        return inner

    # -- several inputs ------------------------------------------------------------

    def join(self, plan: nodes.Join) -> Facts:
        """Rows are pairs; an outer side's constants hold for its own rows only."""
        left, right = self.facts(plan.left), self.facts(plan.right)
        if plan.kind in nodes.SEMI_JOINS:
            return left
        collations = {**collations_of(plan.left), **collations_of(plan.right)}
        condition = tuple(equalities(plan.condition, collations))
        alone = right
        if plan.lateral:
            right = _for_each(left, right)
            if plan.kind in (nodes.JoinKind.INNER, nodes.JoinKind.CROSS):
                condition += tuple(_correlated(plan.right, collations))
        tokens = (*left.tokens, *right.tokens)
        keys = {**left.keys, **right.keys}
        if plan.kind in (nodes.JoinKind.INNER, nodes.JoinKind.CROSS):
            dependencies = (*left.dependencies, *right.dependencies, *condition)
            return Facts(tokens, dependencies, keys)
        guarded = {
            nodes.JoinKind.LEFT: (left.dependencies, _guarded(right)),
            nodes.JoinKind.RIGHT: (_guarded(left), right.dependencies),
            nodes.JoinKind.FULL: (_guarded(left), _guarded(right)),
        }[plan.kind]
        found = Facts(tokens, (*guarded[0], *guarded[1]), keys)
        if plan.kind is nodes.JoinKind.LEFT:
            return found.adding(*_partners(left, alone, condition, _ids(plan.right)))
        if plan.kind is nodes.JoinKind.RIGHT:
            return found.adding(*_partners(right, left, condition, _ids(plan.left)))
        return found

    def set_operation(self, plan: nodes.SetOperation) -> Facts:
        """A set is known by its matched columns; what is taken from the left by its keys too."""
        flags = (plan.left_flag, plan.right_flag)
        matched = tuple([column.id for column in plan.columns if column.id not in flags])
        own = self.leaf(plan) if plan.all else self.leaf(plan, matched)
        if plan.kind not in (nodes.SetKind.EXCEPT, nodes.SetKind.INTERSECT) or any(flags):
            return own
        left = self.facts(plan.left)
        outer, inner = collations_of(plan), collations_of(plan.left)
        same = [
            dependency
            for ours, theirs in zip(matched, plan.left.columns, strict=False)
            for dependency in _same(ours, theirs.id, outer[ours], inner[theirs.id])
        ]
        identity = Dependency(frozenset(left.tokens), frozenset(own.tokens))
        return Facts(
            own.tokens,
            (*own.dependencies, *left.dependencies, *same, identity),
            {**left.keys, **own.keys},
        )

    def with_tables(self, plan: nodes.With) -> Facts:
        """Each scan of a common table is a relation of its own, with the table's key."""
        for table in plan.tables:
            self._common_tables[table.id] = table.plan
        return self.facts(plan.body)

    def common_table(self, plan: nodes.CommonTableScan) -> Facts:
        """A common table by the key of its plan."""
        found = self._common_tables.get(plan.table_id)
        key = None if found is None else logical_key(self.facts(found), found.columns)
        if key is None:
            return self.leaf(plan)
        ids = _in_order(plan)
        return self.leaf(plan, tuple([ids[position] for position in key]))


_FINDERS: Mapping[type[nodes.PlanNode], Callable[[FactFinder, Any], Facts]] = MappingProxyType(
    {
        nodes.TableScan: FactFinder.table_scan,
        nodes.Values: FactFinder.values,
        nodes.Recursion: FactFinder.recursion,
        nodes.Filter: FactFinder.filter,
        nodes.Project: FactFinder.project,
        nodes.Aggregate: FactFinder.aggregate,
        nodes.Window: FactFinder.window,
        nodes.Distinct: FactFinder.distinct,
        nodes.Sort: FactFinder.sort,
        nodes.Limit: FactFinder.limit,
        nodes.Join: FactFinder.join,
        nodes.SetOperation: FactFinder.set_operation,
        nodes.With: FactFinder.with_tables,
        nodes.CommonTableScan: FactFinder.common_table,
    }
)


def facts_of(plan: nodes.PlanNode) -> Facts:
    """What can be proved about a bound plan."""
    return FactFinder().facts(plan)


def table_keys(table: TableSchema) -> list[tuple[int, ...]]:
    """Positions of the columns of each key of a table, the primary key first."""
    keys: list[Sequence[KeyPart | IndexPart]] = [table.primary_key.parts]
    for unique in table.unique_constraints:
        index = table.index(unique.index)
        whole = index is not None and index.where is None and all(p.column is not None for p in index.parts)
        if whole and not any(table.columns[column].nullable for column in unique.columns):
            assert index is not None
            keys.append(index.parts)
    return [
        tuple([part.column for part in parts if part.column is not None])
        for parts in keys
        if all(part.column is not None and _is_told(table.columns[part.column], part) for part in parts)
    ]


def _is_told(column: ColumnSchema, part: KeyPart | IndexPart) -> bool:
    """Whether values that the column takes for equal are equal under the key, which therefore holds one."""
    return refines(column.collation, part.collation)


# --- keys of the whole ------------------------------------------------------------------------------------


def logical_key(facts: Facts, columns: tuple[Column, ...]) -> tuple[int, ...] | None:
    """Positions of the output columns that are the key of a plan; None when it is a bag."""
    outputs = [column.id for column in columns]
    if not facts.is_key(outputs):
        return None
    chosen = _by_preferred_keys(facts, outputs)
    if chosen is None:
        chosen = _smallest(facts, list(dict.fromkeys(outputs)))
    return tuple([outputs.index(column) for column in chosen])


def _by_preferred_keys(facts: Facts, outputs: list[int]) -> list[int] | None:
    chosen: list[int] = []
    for token in facts.tokens:
        key = facts.keys.get(token)
        if key is None or token in facts.closure(chosen):
            continue
        found = [output_for(facts, column, outputs) for column in key]
        if None not in found:
            chosen += [column for column in found if column not in chosen]  # type: ignore[misc]
    if not facts.is_key(chosen):
        return None
    return _smallest(facts, chosen)


def _smallest(facts: Facts, chosen: list[int]) -> list[int]:
    """Without the columns that the others determine, last ones first."""
    for column in reversed(chosen):
        rest = [other for other in chosen if other != column]
        if facts.is_key(rest):
            chosen = rest
    return chosen


def output_for(facts: Facts, column: int, outputs: list[int]) -> int | None:
    """The output column that has the value of a column, or one that tells it."""
    if column in outputs:
        return column
    return next((output for output in outputs if facts.alike(output, column)), None)


# --- dependencies -----------------------------------------------------------------------------------------


Collations = Mapping[int, str]
"""The collation of each column."""


def collations_of(plan: nodes.PlanNode) -> dict[int, str]:
    """By which collation the texts of a plan's columns are compared."""
    return {column.id: collation_of(column) for column in plan.columns}


def collation_of(column: Column) -> str:
    """The collation by which a column's texts are compared; BINARY where it has none."""
    compares_texts = column.type.is_textual or column.type in (ANY, NULL)
    return column.collation.name if compares_texts and column.collation is not None else "BINARY"


def refines(one: str, other: str) -> bool:
    """Whether all that one collation takes for equal is equal under another."""
    return one in ("BINARY", other)


def equalities(predicate: BoundExpression | None, collations: Collations) -> Iterable[Dependency]:
    """What a condition that is true says of columns: equal to each other, or constant."""
    for conjunct in conjuncts(predicate):
        if isinstance(conjunct, IsTest):
            operand = conjunct.operand
            is_null = conjunct.test is Truth.NULL and not conjunct.negated
            if is_null and isinstance(operand, ColumnRef):
                yield Dependency(NOTHING, frozenset((operand.id,)))
        if not isinstance(conjunct, Comparison) or conjunct.operator not in ("=", "is"):
            continue
        left, right = conjunct.left, conjunct.right
        for side, other in ((left, right), (right, left)):
            if not isinstance(side, ColumnRef):
                continue
            own = collations.get(side.id, "BINARY")
            if isinstance(other, Literal) and refines(conjunct.using, own):
                yield Dependency(NOTHING, frozenset((side.id,)))
            if isinstance(other, ColumnRef) and _tells(
                own, conjunct.using, collations.get(other.id, "BINARY")
            ):
                yield Dependency(frozenset((side.id,)), frozenset((other.id,)))


def _tells(one: str, using: str, other: str) -> bool:
    """Whether a column tells another that equals it under a collation, each under its own."""
    if using == "BINARY":
        return refines(one, other)
    return refines(one, using) and refines(using, other)


def _same(one: int, other: int, of_one: str, of_other: str) -> Iterable[Dependency]:
    """Two columns of the same value tell each other, unless one compares more coarsely."""
    if refines(of_one, of_other):
        yield Dependency(frozenset((one,)), frozenset((other,)))
    if refines(of_other, of_one):
        yield Dependency(frozenset((other,)), frozenset((one,)))


def _computed(
    inner: Facts,
    collations: Collations,
    made: Iterable[tuple[Column, BoundExpression]],
    numbers: Mapping[int, int],
) -> Iterable[Dependency]:
    """What outputs follow from, and what they tell of it.

    ``collations`` are the input's; ``numbers`` are those that its columns have got in ``inner``.
    """
    row = frozenset(inner.tokens)
    for output, expression in made:
        source = source_column(expression)
        if source is not None:
            known = numbers.get(source, source)
            if known != output.id:
                yield from _same(output.id, known, collation_of(output), collations.get(source, "BINARY"))
                yield Dependency(row, frozenset((output.id,)))
        elif not has_subquery(expression) and is_deterministic_expression(expression):
            read = nodes.referenced_columns(expression)
            # Texts that are equal under a collation may differ in what is computed of them.
            exact = all(collations.get(column, "BINARY") == "BINARY" for column in read)
            tellers = frozenset([numbers.get(column, column) for column in read]) if exact else row
            yield Dependency(tellers, frozenset((output.id,)))


_WIDENINGS = frozenset({(INTEGER, NUMERIC), (INTEGER, REAL), (INTEGER, TEXT)})


def source_column(expression: BoundExpression) -> int | None:
    """The column whose value an expression tells unmistakably: itself, converted, or shifted."""
    if isinstance(expression, ColumnRef):
        return expression.id
    if isinstance(expression, Cast):
        pair = (expression.operand.type, expression.type)
        if pair[0] is pair[1] or pair in _WIDENINGS:
            return source_column(expression.operand)
    if isinstance(expression, Negation) and expression.operator in "+-" and expression.type is INTEGER:
        return source_column(expression.operand)
    if isinstance(expression, Arithmetic) and expression.operator in ("+", "-"):
        for side, other in ((expression.left, expression.right), (expression.right, expression.left)):
            if side.type is INTEGER and isinstance(other, Literal) and type(other.value) is int:
                return source_column(side)
    return None


def _guarded(side: Facts) -> tuple[Dependency, ...]:
    """The dependencies of a side whose rows may be missing: a constant is one only where there is a row."""
    return tuple(
        [
            Dependency(frozenset(side.tokens), right) if not left else Dependency(left, right)
            for left, right in side.dependencies
        ]
    )


def _for_each(left: Facts, right: Facts) -> Facts:
    """A lateral side: what holds of its rows holds for one row of the left (LIMIT 1 leaves one for each)."""
    row = frozenset(left.tokens)
    dependencies = tuple([Dependency(tellers | row, told) for tellers, told in right.dependencies])
    return Facts(right.tokens, dependencies, right.keys, right.order)


def _correlated(plan: nodes.PlanNode, collations: Collations) -> Iterable[Dependency]:
    """What the conditions of a lateral side say of its columns and the left's, for all rows."""
    while isinstance(plan, nodes.Filter | nodes.Project | nodes.Sort | nodes.Limit):
        inner = collations_of(plan.input)
        if any(collations.get(column, name) != name for column, name in inner.items()):
            return
        if isinstance(plan, nodes.Filter):
            yield from equalities(plan.predicate, {**collations, **inner})
        plan = plan.input


def _partners(
    keeping: Facts, optional: Facts, condition: tuple[Dependency, ...], columns: Ids
) -> Iterable[Dependency]:
    """What a row of the kept side tells of its partners: the columns that the condition ties to it.

    It has either partners that are alike in these columns, or none, and then one row of NULLs.  If at
    most one partner fits, it is determined as a whole.
    """
    kept = frozenset(keeping.tokens)
    tied = Facts((), (*keeping.dependencies, *condition)).closure(kept) & columns
    yield Dependency(kept, frozenset(tied))
    both = Facts((), (*keeping.dependencies, *optional.dependencies, *condition))
    if both.closure(kept).issuperset(optional.tokens):
        yield Dependency(kept, frozenset(optional.tokens))


def _sort_order(terms: tuple[SortTerm, ...]) -> Iterable[Ordered]:
    for term in terms:
        expression = term.expression
        if not isinstance(expression, ColumnRef) or (term.nulls_last and expression.nullable):
            return
        yield Ordered(expression.id, term.descending, term.using)


def _in_order(plan: nodes.PlanNode) -> tuple[int, ...]:
    return tuple([column.id for column in plan.columns])


def _ids(plan: nodes.PlanNode) -> Ids:
    return frozenset(_in_order(plan))
