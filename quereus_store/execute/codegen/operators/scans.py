"""Where rows come from: tables, key lookups, literal rows, table functions."""

from __future__ import annotations

from collections.abc import Sequence

from quereus_store.execute.codegen import kernels, lookups
from quereus_store.execute.codegen.compiler import PipelineScope, QueryCompiler, operator
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.functions.registry import guarded_rows
from quereus_store.modules.contract import AccessKind
from quereus_store.plan import nodes
from quereus_store.plan.expressions import BoundExpression, Literal
from quereus_store.schema.objects import IndexPart, KeyPart, TableSchema
from quereus_store.types.logical import BOOLEAN, INTEGER, NUMERIC, REAL, LogicalType
from quereus_store.types.sortkeys import identity_key

_NUMBERS = frozenset({INTEGER, REAL, NUMERIC, BOOLEAN})


@operator(nodes.TableScan)
def table_scan(compiler: QueryCompiler, node: nodes.TableScan) -> Pipeline:
    """All rows, in primary-key order."""
    table = compiler.table(node.table)
    transaction = compiler.transaction(node.table, node.committed)
    return table_rows(compiler, f"rt.watch.over({table}.scan({transaction}))", node)


def table_rows(compiler: QueryCompiler, source: str, node: nodes.TableScan | nodes.IndexAccess) -> Pipeline:
    """A pipeline over batches of whole table rows."""
    row = compiler.module.name("r")
    batch = compiler.module.name("batch")
    ids = column_ids(node.columns)
    whole = {row: ids} if node.positions == tuple(range(len(node.table.columns))) else {}
    return Pipeline(
        source=source,
        batch=batch,
        loop=Clause("for", batch, row),
        bindings={
            column_id: f"{row}[{position}]" for column_id, position in zip(ids, node.positions, strict=True)
        },
        whole=whole,
    )


@operator(nodes.IndexAccess)
def index_access(compiler: QueryCompiler, node: nodes.IndexAccess) -> Pipeline:
    """Rows through an access path."""
    source = access_source(compiler, node)
    if node.access.path.kind is AccessKind.POINT:
        pipeline = table_rows(compiler, f"({source},)", node)
        pipeline.only_batch = source
        return pipeline
    if node.access.path.kind in (AccessKind.SCAN, AccessKind.RANGE):
        source = f"rt.watch.over({source})"
    return table_rows(compiler, source, node)


def access_source(compiler: QueryCompiler, node: nodes.IndexAccess) -> str:
    """Source of the batches that an access path gives; of the only one for a POINT."""
    module = compiler.module
    table = compiler.table(node.table)
    transaction = compiler.transaction(node.table, node.committed)
    path = node.access.path
    values = ExpressionCompiler(PipelineScope(compiler, None))
    if path.kind is AccessKind.SCAN:
        return f"{table}.scan({transaction}{', True' if path.reverse else ''})"
    if path.kind in (AccessKind.POINTS, AccessKind.RANGES):
        keys = _alternative_keys(values, node)
        identity = _key_identity(compiler, node)
        if path.kind is AccessKind.POINTS:
            descending = node.table.primary_key.parts[0].descending
            called = f"{table}, {transaction}, {keys}, {descending}{identity}"
            return f"{module.helper(lookups.points_rows)}({called})"
        bound_path = module.bind("path", path)
        return f"{module.helper(lookups.ranges_rows)}({table}, {transaction}, {bound_path}, {keys}{identity})"
    prefix = tuple_display(values.values(node.prefix)) if node.prefix else "()"
    if path.kind is AccessKind.POINT:
        call = module.helper(lookups.point_row)
        arguments = [table, transaction, prefix]
    else:
        call = module.helper(lookups.range_rows)
        lower, upper = _bound_source(values, node.lower), _bound_source(values, node.upper)
        arguments = [table, transaction, module.bind("path", path), prefix, lower, upper]
    compared = [e for e in (*node.prefix, node.lower, node.upper) if e is not None and _may_miss(e)]
    if not compared:
        return f"{call}({', '.join(arguments)})"
    tested = tuple_display(values.values(compared))
    return f"{module.helper(lookups.unless_null)}({tested}, {call}, {', '.join(arguments)})"


def _may_miss(expression: BoundExpression) -> bool:
    """Whether a compared value may be NULL by chance (a NULL literal stands for IS NULL)."""
    return expression.nullable and not (isinstance(expression, Literal) and expression.value is None)


