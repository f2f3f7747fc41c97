"""The fast program of DELETE: read the rows, judge them, remove them together."""

from __future__ import annotations

from quereus_store.execute.dml import emission
from quereus_store.execute.dml.conflicts import CarefulDelete
from quereus_store.execute.dml.generation import MutationCompiler
from quereus_store.execute.dml.rules import StatementRules
from quereus_store.plan.mutations import DeletePlan
from quereus_store.plan.nodes import PlanNode


def write_delete(
    compiler: MutationCompiler,
    plan: DeletePlan,
    source: PlanNode,
    rules: StatementRules,
    careful: CarefulDelete,
) -> None:
    """Write ``program(rt)``, which gives the outcome."""
    module = compiler.module
    table, writer = compiler.table(plan.table), compiler.writer(plan.table)
    retry = f"return {module.bind('careful', careful.run)}(rt)"
    if rules.always_careful:
        module.line(retry)
        return
    rows = "source" if plan.beside else "old"
    module.line(f"{rows} = {emission.all_rows(compiler, source)}")
    if not plan.matches_once:
        keys = tuple(part.column for part in plan.table.primary_key.parts)
        module.line(f"{rows} = {module.helper(emission.first_matches)}({rows}, {keys!r})")
    if plan.beside:
        module.line(f"old = [s[:{len(plan.old)}] for s in source]")
    with module.block("try:"):
        emission.refuse_offenders(compiler, plan, rules)
        if rules.parents is not None:
            module.line(f"{module.bind('parents', rules.parents)}.before(rt, old)")
        module.line(f"{table}.delete({writer}, old)")
    emission.failures(compiler, rules, careful.key_error, retry)
    emission.after_write(compiler, plan, rules)
