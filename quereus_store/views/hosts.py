"""Backing hosts: the modules in which maintained tables may live.

Chapter: views-and-maintained-tables, section 3; store-and-modules, section 10; seed module-authoring.
"""

from __future__ import annotations

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.execute.engine import Engine
from quereus_store.modules.contract import BackingHost, Table
from quereus_store.schema.objects import TableSchema

_UNABLE = "(it does not implement the backing-host capability)"


def is_host(engine: Engine, module: str) -> bool:
    """Whether maintained tables may live in a module; raises ERROR where there is no such module."""
    return isinstance(engine.module(module), BackingHost)


def backing_host(engine: Engine, table: TableSchema) -> Table:
    """The handle through which the rows of a maintained table are written; raises UNSUPPORTED."""
    module = engine.module(table.module)
    if not isinstance(module, BackingHost):
        raise no_host_of_views(table.module, None)
    return module.get_backing_host(table)


def no_host_of_views(module: str, position: SourcePosition | None) -> Error:
    """The error for a materialized view in a module that cannot keep it."""
    text = f"module '{module}' cannot host a materialized-view backing table {_UNABLE}"
    return sql_error(StatusCode.UNSUPPORTED, text, position)


def no_host_of_tables(module: str, deed: str) -> Error:
    """The same for the table form and for attaching; ``deed`` begins the message."""
    text = f"{deed}: module '{module}' cannot host a maintained table {_UNABLE}"
    return sql_error(StatusCode.UNSUPPORTED, text)
