"""Deploying a logical schema: all of its tables are compiled and proved, then they replace the old ones.

:func:`deployed` is a function of values: it takes a catalog and gives the one with the logical schema in
it, or raises and nothing has happened.

Chapter: view-updates-and-lenses, sections 12, 15 and 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.plan.binder.context import BindContext, References
from quereus_store.plan.lenses.advisories import ReportRow, escalated, reported
from quereus_store.plan.lenses.mapping import default_view, overridden_view
from quereus_store.plan.lenses.prover import Finding, ProofServices, prove
from quereus_store.schema.builder import Surroundings, TableSettings, build_table
from quereus_store.schema.declared import items_of
from quereus_store.schema.manager import DEFAULT_PATH, TEMP
from quereus_store.schema.objects import (
    Catalog,
    Deployment,
    LensSnapshot,
    Schema,
    TableSchema,
    ViewSchema,
    fold,
)
from quereus_store.sql import nodes, render
from quereus_store.sql.traversal import walk


@dataclass(frozen=True, slots=True)
class Lens:
    """What is to be deployed: the declaration, its lens if there is one, how tables are built."""

    declaration: nodes.DeclareSchema
    lens: nodes.DeclareLens | None
    settings: TableSettings
    surroundings: Surroundings


def check_overrides(lens: nodes.DeclareLens) -> None:
    """One override a table (ERROR); judged when the lens is declared."""
    seen: set[str] = set()
    for override in lens.overrides:
        if fold(override.table) in seen:
            raise sql_error(
                StatusCode.ERROR,
                f"lens: duplicate override 'view {override.table} as ...' for logical table"
                f" '{lens.schema}.{override.table}' in one lens block",
                override.position,
            )
        seen.add(fold(override.table))


def deployed(
    context: BindContext, services: ProofServices, wanted: Lens, position: SourcePosition | None
) -> Catalog:
    """The catalog with the logical schema as declared; raises ERROR for what cannot be mapped or proved."""
    name = wanted.declaration.name
    _check_target(context.catalog, name, position)
    _check_items(wanted.declaration)
    basis = _basis(context.catalog, wanted, position)
    tables = [_logical_table(wanted, node) for node in items_of(wanted.declaration, nodes.CreateTable)]
    overrides = _overrides(wanted, tables)
    views = [_view(context, table, overrides.get(fold(table.name)), basis) for table in tables]
    old = context.catalog.schema(name)
    catalog = context.catalog.with_schema(
        Schema(name, views={fold(view.name): view for view in views}, lens=Deployment(basis))
    )
    context = replace(context, catalog=catalog, references=References())
    report = _proved(context, services, name, views, position)
    before = old.lens.snapshot if old is not None and old.lens is not None else None
    deployment = Deployment(basis, report, tuple(map(_snapshot, views)), before)
    return catalog.with_schema(replace(catalog.schemas[fold(name)], lens=deployment))


def _check_target(catalog: Catalog, name: str, position: SourcePosition | None) -> None:
    if fold(name) in DEFAULT_PATH:
        raise sql_error(
            StatusCode.ERROR,
            f"lens: a logical schema cannot target the reserved schema '{fold(name)}'",
            position,
        )
    found = catalog.schema(name)
    if found is not None and found.lens is None:
        raise sql_error(
            StatusCode.ERROR,
            f"lens: schema '{name}' already exists as a physical schema; cannot re-deploy it as logical",
            position,
        )


def _check_items(declaration: nodes.DeclareSchema) -> None:
    """A logical schema holds tables without anything physical."""
    for item in declaration.items:
        described = _physical(item)
        if described is not None:
            raise sql_error(
                StatusCode.ERROR,
                f"lens: {described} is not allowed in logical schema '{declaration.name}'; a logical schema"
                " declares tables only, the basis holds what is physical",
                item.position,
            )


def _physical(item: nodes.DeclaredItem) -> str | None:
    match item:
        case nodes.CreateIndex():
            return f"{'unique index' if item.unique else 'index'} '{item.name.name}'"
        case nodes.CreateMaterializedView():
            return f"materialized view '{item.name.name}'"
        case nodes.CreateView():
            return f"view '{item.name.name}'"
        case nodes.CreateAssertion():
            return f"assertion '{item.name.name}'"
        case nodes.SeedData():
            return f"seed data of '{item.table}'"
        case nodes.CreateTable(module=module, maintained=maintained):
            if module is not None:
                return f"module association 'using {module.name}(...)' on table '{item.name.name}'"
            return None if maintained is None else f"materialized view '{item.name.name}'"
    return None


# --- basis --------------------------------------------------------------------------------------------------


def _basis(catalog: Catalog, wanted: Lens, position: SourcePosition | None) -> str:
    name = wanted.declaration.name
    if wanted.lens is not None:
        found = catalog.schema(wanted.lens.basis)
        if found is None:
            raise sql_error(
                StatusCode.ERROR,
                f"lens: basis schema '{wanted.lens.basis}' for logical schema '{name}' does not exist"
                " (declare and apply it first)",
                position,
            )
        return wanted.lens.basis
    candidates = [
        schema.name
        for key, schema in catalog.schemas.items()
        if key != TEMP and schema.lens is None and schema.tables and key != fold(name) and not schema.attached
    ]
    if len(candidates) == 1:
        return candidates[0]
    raise sql_error(
        StatusCode.ERROR,
        f"lens: cannot infer a default basis for logical schema '{name}' (found {len(candidates)}"
        f" candidates); say which with 'declare lens for {name} over <basis> {{ }}'",
        position,
    )


# --- tables -------------------------------------------------------------------------------------------------


def _logical_table(wanted: Lens, node: nodes.CreateTable) -> TableSchema:
    name = wanted.declaration.name
    return build_table(node, schema_name=name, settings=wanted.settings, surroundings=wanted.surroundings)


def _overrides(wanted: Lens, tables: Sequence[TableSchema]) -> dict[str, nodes.LensOverride]:
    if wanted.lens is None:
        return {}
    known = {fold(table.name) for table in tables}
    for override in wanted.lens.overrides:
        if fold(override.table) not in known:
            name = wanted.declaration.name
            raise sql_error(
                StatusCode.ERROR,
                f"lens: override 'view {override.table} as ...' references logical table"
                f" '{name}.{override.table}', which is not declared in logical schema '{name}'",
                override.position,
            )
    return {fold(override.table): override for override in wanted.lens.overrides}


def _view(
    context: BindContext, table: TableSchema, override: nodes.LensOverride | None, basis: str
) -> ViewSchema:
    if override is not None:
        return overridden_view(context, table, override, basis)
    return default_view(context, table, basis)


def _proved(
    context: BindContext,
    services: ProofServices,
    name: str,
    views: Sequence[ViewSchema],
    position: SourcePosition | None,
) -> tuple[ReportRow, ...]:
    errors: list[Finding] = []
    rows: list[ReportRow] = []
    for view in views:
        assert view.logical is not None
        proof = prove(context, services, view)
        report = reported(view.logical.table, proof.advisories)
        errors += [*proof.errors, *escalated(view.logical.table, report)]
        rows += [item.row for item in report]
    if errors:
        raise _blocked(name, errors, position)
    return tuple(rows)


def _blocked(name: str, errors: Sequence[Finding], position: SourcePosition | None) -> Error:
    lines = "".join(f"\n - [{error.code}] lens: {error.message}" for error in errors)
    message = f"lens: deploy of logical schema '{name}' blocked by {len(errors)} error(s):{lines}"
    error = sql_error(StatusCode.ERROR, message, position)
    error.details = {"codes": tuple(error.code for error in errors)}
    return error


def _snapshot(view: ViewSchema) -> LensSnapshot:
    relations = dict.fromkeys(
        f"{part.schema}.{part.name}"
        for part in walk(view.query)
        if isinstance(part, nodes.TableReference) and part.schema is not None
    )
    return LensSnapshot(view.name, view.columns or (), render(view.query), tuple(relations))
