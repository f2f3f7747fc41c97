"""UPDATE and DELETE by primary key for many sets of parameters at once (``executemany``).

All keys are looked up in one call, the rows found are changed in one::

    def program(rt):
        x0 = rt.transactions[0]
        source = [r for r in rt.parameter_rows if r[2] is not None]
        keys = [(r[2],) for r in source]
        found = look_up(rt, table0, x0, keys)
        pairs = [(o, r) for o, r in zip(found, source) if o is not None]
        old = [o for o, r in pairs]
        different(old, (0,))
        new = [(o[0], r[0], r[1]) for o, r in pairs]
        table0.update(x0, old, new)

That is what the sets one by one would do if each meets a row of its own, if no expression reads a table
and if nothing that a change brings about comes back to the table.  All but the first can be told from the
statement (:func:`keyed_sets`).  Where a row is met twice, or a constraint is violated by any, the program
raises :class:`Trouble` before it has written anything, and the sets are run one by one.

A DELETE of which nothing but the keys matters (no index, no foreign key, nobody who wants to see the rows)
hands the table the keys, if it takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quereus_store.errors import Error
from quereus_store.execute.codegen.compiler import preamble_of
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.kernels import BATCH_SIZE
from quereus_store.execute.codegen.pipeline import column_ids
from quereus_store.execute.dml import emission
from quereus_store.execute.dml.changes import is_watched
from quereus_store.execute.dml.foreign_keys.references import references_to
from quereus_store.execute.dml.generation import MutationCompiler, Workshop, columns_of
from quereus_store.execute.dml.outcome import MutationOutcome, Trouble
from quereus_store.execute.dml.rules import StatementRules
from quereus_store.execute.dml.runtime import MutationRuntime, Reads, open_all, reads_of
from quereus_store.execute.dml.update import over_old
from quereus_store.modules.contract import AccessKind, DeletesByKey, Row, Table
from quereus_store.plan.expressions import (
    BoundExpression,
    Column,
    Literal,
    Parameter,
    map_children,
    reference,
    subplans,
    walk,
)
from quereus_store.plan.mutations import DeletePlan, UpdatePlan
from quereus_store.plan.nodes import Filter, IndexAccess, PlanNode, Project
from quereus_store.schema.objects import Catalog, TableSchema


@dataclass(frozen=True, slots=True)
class KeyedSets:
    """The program for many sets.

    ``cells`` are parameters that are read once, as the whole new value of a column: slot and column.
    """

    program: Callable[[Any], MutationOutcome]
    reads: Reads
    cells: dict[int | str, int]

    def run(self, session: Any, transaction: Any, rows: list[Row]) -> MutationOutcome:
        """Change what the sets name; raises Trouble, with nothing written, where they must go one by one."""
        return self.program(
            MutationRuntime(session, transaction, (), open_all(self.reads, transaction), rows)
        )


@dataclass(slots=True)
class _Shape:
    """What the program works with: key and further condition of a row, and the cells of its new image."""

    key: Sequence[BoundExpression]
    conditions: list[BoundExpression]
    row: list[BoundExpression | None]

    def expressions(self) -> Iterator[BoundExpression]:
        yield from self.key
        yield from self.conditions
        yield from (value for value in self.row if value is not None)


def keyed_sets(
    workshop: Workshop,
    plan: UpdatePlan | DeletePlan,
    source: PlanNode,
    rules: StatementRules,
    key_error: Callable[..., Error],
) -> KeyedSets | None:
    """The program of a statement over its optimized source; None where sets may depend on each other."""
    shape = _shape(plan, source)
    if (
        shape is None
        or rules.always_careful
        or not rules.keys_abort
        or not _independent(workshop, plan, shape)
    ):
        return None
    slots = {
        part.slot: part
        for value in shape.expressions()
        for part in walk(value)
        if isinstance(part, Parameter)
    }
    if not slots or not all(isinstance(slot, int) for slot in slots):
        return None
    return _compiled(workshop, plan, shape, rules, key_error, slots)


def _shape(plan: UpdatePlan | DeletePlan, source: PlanNode) -> _Shape | None:
    """Take the source apart: a point of the primary key, filters, and the new values; None for all else."""
    row: list[BoundExpression | None] = []
    if isinstance(plan, UpdatePlan):
        if not isinstance(source, Project) or column_ids(source.input.columns) != column_ids(plan.old):
            return None
        row = over_old(plan, source)
        source = source.input
    conditions = []
    while isinstance(source, Filter):
        conditions.append(source.predicate)
        source = source.input
    if (
        not plan.matches_once
        or not isinstance(source, IndexAccess)
        or source.access.path.kind is not AccessKind.POINT
        or source.committed
        or source.table is not plan.table
        or column_ids(source.columns) != column_ids(plan.old)
        or not source.prefix
    ):
        return None
    return _Shape(source.prefix, conditions, row)


def _independent(workshop: Workshop, plan: UpdatePlan | DeletePlan, shape: _Shape) -> bool:
    """Whether no set can see or touch what another does, as long as they name different rows."""
    if plan.common_tables or plan.context.values or plan.conflict is not None:
        return False
    table = plan.table
    key = {part.column for part in table.primary_key.parts}
    if isinstance(plan, UpdatePlan) and key & {*plan.assigned, *(item.position for item in plan.generated)}:
        return False
    if any(isinstance(value, Literal) for value in shape.key):
        return False
    others = [
        *(item.expression for item in plan.generated),
        *(check.expression for check in plan.checks if not check.deferred),
        *(item.substitute for item in plan.not_null if item.substitute is not None),
        *(plan.returning.expressions if plan.returning else ()),
    ]
    deferred = [check.expression for check in plan.checks if check.deferred]
    if any(isinstance(part, Parameter) for value in (*others, *deferred) for part in walk(value)):
        return False
    if any(True for value in (*shape.expressions(), *others) for _ in subplans(value)):
        return False
    return not workshop.enforces_keys or not _comes_back(workshop.context.catalog, table)


def _comes_back(catalog: Catalog, table: TableSchema) -> bool:
    """Whether foreign keys lead from the table's children, or theirs, to the table itself."""
    seen: list[TableSchema] = []
    ahead = [table]
    while ahead:
        for found in references_to(catalog, ahead.pop()):
            if found.child is table:
                return True
            if found.child not in seen:
                seen.append(found.child)
                ahead.append(found.child)
    return False


