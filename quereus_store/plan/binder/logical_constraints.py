"""The constraints of a logical table, as checks of the mutations that write through it (section 14).

Every constraint is a predicate over the logical row, written as syntax under a qualifier for that
row.  Where the row that is written to the basis gives all columns that a predicate reads, it is
bound over them.  Where it does not (a body over several tables), the predicate is asked of all rows
of the view that the written row is part of, when the transaction commits.

Chapter: view-updates-and-lenses, section 14.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quereus_store.plan.binder.context import Environment
from quereus_store.plan.binder.decompositions import Decomposition, decomposition_of
from quereus_store.plan.binder.expressions import ExpressionBinder
from quereus_store.plan.binder.logical_keys import KeyClass, LogicalKey
from quereus_store.plan.binder.logical_lineage import LogicalLineage, basis_names
from quereus_store.plan.binder.logical_references import (
    Referrer,
    child_predicate,
    referrers,
    unreferred_predicate,
)
from quereus_store.plan.binder.logical_syntax import (
    ROW,
    WrittenRow,
    all_of,
    column,
    count_of_equals,
    exists,
    is_same,
    negated,
)
from quereus_store.plan.binder.scopes import RowImage, RowScope
from quereus_store.plan.expressions import BoundExpression, Literal, subplans
from quereus_store.plan.mutations import CheckPlan
from quereus_store.schema.expressions import row_references
from quereus_store.schema.objects import (
    CheckConstraint,
    ConflictAction,
    Operation,
    ReferentialAction,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes
from quereus_store.sql.traversal import transform
from quereus_store.types import ANY

_WRITES = frozenset({Operation.INSERT, Operation.UPDATE})
_REFUSING = (ReferentialAction.RESTRICT, ReferentialAction.NO_ACTION)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One constraint as a predicate of the row under :data:`ROW`, and what its violation is told."""

    predicate: nodes.Expression
    columns: frozenset[str]
    shown: CheckConstraint
    operations: frozenset[Operation]
    at_commit: bool = False
    direct_only: bool = False


