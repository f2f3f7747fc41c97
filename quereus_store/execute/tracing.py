"""Statements that run to be looked at: ``execution_trace()`` and ``row_trace()`` (functions, section 12).

An instruction is an operator of the plan; its number is its place in the plan in pre-order, from 0, and its
dependencies are the operators directly below.  The statement runs with the counters of EXPLAIN ANALYZE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import time
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.codegen.metering import Measure, Meters
from quereus_store.execute.prepared import PreparedQuery
from quereus_store.plan.explain import PlanLine, explain_plan
from quereus_store.sql import nodes
from quereus_store.types import to_text
from quereus_store.types.json import render_json

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_Row = tuple[Any, ...]
_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class _Instruction:
    """One operator, its measure, and the numbers of those below it; subqueries apart."""

    number: int
    line: PlanLine
    measure: Measure
    inputs: tuple[int, ...]
    subqueries: tuple[int, ...]


def execution_rows(session: Session, sql: str) -> Iterator[_Row]:
    """A row an operator: what went in and out, and its time; one ``NO_TRACE_DATA`` row for a failure.

    Times are each operator's own; ``timestamp_ms`` tells when it was last at work.
    """
    try:
        instructions = _run(session, sql)
    except Error as failure:
        if failure.code is StatusCode.INTERRUPT:
            raise
        yield (0, "NO_TRACE_DATA", None, None, None, None, None, failure.message, None)
        return
    for instruction in instructions:
        measure = instruction.measure
        given = [{"instruction": n, "rows": instructions[n].measure.rows} for n in instruction.inputs]
        yield (
            instruction.number,
            instruction.line.text,
            render_json(list(instruction.inputs)),
            render_json(given),
            render_json({"rows": measure.rows, "runs": measure.runs}),
            measure.nanoseconds / 1_000_000,
            render_json(list(instruction.subqueries)) if instruction.subqueries else None,
            None,
            measure.ended * _MILLISECONDS,
        )


def operator_rows(session: Session, sql: str) -> Iterator[_Row]:
    """A row for each row that an operator gave, with how many it gave in all; a failure is one
    ``NO_ROW_DATA`` row."""
    try:
        instructions = _run(session, sql, keeps_rows=True)
    except Error as failure:
        if failure.code is StatusCode.INTERRUPT:
            raise
        yield (0, "NO_ROW_DATA", None, failure.message, None, 0)
        return
    for instruction in instructions:
        index = 0
        for when, rows in instruction.measure.kept:
            for row in rows:
                data = render_json([_shown(value) for value in row])
                stamp = when * _MILLISECONDS
                yield (
                    *(instruction.number, instruction.line.text, index, data, stamp),
                    instruction.measure.rows,
                )
                index += 1


def _shown(value: Any) -> Any:
    """A value as JSON has it; what JSON has not is shown as text."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return to_text(value)
    return value


def _run(session: Session, sql: str, keeps_rows: bool = False) -> list[_Instruction]:
    statement = session.single_statement(sql)
    if session.transaction is not None and not isinstance(statement, nodes.Query):
        raise sql_error(
            StatusCode.MISUSE, "A change of rows cannot be traced within a transaction", statement.position
        )
    prepared, meters = session.run_measured(statement, keeps_rows=keeps_rows)
    if isinstance(prepared, PreparedQuery):
        return _instructions(list(explain_plan(prepared.plan, session.engine)), meters, None)
    change, source = prepared.plan, prepared.compiled.source_plan
    lines = [replace(line, depth=line.depth + 1) for line in explain_plan(source, session.engine)]
    verb = type(change).__name__.removesuffix("Plan").upper()
    head = PlanLine(0, verb, change.table.qualified_name, source, lines[0].rows)
    return _instructions([head, *lines], meters, Measure(1, meters.rows, meters.nanoseconds, time()))


def _instructions(lines: list[PlanLine], meters: Meters, change: Measure | None) -> list[_Instruction]:
    """The operators with their measures; the first is a change of rows with this measure, if there is one."""
    found = []
    for number, line in enumerate(lines):
        below: list[int] = []
        for place in range(number + 1, len(lines)):
            if lines[place].depth <= line.depth:
                break
            if lines[place].depth == line.depth + 1:
                below.append(place)
        measure = None if line.operator == "SUBQUERY" else meters.measure_of(line.node)
        if number == 0 and change is not None:
            measure = change
        found.append(
            _Instruction(
                number,
                line,
                measure or Measure(),
                tuple([place for place in below if lines[place].operator != "SUBQUERY"]),
                tuple([place for place in below if lines[place].operator == "SUBQUERY"]),
            )
        )
    return found
