"""The fast program of an INSERT that expects to meet existing rows.

``insert or ignore``, ``insert or replace`` and ``on conflict (<primary key>)`` look
all proposed keys up in one call.  The rows that are new are inserted together, the
others overwritten or updated together, or left out::

    found = table0.points(x0, [(n[0],) for n in new])
    fresh = [n for n, o in zip(new, found) if o is None]
    pairs = [(n, o) for n, o in zip(new, found) if o is not None]
    old = [o for n, o in pairs]
    changed = [(o[0], n[1]) for n, o in pairs]
    write_both(table0, x0, fresh, old, changed)

That is what the rows one by one would do as long as no key comes twice and no other
constraint interferes; otherwise the careful way decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.dml import emission
from quereus_store.execute.dml.checks import DeferredChecks
from quereus_store.execute.dml.eviction import Eviction
from quereus_store.execute.dml.foreign_keys.parents import ParentSide, parent_side
from quereus_store.execute.dml.generation import MutationCompiler, columns_of
from quereus_store.execute.dml.outcome import MutationOutcome, Trouble
from quereus_store.execute.dml.rules import StatementRules, effective
from quereus_store.modules.contract import Row, Table, UniqueViolation
from quereus_store.plan.mutations import InsertPlan, UpsertPlan
from quereus_store.schema.objects import ConflictAction, Operation
from quereus_store.types import ANY, JSON

_SETTLED = frozenset({ConflictAction.IGNORE, ConflictAction.REPLACE})


def expects_conflicts(plan: InsertPlan) -> bool:
    """Whether a statement can go this way."""
    table = plan.table
    parts = [table.columns[part.column] for part in table.primary_key.parts]
    if not parts or any(column.nullable or column.type in (ANY, JSON) for column in parts):
        return False
    action = effective(plan.conflict, table.primary_key.conflict)
    if action in _SETTLED:
        return not table.unique_constraints
    if plan.conflict is not None or len(plan.upserts) != 1:
        return False
    (clause,) = plan.upserts
    key = {part.column for part in table.primary_key.parts}
    if clause.target is not None and set(clause.target) != key:
        return False
    return plan.returning is None or clause.where is None


class KeyedWriter:
    """Writes the program's part between the checks of the proposed rows and the end."""

    def __init__(self, compiler: MutationCompiler, plan: InsertPlan, rules: StatementRules) -> None:
        self.compiler = compiler
        self.module = compiler.module
        self.plan = plan
        self.rules = rules
        self.clause: UpsertPlan | None = None
        self.deferred: DeferredChecks | None = None
        self.parents: ParentSide | None = None
        self.eviction: Eviction | None = None
        action = effective(plan.conflict, plan.table.primary_key.conflict)
        workshop = compiler.workshop
        if action is ConflictAction.REPLACE:
            self.eviction = Eviction(workshop, plan.table)
        elif action is not ConflictAction.IGNORE:
            self._take_clause(plan.upserts[0])

    def _take_clause(self, clause: UpsertPlan) -> None:
        plan, workshop = self.plan, self.compiler.workshop
        self.clause = clause
        waiting = tuple(check for check in clause.checks if check.deferred)
        if waiting:
            self.deferred = DeferredChecks(workshop, plan.table, waiting, plan, Operation.UPDATE)
        if clause.row and workshop.enforces_keys:
            changed = {*clause.assigned, *(item.position for item in plan.generated)}
            self.parents = parent_side(workshop, plan.table, Operation.UPDATE, changed, False)

    def write(self, table: str, writer: str) -> None:
        """Divide the rows and write them; stands inside the program's ``try``."""
        module = self.module
        key = tuple_display([f"n[{part.column}]" for part in self.plan.table.primary_key.parts])
        module.line(f"found = {table}.points({writer}, [{key} for n in new])")
        module.line(f"{module.helper(refuse_repeated)}(new, found, {self._key_positions()!r})")
        module.line("fresh = [n for n, o in zip(new, found) if o is None]")
        if self.clause is not None and self.clause.row:
            self._compose(self.clause)
        elif self.eviction is not None:
            module.line("old = [o for o in found if o is not None]")
            module.line("changed = [n for n, o in zip(new, found) if o is not None]")
            module.line(f"{module.bind('eviction', self.eviction)}.before_overwrite(rt, old, changed)")
        else:
            module.line("old = changed = []")
        self._refuse_orphans()
        module.line(f"{module.helper(write_both)}({table}, {writer}, fresh, old, changed)")

    def _key_positions(self) -> tuple[int, ...]:
        return tuple([part.column for part in self.plan.table.primary_key.parts])

    def _compose(self, clause: UpsertPlan) -> None:
        """``old`` and ``changed``: the rows that the clause updates."""
        compiler, module, plan = self.compiler, self.module, self.plan
        both = {**columns_of("n", plan.new), **columns_of("o", plan.old)}
        columns = (*plan.new, *plan.old)
        condition = "o is not None"
        pairs = compiler.loop("zip(new, found)", "n, o", both)
        if clause.where is not None:
            (where,) = compiler.workshop.optimize_all([clause.where], columns)
            condition += f" and {pairs.expressions.condition(where)}"
        module.line(f"pairs = {pairs.comprehension('(n, o)', condition)}")
        module.line("old = [o for n, o in pairs]")
        given = [value for value in clause.row if value is not None]
        optimized = iter(compiler.workshop.optimize_all(given, columns))
        row = [None if value is None else next(optimized) for value in clause.row]
        loop = compiler.loop("pairs", "n, o", both)
        if clause.queried is not None:
            assigned = compiler.queried(clause.queried, both)
            module.line(f"assigned = [{assigned} for n, o in pairs]")
            bindings = {**both, **columns_of("q", clause.queried.columns)}
            loop = compiler.loop("zip(pairs, assigned)", "(n, o), q", bindings)
        element = emission.cells(compiler, loop.expressions, row, clause.converts, plan.table)
        module.line(f"changed = {loop.comprehension(element)}")
        emission.fill_generated(compiler, plan, "changed")
        update = replace(plan, not_null=clause.not_null, checks=clause.checks)
        checks = tuple(check for check in clause.checks if not check.deferred)
        emission.refuse_offenders(
            compiler, update, replace(self.rules, immediate=checks, operation=Operation.UPDATE), "changed"
        )
        if self.parents is not None:
            module.line(f"{module.bind('parents', self.parents)}.before(rt, old, changed)")

    def _refuse_orphans(self) -> None:
        if self.plan.conflict is None or not self.rules.children:
            return
        module = self.module
        tests = [
            f"{module.bind('child', check)}.orphans(rt.transaction, fresh + changed)"
            for check in self.rules.children
        ]
        with module.block(f"if {' or '.join(tests)}:"):
            module.line(f"raise {module.helper(Trouble)}")

    def finish(self) -> None:
        """Everything that follows the write."""
        module = self.module
        if self.rules.deferred is not None:
            rows = "fresh + changed" if self.eviction is not None else "fresh"
            module.line(f"{module.bind('deferred', self.rules.deferred)}.enqueue(rt, {rows}, None)")
        if self.deferred is not None:
            module.line(f"{module.bind('deferred', self.deferred)}.enqueue(rt, changed, old)")
        if self.plan.conflict is None:
            for check in self.rules.children:
                module.line(f"{module.bind('child', check)}.after_write(rt, fresh + changed)")
        if self.eviction is not None:
            module.line(f"{module.bind('eviction', self.eviction)}.after_overwrite(rt, old)")
        if self.parents is not None:
            module.line(f"{module.bind('parents', self.parents)}.after(rt, old, changed)")
        with module.block("if fresh:"):
            emission.log(self.compiler, self.plan.table, Operation.INSERT, "()", "fresh")
        with module.block("if old:"):
            emission.log(self.compiler, self.plan.table, Operation.UPDATE, "old", "changed")
        returned = "[]"
        if self.plan.returning is not None:
            module.line(f"new = {module.helper(in_order)}(new, found, changed, {self._leaves_out})")
            returned = emission.returning_rows(self.compiler, self.plan, self.rules)
        module.line(f"return {module.helper(MutationOutcome)}(len(fresh) + len(changed), {returned})")

    @property
    def _leaves_out(self) -> bool:
        """Whether rows that meet an existing one are skipped."""
        return self.eviction is None and not (self.clause is not None and self.clause.row)


