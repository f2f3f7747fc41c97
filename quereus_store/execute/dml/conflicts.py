"""The careful way: rows one by one, each violation answered as its constraint asks.

The order of work on a row (dml-transactions-constraints, sections 2 and 4):
build and convert it, NOT NULL in declaration order, CHECKs, foreign keys, then
the primary key and the UNIQUE constraints.  What a violation does is the
statement's OR clause, else the constraint's own, else ABORT:

========  ===========================================================================
ABORT     the error; the session undoes the statement
FAIL      the error; rows before this one stay (OR FAIL only)
ROLLBACK  the error, and the end of the transaction
IGNORE    the row is skipped
REPLACE   the rows in the way go; a NULL becomes the column's default; else the error
========  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from quereus_store.errors import Error
from quereus_store.execute.dml.changes import record_changes
from quereus_store.execute.dml.checks import key_of
from quereus_store.execute.dml.emission import first_matches
from quereus_store.execute.dml.eviction import Eviction
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.outcome import MutationOutcome, Skipped, StatementFailed
from quereus_store.execute.dml.parts import Parts, compile_parts
from quereus_store.execute.dml.rules import StatementRules, effective
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.execute.dml.upsert import Upserts
from quereus_store.execute.dml.violations import (
    check_violation,
    not_null_violation,
    primary_key_violation,
    unique_violation,
)
from quereus_store.modules.contract import Conflict, Row, UniqueViolation
from quereus_store.plan.mutations import CheckPlan, InsertPlan, MutationPlan, NotNullPlan, UpdatePlan
from quereus_store.plan.nodes import CommonTable
from quereus_store.schema.objects import ConflictAction, Operation, UniqueConstraint
from quereus_store.types import convert

ABORT = ConflictAction.ABORT


class Careful:
    """What the careful ways of all three statements share."""

    def __init__(
        self,
        workshop: Workshop,
        plan: MutationPlan,
        rules: StatementRules,
        enclosing: tuple[CommonTable, ...],
    ) -> None:
        self.workshop = workshop
        self.plan = plan
        self.rules = rules
        self.table = plan.table
        self.written = rules.written
        self._enclosing = enclosing
        self._persistent = workshop.engine.module(plan.table.module).persistent

    @cached_property
    def _compiled(self) -> tuple[Callable[[Any], Parts], Any]:
        return compile_parts(self.workshop, self.plan, self._enclosing, self.written)

    @cached_property
    def handle(self) -> Any:
        """The module's handle of the table."""
        return self.workshop.engine.table(self.table)

    @cached_property
    def eviction(self) -> Eviction:
        """How rows in the way of others go."""
        return Eviction(self.workshop, self.table)

    def start(self, runtime: MutationRuntime) -> tuple[MutationRuntime, Parts]:
        """The parts for one execution, with the runtime that they read."""
        program, reads = self._compiled
        forked = runtime.fork(reads)
        return forked, program(forked)

    def fail(self, error: Error, action: ConflictAction) -> Exception:
        """What a violation raises."""
        if action is ConflictAction.IGNORE:
            return Skipped()
        if action is ConflictAction.ROLLBACK:
            return StatementFailed(error, ends_transaction=True)
        return error

    # -- row constraints ----------------------------------------------------------

    def complete(
        self,
        parts: Parts,
        row: Row,
        items: Sequence[NotNullPlan],
        substitutes: Sequence[Callable[[Row], Any] | None],
    ) -> Row:
        """Fill in generated columns and see to NOT NULL."""
        row = parts.generate(row)
        for item, substitute in zip(items, substitutes, strict=True):
            if row[item.position] is not None:
                continue
            action = effective(self.plan.conflict, item.action)
            if action is ConflictAction.REPLACE and substitute is not None:
                column = self.table.columns[item.position]
                given = item.substitute.type if item.substitute else None
                value = convert(substitute(row), column.type, column.name, given)
                if value is not None:
                    row = (*row[: item.position], value, *row[item.position + 1 :])
                    row = parts.generate(row)
                    continue
            raise self.fail(not_null_violation(self.table, item.position), action)
        return row

    def judge(
        self,
        checks: Sequence[CheckPlan],
        violated: Sequence[Callable[[Row, Row | None], Any]],
        new: Row,
        old: Row,
        *,
        reading: bool,
    ) -> None:
        """Judge the CHECKs that read other rows (``reading``) or those that do not."""
        for check, fails in zip(checks, violated, strict=True):
            if check.deferred is not reading:
                continue
            action = effective(self.plan.conflict, check.constraint.conflict)
            if reading and action is ABORT:
                continue
            if fails(new, old):
                raise self.fail(check_violation(self.table, check.constraint, new), action)

    def judge_parents(self, runtime: MutationRuntime, new: Row) -> None:
        """Under an OR clause a row without a parent is refused at once, else at the commit."""
        for check in self.rules.children:
            if self.plan.conflict is None or self.plan.conflict is ABORT:
                check.after_write(runtime, (new,))
            elif check.orphans(runtime.transaction, (new,)):
                raise self.fail(check.error(new), self.plan.conflict)

    def defer(self, runtime: MutationRuntime, new: Row, old: Row | None) -> None:
        """Queue the CHECKs that read other rows."""
        if self.rules.deferred is not None:
            self.rules.deferred.enqueue(runtime, (new,), None if old is None else (old,))

    # -- uniqueness ---------------------------------------------------------------

    def action_of(self, constraint: UniqueConstraint | None) -> ConflictAction:
        """What a violation of a UNIQUE (None: the primary key) does."""
        own = self.table.primary_key.conflict if constraint is None else constraint.conflict
        if self.plan.conflict is None and own is ConflictAction.ROLLBACK:
            # As a key's own clause ROLLBACK only undoes the statement.
            return ABORT
        return effective(self.plan.conflict, own)

    def key_error(
        self, constraint: UniqueConstraint | None, row: Row, operation: Operation | None = None
    ) -> Error:
        """The error for a key that is taken (by default by the statement's own operation)."""
        if constraint is not None:
            return unique_violation(self.table, constraint, row)
        moved = (operation or self.rules.operation) is Operation.UPDATE and not self._persistent
        return primary_key_violation(self.table, row, moved)

    def write_guarded(self, write: Callable[[], None], row: Row, operation: Operation | None = None) -> None:
        """Write and turn a violation into the user's error."""
        try:
            write()
        except UniqueViolation as violation:
            raise self.key_error(violation.constraint, row, operation) from None

    def current(self, runtime: MutationRuntime, row: Row) -> Row | None:
        """The row that now has a row's primary key."""
        reader = runtime.transaction.reader(self.table.module)
        found: Row | None = self.handle.point(reader, key_of(self.table, row))
        return found

    # -- the loop -----------------------------------------------------------------

    def each(self, runtime: MutationRuntime, work: Callable[[Any], None], items: Sequence[Any]) -> None:
        """Work on items one by one: skip what IGNORE skips, and keep what OR FAIL keeps."""
        keeps = self.plan.conflict is ConflictAction.FAIL
        if not keeps and not self._skips_after_write:
            for item in items:
                with suppress(Skipped):
                    work(item)
            return
        transaction = runtime.transaction
        for item in items:
            mark = transaction.mark()
            try:
                work(item)
            except Skipped:
                transaction.return_to(mark)
            except Error as error:
                if not keeps:
                    raise
                transaction.return_to(mark)
                raise StatementFailed(error, keeps_changes=True) from error.__cause__
            finally:
                transaction.forget(mark)

    @property
    def _skips_after_write(self) -> bool:
        """Whether a row may have to be taken back because of what is judged after its write."""
        if self.plan.conflict is ConflictAction.IGNORE and self.rules.children:
            return True
        return any(
            check.deferred
            and effective(self.plan.conflict, check.constraint.conflict) is ConflictAction.IGNORE
            for check in self.plan.checks
        )


