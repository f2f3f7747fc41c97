"""Strategies: the ways to bring a maintained table up to date, and the choice among them.

=================  ===============================================================
strategy           for
=================  ===============================================================
``delta``          bodies that are linear in what changed
``merge``          groupings whose stored aggregates can be added to and taken from
``states``         groupings whose aggregates are followed by states in memory
``touched keys``   bodies with anchor columns: groupings, windows, outer joins, sets
``rebuild``        everything else, and changes of most of a table
=================  ===============================================================

Whatever strategy runs, the table equals its body afterwards; they differ in cost.

Chapter: views-and-maintained-tables, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from quereus_store.execute.counting import rule_context
from quereus_store.execute.engine import Engine
from quereus_store.modules.contract import Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import ColumnRef
from quereus_store.plan.optimizer import optimize
from quereus_store.plan.rules.common_tables import inline_common_tables
from quereus_store.plan.rules.constants import fold_constants
from quereus_store.plan.rules.filters import push_filters
from quereus_store.views.body import TableKey, hidden_scans, key_of, scans
from quereus_store.views.coarsening import settled, weakened_columns
from quereus_store.views.deltas.anchors import Anchors, anchors
from quereus_store.views.deltas.grouping import grouping_of
from quereus_store.views.deltas.keyed import KeyColumns, Keyed, TooMuch
from quereus_store.views.deltas.linear import MOST_SCANS, Linear
from quereus_store.views.deltas.merging import Merging, merging_of
from quereus_store.views.deltas.notes import notes_of
from quereus_store.views.deltas.order import depends_on_order
from quereus_store.views.deltas.states import GroupStates, Stateful, algebras_of
from quereus_store.views.deltas.substitution import is_linear, scan_id, with_columns
from quereus_store.views.graph import Member
from quereus_store.views.programs import Program
from quereus_store.views.rows import Delta, Difference, RowSet
from quereus_store.views.writing import TableWriter

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import ReadView, Transaction


class Strategy(Protocol):
    """One way to bring a table up to date."""

    name: str

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """How the stored rows have to change, given what happened to the sources."""
        ...

    @property
    def lines(self) -> list[str]:
        """The plan that the strategy runs, as text."""
        ...


class Rebuild:
    """Compute the whole body and write what differs."""

    name = "rebuild"

    def __init__(self, engine: Engine, member: Member) -> None:
        self._engine = engine
        self._table = member.table
        self._rows = RowSet(member.table)
        self._merges = bool(weakened_columns(member.table, member.body))
        self.program = Program(engine, member.body.context, member.body.plan)

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """The stored rows against the body's."""
        return self._rows.difference(*self.compared(session, transaction))

    def compared(self, session: Session, transaction: ReadView) -> tuple[list[Row], list[Row]]:
        """All rows that are stored, and those that should be."""
        handle = self._engine.table(self._table)
        reader = transaction.reader(self._table.module)
        stored = [row for batch in handle.scan(reader) for row in batch]
        wanted = self.program.rows(session, transaction)
        if self._merges:
            wanted = settled(self._table, self._engine.collations, stored, wanted)
        return stored, wanted

    @property
    def lines(self) -> list[str]:
        """The body's plan."""
        return self.program.lines