def _compiled(
    workshop: Workshop,
    plan: UpdatePlan | DeletePlan,
    shape: _Shape,
    rules: StatementRules,
    key_error: Callable[..., Error],
    slots: dict[int | str, Parameter],
) -> KeyedSets:
    columns: dict[int | str, Column] = {
        slot: Column(workshop.context.number(), str(slot), parameter.type, parameter.nullable)
        for slot, parameter in slots.items()
    }
    compiler = MutationCompiler(workshop)
    module = compiler.module
    given = {column.id: f"r[{slot}]" for slot, column in columns.items()}
    both = {**columns_of("o", plan.old), **given}
    with module.block("def program(rt):"):
        table, writer = compiler.table(plan.table), compiler.writer(plan.table)
        _keys(compiler, shape, columns, given)
        if _needs_keys_alone(workshop, plan, shape, rules):
            with module.block("if not rt.transaction.engine.records_changes and not rt.watch.active:"):
                deleted = f"{table}.delete_keys({writer}, keys)"
                module.line(f"return {module.helper(MutationOutcome)}({deleted}, [])")
        module.line(f"found = {module.helper(look_up)}(rt, {table}, {writer}, keys)")
        if shape.conditions or isinstance(plan, UpdatePlan):
            pairs = compiler.loop("zip(found, source)", "o, r", both)
            conditions = [
                pairs.expressions.condition(_over_columns(condition, columns))
                for condition in shape.conditions
            ]
            matching = " and ".join(["o is not None", *conditions])
            module.line(f"pairs = {pairs.comprehension('(o, r)', matching)}")
            module.line("old = [o for o, r in pairs]")
        else:
            module.line("old = [o for o in found if o is not None]")
        keys = tuple(part.column for part in plan.table.primary_key.parts)
        if isinstance(plan, UpdatePlan):
            module.line(f"{module.helper(refuse_repeated)}(old, {keys!r})")
            _update(compiler, plan, shape, rules, columns, both, table, writer)
        else:
            module.line(f"old = {module.helper(each_once)}(old, {keys!r})")
            _delete(compiler, plan, rules, table, writer)
        emission.failures(compiler, rules, key_error, f"raise {module.helper(Trouble)} from None")
        emission.after_write(compiler, plan, rules)
    module.fill_preamble(preamble_of(compiler))
    return KeyedSets(module.compile("program"), reads_of(compiler.transactions, rules.written), _cells(shape))