def _bound_source(values: ExpressionCompiler, bound: BoundExpression | None) -> str:
    return "None" if bound is None else values.value(bound)


def _alternative_keys(values: ExpressionCompiler, node: nodes.IndexAccess) -> str:
    """Source of the list of all keys: the product of the alternatives of each key part."""
    names = [f"k{index}" for index in range(len(node.alternatives))]
    loops = " ".join(
        f"for {name} in {tuple_display(values.values(part))}"
        for name, part in zip(names, node.alternatives, strict=True)
    )
    return f"[{tuple_display(names)} {loops}]"


def _key_identity(compiler: QueryCompiler, node: nodes.IndexAccess) -> str:
    """Source of a further argument: the same for equal keys that do not look alike, as under NOCASE."""
    index = node.access.path.index
    parts: Sequence[KeyPart | IndexPart] = node.table.primary_key.parts
    if index is not None:
        parts = next(each.parts for each in node.table.indexes if each.name.lower() == index.lower())
    cells = [f"key[{position}]" for position in range(len(node.alternatives))]
    identities = [
        _part_identity(compiler, node.table, part, values, cell)
        for part, values, cell in zip(parts, node.alternatives, cells, strict=False)
    ]
    return "" if identities == cells else f", lambda key: {tuple_display(identities)}"


def _part_identity(
    compiler: QueryCompiler,
    table: TableSchema,
    part: KeyPart | IndexPart,
    values: Sequence[BoundExpression],
    cell: str,
) -> str:
    """Source of the identity of one part of a key; the part itself where equal ones look alike."""
    module, collation = compiler.module, compiler.services.collation(part.collation)
    types = {value.type for value in values}
    if len(types) > 1 and not types <= _NUMBERS:
        known = module.bind("identity", identity_key(_part_type(table, part), False, collation).apply)
        return f"{module.helper(lookups.foreign_identity)}({cell}, {known})"
    recipe = identity_key(values[0].type, False, collation)
    return cell if recipe.is_plain else module.render(recipe.template, cell)


def _part_type(table: TableSchema, part: KeyPart | IndexPart) -> LogicalType:
    if isinstance(part, IndexPart):
        return part.type
    return table.columns[part.column].type


@operator(nodes.Values)
def literal_rows(compiler: QueryCompiler, node: nodes.Values) -> Pipeline:
    """Literal rows, or the single empty row of a query without FROM."""
    values = ExpressionCompiler(PipelineScope(compiler, None))
    rows = [tuple_display(values.values(row)) if row else "()" for row in node.rows]
    return compiler.over_batches(f"([{', '.join(rows)}],)", node.columns)


@operator(nodes.ParameterRows)
def parameter_rows(compiler: QueryCompiler, node: nodes.ParameterRows) -> Pipeline:
    """The tuples of parameters that the statement runs for."""
    return compiler.over_batches("(rt.parameter_rows,)", node.columns)


@operator(nodes.GivenRows)
def given_rows(compiler: QueryCompiler, node: nodes.GivenRows) -> Pipeline:
    """Rows that the caller of the program brings along."""
    return compiler.over_batches(f"(rt.given[{node.slot}],)", node.columns)


@operator(nodes.TableFunctionScan)
def table_function(compiler: QueryCompiler, node: nodes.TableFunctionScan) -> Pipeline:
    """The rows of a table-valued function."""
    values = ExpressionCompiler(PipelineScope(compiler, None))
    arguments = values.values(node.arguments)
    if node.function.needs_context:
        arguments.insert(0, "rt")
    types = [argument.type for argument in node.arguments]
    call = guarded_rows(node.function, node.position, types)
    name = compiler.module.bind(f"{node.function.name.lower()}_", call)
    rows = compiler.module.helper(kernels.batches_of)
    return compiler.over_batches(f"rt.watch.over({rows}({name}({', '.join(arguments)})))", node.columns)


@operator(nodes.MutationScan)
def mutation_rows(compiler: QueryCompiler, node: nodes.MutationScan) -> Pipeline:
    """The RETURNING rows of a data-modifying member, which runs when first read."""
    if node.mutation_id not in [mutation_id for mutation_id, _ in compiler.mutations]:
        compiler.mutations.append((node.mutation_id, node.mutation))
    return compiler.over_batches(f"(rt.mutation_rows({node.mutation_id}),)", node.columns)
