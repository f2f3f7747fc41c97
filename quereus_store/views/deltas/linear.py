"""Linear bodies: the changes of the result are the body over the changes of the source.

For one changed scan the body runs twice, over the rows that went and over the rows that
came; its rows are then the rows that leave and enter the view.  For several changed scans
the terms of the product rule are added up with their signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any

from quereus_store.modules.contract import Row
from quereus_store.plan import nodes as plans
from quereus_store.plan.expressions import ColumnRef
from quereus_store.views.body import TableKey, key_of
from quereus_store.views.deltas.substitution import Scan, scan_id, substituted
from quereus_store.views.programs import Program
from quereus_store.views.rows import Delta, Difference, RowSet, cells

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction

MOST_SCANS = 3
"""With more changed scans there would be too many terms."""

Compile = Callable[[plans.PlanNode], Program]
Signed = list[tuple[int, list[Row]]]


def estimate_of(rows: int) -> float:
    """The size class that a program is compiled for."""
    return 1.0 if rows <= 8 else 200.0 if rows <= 1000 else 20000.0


class Terms:
    """The result's changes as signed lists of rows, for a plan that is linear in some changed scans.

    ``single``: one scan changes, so that :meth:`sides` tells all.
    """

    def __init__(self, compile_plan: Compile, plan: plans.PlanNode, scans: Sequence[plans.TableScan]) -> None:
        self._compile = compile_plan
        self._plan = plan
        self.single = len(scans) == 1
        self._scans = [(scan_id(scan), key_of(scan.table)) for scan in scans]
        self._programs: dict[tuple[frozenset[Scan], float], Program | None] = {}
        self._single: dict[float, tuple[Program | None]] = {}
        self._choice = _choice_of(plan) if self.single else None

    def rows(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Iterator[tuple[int, list[Row]]]:
        """Each non-empty term: its sign and its rows."""
        if len(self._scans) == 1:
            for sign, rows in zip((-1, 1), self.sides(session, transaction, deltas), strict=True):
                if rows:
                    yield sign, rows
            return
        sizes = [len(deltas[key].removed) + len(deltas[key].added) for _, key in self._scans]
        estimate = estimate_of(max(sizes))
        for chosen in _subsets(self._scans):
            program = self._program(chosen, estimate)
            if program is None:
                continue
            order = 1 if len(chosen) % 2 else -1
            signed = [_signed(deltas[key]) for _, key in chosen]
            for parts in product(*signed):
                sign = order
                for part_sign, _ in parts:
                    sign *= part_sign
                yield sign, program.rows(session, transaction, [rows for _, rows in parts])

    def sides(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> tuple[list[Row], list[Row]]:
        """For one changed scan: the rows that went and those that came."""
        ((_, key),) = self._scans
        delta = deltas[key]
        removed, added = delta.removed, delta.added
        if self._choice is not None:
            return list(map(self._choice, removed)), list(map(self._choice, added))
        estimate = estimate_of(len(removed) + len(added))
        found = self._single.get(estimate)
        if found is None:
            found = self._single[estimate] = (self._program(self._scans, estimate),)
        (program,) = found
        if program is None:
            return [], []
        return (
            program.rows(session, transaction, (removed,)) if removed else [],
            program.rows(session, transaction, (added,)) if added else [],
        )

    def _program(self, chosen: Sequence[tuple[Scan, TableKey]], estimate: float) -> Program | None:
        key = (frozenset([scan for scan, _ in chosen]), estimate)
        if key not in self._programs:
            slots = {scan: slot for slot, (scan, _) in enumerate(chosen)}
            plan = substituted(self._plan, slots, estimate)
            self._programs[key] = None if plan is None else self._compile(plan)
        return self._programs[key]

    @property
    def lines(self) -> list[str]:
        """The plan of the first term, as text."""
        program = self._program(self._scans[:1], 1.0)
        return [] if program is None else program.lines


def _subsets(scans: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    return chain.from_iterable(combinations(scans, size) for size in range(1, len(scans) + 1))


def _signed(delta: Delta) -> Signed:
    return [(sign, rows) for sign, rows in ((-1, delta.removed), (1, delta.added)) if rows]


class Linear:
    """Applies the changes of a linear body."""

    name = "delta"

    def __init__(
        self,
        compile_plan: Compile,
        plan: plans.PlanNode,
        scans: Sequence[plans.TableScan],
        rows: RowSet,
    ) -> None:
        self.terms = Terms(compile_plan, plan, scans)
        self._rows = rows

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """Rows that leave and rows that enter."""
        if self.terms.single:
            removed, added = self.terms.sides(session, transaction, deltas)
        else:
            removed, added = self._of_many(self.terms.rows(session, transaction, deltas))
        return self._rows.difference(removed, added)

    @property
    def lines(self) -> list[str]:
        """The body over changed rows."""
        return self.terms.lines

    def _of_many(self, terms: Iterator[tuple[int, list[Row]]]) -> tuple[list[Row], list[Row]]:
        counts: dict[Any, int] = {}
        by_name: dict[Any, Row] = {}
        identity = self._rows.identity
        for sign, rows in terms:
            for row in rows:
                name = identity(row)
                counts[name] = counts.get(name, 0) + sign
                by_name[name] = row
        removed = [by_name[name] for name, count in counts.items() if count < 0]
        added = [by_name[name] for name, count in counts.items() if count > 0]
        return removed, added


def _choice_of(plan: plans.PlanNode) -> Callable[[Row], Row] | None:
    """A plan that only picks columns of the changed rows, as a function of one row; None for any other."""
    if not isinstance(plan, plans.Project) or not isinstance(plan.input, plans.TableScan):
        return None
    places = {column.id: place for place, column in enumerate(plan.input.columns)}
    chosen = [places.get(each.id) if isinstance(each, ColumnRef) else None for each in plan.expressions]
    positions = [place for place in chosen if place is not None]
    return cells(positions) if len(positions) == len(chosen) else None