def _needs_keys_alone(
    workshop: Workshop, plan: UpdatePlan | DeletePlan, shape: _Shape, rules: StatementRules
) -> bool:
    """Whether rows can go without anybody having seen them (those who listen are asked at run time)."""
    table = plan.table
    return (
        isinstance(plan, DeletePlan)
        and not (shape.conditions or plan.checks or plan.returning or table.indexes)
        and rules.parents is None
        and not is_watched(workshop.engine, workshop.context.catalog, table)
        and isinstance(workshop.engine.table(table), DeletesByKey)
    )


def _keys(
    compiler: MutationCompiler, shape: _Shape, columns: dict[int | str, Column], given: dict[int, str]
) -> None:
    """``source``, the sets whose keys are known, and their ``keys``."""
    module = compiler.module
    loop = compiler.loop("rt.parameter_rows", "r", given)
    key = [loop.expressions.value(_over_columns(value, columns)) for value in shape.key]
    if any(value.nullable for value in shape.key):
        known = " and ".join(f"{value} is not None" for value in key)
        module.line(f"source = {loop.comprehension('r', known)}")
        loop = compiler.loop("source", "r", given)
        key = [loop.expressions.value(_over_columns(value, columns)) for value in shape.key]
    else:
        module.line("source = rt.parameter_rows")
    module.line(f"keys = {loop.comprehension(tuple_display(key))}")


def _update(
    compiler: MutationCompiler,
    plan: UpdatePlan,
    shape: _Shape,
    rules: StatementRules,
    columns: dict[int | str, Column],
    both: dict[int, str],
    table: str,
    writer: str,
) -> None:
    module = compiler.module
    row = [None if value is None else _over_columns(value, columns) for value in shape.row]
    with module.block("try:"):
        loop = compiler.loop("pairs", "o, r", both)
        element = emission.cells(compiler, loop.expressions, row, plan.converts, plan.table)
        module.line(f"new = {loop.comprehension(element)}")
        emission.fill_generated(compiler, plan)
        emission.refuse_offenders(compiler, plan, rules)
        if rules.parents is not None:
            module.line(f"{module.bind('parents', rules.parents)}.before(rt, old, new)")
        module.line(f"{table}.update({writer}, old, new)")


def _delete(
    compiler: MutationCompiler, plan: DeletePlan, rules: StatementRules, table: str, writer: str
) -> None:
    module = compiler.module
    with module.block("try:"):
        emission.refuse_offenders(compiler, plan, rules)
        if rules.parents is not None:
            module.line(f"{module.bind('parents', rules.parents)}.before(rt, old)")
        module.line(f"{table}.delete({writer}, old)")


def _over_columns(expression: BoundExpression, columns: dict[int | str, Column]) -> BoundExpression:
    """The expression with columns in the place of parameters."""
    if isinstance(expression, Parameter):
        return reference(columns[expression.slot])
    return map_children(expression, lambda child: _over_columns(child, columns))


def _cells(shape: _Shape) -> dict[int | str, int]:
    """The parameters that are nothing but the value of one column."""
    uses = [part.slot for value in shape.expressions() for part in walk(value) if isinstance(part, Parameter)]
    return {
        value.slot: position
        for position, value in enumerate(shape.row)
        if isinstance(value, Parameter) and uses.count(value.slot) == 1
    }


def _keys_of(rows: Sequence[Row], key: Sequence[int]) -> list[Any]:
    (first, *others) = key
    return (
        [row[first] for row in rows] if not others else [tuple([row[part] for part in key]) for row in rows]
    )


def look_up(runtime: Any, table: Table, transaction: Any, keys: list[Any]) -> list[Row | None]:
    """The rows of all keys; where somebody watches, a batch at a time."""
    if not runtime.watch.active:
        return table.points(transaction, keys)
    found: list[Row | None] = []
    for start in range(0, len(keys), BATCH_SIZE):
        batch = keys[start : start + BATCH_SIZE]
        runtime.watch.step(len(batch))
        found += table.points(transaction, batch)
    return found


def refuse_repeated(rows: Sequence[Row], key: Sequence[int]) -> None:
    """Raise Trouble if a row stands there twice."""
    try:
        different = len(set(_keys_of(rows, key)))
    except TypeError:
        raise Trouble from None
    if different < len(rows):
        raise Trouble


def each_once(rows: list[Row], key: Sequence[int]) -> list[Row]:
    """The rows without those that have been met before; raises Trouble where that cannot be told."""
    keys = _keys_of(rows, key)
    try:
        if len(set(keys)) == len(rows):
            return rows
    except TypeError:
        raise Trouble from None
    first: dict[Any, Row] = {}
    for value, row in zip(keys, rows, strict=True):
        first.setdefault(value, row)
    return list(first.values())
