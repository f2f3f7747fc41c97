"""Joins: hash, index lookup, nested loop, lateral.

Where a side has nothing to remember, a join is one more clause of the running
pipeline: ``for r1 in matches(r0[2], EMPTY)``.  A row without a match of an
outer join comes from the default: one row of NULLs.  RIGHT is LEFT with the
sides exchanged, since columns are known by number; FULL remembers which right
rows were met and adds the others at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.compiler import QueryCompiler, operator
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import tuple_display
from quereus_store.execute.codegen.lookups import present_keys, ranges_of_each
from quereus_store.execute.codegen.operators.rows import add_condition
from quereus_store.execute.codegen.operators.scans import table_rows
from quereus_store.execute.codegen.pipeline import Clause, Pipeline, column_ids
from quereus_store.execute.spilling.joining import InnerRows, SpillingFullJoin, SpillingJoin
from quereus_store.modules.contract import AccessKind
from quereus_store.plan import nodes
from quereus_store.plan.analysis import holds_unique_key
from quereus_store.plan.costs import keys_suffice
from quereus_store.plan.expressions import BoundExpression
from quereus_store.plan.nodes import SEMI_JOINS, JoinKind
from quereus_store.records import record
from quereus_store.types.sortkeys import identity_key


@operator(nodes.Join)
def join(compiler: QueryCompiler, node: nodes.Join) -> Pipeline:
    """The join without an equality to exploit: every pair is looked at."""
    if node.kind is JoinKind.RIGHT:
        return join(compiler, _exchanged(node))
    left = compiler.open(node.left)
    if node.lateral:
        return _lateral(compiler, node, left)
    module = compiler.module
    right = compiler.rows_of(node.right)
    rows = module.name("inner")
    matches = Matches(rows, node.right, every_row=rows)
    if compiler.memory_limit:
        is_full = node.kind is JoinKind.FULL
        opened = f"{module.helper(InnerRows)}(rt, {right}, {compiler.share()}, {is_full})"
        left.prologue.append(f"{rows} = {opened}")
        if is_full:
            rest = RightRows(f"{rows}.meet({{row}})", f"{rows}.unmet()")
            return _full(compiler, left, matches, node.condition, node.left_flag, node.right_flag, rest)
    else:
        left.prologue.append(f"{rows} = {module.helper(kernels.inner_rows)}(rt, {right})")
    return attach(compiler, node.kind, left, matches, node.condition, node.left_flag, node.right_flag)


@operator(nodes.HashJoin)
def hash_join(compiler: QueryCompiler, node: nodes.HashJoin) -> Pipeline:
    """Right rows in a dictionary by key, looked up for each left row."""
    if node.kind is JoinKind.RIGHT:
        return hash_join(compiler, _exchanged_hash(node))
    if compiler.memory_limit:
        return (
            _spilling_full(compiler, node) if node.kind is JoinKind.FULL else _spilling_join(compiler, node)
        )
    module = compiler.module
    left = compiler.open(node.left)
    table = module.name("table")
    left.prologue.append(f"{table} = {_write_hash_table(compiler, node)}")
    if keys_suffice(node.kind, node.residual):
        test = "in" if node.kind is JoinKind.SEMI else "not in"
        left.clauses.append(
            Clause("if", f"{join_key(compiler, left, node.left_keys, node.using)} {test} {table}")
        )
        return left
    key = join_key(compiler, left, node.left_keys, node.using)
    if node.kind is JoinKind.FULL:
        every = f"[row for rows in {table}.values() for row in rows]"
        matches = Matches(f"{table}.get({key}, ())", node.right, every)
        return _full(compiler, left, matches, node.residual, node.left_flag, node.right_flag)
    lookup = module.name("lookup")
    left.prologue.append(f"{lookup} = {table}.get")
    if _unique_keys(node):
        return attach_single(compiler, node, left, f"{lookup}({key}", f"{lookup}({key})")
    matches = Matches(f"{lookup}({key}, ", node.right, has_default=True)
    return attach(compiler, node.kind, left, matches, node.residual, node.left_flag, node.right_flag)


def _spilling_join(compiler: QueryCompiler, node: nodes.HashJoin) -> Pipeline:
    """A hash join that may go to a temporary file: both sides are handed, with their keys, to a kernel."""
    module = compiler.module
    left, left_key = _keyed_rows(compiler, node, node.left, node.left_keys)
    right, right_key = _keyed_rows(compiler, node, node.right, node.right_keys, only_present=True)
    keeps_unmatched = node.kind in (JoinKind.LEFT, JoinKind.ANTI)
    one_match = keys_suffice(node.kind, node.residual)
    arguments = f"{left_key}, {right_key}, {keeps_unmatched}, {one_match}, {compiler.share()}"
    source = f"{module.helper(SpillingJoin)}({arguments}).pairs({left}, {right})"
    batch, row, matched = module.name("batch"), module.name("r"), module.name("m")
    ids = column_ids(node.left.columns)
    bindings = {column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)}
    pipeline = Pipeline(source, batch, Clause("for", batch, f"({row}, {matched})"), bindings=bindings)
    matches = Matches(matched, node.right)
    return attach(compiler, node.kind, pipeline, matches, node.residual, node.left_flag, node.right_flag)


def _spilling_full(compiler: QueryCompiler, node: nodes.HashJoin) -> Pipeline:
    """A FULL join that may go to a temporary file: right rows are known by a number at their end."""
    module = compiler.module
    left, left_key = _keyed_rows(compiler, node, node.left, node.left_keys)
    right, right_key = _keyed_rows(compiler, node, node.right, node.right_keys, keeps_unmatchable=True)
    joining = module.name("joining")
    opened = f"{module.helper(SpillingFullJoin)}({left_key}, {right_key}, {compiler.share()})"
    ids = column_ids(node.left.columns)
    row, matched = module.name("r"), module.name("m")
    pipeline = Pipeline(
        source=f"{joining}.pairs({left}, {right})",
        batch=(batch := module.name("batch")),
        loop=Clause("for", batch, f"({row}, {matched})"),
        prologue=[f"{joining} = {opened}"],
        bindings={column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)},
    )
    matches = Matches(matched, node.right)
    rest = RightRows(f"{joining}.meet({{row}})", f"{joining}.unmet()")
    return _full(compiler, pipeline, matches, node.residual, node.left_flag, node.right_flag, rest)


def _keyed_rows(
    compiler: QueryCompiler,
    node: nodes.HashJoin,
    side: nodes.PlanNode,
    keys: Sequence[BoundExpression],
    only_present: bool = False,
    keeps_unmatchable: bool = False,
) -> tuple[str, str]:
    """Source of one side's batches, rows widened by their keys, and of a function from a row to its hash key.

    ``only_present`` leaves out rows with a NULL in their key, which match nothing; ``keeps_unmatchable``
    has them under a hash key that no row of the other side has.
    """
    module = compiler.module
    pipeline = compiler.open(side)
    ids = column_ids(side.columns)
    if only_present:
        present = [compiler.expressions(pipeline).null_test(key, False) for key in keys if key.nullable]
        if present:
            pipeline.clauses.append(Clause("if", " and ".join(present)))

    def row(compiled: ExpressionCompiler) -> str:
        return tuple_display([*map(compiled.scope.column, ids), *compiled.values(keys)])

    parts = []
    for index, (key, using) in enumerate(zip(keys, node.using, strict=True)):
        recipe = identity_key(key.type, key.nullable, compiler.services.collation(using))
        parts.append(module.render(recipe.template, f"row[{len(ids) + index}]"))
    rows = compiler.close_values(pipeline, row)
    source = parts[0] if len(parts) == 1 else tuple_display(parts)
    nullable = [f"row[{len(ids) + index}] is None" for index, key in enumerate(keys) if key.nullable]
    if keeps_unmatchable and nullable:
        unmatchable = module.bind("unmatchable", kernels.UNMATCHABLE)
        source = f"{unmatchable} if {' or '.join(nullable)} else {source}"
    return rows, f"lambda row: {source}"


def null_row(columns: Sequence[int]) -> tuple[None, ...]:
    """A row that stands for no match, known by its identity: there is only one empty tuple."""
    return (None,) * max(1, len(columns))


def _unique_keys(node: nodes.HashJoin) -> bool:
    """Whether no two right rows can have the same hash key."""
    return node.kind is not JoinKind.FULL and holds_unique_key(node.right, node.right_keys, node.using)


def attach_single(
    compiler: QueryCompiler,
    node: nodes.HashJoin | nodes.MergeJoin,
    left: Pipeline,
    call: str,
    found: str,
) -> Pipeline:
    """Continue the left pipeline where each row has at most one match: no lists, no inner loop."""
    module = compiler.module
    row = module.name("r")
    ids = column_ids(node.right.columns)
    bindings = {column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)}
    nulls = module.bind("nulls", null_row(ids))
    outer = node.kind is JoinKind.LEFT
    if outer and node.residual is None:
        left.clauses.append(Clause("for", f"({call}, {nulls}),)", row))
    elif node.kind is JoinKind.ANTI and node.residual is None:
        left.clauses.append(Clause("if", f"{found} is None"))
        return left
    else:
        left.clauses.append(Clause("for", f"({found},)", row))
        test = _pair_condition(compiler, left, bindings, node.residual)
        if outer:
            kept = f"({row} if {row} is not None and {test} else {nulls},)"
            row = module.name("r")
            left.clauses.append(Clause("for", kept, row))
            bindings = {column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)}
        elif node.kind is JoinKind.ANTI:
            left.clauses.append(Clause("if", f"{row} is None or not ({test})"))
            return left
        else:
            left.clauses.append(Clause("if", f"{row} is not None{f' and {test}' if test else ''}"))
    if node.kind is JoinKind.SEMI:
        return left
    left.bindings.update(bindings)
    if not outer:
        left.whole[row] = ids
    if node.right_flag is not None:
        left.bindings[node.right_flag] = f"({row} is not {nulls})" if outer else "True"
    if node.left_flag is not None:
        left.bindings[node.left_flag] = "True"
    return left


@record(frozen=True, slots=True)
class Matches:
    """The candidates of the other side for a left row.

    ``source`` gives a list of right rows; with ``has_default`` it is a call still
    open for the default of a missing key.  ``every_row`` lists all right rows.
    """

    source: str
    plan: nodes.PlanNode
    every_row: str = ""
    has_default: bool = False

    def candidates(self, default: str = "()") -> str:
        """Source of the candidates, or of the default where there are none and a default is possible."""
        return f"{self.source}{default})" if self.has_default else self.source


@record(frozen=True, slots=True)
class RightRows:
    """How a FULL join knows the right rows that were met.

    ``meet`` is the call, None in the end, that notes ``{row}``, which may be the row of NULLs; ``unmet``
    gives batches of the others.
    """

    meet: str
    unmet: str


def _exchanged(node: nodes.Join) -> nodes.Join:
    return replace(
        node,
        kind=JoinKind.LEFT,
        left=node.right,
        right=node.left,
        left_flag=node.right_flag,
        right_flag=node.left_flag,
    )


def _exchanged_hash(node: nodes.HashJoin) -> nodes.HashJoin:
    return replace(
        node,
        kind=JoinKind.LEFT,
        left=node.right,
        right=node.left,
        left_keys=node.right_keys,
        right_keys=node.left_keys,
        left_flag=node.right_flag,
        right_flag=node.left_flag,
    )


def _write_hash_table(compiler: QueryCompiler, node: nodes.HashJoin) -> str:
    """Write the function that builds the dictionary; source of a call.

    A row with a NULL in its key matches nothing and is left out; a FULL join
    keeps it under a key that is never asked for.
    """
    module = compiler.module
    right = compiler.open(node.right)
    row = compiler.row_source(right, column_ids(node.right.columns))
    compiled = compiler.expressions(right)
    present = " and ".join(compiled.null_test(key, False) for key in node.right_keys if key.nullable)
    if present and node.kind is not JoinKind.FULL:
        right.clauses.append(Clause("if", present))
    key = join_key(compiler, right, node.right_keys, node.using)
    if present and node.kind is JoinKind.FULL:
        key = f"{key} if {present} else {module.bind('unmatchable', kernels.UNMATCHABLE)}"
    position = _position_in_rows(right, row, key)
    if position is not None and _unique_keys(node) and not keys_suffice(node.kind, node.residual):
        return f"{module.helper(kernels.rows_by)}({right.source}, {position})"
    name = module.name("hashed")
    with module.block(f"def {name}():"):
        if keys_suffice(node.kind, node.residual):
            module.line("table = set()")
            compiler.batch_loop(right, f"table.update([{key} {compiler.comprehension(right)}])")
        elif _unique_keys(node):
            module.line("table = {}")
            update = f"table.update({{{key}: {row} {compiler.comprehension(right)}}})"
            compiler.batch_loop(right, update)
        else:
            module.line(f"table = {module.helper(defaultdict)}(list)")
            compiler.row_loop(right, [f"table[{key}].append({row})"])
        module.line("return table")
    return f"{name}()"


def _position_in_rows(pipeline: Pipeline, row: str, key: str) -> int | None:
    """Where the key stands in the rows, if these are the batches' own and it is one of their columns."""
    if row != pipeline.loop.target or pipeline.clauses or pipeline.per_batch or pipeline.prologue:
        return None
    stands = [index for index in range(len(pipeline.whole[row])) if key == f"{row}[{index}]"]
    return stands[0] if stands else None


