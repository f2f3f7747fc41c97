"""Source that the programs of INSERT, UPDATE and DELETE have in common.

Variables have fixed names: ``new`` and ``old`` are lists of rows, ``n`` and ``o``
one of each; ``source`` is what the source plan gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from quereus_store.errors import (
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
)
from quereus_store.execute.codegen import kernels
from quereus_store.execute.codegen.expressions import ExpressionCompiler
from quereus_store.execute.codegen.fragments import Strict, tuple_display
from quereus_store.execute.codegen.pipeline import column_ids
from quereus_store.execute.dml.changes import Change, is_watched, record_changes
from quereus_store.execute.dml.generation import Loop, MutationCompiler, columns_of, row_display
from quereus_store.execute.dml.outcome import MutationOutcome, Trouble
from quereus_store.execute.dml.rules import StatementRules
from quereus_store.modules.contract import Row, UniqueViolation
from quereus_store.plan.expressions import Arithmetic, BoundExpression
from quereus_store.plan.mutations import GeneratedPlan, MutationPlan
from quereus_store.plan.nodes import PlanNode, referenced_columns
from quereus_store.schema.objects import Operation, TableSchema
from quereus_store.types import REAL

TROUBLE = (
    Trouble,
    UniqueViolation,
    IntegrityError,
    DataError,
    ProgrammingError,
    NotSupportedError,
    InterfaceError,
)
"""What makes the careful way necessary; errors too, since another row's may come first.

Not those of the storage (a full disk, a damaged page): nothing gets better by trying again.
"""


def failures(
    compiler: MutationCompiler, rules: StatementRules, key_error: Callable[..., Error], retry: str
) -> None:
    """What follows the program's ``try``.

    A key that is taken is the statement's error if that is all it can mean: every other test has been
    passed by all rows, and the module has named the first row in the way.
    """
    module = compiler.module
    if rules.keys_abort:
        with module.block(f"except {module.helper(UniqueViolation)} as violation:"):
            error = f"{module.bind('key_error', key_error)}(violation.constraint, violation.row)"
            module.line(f"raise {error} from None")
    with module.block(f"except {module.bind('trouble', TROUBLE)}:"):
        module.line(retry)


def all_rows(compiler: MutationCompiler, plan: PlanNode) -> str:
    """Source of a list with all rows of a plan."""
    return f"{compiler.module.helper(kernels.gather)}({compiler.rows_of(plan)})"


def cells(
    compiler: MutationCompiler,
    expressions: ExpressionCompiler,
    row: Sequence[BoundExpression | None],
    converts: Sequence[bool],
    table: TableSchema,
    ready: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """Source of a row built from expressions, converted where asked; None where a generated column stands.

    ``ready`` names the variables that hold cells which are finished already.
    """
    items: list[str] = []
    for position, (value, convert, column) in enumerate(zip(row, converts, table.columns, strict=True)):
        if value is None:
            items.append("None")
        elif position in ready:
            items.append(ready[position])
        elif convert:
            items.append(compiler.cell(expressions.value(value), column, value.type))
        else:
            items.append(_element(compiler, expressions, value))
    return tuple_display(items)


def _element(compiler: MutationCompiler, expressions: ExpressionCompiler, value: BoundExpression) -> str:
    """Source of a value that stands in a row, hence where a result can be given a name.

    Arithmetic with reals is NULL where it overflows: infinities and NaN less themselves are not zero.
    """
    strict = expressions.strict(value) if isinstance(value, Arithmetic) and value.type is REAL else None
    if strict is None:
        return expressions.value(value)
    result = compiler.module.name("v")
    source = f"({result} if ({result} := {strict.source}) - {result} == 0.0 else None)"
    return Strict(source, strict.guards).value()


def fill_generated(compiler: MutationCompiler, plan: MutationPlan, rows: str = "new") -> None:
    """Compute the generated columns of new rows, each over the rows with the earlier ones filled in."""
    for generated, expression in zip(plan.generated, optimized_generated(compiler, plan), strict=True):
        loop = compiler.loop(rows, "n", columns_of("n", plan.new))
        value = generated_cell(compiler, loop.expressions, generated, expression, plan.table)
        row = row_display("n", {generated.position: value}, len(plan.table.columns))
        compiler.module.line(f"{rows} = {loop.comprehension(row)}")


def optimized_generated(compiler: MutationCompiler, plan: MutationPlan) -> tuple[BoundExpression, ...]:
    """The expressions of the generated columns."""
    return compiler.workshop.optimize_all([item.expression for item in plan.generated], plan.new)


def generated_cell(
    compiler: MutationCompiler,
    expressions: ExpressionCompiler,
    generated: GeneratedPlan,
    expression: BoundExpression,
    table: TableSchema,
) -> str:
    """Source of one generated value."""
    value = expressions.value(expression)
    if generated.converts:
        return compiler.cell(value, table.columns[generated.position], expression.type)
    return value


def refuse_offenders(
    compiler: MutationCompiler, plan: MutationPlan, rules: StatementRules, rows: str = "new"
) -> None:
    """Leave the fast way if any row violates a NOT NULL or a CHECK."""
    read = [check.expression for check in rules.immediate]
    pairs = pair_loop(compiler, plan, read, rules.operation, rows)
    conditions = []
    if rules.operation is not Operation.DELETE:
        conditions += [f"n[{item.position}] is None" for item in plan.not_null]
    conditions += [pairs.expressions.condition(check.expression, False) for check in rules.immediate]
    if conditions:
        found = pairs.comprehension("1", " or ".join(conditions))
        with compiler.module.block(f"if {found}:"):
            compiler.module.line(f"raise {compiler.module.helper(Trouble)}")


def pair_loop(
    compiler: MutationCompiler,
    plan: MutationPlan,
    expressions: Iterable[BoundExpression],
    operation: Operation,
    rows: str = "new",
) -> Loop:
    """A loop over the rows of the statement that has both images at hand if the expressions read both."""
    new, old = columns_of("n", plan.new), columns_of("o", plan.old)
    if operation is Operation.DELETE:
        return compiler.loop("old", "o", old, {"o": column_ids(plan.old)})
    if operation is Operation.UPDATE:
        read: set[int] = set()
        for expression in expressions:
            read |= referenced_columns(expression)
        if read & set(old):
            return compiler.loop(f"zip({rows}, old)", "n, o", {**new, **old})
    return compiler.loop(rows, "n", new, {"n": column_ids(plan.new)})


def after_write(compiler: MutationCompiler, plan: MutationPlan, rules: StatementRules) -> None:
    """Everything that follows a successful write: the log, deferred checks, keys' actions, the outcome."""
    module = compiler.module
    deleting = rules.operation is Operation.DELETE
    old = "()" if rules.operation is Operation.INSERT else "old"
    new = "()" if deleting else "new"
    if rules.deferred is not None:
        before = "None" if rules.operation is Operation.INSERT else "old"
        module.line(f"{module.bind('deferred', rules.deferred)}.enqueue(rt, {new}, {before})")
    for check in rules.children:
        if plan.conflict is None:
            module.line(f"{module.bind('child', check)}.after_write(rt, new)")
    if rules.parents is not None:
        module.line(f"{module.bind('parents', rules.parents)}.after(rt, old{'' if deleting else ', new'})")
    # What a key's actions did to children stands in the log before what caused it.
    log(compiler, plan.table, rules.operation, old, new)
    rows = "old" if deleting else "new"
    module.line(
        f"return {module.helper(MutationOutcome)}(len({rows}), {returning_rows(compiler, plan, rules)})"
    )


