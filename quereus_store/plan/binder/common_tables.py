"""WITH: common tables, shared or bound at each use, plain or recursive (queries, section 11)."""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.binder import dml, queries
from quereus_store.plan.binder.context import CommonTableEntry, Environment
from quereus_store.plan.binder.ordering import bind_limit, limit, order_outputs
from quereus_store.plan.binder.relations import check_arity, rename_columns
from quereus_store.plan.binder.scopes import Scope
from quereus_store.plan.binder.syntax import mentions_table
from quereus_store.plan.expressions import Column
from quereus_store.plan.nodes import CommonTable, PlanNode, Recursion, With
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes
from quereus_store.types import ANY, carry_contributions, merge_types

DEFAULT_ROUNDS = 10_000
_WIDENINGS = 3

_MISPLACED_WRITE = (
    "WITH member '{name}' is data-modifying ({verb}), which is only allowed in a statement's own leading WITH"
    " clause — not in a subquery or a stored view/materialized-view body, where the write would either be"
    " dropped or re-driven on every evaluation. Move the mutation to the statement that uses this query."
)


def bind_with(
    environment: Environment, clause: nodes.WithClause, outer: Scope | None
) -> tuple[Environment, tuple[CommonTable, ...]]:
    """Bind the members in order; the environment that sees them all, and those that are shared."""
    tables: list[CommonTable] = []
    entries: dict[str, CommonTableEntry] = {}
    for member in clause.members:
        folded = fold(member.name)
        if folded in entries:
            raise sql_error(
                StatusCode.ERROR, f"Duplicate CTE name '{member.name}' in WITH clause", member.position
            )
        _check_names(member)
        entry, table = _member(environment, clause, member, outer)
        entries[folded] = entry
        if table is not None:
            tables.append(table)
        environment = environment.with_common_tables({folded: entry})
    return environment, tuple(tables)


def _check_names(member: nodes.CommonTableExpression) -> None:
    seen: set[str] = set()
    for name in member.columns:
        if fold(name) in seen:
            raise sql_error(
                StatusCode.ERROR, f"Symbol '{fold(name)}' already exists in the same scope.", member.position
            )
        seen.add(fold(name))


def _member(
    environment: Environment,
    clause: nodes.WithClause,
    member: nodes.CommonTableExpression,
    outer: Scope | None,
) -> tuple[CommonTableEntry, CommonTable | None]:
    query = member.query
    recursive = False
    if not isinstance(query, nodes.Query):
        if not environment.leading:
            verb = dml.verb_of(query)
            raise sql_error(
                StatusCode.ERROR, _MISPLACED_WRITE.format(name=member.name, verb=verb), member.position
            )
        plan: PlanNode = dml.bind_relation(environment.nested(), query)
    elif clause.recursive and mentions_table(query, member.name) and _operands(query) is not None:
        recursive = True
        plan = _recursive(environment.nested(), clause, member, query, outer)
    else:
        plan = queries.bind_query_in(environment.nested(), query, outer)
    if member.columns:
        check_arity(f"CTE '{member.name}'", len(member.columns), plan, member.position)
        plan = rename_columns(plan, member.columns)
    number = environment.context.number()
    if (
        member.materialization is nodes.Materialization.NOT_MATERIALIZED
        and isinstance(query, nodes.Query)
        and not recursive
    ):
        entry = CommonTableEntry(member.name, number, (), query, member.columns, environment.nested(), outer)
        return entry, None
    keep = member.materialization is nodes.Materialization.MATERIALIZED
    table = CommonTable(number, member.name, plan, keep)
    return CommonTableEntry(member.name, number, plan.columns), table


# --- recursion ----------------------------------------------------------------------------------------------


def _operands(query: nodes.Query) -> list[tuple[nodes.SetOperation | None, nodes.QueryBody]] | None:
    """The operands of a body that is a set operation, leftmost first, each with the operator before it."""
    body = query.body
    if not isinstance(body, nodes.SetOperation):
        return None
    chain: list[tuple[nodes.SetOperation | None, nodes.QueryBody]] = []
    while isinstance(body, nodes.SetOperation):
        chain.append((body, body.right))
        body = body.left
    chain.append((None, body))
    chain.reverse()
    return chain


