"""CREATE ASSERTION (alter-and-ddl-lifecycle, section 3; seed: sql-ddl, section 2.6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.execute.assertions import assertion_label, compile_assertion
from quereus_store.execute.results import Result
from quereus_store.execute.transactions import Transaction
from quereus_store.schema.builder import build_assertion
from quereus_store.schema.manager import MAIN, put_assertion
from quereus_store.schema.naming import check_assertion_name
from quereus_store.schema.target import created
from quereus_store.sql import nodes, traversal

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def create_assertion(session: Session, statement: nodes.CreateAssertion, parameters: Any) -> Result:
    """Keep a condition after planning it once; what breaks it already is not looked for."""
    schema_name = statement.name.schema or MAIN

    def change(transaction: Transaction) -> None:
        if not check_assertion_name(created(transaction.catalog, statement)):
            return
        assertion = build_assertion(statement, schema_name)
        try:
            for write in traversal.writes_in(statement):
                raise _no_writes(write)
            compile_assertion(session, transaction, assertion)
        except Error as cause:
            raise sql_error(
                cause.code,
                f"Cannot create assertion '{assertion_label(assertion)}': {cause.message}",
                cause.position or statement.position,
            ) from cause
        transaction.change_catalog(put_assertion(transaction.catalog, assertion))

    session.write(change)
    return Result()


def _no_writes(write: nodes.Node) -> Error:
    return sql_error(
        StatusCode.ERROR,
        f"{type(write).__name__.upper()} cannot be part of an assertion — it is evaluated at every commit,"
        " which would re-drive the write.",
        write.position,
    )