@dataclass(frozen=True, slots=True)
class LogicalConstraints:
    """The constraints of one logical table; ``environment`` is where its declaration stands."""

    environment: Environment
    view: ViewSchema
    table: TableSchema
    lineage: LogicalLineage
    keys: tuple[LogicalKey, ...]

    @property
    def enforces_references(self) -> bool:
        """Whether foreign keys are checked (option ``foreign_keys``)."""
        return bool(self.environment.context.options.get("foreign_keys", True))

    def decomposition(self) -> Decomposition | None:
        """The decomposition that the table is kept in."""
        catalog = self.environment.context.catalog
        schema = catalog.schema(self.table.schema)
        logical = self.view.logical
        if schema is None or schema.lens is None or logical is None or logical.decomposition is None:
            return None
        return decomposition_of(catalog, schema.lens.basis, self.table)

    def referrers(self) -> list[Referrer]:
        """The foreign keys of logical tables that refer to this one."""
        if not self.enforces_references:
            return []
        return referrers(self.environment.context.catalog, self.table)

    def plans(self, row: WrittenRow, operation: Operation) -> tuple[CheckPlan, ...]:
        """The checks that judge an operation on one basis table."""
        plans: list[CheckPlan] = []
        for rule in (*self._rules(row), *self._restrictions(operation)):
            if operation in rule.operations:
                plans += self._plan(rule, row, operation)
        return tuple(plans)

    def row_checks(self, image: RowImage) -> list[tuple[CheckConstraint, BoundExpression]]:
        """The CHECKs that a row which is inserted can be judged by before it is in pieces."""
        found: list[tuple[CheckConstraint, BoundExpression]] = []
        for check in self.table.checks:
            rule = self._check(check)
            if Operation.INSERT not in check.operations or not rule.columns <= image.keys():
                continue
            bound = self._binder(WrittenRow(image, {}), image).bind(rule.predicate)
            if not any(True for _ in subplans(bound)):
                found.append((_without_hint(rule.shown), bound))
        return found

    # --- rules ------------------------------------------------------------------

    def _rules(self, row: WrittenRow) -> Iterator[_Rule]:
        yield from self._not_null(row)
        yield from map(self._check, self.table.checks)
        for key in self.keys:
            if key.kind is KeyClass.COMMIT_TIME:
                yield self._key(key)
        if self.enforces_references:
            yield from self._children()

    def _not_null(self, row: WrittenRow) -> Iterator[_Rule]:
        for declared in self.table.columns:
            image = row.new.get(fold(declared.name))
            if declared.nullable or not isinstance(image, BoundExpression) or not image.nullable:
                continue
            test = nodes.IsTest(column(ROW, declared.name), nodes.IsTarget.NULL, negated=True)
            message = f"NOT NULL constraint failed: {self.table.name}.{declared.name}"
            shown = CheckConstraint(
                "lens:not null", test, message=message, conflict=declared.not_null_conflict
            )
            yield _Rule(test, frozenset({fold(declared.name)}), shown, _WRITES)

    def _check(self, check: CheckConstraint) -> _Rule:
        name = f"lens:{check.name}" if check.named else "lens:check"
        read = {
            fold(reference.column)
            for reference in row_references(check.expression)
            if self.table.column_index(reference.column) is not None
        }
        shown = CheckConstraint(name, self._in_basis_terms(check.expression), conflict=check.conflict)
        return _Rule(check.expression, frozenset(read), shown, check.operations)

    def _in_basis_terms(self, expression: nodes.Expression) -> nodes.Expression:
        names = basis_names(self.lineage, self.table)

        def of_new(node: nodes.Node) -> nodes.Node:
            return replace(node, table="NEW") if isinstance(node, nodes.ColumnReference) else node

        def change(node: nodes.Node) -> nodes.Node:
            if isinstance(node, nodes.ColumnReference) and fold(node.column) in names:
                return transform(names[fold(node.column)], of_new)
            return node

        changed = transform(expression, change)
        assert isinstance(changed, nodes.Expression)
        return changed

    def _key(self, key: LogicalKey) -> _Rule:
        names = [self.table.columns[position].name for position in key.columns]
        count = count_of_equals(self.table, names)
        predicate = nodes.BinaryOperation(nodes.BinaryOperator.LESS_EQUAL, count, nodes.Literal.of(1))
        shown = CheckConstraint(key.name, predicate, message=f"CHECK constraint failed: {key.name}")
        return _Rule(predicate, frozenset(map(fold, names)), shown, _WRITES, at_commit=True)

    def _children(self) -> Iterator[_Rule]:
        catalog = self.environment.context.catalog
        for key in self.table.foreign_keys:
            names = [self.table.columns[position].name for position in key.columns]
            predicate = child_predicate(catalog, self.table, key)
            name = f"lens:fk:{key.name}"
            shown = CheckConstraint(name, predicate, message=f"CHECK constraint failed: {name}")
            yield _Rule(predicate, frozenset(map(fold, names)), shown, _WRITES, at_commit=True)

    def _restrictions(self, operation: Operation) -> Iterator[_Rule]:
        """What rows that refer to the old one forbid."""
        if operation is Operation.INSERT:
            return
        for referrer in self.referrers():
            action = referrer.action(operation)
            if action not in _REFUSING:
                continue
            predicate = unreferred_predicate(referrer, changing=operation is Operation.UPDATE)
            message = (
                f"FOREIGN KEY constraint failed: {operation.value.upper()} on '{self.table.name}' violates"
                f" RESTRICT from '{referrer.child.name}'"
            )
            shown = CheckConstraint(
                f"lens:fk:{referrer.key.name}", predicate, message=message, conflict=ConflictAction.ABORT
            )
            columns = frozenset(map(fold, referrer.parent_columns))
            yield _Rule(predicate, columns, shown, frozenset({operation}), direct_only=True)

    # --- binding ----------------------------------------------------------------

    def _plan(self, rule: _Rule, row: WrittenRow, operation: Operation) -> list[CheckPlan]:
        own = row.old if operation is Operation.DELETE else row.new
        if rule.columns <= own.keys():
            bound = self._binder(row, own).bind(rule.predicate)
            reads = any(True for _ in subplans(bound))
            deferred = rule.at_commit or (reads and not rule.direct_only)
            return [CheckPlan(rule.shown, bound, deferred)]
        if rule.direct_only or operation is Operation.DELETE:
            return []
        same = [is_same(column(ROW, name), column("\0t", name)) for name in own]
        violated = negated(
            nodes.FunctionCall(
                "coalesce", (_of_row(rule.predicate, self.table.name, "\0t"), nodes.Literal.of(True))
            )
        )
        there = nodes.TableReference(self.table.name, self.table.schema, "\0t")
        among = negated(exists(there, all_of([*same, violated])))
        return [CheckPlan(_without_hint(rule.shown), self._binder(row, own, "\0own").bind(among), True)]

    def _binder(self, row: WrittenRow, own: RowImage, bare: str = "") -> ExpressionBinder:
        images = {bare: own, ROW: own, fold(self.table.name): own, "new": row.new, "old": row.old}
        if not row.old:
            nothing: RowImage = {name: Literal(ANY, True, None, None) for name in own}
            images["old"] = nothing
        return ExpressionBinder(self.environment, RowScope(images, schema=self.table.schema))


def _without_hint(check: CheckConstraint) -> CheckConstraint:
    """The constraint, told by its name alone."""
    return replace(check, message=check.message or f"CHECK constraint failed: {check.name}")


def _of_row(expression: nodes.Expression, table: str, qualifier: str) -> nodes.Expression:
    """A predicate of the row under another qualifier."""
    own = {ROW, fold(table), "new"}

    def change(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.ColumnReference) and node.table is not None and fold(node.table) in own:
            return replace(node, table=qualifier, schema=None)
        return node

    changed = transform(expression, change)
    assert isinstance(changed, nodes.Expression)
    return changed
