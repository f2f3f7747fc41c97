"""WITH: common tables, and recursion over a working set."""

from __future__ import annotations

from collections import Counter

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, constant_value, operator
from quereus_store.execute.codegen.operators.rows import row_identity
from quereus_store.execute.codegen.pipeline import Pipeline
from quereus_store.execute.spilling.replay import Replay
from quereus_store.plan import nodes
from quereus_store.plan.expressions import subplans


@operator(nodes.With)
def with_tables(compiler: QueryCompiler, node: nodes.With) -> Pipeline:
    """Each table becomes a function; the rows are kept where several readers want them."""
    module = compiler.module
    counts = _readings(node, 1, Counter())
    for table in node.tables:
        rows = compiler.rows_of(table.plan)
        name = module.name("table_")
        kept = counts[table.id] > 1
        with module.block(f"def {name}():"):
            if kept and compiler.memory_limit and not table.shared:
                module.line(f"return {module.helper(Replay)}({rows}, {compiler.share()})")
            elif kept or table.shared:
                module.line(f"return {module.helper(kernels.gather)}({rows})")
            else:
                module.line(f"return {rows}")
        if kept and not table.shared:
            module.line(f"{name} = {module.helper(kernels.once)}({name})")
        if table.shared:
            common = f"rt.common_rows({table.id}, {name})"
            compiler.common_tables[table.id] = f"{module.helper(kernels.in_batches)}({common})"
        elif kept and compiler.memory_limit:
            compiler.common_tables[table.id] = f"{name}().batches()"
        elif kept:
            compiler.common_tables[table.id] = f"{module.helper(kernels.in_batches)}({name}())"
        else:
            compiler.common_tables[table.id] = f"{name}()"
    return compiler.open(node.body)


def _readings(plan: nodes.PlanNode, weight: int, counts: Counter[int]) -> Counter[int]:
    """How often each common table may be read; a mention that may run repeatedly counts as several."""
    for part in nodes.walk_plan(plan):
        if isinstance(part, nodes.CommonTableScan):
            counts[part.table_id] += weight
        if isinstance(part, nodes.Recursion):
            _readings(part.step, weight, counts)
        if isinstance(part, nodes.Join) and part.lateral:
            _readings(part.right, weight, counts)
        for expression in nodes.expressions(part):
            for inner in subplans(expression):
                _readings(inner, 2 * weight, counts)
    return counts


@operator(nodes.CommonTableScan)
def common_table(compiler: QueryCompiler, node: nodes.CommonTableScan) -> Pipeline:
    """The rows of a common table, or of the working set that stands for it."""
    pipeline = compiler.over_batches(compiler.common_tables[node.table_id], node.columns)
    pipeline.only_batch = compiler.working_sets.get(node.table_id, "")
    return pipeline


@operator(nodes.Recursion)
def recursion(compiler: QueryCompiler, node: nodes.Recursion) -> Pipeline:
    """Seed, then rounds over the working set."""
    module = compiler.module
    seed = compiler.rows_of(node.seed)
    working = module.name("working")
    outside = compiler.common_tables.get(node.table_id)
    compiler.common_tables[node.table_id] = f"({working},)"
    compiler.working_sets[node.table_id] = working
    step = module.name("step")
    with module.block(f"def {step}({working}):"):
        module.line(f"return {compiler.list_of(node.step)}")
    if outside is not None:
        compiler.common_tables[node.table_id] = outside
    key = row_identity(compiler, node.columns, ["BINARY"] * len(node.columns))
    kernel = module.helper(kernels.recurse)
    rounds = f"{kernel}({seed}, {step}, {key}, {node.distinct}, {node.rounds}, {node.name!r})"
    source = f"rt.watch.over({rounds})"
    if node.limit is not None or node.offset is not None:
        count = constant_value(compiler, node.limit) if node.limit else "None"
        offset = constant_value(compiler, node.offset) if node.offset else "None"
        source = f"{module.helper(kernels.limit_batches)}({source}, {count}, {offset})"
    return compiler.over_batches(source, node.columns)
