"""Functions about lenses: what logical tables read, and what APPLY had to say (functions, section 11).

What needs the binder is worked out above, so the context brings it (:class:`LensContext`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from quereus_store.errors import StatusCode, sql_error
from quereus_store.functions.introspection import columns_of
from quereus_store.functions.registry import Function, TableFunction
from quereus_store.schema.objects import Catalog, Deployment, Schema, ViewSchema
from quereus_store.types.values import Value

_Row = tuple[Value, ...]


class LensContext(Protocol):
    """What these functions ask of a statement's runtime context."""

    catalog: Catalog

    def effective_lens(self, view: ViewSchema) -> Iterable[_Row]:
        """How each column of a logical table is mapped."""

    def basis_backfill(self, schema: Schema) -> Iterable[_Row]:
        """What would fill the basis relations that a deployment has come to read."""


def _logical(context: LensContext, function: str, name: Value, *others: Value) -> tuple[Schema, Deployment]:
    if type(name) is not str or not all(type(other) is str for other in others):
        raise sql_error(StatusCode.ERROR, f"{function}() requires name string arguments")
    schema = context.catalog.schema(name)
    if schema is None:
        raise sql_error(StatusCode.ERROR, f"{function}: schema '{name}' not found")
    if schema.lens is None:
        raise sql_error(StatusCode.ERROR, f"{function}: schema '{name}' is not a logical schema")
    return schema, schema.lens


def effective_lens(context: LensContext, name: Value, table: Value) -> Iterator[_Row]:
    """quereus_effective_lens(x, t): one row a logical column, with the body of the whole."""
    function = "quereus_effective_lens"
    schema, _ = _logical(context, function, name, table)
    view = schema.views.get(str(table).lower())
    if view is None or view.logical is None:
        raise sql_error(StatusCode.ERROR, f"{function}: no lens slot for '{name!s}.{table!s}'")
    yield from context.effective_lens(view)


def lens_advisories(context: LensContext, name: Value) -> Iterator[_Row]:
    """quereus_lens_advisories(x): the report of the last APPLY."""
    _, deployment = _logical(context, "quereus_lens_advisories", name)
    yield from deployment.advisories


def basis_backfill(context: LensContext, name: Value) -> Iterator[_Row]:
    """quereus_basis_backfill(x): one row a basis relation that is new since the deployment before."""
    schema, _ = _logical(context, "quereus_basis_backfill", name)
    yield from context.basis_backfill(schema)


def lens_functions() -> list[Function]:
    """The whole family, ready to register."""
    declarations = (
        (
            "quereus_effective_lens",
            effective_lens,
            2,
            "logical_column source inverse advertised_member advertisement_anchor effective_sql",
        ),
        (
            "quereus_lens_advisories",
            lens_advisories,
            1,
            "logical_table code constraint column status rationale current_fingerprint recorded_fingerprint"
            " message",
        ),
        (
            "quereus_basis_backfill",
            basis_backfill,
            1,
            "logical_table basis_relation category backfill_sql generated_columns missing_columns reason",
        ),
    )
    return [
        TableFunction(name, call, count, count, columns_of(names), deterministic=False, needs_context=True)
        for name, call, count, names in declarations
    ]