def refuse_repeated(new: Sequence[Row], found: Sequence[Row | None], key: Sequence[int]) -> None:
    """Raise Trouble if two rows have one key: the second then meets the first."""
    if len(new) < 2:
        return
    key_of: Callable[[Row], Any] = itemgetter(*key) if key else len
    met = [row for row in found if row is not None]
    if len(set(map(key_of, new))) < len(new) or len(set(map(key_of, met))) < len(met):
        raise Trouble


def write_both(
    table: Table, transaction: Any, fresh: Sequence[Row], old: Sequence[Row], changed: Sequence[Row]
) -> None:
    """Insert and update, both or neither; raises UniqueViolation."""
    if not old:
        if fresh:
            table.insert(transaction, fresh)
        return
    if not fresh:
        table.update(transaction, old, changed)
        return
    token = transaction.savepoint()
    try:
        table.insert(transaction, fresh)
        table.update(transaction, old, changed)
    except UniqueViolation:
        transaction.rollback_to(token)
        raise
    finally:
        transaction.release(token)


def in_order(
    new: Sequence[Row], found: Sequence[Row | None], changed: Sequence[Row], leaves_out: bool
) -> list[Row]:
    """The rows as stored in the order of the source."""
    if leaves_out:
        return [row for row, old in zip(new, found, strict=True) if old is None]
    updated = iter(changed)
    return [row if old is None else next(updated) for row, old in zip(new, found, strict=True)]
