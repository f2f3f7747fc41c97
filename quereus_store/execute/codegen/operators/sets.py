"""UNION, INTERSECT, EXCEPT and DIFF, with membership flags."""

from __future__ import annotations

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, operator
from quereus_store.execute.codegen.operators.rows import distinct_source, row_identity
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.execute.spilling.sets import SpillingSet
from quereus_store.plan import nodes


@operator(nodes.SetOperation)
def set_operation(compiler: QueryCompiler, node: nodes.SetOperation) -> Pipeline:
    """UNION streams both inputs; the others gather them, or hand them to a kernel that spills."""
    if node.left_flag is not None or node.right_flag is not None:
        return _flagged(compiler, node)
    left, right = compiler.rows_of(node.left), compiler.rows_of(node.right)
    module = compiler.module
    if node.kind is nodes.SetKind.UNION:
        name = module.name("union")
        with module.block(f"def {name}():"):
            module.line(f"yield from {left}")
            module.line(f"yield from {right}")
        source = f"{name}()"
        if not node.all:
            key = row_identity(compiler, node.columns, node.using)
            source = distinct_source(compiler, source, key)
        return compiler.over_batches(source, node.columns)
    key = row_identity(compiler, node.columns, node.using)
    if compiler.memory_limit:
        return compiler.over_batches(_spilling(compiler, node, key, left, right), node.columns)
    gather = module.helper(kernels.gather)
    kernel = module.helper(kernels.set_operation)
    rows = f"{kernel}({node.kind.value!r}, {node.all}, {gather}({left}), {gather}({right}), {key})"
    return compiler.over_batches(f"{module.helper(kernels.in_batches)}({rows})", node.columns)


def _spilling(
    compiler: QueryCompiler, node: nodes.SetOperation, key: str, left: str, right: str, flagged: bool = False
) -> str:
    """Source of the batches of a set operation that may go to a temporary file."""
    kernel = compiler.module.helper(SpillingSet)
    arguments = f"{node.kind.value!r}, {node.all}, {flagged}, {key}, {compiler.share()}"
    return f"{kernel}({arguments}).rows({left}, {right})"


def _flagged(compiler: QueryCompiler, node: nodes.SetOperation) -> Pipeline:
    """A set operation that also tells in which inputs each row is.

    Flags that an operand brings along are no part of a row's identity; rows the
    other operand lacks get false.
    """
    module = compiler.module
    own = {flag for flag in (node.left_flag, node.right_flag) if flag is not None}
    columns = [column for column in node.columns if column.id not in own]
    width = len(columns)
    left = compiler.close(compiler.open(node.left), column_ids(node.left.columns)[:width])
    right = compiler.close(compiler.open(node.right), column_ids(node.right.columns)[:width])
    key = row_identity(compiler, columns, node.using[:width])
    if compiler.memory_limit:
        source = _spilling(compiler, node, key, left, right, flagged=True)
    else:
        gather, kernel = module.helper(kernels.gather), module.helper(kernels.flagged_union)
        source = f"({kernel}({gather}({left}), {gather}({right}), {key}, {node.kind.value!r}, {node.all}),)"
    batch, row = module.name("batch"), module.name("r")
    in_left, in_right = module.name("l"), module.name("l")
    bindings = {column.id: f"{row}[{index}]" for index, column in enumerate(columns)}
    if node.left_flag is not None:
        bindings[node.left_flag] = in_left
    if node.right_flag is not None:
        bindings[node.right_flag] = in_right
    return Pipeline(
        source=source,
        batch=batch,
        loop=Clause("for", batch, f"({row}, {in_left}, {in_right})"),
        bindings=bindings,
    )