def log(compiler: MutationCompiler, table: TableSchema, operation: Operation, old: str, new: str) -> None:
    """Write the entry into the change log."""
    module, workshop = compiler.module, compiler.workshop
    arguments = f"{module.bind('schema', table)}, {module.bind('operation', operation)}, {old}, {new}"
    if is_watched(workshop.engine, workshop.context.catalog, table):
        module.line(f"rt.transaction.changes.append({module.helper(Change)}({arguments}))")
        return
    with module.block("if rt.transaction.engine.records_changes:"):
        module.line(f"{module.helper(record_changes)}(rt.transaction, {arguments})")


def returning_rows(compiler: MutationCompiler, plan: MutationPlan, rules: StatementRules) -> str:
    """Source of RETURNING's rows."""
    returning = plan.returning
    if returning is None:
        return "[]"
    columns = (*plan.new, *plan.old, *plan.beside)
    expressions = compiler.workshop.optimize_all(returning.expressions, columns)
    loop = pair_loop(compiler, plan, expressions, rules.operation)
    if plan.beside:
        bindings = {**columns_of("n", plan.new), **columns_of("o", plan.old), **beside_columns(plan)}
        rows = "old, old" if rules.operation is Operation.DELETE else "new, old"
        loop = compiler.loop(f"zip({rows}, source)", "n, o, s", bindings)
    return loop.comprehension(tuple_display(loop.expressions.values(expressions)))


def beside_columns(plan: MutationPlan) -> dict[int, str]:
    """Where the columns of FROM or USING that RETURNING reads stand in a source row ``s``."""
    columns = columns_of("s", plan.source.columns)
    return {column.id: columns[column.id] for column in plan.beside}


def is_row(row: Sequence[BoundExpression | None], ids: Sequence[int], converts: Sequence[bool]) -> bool:
    """Whether a row built from expressions is just the row with these columns."""
    return (
        not any(converts)
        and len(row) == len(ids)
        and all(getattr(value, "id", None) == column_id for value, column_id in zip(row, ids, strict=True))
    )


def first_matches(rows: list[Row], keys: Sequence[int]) -> list[Row]:
    """The rows without those whose key has been met before."""
    seen: dict[str, Row] = {}
    for row in rows:
        seen.setdefault(repr([row[key] for key in keys]), row)
    return list(seen.values())
