"""The rows of the functions about lenses that take the binder to work out.

Chapter: functions, section 11; view-updates-and-lenses, sections 13 and 18.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quereus_store.errors import Error
from quereus_store.plan.binder.context import BindContext, Environment
from quereus_store.plan.binder.decompositions import decomposition_of
from quereus_store.plan.binder.logical_lineage import LogicalLineage, Origin, logical_lineage
from quereus_store.plan.binder.view_joins import equated_columns, join_of_view
from quereus_store.schema.objects import LensSnapshot, Schema, TableSchema, ViewSchema, fold
from quereus_store.sql import render
from quereus_store.sql.renderer import quote_identifier

_INVERSES = {
    Origin.BARE: "inferred",
    Origin.INVERSE: "inferred",
    Origin.AUTHORED: "authored",
    Origin.COMPUTED: "none",
}
_PRIOR = "__lens_prior"

Row = tuple[str | None, ...]


def effective_rows(context: BindContext, view: ViewSchema) -> Iterator[Row]:
    """One row a logical column: where its mapping comes from and how it is written."""
    logical = view.logical
    assert logical is not None
    lineage = logical_lineage(Environment.of(context), view)
    text = render(view.query)
    schema = context.catalog.schema(view.schema)
    lens = None if schema is None else schema.lens
    advertised = None
    if logical.decomposition is not None and lens is not None:
        advertised = decomposition_of(context.catalog, lens.basis, logical.table)
    anchor = None if advertised is None else advertised.anchor.id
    for column, origin in zip(logical.table.columns, lineage.columns, strict=True):
        source = "override" if fold(column.name) in logical.overridden else "default"
        member = None
        if advertised is not None:
            holder = advertised.member_of(column.name) or advertised.pivot_of(column.name)
            member = None if holder is None else holder.id
        yield (column.name, source, _INVERSES[origin.origin], member, anchor, text)


# --- backfill -----------------------------------------------------------------------------------------------


def backfill_rows(context: BindContext, schema: Schema) -> Iterator[Row]:
    """What would fill the basis relations that the deployment reads and the one before did not."""
    deployment = schema.lens
    if deployment is None or deployment.previous is None:
        return
    known = {fold(relation) for snapshot in deployment.previous for relation in snapshot.relations}
    before = {fold(snapshot.table): snapshot for snapshot in deployment.previous}
    for snapshot in deployment.snapshot:
        view = schema.views.get(fold(snapshot.table))
        for relation in snapshot.relations:
            if fold(relation) not in known and view is not None:
                yield _backfill(context, view, relation, before.get(fold(snapshot.table)))


def _backfill(context: BindContext, view: ViewSchema, relation: str, prior: LensSnapshot | None) -> Row:
    schema, _, name = relation.partition(".")
    table = context.catalog.table(schema, name)
    if table is None:
        reason = "the relation is no table that can be filled"
        return (view.name, relation, "needs-data", None, None, None, reason)
    held = {} if prior is None else _held(context, view, table, prior)
    taken: list[tuple[str, str]] = []
    generated: list[str] = []
    missing: list[str] = []
    required = False
    for column in table.columns:
        if fold(column.name) in held:
            taken.append((column.name, held[fold(column.name)]))
        elif column.generated is not None or column.default is not None:
            generated.append(column.name)
        else:
            missing.append(column.name)
            required = required or not column.nullable
    category = "needs-data" if not taken else "partial" if missing else "re-decomposition"
    text = None
    if taken and not required and prior is not None:
        text = _insertion(relation, taken, prior)
    reason = _reason(taken, missing, required=required)
    return (view.name, relation, category, text, _listed(generated), _listed(missing), reason)


def _insertion(relation: str, taken: Sequence[tuple[str, str]], prior: LensSnapshot) -> str:
    columns = ", ".join(quote_identifier(column) for column, _ in taken)
    values = ", ".join(quote_identifier(value) for _, value in taken)
    target = ".".join(map(quote_identifier, relation.split(".")))
    return f"insert into {target} ({columns}) select {values} from ({prior.body}) as {_PRIOR}"


def _reason(taken: Sequence[object], missing: Sequence[str], *, required: bool) -> str:
    if not taken:
        return "no column can be reconstructed from the deployment before"
    if required:
        return f"a required column has no source: {', '.join(missing)}"
    if missing:
        return f"columns without a source stay null: {', '.join(missing)}"
    return "every column is reconstructed from the deployment before"


def _listed(names: Sequence[str]) -> str | None:
    return ", ".join(names) or None


def _held(context: BindContext, view: ViewSchema, table: TableSchema, prior: LensSnapshot) -> dict[str, str]:
    """The columns of a basis table that columns of the deployment before hold, by folded name."""
    assert view.logical is not None
    environment = Environment.of(context)
    lineage = logical_lineage(environment, view)
    before = {fold(name): name for name in prior.columns}
    held: dict[str, str] = {}
    shown: dict[tuple[str, str, str], str] = {}
    for column, origin in zip(view.logical.table.columns, lineage.columns, strict=True):
        if origin.table is None or origin.column is None or fold(column.name) not in before:
            continue
        own = origin.table.columns[origin.column].name
        shown[fold(origin.table.schema), fold(origin.table.name), fold(own)] = before[fold(column.name)]
    place = (fold(table.schema), fold(table.name))
    for (schema, name, column_name), value in shown.items():
        if (schema, name) == place:
            held[column_name] = value
    for own, other in _equated(environment, view, lineage, place):
        if own not in held and other in shown:
            held[own] = shown[other]
    return held


def _equated(
    environment: Environment, view: ViewSchema, lineage: LogicalLineage, place: tuple[str, str]
) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The columns of a basis table that a join makes equal to columns of others."""
    if lineage.table is not None:
        return
    try:
        join = join_of_view(environment, view, None)
    except Error:
        return
    if join is None:
        return
    for left, right in equated_columns(join):
        for (side, column), (other, shown) in ((left, right), (right, left)):
            own, source = join.sides[side].table, join.sides[other].table
            if (fold(own.schema), fold(own.name)) == place:
                yield fold(column), (fold(source.schema), fold(source.name), fold(shown))