def _recursive(
    environment: Environment,
    clause: nodes.WithClause,
    member: nodes.CommonTableExpression,
    query: nodes.Query,
    outer: Scope | None,
) -> PlanNode:
    """A recursive member: what does not read it is the seed, the rest the step."""
    tables: tuple[CommonTable, ...] = ()
    if query.with_clause is not None:
        environment, tables = bind_with(environment, query.with_clause, outer)
    chain = _operands(query) or []
    first = next((index for index, (_, body) in enumerate(chain) if mentions_table(body, member.name)), 0)
    first = max(first, 1)
    seed_body, step_body = _rejoin(chain[:first]), _rejoin(chain[first:])
    distinct = any(not _keeps_all(operation) for operation, _ in chain[1:])
    seed = queries.bind_body(environment, seed_body, outer)
    seed_names = [column.name for column in seed.columns]
    if member.columns:
        check_arity(f"Recursive CTE '{member.name}'", len(member.columns), seed, member.position)
        seed = rename_columns(seed, member.columns)
    working, step = _widen(environment, member, seed, step_body, outer)
    simple_limit = not query.order_by
    count = offset = None
    if simple_limit:
        count, offset = bind_limit(environment, query.limit, query.offset, outer)
    rounds = DEFAULT_ROUNDS if clause.max_recursion is None else clause.max_recursion
    plan: PlanNode = Recursion(
        tuple(environment.renumbered(working.columns)),
        working.table_id,
        member.name,
        seed,
        step,
        distinct,
        rounds,
        count,
        offset,
        member.position,
    )
    if not simple_limit:
        plan = order_outputs(environment, plan, query.order_by, outer, seed_names)
        plan = limit(environment, plan, query.limit, query.offset, outer)
    return With(plan.columns, tables, plan) if tables else plan


def _keeps_all(operation: nodes.SetOperation | None) -> bool:
    return operation is not None and operation.operator is nodes.SetOperator.UNION and not operation.distinct


def _rejoin(chain: list[tuple[nodes.SetOperation | None, nodes.QueryBody]]) -> nodes.QueryBody:
    """Operands as one body again, left-associative."""
    body = chain[0][1]
    for operation, right in chain[1:]:
        assert operation is not None
        body = replace(operation, left=body, right=right)
    return body


def _widen(
    environment: Environment,
    member: nodes.CommonTableExpression,
    seed: PlanNode,
    step_body: nodes.QueryBody,
    outer: Scope | None,
) -> tuple[CommonTableEntry, PlanNode]:
    """Bind the step over columns wide enough for what seed and step themselves produce."""
    number = environment.context.number()
    columns = tuple(environment.renumbered(seed.columns))
    for attempt in range(_WIDENINGS + 1):
        entry = CommonTableEntry(member.name, number, columns)
        inner = environment.with_common_tables({fold(member.name): entry})
        step = queries.bind_body(inner, step_body, outer)
        if len(step.columns) != len(columns):
            raise sql_error(
                StatusCode.ERROR,
                "SET operation column count mismatch:"
                f" left has {len(columns)}, right has {len(step.columns)}",
                member.position,
            )
        widened = tuple([_merged(a, b) for a, b in zip(columns, step.columns, strict=True)])
        if widened == columns:
            break
        columns = widened
        if attempt == _WIDENINGS - 1:
            columns = tuple(
                [Column(column.id, column.name, ANY, True, column.collation) for column in columns]
            )
    return entry, step


def _merged(own: Column, other: Column) -> Column:
    return Column(
        own.id,
        own.name,
        merge_types((own.type, other.type)),
        own.nullable or other.nullable,
        own.collation
        if own.collation == other.collation
        else carry_contributions((own.collation, other.collation)),
    )
