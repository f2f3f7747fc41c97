"""INSERT, UPDATE and DELETE (dml-transactions-constraints, sections 1 to 11).

:func:`bind_mutation` binds a statement of its own, :func:`bind_relation` one that
stands where a relation does and gives its RETURNING rows (section 7).
"""

from __future__ import annotations

from quereus_store.errors import StatusCode, sql_error
from quereus_store.plan.binder import dml_insert, dml_update, view_writes
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.mutations import MutationPlan
from quereus_store.plan.nodes import MutationScan, PlanNode
from quereus_store.sql import nodes


def bind_mutation(context: BindContext, node: nodes.DataModification) -> MutationPlan:
    """Bind a statement that changes rows.

    Raises ERROR, NOTFOUND, MISMATCH, READONLY, SYNTAX or UNSUPPORTED.
    """
    return bind_mutation_in(Environment.of(context, leading=True), node)


def bind_mutation_in(environment: Environment, node: nodes.DataModification) -> MutationPlan:
    """Bind a mutation within an environment."""
    if not view_writes.is_table(environment, node):
        return view_writes.bind_view_mutation(environment, node, bind_mutation_in)
    if isinstance(node, nodes.Insert):
        return dml_insert.bind_insert(environment, node)
    if isinstance(node, nodes.Update):
        return dml_update.bind_update(environment, node)
    return dml_update.bind_delete(environment, node)


def verb_of(node: nodes.DataModification) -> str:
    """INSERT, UPDATE or DELETE."""
    return type(node).__name__.upper()


def bind_relation(environment: Environment, node: nodes.DataModification) -> PlanNode:
    """The RETURNING rows of a mutation that stands where a relation does."""
    if not node.returning:
        raise sql_error(
            StatusCode.ERROR,
            f"{verb_of(node)} in a relation position must have a RETURNING clause.",
            node.position,
        )
    plan = bind_mutation_in(environment, node)
    assert plan.returning is not None
    return MutationScan(plan.returning.columns, plan, environment.context.number())