def join_key(
    compiler: QueryCompiler, pipeline: Pipeline, keys: Sequence[BoundExpression], collations: Sequence[str]
) -> str:
    """Source of a row's hash key; equal keys mean SQL equality of all pairs."""
    compiled = compiler.expressions(pipeline)
    parts = []
    for expression, using in zip(keys, collations, strict=True):
        recipe = identity_key(expression.type, expression.nullable, compiler.services.collation(using))
        source = compiled.value(expression)
        if not recipe.is_plain:
            source = compiler.module.render(recipe.template, compiler.variable(pipeline, source))
        parts.append(source)
    return parts[0] if len(parts) == 1 else tuple_display(parts)


def attach(
    compiler: QueryCompiler,
    kind: JoinKind,
    left: Pipeline,
    matches: Matches,
    condition: BoundExpression | None,
    left_flag: int | None,
    right_flag: int | None,
) -> Pipeline:
    """Continue the left pipeline with each row's matches."""
    module = compiler.module
    if kind is JoinKind.FULL:
        return _full(compiler, left, matches, condition, left_flag, right_flag)
    row = module.name("r")
    ids = column_ids(matches.plan.columns)
    right_bindings = {column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)}
    nulls = module.bind("nulls", (null_row(ids),))
    if kind in SEMI_JOINS:
        return _semi(compiler, kind, left, matches, condition, row, right_bindings)
    if kind in (JoinKind.INNER, JoinKind.CROSS):
        left.clauses.append(Clause("for", matches.candidates(), row))
        left.bindings.update(right_bindings)
        left.whole[row] = ids
        if condition is not None:
            add_condition(compiler, left, condition)
    else:
        source = matches.candidates(nulls) if condition is None and matches.has_default else None
        if source is None:
            candidates = matches.candidates()
            test = _pair_condition(compiler, left, right_bindings, condition)
            source = f"([{row} for {row} in {candidates}{f' if {test}' if test else ''}] or {nulls})"
        left.clauses.append(Clause("for", source, row))
        left.bindings.update(right_bindings)
    if right_flag is not None:
        left.bindings[right_flag] = f"({row} is not {nulls}[0])" if kind is JoinKind.LEFT else "True"
    if left_flag is not None:
        left.bindings[left_flag] = "True"
    return left