def built(build: Callable[[Row], Row], source: Sequence[Row]) -> Iterator[Row | Error]:
    """The rows built of source rows, all before the first write; the first error stands for what follows."""
    rows: list[Row | Error] = []
    for row in source:
        try:
            rows.append(build(row))
        except Error as error:
            rows.append(error)
            break
    return iter(rows)


class CarefulInsert(Careful):
    """INSERT row by row."""

    plan: InsertPlan

    @cached_property
    def upserts(self) -> Upserts:
        """The ON CONFLICT clauses."""
        return Upserts(self)

    def run(self, runtime: MutationRuntime, source: Sequence[Row]) -> MutationOutcome:
        """Insert the rows built of ``source``."""
        runtime, parts = self.start(runtime)
        assert parts.build is not None
        returned: list[Row] = []
        count = 0

        def insert(row: Row | Error) -> None:
            nonlocal count
            if isinstance(row, Error):
                raise row
            stored, old = self._insert(runtime, parts, row)
            count += 1
            if parts.returning is not None:
                returned.append(parts.returning(stored, old, ()))

        self.each(runtime, insert, list(built(parts.build, source)))
        return MutationOutcome(count, returned)

    def _insert(self, runtime: MutationRuntime, parts: Parts, row: Row) -> tuple[Row, Row]:
        """Insert one row; the row as stored, and the one it took the place of (or itself)."""
        plan = self.plan
        row = self.complete(parts, row, plan.not_null, parts.substitutes)
        self.judge(plan.checks, parts.violated, row, row, reading=False)
        displaced: Row | None = None
        while True:
            conflicts = self._conflicts(runtime, row, displaced)
            if not conflicts:
                break
            conflict = conflicts[0]
            action = self.action_of(conflict.constraint)
            if action is ConflictAction.REPLACE:
                if conflict.constraint is None:
                    displaced = conflict.existing
                else:
                    self.eviction.evict(runtime, conflict.existing)
                    if displaced is not None:
                        displaced = self.current(runtime, displaced)
                continue
            if action is not ConflictAction.IGNORE and self.upserts.clauses:
                found = self.upserts.matching(conflicts, row)
                if found is not None:
                    clause, existing = found
                    return self.upserts.apply(runtime, parts, clause, existing, row)
            raise self.fail(self.key_error(conflict.constraint, row), action)
        self._write(runtime, row, displaced)
        self.judge(plan.checks, parts.violated, row, row, reading=True)
        self.judge_parents(runtime, row)
        self.defer(runtime, row, None)
        return row, row

    def _conflicts(self, runtime: MutationRuntime, row: Row, displaced: Row | None) -> Sequence[Conflict]:
        writer = runtime.transaction.writer(self.table.module)
        found: Sequence[Conflict] = self.handle.conflicts(writer, row, displaced)
        return found

    def _write(self, runtime: MutationRuntime, row: Row, displaced: Row | None) -> None:
        transaction = runtime.transaction
        writer = transaction.writer(self.table.module)
        if displaced is None:
            self.write_guarded(lambda: self.handle.insert(writer, (row,)), row)
            record_changes(transaction, self.table, Operation.INSERT, (), (row,))
            return
        self.eviction.before_overwrite(runtime, (displaced,), (row,))
        self.write_guarded(lambda: self.handle.update(writer, (displaced,), (row,)), row)
        self.eviction.after_overwrite(runtime, (displaced,))
        record_changes(transaction, self.table, Operation.UPDATE, (displaced,), (row,))


