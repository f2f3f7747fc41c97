"""Logical schemas as catalog entries (view-updates-and-lenses, section 12).

A logical schema keeps the description of its deployment in the schema's entry, a
logical table what it declares in its view's entry: as the DDL of a table that is
never made, so that no second notation is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quereus_store.schema.builder import Surroundings, build_table
from quereus_store.schema.ddl import table_ddl
from quereus_store.schema.objects import Deployment, LensSnapshot, LogicalTable
from quereus_store.sql import nodes, parse_script


def describe_logical(logical: LogicalTable | None) -> Mapping[str, Any] | None:
    """What the entry of a logical table's view keeps besides the view."""
    if logical is None:
        return None
    return {
        "table": table_ddl(logical.table),
        "overridden": list(logical.overridden),
        "decomposition": logical.decomposition,
    }


def logical_of(
    kept: Mapping[str, Any] | None, schema_name: str, surroundings: Surroundings
) -> LogicalTable | None:
    """The logical table that :func:`describe_logical` described."""
    if kept is None:
        return None
    (node,) = parse_script(kept["table"])
    assert isinstance(node, nodes.CreateTable)
    table = build_table(node, schema_name=node.name.schema or schema_name, surroundings=surroundings)
    return LogicalTable(table, tuple(kept["overridden"]), kept["decomposition"])


def describe_deployment(deployment: Deployment | None) -> Mapping[str, Any] | None:
    """What the entry of a logical schema keeps besides its name."""
    if deployment is None:
        return None
    previous = deployment.previous
    return {
        "basis": deployment.basis,
        "advisories": [list(row) for row in deployment.advisories],
        "snapshot": list(map(_described, deployment.snapshot)),
        "previous": None if previous is None else list(map(_described, previous)),
    }


def deployment_of(kept: Mapping[str, Any] | None) -> Deployment | None:
    """The deployment that :func:`describe_deployment` described."""
    if kept is None:
        return None
    previous = kept["previous"]
    return Deployment(
        kept["basis"],
        tuple(map(tuple, kept["advisories"])),
        tuple(map(_snapshot, kept["snapshot"])),
        None if previous is None else tuple(map(_snapshot, previous)),
    )


def _described(snapshot: LensSnapshot) -> Sequence[Any]:
    return [snapshot.table, list(snapshot.columns), snapshot.body, list(snapshot.relations)]


def _snapshot(kept: Sequence[Any]) -> LensSnapshot:
    table, columns, body, relations = kept
    return LensSnapshot(table, tuple(columns), body, tuple(relations))
