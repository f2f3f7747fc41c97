"""The options of a session, which ``pragma`` reads and sets, and their values at the start."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.schema.manager import MAIN

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "schema_path": (MAIN,),
        "default_column_nullability": "not_null",
        "default_collation": "BINARY",
        "foreign_keys": True,
        "nondeterministic_schema": False,
        "ddl_transaction_policy": "permissive",
        "default_vtab_args": MappingProxyType({}),
        "answer_from_views": True,
        "materialized_view_rebuild_row_threshold": 10000,
        "runtime_stats": False,
        "validate_plan": False,
        "trace_plan_stack": False,
        "runtime_fuse_scalars": True,
        "disabled_rules": (),
        "memory_limit": 0,
    }
)


def default_options(engine: Engine) -> dict[str, Any]:
    """A new session's options."""
    return {**DEFAULTS, "default_vtab_module": engine.default_module}