class Maintained:
    """The strategies for one maintained table, each made when it is first needed."""

    def __init__(self, engine: Engine, member: Member) -> None:
        self.table = member.table
        self._handle = engine.table(member.table)
        self._engine = engine
        self._member = member
        self._rows = RowSet(member.table)
        self._context = member.body.context
        weakened = weakened_columns(member.table, member.body)
        self.writer = TableWriter(engine, member.table, weakened=[one.column for one in weakened])
        self.rebuild = Rebuild(engine, member)
        self.plan = self._normalized(member.body.plan)
        self._scans = list(scans(self.plan))
        self._hidden = {key_of(scan.table) for scan in hidden_scans(self.plan)}
        alone = not self._hidden and len(self._scans) == 1
        self._row_by_row = alone and _passes_key(self.plan, self._scans[0])
        self._states = GroupStates(engine, member.body.sources.values())
        self._chosen: dict[frozenset[TableKey], Strategy] = {}

    def strategy(self, changed: frozenset[TableKey]) -> Strategy:
        """The strategy for changes of these sources."""
        found = self._chosen.get(changed)
        if found is None:
            found = self._chosen[changed] = self._choose(changed)
        return found

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """How the stored rows have to change."""
        strategy = self.strategy(frozenset(deltas))
        if strategy.name != Stateful.name:
            self.forget()
        try:
            difference = strategy.difference(session, transaction, deltas)
            difference.in_order = self._row_by_row
            return difference
        except TooMuch:
            return self.rebuild.difference(session, transaction, deltas)

    def forget(self) -> None:
        """What is known of the sources by heart does not count any more."""
        if self._states.groups is not None:
            self._states.forget()

    def unchanged(self, transaction: Transaction, changed: Iterable[TableKey]) -> None:
        """Sources were written, and all their rows are what they were."""
        strategy = self.strategy(frozenset(changed).intersection(self._member.body.sources))
        if isinstance(strategy, Stateful):
            strategy.unchanged(transaction)

    def _choose(self, changed: frozenset[TableKey]) -> Strategy:
        moved = [scan for scan in self._scans if key_of(scan.table) in changed]
        if not moved or not changed.isdisjoint(self._hidden) or len(moved) > MOST_SCANS:
            return self.rebuild
        compile_plan = partial(Program, self._engine, self._context, grown=True)
        if all(is_linear(self.plan, scan_id(scan)) for scan in moved):
            return Linear(compile_plan, self.plan, moved, self._rows)
        keyed = self._keyed(moved)
        number = self._context.number
        grouping = grouping_of(self.table, self.plan, moved, number)
        if grouping is not None:
            merging = merging_of(grouping)
            if merging is not None:
                return Merging(compile_plan, grouping, merging, moved, keyed, self._rows, self._points)
            algebras = algebras_of(self._engine, grouping.aggregates)
            if algebras is not None:
                if self._states.notes is None:
                    sources = list(self._member.body.sources.values())
                    self._states.notes = notes_of(self._engine, self.table, sources, grouping, algebras)
                return Stateful(
                    compile_plan, number, grouping, algebras, moved, self._states, self._rows, self._points
                )
        return keyed or self.rebuild

    def _keyed(self, moved: Sequence[plans.TableScan]) -> Keyed | None:
        found = _common([anchors(self.plan, scan_id(scan)) for scan in moved])
        if not any(column.id in found for column in self.plan.columns):
            return None
        if depends_on_order(self.plan, self.rebuild.program.plan):
            return None
        keys = KeyColumns(self._engine, self.table, self.plan.columns, found)
        compile_plan = partial(Program, self._engine, self._context, grown=True)
        return Keyed(
            compile_plan, self.plan, self._context.number, moved, keys, self._rows, self._count_stored
        )

    def _points(self, transaction: Any, keys: list[tuple[Any, ...]]) -> list[Row | None]:
        """The stored rows of these primary keys."""
        reader = transaction.reader(self.table.module)
        if len(keys) == 1:
            return [self._handle.point(reader, keys[0])]
        return self._handle.points(reader, keys)

    def _count_stored(self, transaction: Any) -> int:
        return self._handle.count(transaction.reader(self.table.module))

    def _normalized(self, plan: plans.PlanNode) -> plans.PlanNode:
        """The logical plan with conditions where they belong and common tables in place."""
        rules = (fold_constants, inline_common_tables, push_filters)
        return with_columns(optimize(plan, rule_context(self._engine, self._context), rules), plan.columns)


def _passes_key(plan: plans.PlanNode, scan: plans.TableScan) -> bool:
    """Whether a body only filters a table and picks expressions, all of the table's key among them."""
    shown = {column.id for column in plan.columns}
    if isinstance(plan, plans.Project):
        shown |= {each.id for each in plan.expressions if isinstance(each, ColumnRef)}
        plan = plan.input
    while isinstance(plan, plans.Filter):
        plan = plan.input
    by_position = dict(zip(scan.positions, scan.columns, strict=True))
    parts = scan.table.primary_key.parts
    return plan is scan and all(
        part.column in by_position and by_position[part.column].id in shown for part in parts
    )


def _common(found: Sequence[Anchors]) -> Anchors:
    """The columns that are anchors for every changed scan, compared alike."""
    first, *others = found
    return {column: using for column, using in first.items() if all(o.get(column) == using for o in others)}


class Strategies:
    """The strategies of all maintained tables, kept with their bodies."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def of(self, member: Member) -> Maintained:
        """The strategies of one table."""
        kept = member.body.programs
        found = kept.get("maintained")
        if not isinstance(found, Maintained) or found.table is not member.table:
            found = kept["maintained"] = Maintained(self._engine, member)
        return found
