"""What statements other than queries and row changes do: one module a family, one table of handlers.

A handler takes the session, the statement's tree and its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.execute.results import Result
from quereus_store.execute.statements import control, explain, indexes, pragma, tables, views
from quereus_store.sql import nodes

Handler = Callable[[Any, Any, Any], Result]

HANDLERS: Mapping[type[nodes.Statement], Handler] = MappingProxyType(
    {
        nodes.BeginTransaction: control.begin,
        nodes.CommitTransaction: control.commit,
        nodes.RollbackTransaction: control.rollback,
        nodes.Savepoint: control.savepoint,
        nodes.ReleaseSavepoint: control.release,
        nodes.Pragma: pragma.pragma,
        nodes.Explain: explain.explain,
        nodes.CreateTable: tables.create_table,
        nodes.CreateIndex: indexes.create_index,
        nodes.CreateView: views.create_view,
        nodes.DropObject: tables.drop_object,
    }
)
