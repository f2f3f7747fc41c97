"""ATTACH and DETACH: further databases beside the own one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.execute.transactions import ReadView
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def attach(session: Session, statement: nodes.Attach, parameters: Any) -> Result:
    """Open a database, whose tables are then those of a schema; raises what opening raises, and ERROR."""
    _check_autocommit(session, "ATTACH", statement)
    file = _file_name(session, statement, parameters)
    options = {}
    for option in statement.options:
        if option.name is None:
            raise sql_error(StatusCode.ERROR, "options of ATTACH are written name = value", option.position)
        options[option.name.lower()] = option.value.value
    session.engine.attachments.attach(statement.name, file, options)
    return Result()


def detach(session: Session, statement: nodes.Detach, parameters: Any) -> Result:
    """Close an attached database."""
    _check_autocommit(session, "DETACH", statement)
    session.engine.attachments.detach(statement.name)
    return Result()


def _check_autocommit(session: Session, verb: str, statement: nodes.Statement) -> None:
    if session.transaction is not None:
        raise sql_error(StatusCode.ERROR, f"cannot {verb} database within transaction", statement.position)


def _file_name(session: Session, statement: nodes.Attach, parameters: Any) -> str:
    query = nodes.Query(nodes.Select((nodes.ResultColumn(statement.file),)))
    view = ReadView(session.engine)
    try:
        [[(value,)]] = session.query_within(view, query, parameters)
    finally:
        view.release()
    if not isinstance(value, str):
        raise sql_error(StatusCode.ERROR, "the file of ATTACH is a text", statement.position)
    return value
