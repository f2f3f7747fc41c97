"""BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE (dml-transactions-constraints, section 14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def begin(session: Session, statement: nodes.BeginTransaction, parameters: Any) -> Result:
    """Open an explicit transaction; IMMEDIATE makes it the writer at once."""
    session.begin()
    if statement.mode is nodes.TransactionMode.IMMEDIATE:
        assert session.transaction is not None
        try:
            session.transaction.writer(session.engine.default_module)
        except BaseException:
            session.rollback()
            raise
    return Result()


def commit(session: Session, statement: nodes.CommitTransaction, parameters: Any) -> Result:
    """End the transaction, keeping its changes."""
    try:
        session.commit()
    except Error as error:
        error.of_statement(statement.position)
        raise
    return Result()


def rollback(session: Session, statement: nodes.RollbackTransaction, parameters: Any) -> Result:
    """Undo the transaction, or what was done since a savepoint."""
    if statement.savepoint is None:
        session.rollback()
        return Result()
    if session.transaction is None:
        raise sql_error(StatusCode.ERROR, f"No such savepoint: {statement.savepoint}", statement.position)
    session.drain_results()
    session.transaction.rollback_to_savepoint(statement.savepoint)
    return Result()


def savepoint(session: Session, statement: nodes.Savepoint, parameters: Any) -> Result:
    """Set a savepoint; in autocommit that opens a transaction."""
    if session.transaction is None:
        session.begin()
    assert session.transaction is not None
    session.transaction.open_savepoint(statement.name)
    return Result()


def release(session: Session, statement: nodes.ReleaseSavepoint, parameters: Any) -> Result:
    """Merge a savepoint into what is around it."""
    if session.transaction is None:
        raise sql_error(StatusCode.ERROR, f"No such savepoint: {statement.name}", statement.position)
    session.transaction.release_savepoint(statement.name)
    return Result()
