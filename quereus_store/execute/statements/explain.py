"""EXPLAIN: the plan as a tree, the generated code, or the plan with measured figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quereus_store.execute.explaining import follower_lines, measured_tree
from quereus_store.execute.prepared import PreparedMutation, PreparedQuery
from quereus_store.execute.results import Result
from quereus_store.plan.explain import plan_lines
from quereus_store.plan.expressions import Column
from quereus_store.sql import nodes
from quereus_store.types import INTEGER, REAL, TEXT

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_COLUMNS = (Column(1, "detail", TEXT, False),)

_MEASURED_COLUMNS = (
    *_COLUMNS,
    Column(2, "estimated_rows", INTEGER),
    Column(3, "rows", INTEGER),
    Column(4, "runs", INTEGER),
    Column(5, "milliseconds", REAL),
)


def explain(session: Session, statement: nodes.Explain, parameters: Any) -> Result:
    """One row a line; nothing is run but with ANALYZE, which does what the statement does.

    Raises UNSUPPORTED for statements that are neither queries nor row changes.
    """
    if statement.kind is nodes.ExplainKind.ANALYZE:
        return _measured(session, statement.statement, parameters)
    prepared = session.prepare(statement.statement, parameters)
    if statement.kind is nodes.ExplainKind.CODE:
        lines = prepared.source.splitlines()
    else:
        lines = _plan(session, prepared)
    return Result(_COLUMNS, [[(line,) for line in lines]])


def _measured(session: Session, statement: nodes.Statement, parameters: Any) -> Result:
    rows: list[tuple[Any, ...]] = []
    for step, depth in measured_tree(session, statement, parameters).walk():
        estimated = None if step.estimated_rows is None else round(step.estimated_rows)
        time = None if step.milliseconds is None else round(step.milliseconds, 3)
        rows.append(("  " * depth + step.text, estimated, step.rows, step.runs, time))
    return Result(_MEASURED_COLUMNS, [rows])


def _plan(session: Session, prepared: PreparedQuery | PreparedMutation) -> list[str]:
    if isinstance(prepared, PreparedQuery):
        return plan_lines(prepared.plan, session.engine)
    return prepared.plan_lines(session.engine) + follower_lines(session, prepared)