class CarefulUpdate(Careful):
    """UPDATE row by row."""

    plan: UpdatePlan

    def run(self, runtime: MutationRuntime) -> MutationOutcome:
        """Update the rows that the source gives."""
        runtime, parts = self.start(runtime)
        build = parts.build
        assert build is not None
        source = parts.read()
        if not self.plan.matches_once:
            source = first_matches(source, [part.column for part in self.table.primary_key.parts])
        width = len(self.plan.old)
        returned: list[Row] = []
        old: list[Row] = []
        new: list[Row] = []

        def update(pair: tuple[Row, Row | Error]) -> None:
            given, row = pair
            if isinstance(row, Error):
                raise row
            before = given[:width]
            now = self.current(runtime, before)
            if now != before:
                if now is None or now in new:
                    # An earlier row of the statement has evicted this one.
                    return
                # An eviction's action has changed it.
                before, row = now, build(now + given[width:])
            stored = self._update(runtime, parts, before, row)
            old.append(before)
            new.append(stored)
            if parts.returning is not None:
                returned.append(parts.returning(stored, before, given))

        changes = runtime.transaction.changes
        start = len(changes)
        self.each(runtime, update, list(zip(source, built(build, source), strict=False)))
        if self.rules.parents is not None and new:
            own = changes[start:]
            del changes[start:]
            self.rules.parents.after(runtime, old, new)
            changes += own
        return MutationOutcome(len(new), returned)

    def _update(self, runtime: MutationRuntime, parts: Parts, old: Row, row: Row) -> Row:
        plan = self.plan
        row = self.complete(parts, row, plan.not_null, parts.substitutes)
        self.judge(plan.checks, parts.violated, row, old, reading=False)
        if self.rules.parents is not None:
            self.rules.parents.before(runtime, (old,), (row,))
        transaction = runtime.transaction
        writer = transaction.writer(self.table.module)
        while conflicts := self.handle.conflicts(writer, row, old):
            conflict = conflicts[0]
            action = self.action_of(conflict.constraint)
            if action is not ConflictAction.REPLACE:
                raise self.fail(self.key_error(conflict.constraint, row), action)
            self.eviction.evict(runtime, conflict.existing)
        self.write_guarded(lambda: self.handle.update(writer, (old,), (row,)), row)
        record_changes(transaction, self.table, Operation.UPDATE, (old,), (row,))
        self.judge(plan.checks, parts.violated, row, old, reading=True)
        self.judge_parents(runtime, row)
        self.defer(runtime, row, old)
        return row


class CarefulDelete(Careful):
    """DELETE row by row."""

    def run(self, runtime: MutationRuntime) -> MutationOutcome:
        """Delete the rows that the source gives."""
        runtime, parts = self.start(runtime)
        source = parts.read()
        if not getattr(self.plan, "matches_once", True):
            source = first_matches(source, [part.column for part in self.table.primary_key.parts])
        width = len(self.plan.old)
        returned: list[Row] = []
        gone: list[Row] = []
        kept: list[Row] = []
        transaction = runtime.transaction
        writer = transaction.writer(self.table.module)

        def delete(given: Row) -> None:
            row = given[:width]
            self.judge(self.plan.checks, parts.violated, row, row, reading=False)
            self.judge(self.plan.checks, parts.violated, row, row, reading=True)
            gone.append(row)
            kept.append(given)

        self.each(runtime, delete, source)
        if self.rules.parents is not None and gone:
            self.rules.parents.before(runtime, gone)
        for row, given in zip(gone, kept, strict=True):
            self.handle.delete(writer, (row,))
            if self.rules.deferred is not None:
                self.rules.deferred.enqueue(runtime, (), (row,))
            if self.rules.parents is not None:
                self.rules.parents.after(runtime, (row,))
            record_changes(transaction, self.table, Operation.DELETE, (row,), ())
            if parts.returning is not None:
                returned.append(parts.returning(row, row, given))
        return MutationOutcome(len(gone), returned)
