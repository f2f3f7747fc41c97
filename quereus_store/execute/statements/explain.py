"""EXPLAIN: the plan as a tree, the generated code, or the plan with measured figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quereus_store.errors import unsupported
from quereus_store.execute.prepared import PreparedMutation, PreparedQuery
from quereus_store.execute.results import Result
from quereus_store.execute.transactions import ReadView
from quereus_store.plan.explain import plan_lines
from quereus_store.plan.expressions import Column
from quereus_store.sql import nodes
from quereus_store.types import TEXT

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_COLUMNS = (Column(1, "detail", TEXT, False),)


def explain(session: Session, statement: nodes.Explain, parameters: Any) -> Result:
    """One row of text per line; nothing is run (but with ANALYZE)."""
    if statement.kind is nodes.ExplainKind.ANALYZE:
        raise unsupported("EXPLAIN ANALYZE", statement.position)
    prepared = session.prepare(statement.statement, parameters)
    if statement.kind is nodes.ExplainKind.CODE:
        lines = prepared.source.splitlines()
    else:
        lines = _plan(session, prepared)
    return Result(_COLUMNS, [[(line,) for line in lines]])


def _plan(session: Session, prepared: PreparedQuery | PreparedMutation) -> list[str]:
    if isinstance(prepared, PreparedQuery):
        return plan_lines(prepared.plan, session.engine)
    return prepared.plan_lines(session.engine) + _followers(session, prepared)


def _followers(session: Session, prepared: PreparedMutation) -> list[str]:
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
