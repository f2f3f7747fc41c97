"""A session's statement on its way to a program: what binding is told, and where its errors stand.

:mod:`~quereus_store.execute.prepared` makes the program; this module asks for it on behalf of a session, so
with the session's options, for the catalog that a transaction has, and for the types of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import (
    DataError,
    Error,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    StatusCode,
    sql_error,
)
from quereus_store.execute.codegen.metering import Meters
from quereus_store.execute.counting import OwnCounts
from quereus_store.execute.prepared import (
    PreparedMutation,
    PreparedQuery,
    check_parameters,
    parameter_types,
    prepare_mutation,
    prepare_query,
)
from quereus_store.execute.transactions import ReadView
from quereus_store.plan.binder import BindContext
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

REFUSALS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
"""What statements and their rows may be refused for; troubles of the storage have no place in a text."""


def prepare(
    session: Session,
    statement: nodes.Query | nodes.DataModification,
    transaction: ReadView,
    parameters: Any,
    *,
    check: bool = True,
    nullable: frozenset[int | str] = frozenset(),
    meters: Meters | None = None,
    from_views: bool = True,
) -> PreparedQuery | PreparedMutation:
    """A query or row change as a program, for these parameters and for others of their types.

    ``check``: each parameter that it reads has to be there.  Those of the slots in ``nullable`` may be NULL
    at times.  With ``meters`` it measures itself.  ``from_views``: maintained tables may answer a query in
    the place of their sources.
    """
    with _placed_errors(statement):
        context = bind_context(session, transaction, parameter_types(parameters))
        if nullable:
            context = replace(context, nullable_parameters=nullable)
        made: PreparedQuery | PreparedMutation
        if isinstance(statement, nodes.Query):
            made = prepare_query(session.engine, statement, context, meters, from_views=from_views)
        else:
            made = prepare_mutation(session.engine, statement, context, meters)
        if check:
            check_parameters(context, parameters)
    made.statement = statement
    made.options_version = session.options_version
    return made


def bind_context(session: Session, transaction: ReadView, parameters: Mapping[Any, Any]) -> BindContext:
    """What the binder is told for a statement of a session; ``parameters`` are types by slot."""
    context = session.engine.bind_context(
        transaction.catalog, session.schema_path, session.options, parameters, transaction.started_with
    )
    return replace(context, row_count=OwnCounts(transaction)) if transaction.writes else context


@contextmanager
def _placed_errors(statement: nodes.Statement) -> Iterator[None]:
    """Errors without a place of their own stand at the statement's beginning."""
    try:
        yield
    except RecursionError:
        raise too_deep(statement) from None
    except Error as error:
        if error.code is StatusCode.TOOBIG:
            error.located(statement.position)
        elif isinstance(error, REFUSALS):
            error.of_statement(statement.position)
        raise


def too_deep(statement: nodes.Statement) -> Error:
    """The error for a statement that Python's stack is too short for."""
    return sql_error(StatusCode.TOOBIG, "Statement is nested too deeply.", statement.position)