def _pair_condition(
    compiler: QueryCompiler,
    left: Pipeline,
    right_bindings: dict[int, str],
    condition: BoundExpression | None,
) -> str:
    """Source of a condition over a left row and a candidate; left columns it needs are computed before."""
    if condition is None:
        return ""
    scope = compiler.scope(left)
    for column_id in sorted(nodes.referenced_columns(condition)):
        if column_id in left.pending:
            scope.column(column_id)
    pair = replace(left, bindings={**left.bindings, **right_bindings}, clauses=list(left.clauses), pending={})
    return ExpressionCompiler(compiler.scope(pair)).condition(condition)


def _semi(
    compiler: QueryCompiler,
    kind: JoinKind,
    left: Pipeline,
    matches: Matches,
    condition: BoundExpression | None,
    row: str,
    right_bindings: dict[int, str],
) -> Pipeline:
    candidates = matches.candidates()
    test = _pair_condition(compiler, left, right_bindings, condition)
    found = candidates
    if test:
        found = f"any(True for {row} in {candidates} if {test})"
    left.clauses.append(Clause("if", found if kind is JoinKind.SEMI else f"not {found}"))
    return left


def _full(
    compiler: QueryCompiler,
    left: Pipeline,
    matches: Matches,
    condition: BoundExpression | None,
    left_flag: int | None,
    right_flag: int | None,
    rest: RightRows | None = None,
) -> Pipeline:
    """LEFT, remembering which right rows were met (by identity, but for ``rest``); then those never met."""
    module = compiler.module
    row = module.name("r")
    ids = column_ids(matches.plan.columns)
    right_bindings = {column_id: f"{row}[{index}]" for index, column_id in enumerate(ids)}
    test = _pair_condition(compiler, left, right_bindings, condition)
    nulls = module.bind("nulls", (null_row(ids),))
    if rest is None:
        met = module.name("met")
        left.prologue.append(f"{met} = set()")
        unmet = f"([row for row in {matches.every_row} if id(row) not in {met}],)"
        rest = RightRows(f"{met}.add(id({{row}}))", unmet)
    own = [*left.bindings, *(column for column in left.pending if column not in left.bindings)]
    scope = compiler.scope(left)
    own_sources = [scope.column(column_id) for column_id in own]
    candidates = f"[{row} for {row} in {matches.source}{f' if {test}' if test else ''}]"
    left.clauses.append(Clause("for", f"({candidates} or {nulls})", row))
    left.clauses.append(Clause("if", f"{rest.meet.format(row=row)} is None"))
    name = module.name("full")
    output = tuple_display([*own_sources, row, "True", f"{row} is not {nulls}[0]"])
    with module.block(f"def {name}():"):
        for line in left.prologue:
            module.line(line)
        with module.block(f"for {left.batch} in {left.source}:"):
            for line in left.per_batch:
                module.line(line)
            module.line(compiler.yielding(left, output))
        padding = ", ".join(["None"] * len(own))
        alone = f"({padding}{', ' if own else ''}row, False, True)"
        with module.block(f"for rows in {rest.unmet}:"):
            module.line(f"yield [{alone} for row in rows]")
    batch, joined = module.name("batch"), module.name("r")
    width = len(own)
    bindings = {column_id: f"{joined}[{index}]" for index, column_id in enumerate(own)}
    bindings |= {column_id: f"{joined}[{width}][{index}]" for index, column_id in enumerate(ids)}
    if left_flag is not None:
        bindings[left_flag] = f"{joined}[{width + 1}]"
    if right_flag is not None:
        bindings[right_flag] = f"{joined}[{width + 2}]"
    return Pipeline(f"{name}()", batch, Clause("for", batch, joined), bindings=bindings)


