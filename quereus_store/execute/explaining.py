"""The plan of a statement as a tree of steps, with measured figures where it was run for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.prepared import PreparedMutation, PreparedQuery
from quereus_store.execute.transactions import ReadView
from quereus_store.plan.explain import PlanLine, explain_plan
from quereus_store.plan.tree import PlanStep, assemble
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_NANOSECONDS = 1_000_000


def plan_tree(session: Session, statement: nodes.Statement, parameters: Any) -> PlanStep:
    """The plan of a query or row change, which is not run; raises UNSUPPORTED for other statements."""
    prepared = session.prepare(statement, parameters)
    if isinstance(prepared, PreparedQuery):
        return _query(session, prepared, None)
    return _mutation(session, prepared, None)


def measured_tree(session: Session, statement: nodes.Statement, parameters: Any) -> PlanStep:
    """The plan of a query or row change with what was measured when it ran; it does what it always does.

    Raises UNSUPPORTED for other statements.
    """
    prepared, meters = session.run_measured(statement, parameters)
    if isinstance(prepared, PreparedQuery):
        return _query(session, prepared, meters)
    tree = _mutation(session, prepared, meters)
    below = sum(child.total_milliseconds or 0.0 for child in tree.children)
    own = max(meters.nanoseconds / _NANOSECONDS - below, 0.0)
    return replace(tree, rows=meters.rows, runs=1, milliseconds=own)


def _query(session: Session, prepared: PreparedQuery, meters: Meters | None) -> PlanStep:
    steps = [(line.depth, _step(line, meters)) for line in explain_plan(prepared.plan, session.engine)]
    return assemble(steps)[0]


def _mutation(session: Session, prepared: PreparedMutation, meters: Meters | None) -> PlanStep:
    """The change, then where its rows come from, then the maintained tables that follow."""
    plan = prepared.plan
    verb = type(plan).__name__.removesuffix("Plan").upper()
    lines = list(explain_plan(prepared.compiled.source_plan, session.engine))
    source = [(line.depth + 1, _step(line, meters)) for line in lines]
    head = PlanStep(verb, plan.table.qualified_name, lines[0].rows)
    return assemble([(0, head), *source, *_followers(session, prepared)])[0]


def _followers(session: Session, prepared: PreparedMutation) -> Iterator[tuple[int, PlanStep]]:
    """What follows a change, as the maintenance tells it in indented lines."""
    for line in follower_lines(session, prepared):
        text = line.lstrip(" ")
        operator, _, detail = text.partition(" ")
        yield (len(line) - len(text)) // 2 + 1, PlanStep(operator, detail)


def follower_lines(session: Session, prepared: PreparedMutation) -> list[str]:
    """The maintained tables that follow a change, and how."""
    maintenance = session.engine.maintenance
    if maintenance is None:
        return []
    if session.transaction is not None:
        return maintenance.explain(session.transaction.catalog, prepared.plan.table)
    view = ReadView(session.engine)
    try:
        return maintenance.explain(view.catalog, prepared.plan.table)
    finally:
        view.release()


def _step(line: PlanLine, meters: Meters | None) -> PlanStep:
    measure = None
    if meters is not None and line.operator != "SUBQUERY":
        measure = meters.measure_of(line.node)
    if measure is None:
        return PlanStep(line.operator, line.detail, line.rows)
    milliseconds = measure.nanoseconds / _NANOSECONDS
    return PlanStep(line.operator, line.detail, line.rows, measure.rows, measure.runs, milliseconds)
