"""What the introspection functions about plans show (functions, section 12).

``query_plan(sql)`` gives the operators of a statement's physical plan in
pre-order, ``stack_trace(sql)`` the same operators as nested frames, ``scheduler_program(sql)``
the lines of the program that runs.  They prepare the statement as if it were to run, and run nothing;
what runs it and tells what happened is in :mod:`~quereus_store.execute.tracing`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error
from quereus_store.execute.assertion_plans import explain_assertion
from quereus_store.execute.prepared import PreparedMutation, PreparedQuery
from quereus_store.execute.tracing import execution_rows, operator_rows
from quereus_store.execute.transactions import ReadView
from quereus_store.plan import nodes
from quereus_store.plan.explain import PlanLine, explain_plan
from quereus_store.types.json import render_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_Row = tuple[Any, ...]

_NODE_TYPES = {
    nodes.TableScan: "SeqScan",
    nodes.Values: "TableLiteral",
    nodes.TableFunctionScan: "TableFunctionCall",
    nodes.Join: "NestedLoopJoin",
    nodes.Limit: "LimitOffset",
    nodes.TopN: "TopN",
    nodes.CommonTableScan: "CteReference",
    nodes.Recursion: "RecursiveCte",
}


def _change(prepared: PreparedMutation) -> _Row:
    """What ``query_plan`` shows of a row change itself, from its level on, above the plan of its rows."""
    table = prepared.plan.table
    columns = [column.name for column in prepared.columns or ()]
    physical = render_json({"columns": columns})
    text = f"{prepared.verb.upper()} {table.qualified_name}"
    return (0, prepared.verb, prepared.verb.upper(), text, table.name, None, "{}", physical, None, None)


class Diagnostics:
    """The diagnostic functions of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def explain_assertion(self, name: str) -> list[_Row]:
        """How an assertion depends on each table that it reads; raises NOTFOUND for an unknown one."""
        view = self._session.transaction or ReadView(self._session.engine)
        try:
            return list(explain_assertion(self._session, view, name))
        finally:
            if view is not self._session.transaction:
                view.release()

    def query_plan(self, sql: str) -> Iterator[_Row]:
        """The operators of a plan; one ERROR row where the statement cannot be planned."""
        try:
            prepared = self._session.prepare(self._session.single_statement(sql))
            lines = list(self._plan(prepared))
        except Error as failure:
            yield (1, None, 0, "Error", "ERROR", f"Failed to plan SQL: {failure.message}", *[None] * 6)
            return
        yield (1, None, 0, "Block", "BLOCK", "", None, None, "{}", "{}", 0.0, 1)
        top = 1
        if isinstance(prepared, PreparedMutation):
            top = 2
            yield (top, 1, *_change(prepared))
        parents: dict[int, int] = {-1: top}
        for number, (level, line) in enumerate(lines, top + 1):
            parents[line.depth] = number
            yield self._row(number, parents[line.depth - 1], level, line)

    def _plan(self, prepared: PreparedQuery | PreparedMutation) -> Iterator[tuple[int, PlanLine]]:
        plan = prepared.plan if isinstance(prepared, PreparedQuery) else prepared.compiled.source_plan
        level = 0
        inside: list[int] = []
        for line in explain_plan(plan, self._session.engine):
            while inside and line.depth <= inside[-1]:
                inside.pop()
                level -= 1
            if line.operator == "SUBQUERY":
                inside.append(line.depth)
                level += 1
            yield level, line

    @staticmethod
    def _row(number: int, parent: int, level: int, line: PlanLine) -> _Row:
        node = line.node
        kind = "Subquery" if line.operator == "SUBQUERY" else _node_type(node)
        table = getattr(node, "table", None)
        name = table.name if table is not None else None
        physical = {"estimatedRows": round(line.rows), "columns": [column.name for column in node.columns]}
        return (
            number,
            parent,
            level,
            kind,
            kind.upper(),
            line.text,
            name,
            getattr(node, "alias", None),
            render_json({"detail": line.detail}),
            render_json(physical),
            float(round(line.rows)),
            round(line.rows),
        )

    def stack_trace(self, sql: str) -> Iterator[_Row]:
        """A frame for each operator, those that wait for others above them; one frame for a failure."""
        try:
            prepared = self._session.prepare(self._session.single_statement(sql))
            lines = [line for _, line in self._plan(prepared)]
        except Error as failure:
            yield (1, 0, "", None, f"Failed to analyze: {failure.message}", None, 0)
            return
        within: list[str] = []
        for number, line in enumerate(lines, 1):
            del within[line.depth :]
            within += [""] * (line.depth - len(within)) + [line.operator]
            node = line.node
            table, function = getattr(node, "table", None), getattr(node, "function", None)
            source = table.name if table is not None else None if function is None else function.name
            kind = "Subquery" if line.operator == "SUBQUERY" else _node_type(node)
            virtual = table is not None or isinstance(node, nodes.TableFunctionScan)
            yield (number, line.depth, " > ".join(within), kind, line.text, source, int(virtual))

    def execution_trace(self, sql: str) -> Iterator[_Row]:
        """What each operator did when the statement ran; see :func:`tracing.execution_rows`."""
        return execution_rows(self._session, sql)

    def row_trace(self, sql: str) -> Iterator[_Row]:
        """The rows that each operator gave when the statement ran; see :func:`tracing.operator_rows`."""
        return operator_rows(self._session, sql)

    def scheduler_program(self, sql: str) -> Iterator[_Row]:
        """The lines of the generated program; the error at address 0 where there is none."""
        try:
            source = self._session.prepare(self._session.single_statement(sql)).source
        except Error as failure:
            yield (0, None, f"Failed to compile SQL: {failure.message}", None, None, None)
            return
        for address, text in enumerate(source.splitlines()):
            depth = (len(text) - len(text.lstrip())) // 4
            yield (address, None, text.strip(), None, int(depth > 1), None)


def _node_type(node: nodes.PlanNode) -> str:
    if isinstance(node, nodes.IndexAccess):
        bounded = node.prefix or node.alternatives or node.lower is not None or node.upper is not None
        return "IndexSeek" if bounded else "IndexScan"
    if isinstance(node, nodes.With):
        # What a recursion gives is kept, too, but as part of its own work.
        recursive = all(isinstance(table.plan, nodes.Recursion) for table in node.tables)
        return "Cte" if recursive else "Cache"
    if isinstance(node, nodes.Aggregate):
        return "StreamAggregate" if node.streamed or not node.keys else "HashAggregate"
    return _NODE_TYPES.get(type(node)) or re.sub(r"Node$", "", type(node).__name__)
