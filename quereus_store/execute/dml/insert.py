"""The fast program of INSERT.

::

    def program(rt):
        x0 = rt.transactions[0]
        source = rt.parameter_rows
        try:
            new = [(r[0], r[1], 0) for r in source]
            if [1 for n in new if n[1] is None]:
                raise Trouble
            table0.insert(x0, new)
        except TROUBLE:
            return careful0(rt, source)
        return MutationOutcome(len(new), [])
"""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.execute.codegen.pipeline import column_ids
from quereus_store.execute.dml import emission
from quereus_store.execute.dml.conflicts import CarefulInsert
from quereus_store.execute.dml.generation import MutationCompiler, columns_of
from quereus_store.execute.dml.keyed import KeyedWriter, expects_conflicts
from quereus_store.execute.dml.outcome import Trouble
from quereus_store.execute.dml.rules import StatementRules
from quereus_store.plan.expressions import BoundExpression, ColumnRef, walk
from quereus_store.plan.mutations import InsertPlan
from quereus_store.plan.nodes import ParameterRows, PlanNode, Values
from quereus_store.types import convert_column


def write_insert(
    compiler: MutationCompiler,
    plan: InsertPlan,
    source: PlanNode,
    rules: StatementRules,
    careful: CarefulInsert,
) -> None:
    """Write ``program(rt)``, which gives the outcome."""
    module = compiler.module
    table, writer = compiler.table(plan.table), compiler.writer(plan.table)
    module.line(f"source = {_source_rows(compiler, source)}")
    retry = f"return {module.bind('careful', careful.run)}(rt, source)"
    if rules.always_careful:
        module.line(retry)
        return
    keyed = KeyedWriter(compiler, plan, rules) if expects_conflicts(plan) else None
    with module.block("try:"):
        _build(compiler, plan)
        emission.fill_generated(compiler, plan)
        emission.refuse_offenders(compiler, plan, rules)
        if keyed is not None:
            keyed.write(table, writer)
        elif plan.conflict is not None and rules.children:
            _insert_with_parents(compiler, table, writer, rules)
        else:
            module.line(f"{table}.insert({writer}, new)")
    emission.failures(compiler, rules, careful.key_error, retry)
    if keyed is not None:
        keyed.finish()
    else:
        emission.after_write(compiler, plan, rules)


def insert_cells(plan: InsertPlan) -> dict[int | str, int]:
    """Parameters that are read once, as the whole value of a column: slot and column."""
    if not isinstance(plan.source, ParameterRows):
        return {}
    slots = {column.id: slot for column, slot in zip(plan.source.columns, plan.source.slots, strict=True)}
    uses = [
        part.id
        for value in plan.row
        if value is not None
        for part in walk(value)
        if isinstance(part, ColumnRef)
    ]
    return {
        slots[value.id]: position
        for position, value in enumerate(plan.row)
        if isinstance(value, ColumnRef) and uses.count(value.id) == 1
    }


def _source_rows(compiler: MutationCompiler, source: PlanNode) -> str:
    if isinstance(source, ParameterRows):
        return "rt.parameter_rows"
    if isinstance(source, Values) and source.rows == ((),):
        return "[()]"
    return emission.all_rows(compiler, source)


def _build(compiler: MutationCompiler, plan: InsertPlan) -> None:
    """``new`` from ``source``, generated columns left out."""
    module = compiler.module
    ids = column_ids(plan.source.columns)
    if emission.is_row(plan.row, ids, plan.converts):
        module.line("new = source")
        return
    given = [value for value in plan.row if value is not None]
    optimized = iter(compiler.workshop.optimize_all(given, plan.source.columns))
    row = [None if value is None else next(optimized) for value in plan.row]
    bindings = columns_of("r", plan.source.columns)
    ready = _convert_columns(compiler, plan, row, bindings)
    rows, target = "source", "r"
    if ready:
        rows, target = f"zip(source, {', '.join(ready.values())})", f"r, {', '.join(ready.values())}"
    loop = compiler.loop(rows, target, bindings, {"r": ids})
    element = emission.cells(compiler, loop.expressions, row, plan.converts, plan.table, ready)
    module.line(f"new = {loop.comprehension(element)}")


def _convert_columns(
    compiler: MutationCompiler,
    plan: InsertPlan,
    row: Sequence[BoundExpression | None],
    bindings: dict[int, str],
) -> dict[int, str]:
    """Convert whole columns of types that cannot be told by a value's class; the variables that hold them."""
    module = compiler.module
    ready: dict[int, str] = {}
    for position, (value, column) in enumerate(zip(row, plan.table.columns, strict=True)):
        if value is None or not plan.converts[position] or len(column.type.clean) != 1:
            continue
        loop = compiler.loop("source", "r", bindings)
        values = loop.comprehension(loop.expressions.value(value))
        name = ready[position] = module.name("column")
        kinds = f"{module.bind('type', column.type)}, {column.name!r}, {module.bind('type', value.type)}"
        module.line(f"{name} = {module.helper(convert_column)}({values}, {kinds})")
    return ready


def _insert_with_parents(compiler: MutationCompiler, table: str, writer: str, rules: StatementRules) -> None:
    """Under an OR clause a missing parent counts at once."""
    module = compiler.module
    module.line(f"token = {writer}.savepoint()")
    module.line(f"{table}.insert({writer}, new)")
    tests = [f"{module.bind('child', check)}.orphans(rt.transaction, new)" for check in rules.children]
    with module.block(f"if {' or '.join(tests)}:"):
        module.line(f"{writer}.rollback_to(token)")
        module.line(f"{writer}.release(token)")
        module.line(f"raise {module.helper(Trouble)}")
    module.line(f"{writer}.release(token)")
