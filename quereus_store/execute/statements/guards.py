"""Drop guards: what still refers to a table, view or column stands in the way of dropping it.

Assertions come first, then CHECKs, DEFAULTs and generated expressions of other tables; references
through views count too, plain views and maintained tables themselves do not.
Chapter: alter-and-ddl-lifecycle, sections 5 and 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quereus_store.errors import Error, SourcePosition, StatusCode, sql_error
from quereus_store.schema.dependencies import Dependent, DependentKind, relation_dependents
from quereus_store.schema.objects import AssertionSchema, Catalog, TableSchema, ViewSchema, fold

_EXPRESSIONS = (DependentKind.CHECK, DependentKind.DEFAULT, DependentKind.GENERATED)


def check_droppable(
    catalog: Catalog,
    kind: str,
    relation: TableSchema | ViewSchema,
    path: Sequence[str],
    position: SourcePosition | None = None,
) -> None:
    """Raise CONSTRAINT while an assertion or another table's expression refers to a relation."""
    dependents = relation_dependents(catalog, relation.schema, relation.name, path)
    subject = f"cannot drop {kind} '{relation.schema}.{relation.name}'"
    for dependent in of_kinds(dependents, DependentKind.ASSERTION):
        raise _refused(f"{subject}: {_by_assertion(dependent, relation.schema)}", position)
    for dependent in of_kinds(dependents, *_EXPRESSIONS):
        what = f"{dependent.label} on table '{dependent.owner.name}'"
        if dependent.through:
            what = f"{what} reaches it through {way(dependent)}"
        else:
            what = f"it is referenced by {what}"
        raise _refused(f"{subject}: {what} — drop or redefine it first", position)


def _refused(message: str, position: SourcePosition | None) -> Error:
    return sql_error(StatusCode.CONSTRAINT, message, position)


def _by_assertion(dependent: Dependent, schema: str) -> str:
    verb = f"reaches it through {way(dependent)}" if dependent.through else "still refers to it"
    return f"{assertion_of(dependent, schema)} {verb} — drop or redefine the assertion first"


def assertion_of(dependent: Dependent, schema: str) -> str:
    """``assertion 'a'``, with its schema where that is another one than ``schema``."""
    assertion = dependent.owner
    assert isinstance(assertion, AssertionSchema)
    if fold(assertion.schema) == fold(schema):
        return f"assertion '{assertion.name}'"
    return f"assertion '{assertion.schema}.{assertion.name}'"


def of_kinds(dependents: Iterable[Dependent], *kinds: DependentKind) -> Iterable[Dependent]:
    """Those of some kinds, in the order of the kinds as far as it matters."""
    return (dependent for dependent in dependents if dependent.kind in kinds)


def way(dependent: Dependent) -> str:
    """The views on the way from a dependent, as messages list them."""
    return " -> ".join(
        f"{'view' if isinstance(step, ViewSchema) else 'materialized view'} '{step.name}'"
        for step in dependent.through
    )


def on_table(dependent: Dependent, table: TableSchema) -> str:
    """`` on table 't'`` where an expression belongs to another table than the one being altered."""
    owner = dependent.owner
    if owner is table:
        return ""
    if fold(owner.schema) == fold(table.schema):
        return f" on table '{owner.name}'"
    return f" on table '{owner.schema}.{owner.name}'"
