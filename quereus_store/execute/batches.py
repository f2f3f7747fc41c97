"""``executemany``: one statement for many sets of parameters.

The sets run as one batch where that comes to the same as one after the other: INSERT of one row of
VALUES, UPDATE and DELETE by primary key (:mod:`~quereus_store.execute.dml.keyed_sets`).  A plan depends on
the types of its parameters, so a batch has one plan if each column has one type, NULLs not counted.  A
column of several types can share it if it is written as it stands, since a write converts each value by its
own type; only a plan that was made for values of the very type of the table's column would not convert.

Everything else runs set by set, still as one atomic step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.dml.outcome import Trouble
from quereus_store.execute.parameters import (
    bind,
    column_signature,
    first_of_kind,
    holds_documents,
    own_documents,
)
from quereus_store.execute.prepared import PreparedMutation, parameter_types
from quereus_store.execute.results import Result, document_columns
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import Column
from quereus_store.plan.mutations import InsertPlan, UpdatePlan
from quereus_store.sql import nodes
from quereus_store.types import ANY

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_ABOUT_PARAMETERS = frozenset({StatusCode.MISUSE, StatusCode.RANGE, StatusCode.NOTFOUND})
_ROW_TYPES = frozenset({tuple, list})
_NONE = type(None)
_NULL = frozenset({_NONE})

Kinds = tuple[frozenset[type], ...]


def run_many(session: Session, sql: str, transaction: Transaction, rows: Sequence[Any]) -> Result:
    """Run a statement for all sets; the rows changed, and the rows of RETURNING for all of them."""
    tree = session.single_statement(sql)
    if not isinstance(tree, nodes.DataModification):
        raise sql_error(
            StatusCode.MISUSE,
            "executemany runs INSERT, UPDATE and DELETE; use execute for other statements",
        )
    kinds = set(map(type, rows))
    if kinds <= _ROW_TYPES:
        batch = list(rows) if list not in kinds else list(map(tuple, rows))
        result = _run_batch(session, sql, tree, transaction, batch)
        if result is not None:
            return result
    return _run_each(session, sql, tree, transaction, rows)


def _run_batch(
    session: Session, sql: str, tree: nodes.DataModification, transaction: Transaction, batch: list[Row]
) -> Result | None:
    signature = column_signature(batch)
    if signature is None:
        return None
    if holds_documents(signature):
        batch = list(map(own_documents, batch))
    statement = _prepared(session, sql, tree, transaction, batch, signature)
    if statement is None:
        return None
    try:
        outcome = statement.compiled.run_batch(session, transaction, batch)
    except Trouble:
        return None
    return _result(statement.columns, outcome.rows, outcome.row_count)


def _prepared(
    session: Session,
    sql: str,
    tree: nodes.DataModification,
    transaction: Transaction,
    batch: list[Row],
    signature: Kinds,
) -> PreparedMutation | None:
    """A plan that serves the whole batch, or None."""
    key = (sql, signature)
    kept = session.kept_statement(key, transaction)
    if isinstance(kept, PreparedMutation):
        return kept if kept.compiled.takes_batches else None
    nullable = frozenset(slot for slot, kinds in enumerate(signature) if len(kinds) > 1 and _NONE in kinds)
    several = [slot for slot, kinds in enumerate(signature) if len(kinds - _NULL) > 1]
    try:
        parameter_types([first_of_kind(batch, slot, {kind}) for slot in several for kind in signature[slot]])
    except Error:
        # Set by set it can be told which one does not fit.
        return None
    sample = [first_of_kind(batch, slot, kinds - _NULL or _NULL) for slot, kinds in enumerate(signature)]
    statement = session.prepare_change(tree, transaction, tuple(sample), nullable)
    if not statement.compiled.takes_batches:
        session.keep_statement(key, statement)
        return None
    if several:
        same = [slot for slot in several if _takes_as_is(statement, slot)]
        for slot in same:
            sample[slot] = first_of_kind(batch, slot, signature[slot] - _NULL - {type(sample[slot])})
        if same:
            statement = session.prepare_change(tree, transaction, tuple(sample), nullable)
    if any(not _is_converted(statement, slot) for slot in several):
        return None
    session.keep_statement(key, statement)
    return statement


def _takes_as_is(statement: PreparedMutation, slot: int) -> bool:
    """Whether a parameter goes into a column that its plan need not convert it for."""
    plan = statement.plan
    position = statement.compiled.parameter_cells.get(slot)
    return (
        position is not None and not plan.converts[position] and plan.table.columns[position].type is not ANY
    )


def _is_converted(statement: PreparedMutation, slot: int) -> bool:
    """Whether values of any type may stand for a parameter: each is converted by its own type, or none is."""
    plan = statement.plan
    position = statement.compiled.parameter_cells.get(slot)
    return (
        position is not None
        and isinstance(plan, InsertPlan | UpdatePlan)
        and (plan.converts[position] or plan.table.columns[position].type is ANY)
    )


def _run_each(
    session: Session, sql: str, tree: nodes.DataModification, transaction: Transaction, rows: Sequence[Any]
) -> Result:
    changed = 0
    returned: list[Row] = []
    columns: tuple[Column, ...] | None = None
    for number, row in enumerate(rows):
        try:
            signature, parameters = bind(row)
            key = (sql, signature)
            statement = session.kept_statement(key, transaction)
            if not isinstance(statement, PreparedMutation):
                statement = session.prepare_change(tree, transaction, parameters)
                session.keep_statement(key, statement)
        except Error as error:
            if number and error.code in _ABOUT_PARAMETERS:
                raise sql_error(
                    error.code, f"parameter set {number + 1}: {error.message}", error.position
                ) from error
            raise
        if session.watch.active:
            session.watch.step(1)
        compiled = statement.compiled
        outcome = compiled.run(compiled.runtime(session, transaction, parameters, None))
        changed += outcome.row_count
        columns = statement.columns
        if columns is not None:
            returned += outcome.rows
    return _result(columns, returned, changed)


def _result(columns: tuple[Column, ...] | None, rows: list[Row], changed: int) -> Result:
    if columns is None:
        return Result(None, (), changed)
    return Result(columns, [rows], changed, documents=document_columns(columns))
