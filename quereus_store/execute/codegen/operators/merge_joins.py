"""Merge joins: the right rows that a batch of the left may meet, in a window that moves along.

::

    window0 = MergeWindow(pieces0(), None, False)
    for batch0 in table0.scan(x0):
        lookup0 = window0.upto([r0[0] for r0 in batch0[:1] + batch0[-1:]])
        yield [(r0[1], r1[1]) for r0 in batch0 for r1 in (lookup0(r0[0]),) if r1 is not None]

Within a batch it is a hash join, which in Python is faster than comparing rows one by one;
what the order saves is memory, and the rows of the right that come after the last of the left.
"""

from __future__ import annotations

from quereus_store.execute.codegen.compiler import QueryCompiler, operator
from quereus_store.execute.codegen.merging import MergeWindow, rows_by_key
from quereus_store.execute.codegen.operators.joins import Matches, attach, attach_single, join_key
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.plan import nodes
from quereus_store.plan.analysis import holds_unique_key
from quereus_store.plan.costs import keys_suffice
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.nodes import JoinKind
from quereus_store.types.sortkeys import order_key


@operator(nodes.MergeJoin)
def merge_join(compiler: QueryCompiler, node: nodes.MergeJoin) -> Pipeline:
    """The left pipeline goes on, with a window of the right for each of its batches."""
    module = compiler.module
    left, ends = _with_ends(compiler, node.left, node.left_order)
    unique = holds_unique_key(node.right, node.right_keys, node.using)
    keys_only = keys_suffice(node.kind, node.residual)
    pieces = _write_pieces(compiler, node, unique, keys_only)
    recipe = order_key(node.left_order.type, False, compiler.services.collation(node.using[0]))
    order = "None" if recipe.function is None else module.bind("order", recipe.function)
    window, lookup = module.name("window"), module.name("lookup")
    left.prologue.append(
        f"{window} = {module.helper(MergeWindow)}({pieces}, {order}, {not (unique or keys_only)})"
    )
    left.per_batch.append(f"{lookup} = {window}.upto({ends})")
    key = join_key(compiler, left, node.left_keys, node.using)
    if keys_only:
        left.clauses.append(Clause("if", f"{'' if node.kind is JoinKind.SEMI else 'not '}{lookup}({key})"))
        return left
    if unique:
        return attach_single(compiler, node, left, f"{lookup}({key}", f"{lookup}({key})")
    matches = Matches(f"{lookup}({key}, ", node.right, has_default=True)
    return attach(compiler, node.kind, left, matches, node.residual, node.left_flag, node.right_flag)


def _with_ends(compiler: QueryCompiler, plan: nodes.PlanNode, order: BoundExpression) -> tuple[Pipeline, str]:
    """An open pipeline, and source of the list of its batch's first and last ordering value.

    They are read off the batch as it comes, before any clause of the pipeline leaves rows out.
    """
    pipeline = compiler.open(plan)
    scope = compiler.scope(pipeline)
    column: int = order.id  # type: ignore[attr-defined]
    source = pipeline.bindings.get(column)
    raw = pipeline.loop.source == pipeline.batch
    if not raw or source is None or not source.startswith(f"{pipeline.loop.target}["):
        rows = compiler.close(pipeline, column_ids(plan.columns))
        pipeline = compiler.over_batches(rows, plan.columns)
        scope = compiler.scope(pipeline)
        source = scope.column(column)
    batch = pipeline.batch
    return pipeline, f"[{source} for {pipeline.loop.target} in {batch}[:1] + {batch}[-1:]]"


def _write_pieces(compiler: QueryCompiler, node: nodes.MergeJoin, unique: bool, keys_only: bool) -> str:
    """Write the generator of the right side's batches by key; source of a call."""
    module = compiler.module
    right, ends = _with_ends(compiler, node.right, node.right_order)
    row = compiler.row_source(right, column_ids(node.right.columns))
    compiled = compiler.expressions(right)
    present = " and ".join(compiled.null_test(key, False) for key in node.right_keys if key.nullable)
    if present:
        right.clauses.append(Clause("if", present))
    key = join_key(compiler, right, node.right_keys, node.using)
    loop = compiler.comprehension(right)
    if keys_only:
        rows = f"dict.fromkeys([{key} {loop}], True)"
    elif unique:
        rows = f"{{{key}: {row} {loop}}}"
    else:
        rows = f"{module.helper(rows_by_key)}([({key}, {row}) {loop}])"
    name = module.name("pieces")
    with module.block(f"def {name}():"):
        compiler.batch_loop(right, f"yield {ends}, {rows}")
    return f"{name}()"
