"""What statements other than queries and row changes do: one module a family, one table of handlers.

A handler takes the session, the statement's tree and its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quereus_store.execute.results import Result
from quereus_store.execute.statements import control
from quereus_store.execute.statements.alter import alter_object_tags, alter_table
from quereus_store.execute.statements.analyze import analyze
from quereus_store.execute.statements.assertions import create_assertion
from quereus_store.execute.statements.databases import attach, detach
from quereus_store.execute.statements.declarations import (
    apply_schema,
    declare_schema,
    diff_schema,
    explain_schema,
)
from quereus_store.execute.statements.explain import explain
from quereus_store.execute.statements.indexes import create_index
from quereus_store.execute.statements.lenses import declare_lens
from quereus_store.execute.statements.pragma import pragma
from quereus_store.execute.statements.tables import create_table, drop_object
from quereus_store.execute.statements.views import create_view
from quereus_store.sql import nodes

Handler = Callable[[Any, Any, Any], Result]

HANDLERS: Mapping[type[nodes.Statement], Handler] = MappingProxyType(
    {
        nodes.BeginTransaction: control.begin,
        nodes.CommitTransaction: control.commit,
        nodes.RollbackTransaction: control.rollback,
        nodes.Savepoint: control.savepoint,
        nodes.ReleaseSavepoint: control.release,
        nodes.Attach: attach,
        nodes.Detach: detach,
        nodes.Pragma: pragma,
        nodes.Explain: explain,
        nodes.CreateTable: create_table,
        nodes.CreateIndex: create_index,
        nodes.CreateView: create_view,
        nodes.CreateAssertion: create_assertion,
        nodes.AlterTable: alter_table,
        nodes.AlterObjectTags: alter_object_tags,
        nodes.Analyze: analyze,
        nodes.DeclareSchema: declare_schema,
        nodes.DeclareLens: declare_lens,
        nodes.DiffSchema: diff_schema,
        nodes.ApplySchema: apply_schema,
        nodes.ExplainSchema: explain_schema,
        nodes.DropObject: drop_object,
    }
)