def _lateral(compiler: QueryCompiler, node: nodes.Join, left: Pipeline) -> Pipeline:
    """The right side is a function of left columns."""
    module = compiler.module
    free = sorted(nodes.free_columns(node.right))
    scope = compiler.scope(left)
    arguments = [scope.column(column) for column in free]
    gather = module.helper(kernels.gather)
    name = compiler.define_function("lateral", node.right, free, lambda rows: f"{gather}({rows})")
    once = "_once" if not free and compiler.is_evaluated_once(node.right) else ""
    matches = Matches(f"{name}{once}({', '.join(arguments)})", node.right)
    return attach(compiler, node.kind, left, matches, node.condition, node.left_flag, node.right_flag)


@operator(nodes.IndexJoin)
def index_join(compiler: QueryCompiler, node: nodes.IndexJoin) -> Pipeline:
    """Looks the right table up for a batch of left rows in one call."""
    module = compiler.module
    left = compiler.open(node.left)
    scope = compiler.scope(left)
    for part in node.inner.prefix:
        for column_id in sorted(nodes.referenced_columns(part)):
            scope.column(column_id)
    compiler.materialise_rows(left)
    compiled = compiler.expressions(left)
    key = tuple_display(compiled.values(node.inner.prefix))
    batch = left.loop.source
    keys, found = module.name("keys"), module.name("found")
    table = compiler.table(node.inner.table)
    transaction = compiler.transaction(node.inner.table, node.inner.committed)
    point = node.inner.access.path.kind is AccessKind.POINT
    if point:
        find, arguments = f"{table}.points", [transaction, keys]
    else:
        path = module.bind("path", node.inner.access.path)
        find, arguments = module.helper(ranges_of_each), [table, transaction, path, keys]
    if any(part.nullable for part in node.inner.prefix):
        missing = "None" if point else "()"
        find, arguments = module.helper(present_keys), [find, missing, *arguments]
    call = f"{find}({', '.join(arguments)})"
    left.per_batch += [f"{keys} = [{key} for {left.loop.target} in {batch}]", f"{found} = {call}"]
    if compiler.meters is not None:
        left.per_batch.append(compiler.meters.found(module, node.inner, found, point))
    matched = module.name("m")
    target = f"({left.loop.target}, {matched})"
    left.loop = Clause("for", f"zip({batch}, {found})", target)
    inner = table_rows(compiler, "", node.inner)
    inner_row = inner.loop.target
    candidates = f"(({matched},) if {matched} is not None else ())" if point else matched
    return _attach_inner(compiler, node, left, inner, inner_row, candidates)


def _attach_inner(
    compiler: QueryCompiler,
    node: nodes.IndexJoin,
    left: Pipeline,
    inner: Pipeline,
    row: str,
    candidates: str,
) -> Pipeline:
    module = compiler.module
    test = _pair_condition(compiler, left, inner.bindings, node.residual)
    nulls = module.bind("nulls", ((None,) * len(node.inner.table.columns),))
    if node.kind in SEMI_JOINS:
        found = f"any(True for {row} in {candidates} if {test})" if test else candidates
        left.clauses.append(Clause("if", found if node.kind is JoinKind.SEMI else f"not {found}"))
        return left
    if node.kind is JoinKind.LEFT:
        matching = f"[{row} for {row} in {candidates} if {test}]" if test else candidates
        left.clauses.append(Clause("for", f"({matching} or {nulls})", row))
        left.bindings.update(inner.bindings)
        if node.right_flag is not None:
            left.bindings[node.right_flag] = f"({row} is not {nulls}[0])"
        return left
    left.clauses.append(Clause("for", candidates, row))
    left.bindings.update(inner.bindings)
    left.whole.update(inner.whole)
    if node.residual is not None:
        add_condition(compiler, left, node.residual)
    return left
