"""CREATE VIEW: a name for a query (alter-and-ddl-lifecycle, section 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.results import Result
from quereus_store.execute.transactions import Transaction
from quereus_store.plan.binder import Environment, bind_query
from quereus_store.schema.builder import build_view
from quereus_store.schema.manager import MAIN, put_view
from quereus_store.schema.naming import check_view_name
from quereus_store.schema.target import created
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def create_view(session: Session, statement: nodes.CreateView, parameters: Any) -> Result:
    """Keep the query after planning it once, so that unknown names fail now."""
    schema_name = statement.name.schema or MAIN

    def change(transaction: Transaction) -> None:
        if not check_view_name(created(transaction.catalog, statement)):
            return
        view = build_view(statement, schema_name)
        context = session.bind_context(transaction, {})
        path = Environment.of(context).inside_stored_body(view.schema).schema_path
        plan = bind_query(replace(context, schema_path=path), view.query)
        if view.columns is not None and len(view.columns) != len(plan.columns):
            raise sql_error(
                StatusCode.ERROR,
                f"View '{view.name}' has {len(view.columns)} declared columns but body produces"
                f" {len(plan.columns)}",
                statement.position,
            )
        transaction.change_catalog(put_view(transaction.catalog, view))

    session.write(change)
    return Result()
