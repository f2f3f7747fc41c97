"""The fast program of UPDATE.

Where the rows come from the target alone, the source gives stored rows and the
new ones are made of them in one comprehension::

    old = gather((point_row(table0, x0, (p1,)),))
    new = [(o[0], p0, o[2]) for o in old]
    table0.update(x0, old, new)

With FROM the source gives old row and assigned values side by side.
"""

from __future__ import annotations

from collections.abc import Mapping

from quereus_store.execute.codegen.pipeline import column_ids
from quereus_store.execute.dml import emission
from quereus_store.execute.dml.conflicts import CarefulUpdate
from quereus_store.execute.dml.generation import MutationCompiler, columns_of
from quereus_store.execute.dml.outcome import Trouble
from quereus_store.execute.dml.rules import StatementRules
from quereus_store.plan.expressions import BoundExpression, ColumnRef
from quereus_store.plan.mutations import UpdatePlan
from quereus_store.plan.nodes import PlanNode, Project, substitute


def write_update(
    compiler: MutationCompiler,
    plan: UpdatePlan,
    source: PlanNode,
    rules: StatementRules,
    careful: CarefulUpdate,
) -> None:
    """Write ``program(rt)``, which gives the outcome."""
    module = compiler.module
    table, writer = compiler.table(plan.table), compiler.writer(plan.table)
    retry = f"return {module.bind('careful', careful.run)}(rt)"
    if rules.always_careful:
        module.line(retry)
        return
    target, rows, bindings, row = _read(compiler, plan, source)
    with module.block("try:"):
        loop = compiler.loop(rows, target, bindings)
        element = emission.cells(compiler, loop.expressions, row, plan.converts, plan.table)
        module.line(f"new = {loop.comprehension(element)}")
        emission.fill_generated(compiler, plan)
        emission.refuse_offenders(compiler, plan, rules)
        if rules.parents is not None:
            module.line(f"{module.bind('parents', rules.parents)}.before(rt, old, new)")
        if plan.conflict is not None and rules.children:
            tests = [
                f"{module.bind('child', check)}.orphans(rt.transaction, new)" for check in rules.children
            ]
            with module.block(f"if {' or '.join(tests)}:"):
                module.line(f"raise {module.helper(Trouble)}")
        module.line(f"{table}.update({writer}, old, new)")
    emission.failures(compiler, rules, careful.key_error, retry)
    emission.after_write(compiler, plan, rules)


def _read(
    compiler: MutationCompiler, plan: UpdatePlan, source: PlanNode
) -> tuple[str, str, dict[int, str], list[BoundExpression | None]]:
    """Write ``old``; the loop that makes new rows (variable, list, columns) and the row's expressions."""
    module = compiler.module
    if (
        plan.matches_once
        and isinstance(source, Project)
        and column_ids(source.input.columns) == column_ids(plan.old)
    ):
        module.line(f"old = {emission.all_rows(compiler, source.input)}")
        return "o", "old", columns_of("o", plan.old), over_old(plan, source)
    module.line(f"source = {emission.all_rows(compiler, source)}")
    if not plan.matches_once:
        keys = tuple(part.column for part in plan.table.primary_key.parts)
        module.line(f"source = {module.helper(emission.first_matches)}(source, {keys!r})")
    module.line(f"old = [s[:{len(plan.old)}] for s in source]")
    return "s", "source", columns_of("s", plan.source.columns), list(plan.row)


def over_old(plan: UpdatePlan, source: Project) -> list[BoundExpression | None]:
    """The new row's expressions over the old row alone."""
    mapping: Mapping[int, BoundExpression] = {
        column.id: expression
        for column, expression in zip(source.columns, source.expressions, strict=True)
        if not (isinstance(expression, ColumnRef) and expression.id == column.id)
    }
    return [None if value is None else substitute(value, dict(mapping)) for value in plan.row]
