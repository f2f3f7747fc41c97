"""FOREIGN KEYs that come to a table with rows in it: arity, collations, orphans (section 10)."""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import StatusCode
from quereus_store.execute.dml.violations import violation
from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.schema.manager import check_foreign_key_collations, parent_key, parent_of
from quereus_store.schema.objects import ForeignKey, TableSchema
from quereus_store.sql import quote_identifier


def check_key(alteration: Alteration, table: TableSchema, key: ForeignKey) -> None:
    """What can be said of a new key of ``table`` without looking at rows (ERROR)."""
    catalog = alteration.context(table).catalog
    check_foreign_key_collations(catalog, replace(table, foreign_keys=(key,)))
    parent = parent_of(catalog, table, key)
    if parent is None or key.parent_columns is not None or not alteration.session.options["foreign_keys"]:
        return
    if len(parent.primary_key.parts) != len(key.columns):
        raise alteration.error(
            StatusCode.ERROR,
            f"Foreign key '{key.name}' on table '{table.qualified_name}': {len(key.columns)} column(s)"
            f" reference the primary key of '{parent.qualified_name}', which has"
            f" {len(parent.primary_key.parts)} column(s).",
        )


def check_orphans(alteration: Alteration, table: TableSchema, key: ForeignKey) -> None:
    """Every row of the published ``table`` has a parent or a NULL in its key (CONSTRAINT)."""
    if not alteration.session.options["foreign_keys"]:
        return
    catalog = alteration.catalog
    parent = parent_of(catalog, table, key)
    positions = None if parent is None else parent_key(parent, key)
    child = f"{quote_identifier(table.schema)}.{quote_identifier(table.name)}"
    names = [quote_identifier(table.columns[column].name) for column in key.columns]
    condition = " and ".join(f"child.{name} is not null" for name in names)
    keys = ", ".join(f"child.{name}" for name in names)
    query = f"select {keys} from {child} as child where {condition}"
    if parent is not None and positions is not None:
        source = f"{quote_identifier(parent.schema)}.{quote_identifier(parent.name)}"
        match = " and ".join(
            f"parent.{quote_identifier(parent.columns[position].name)} = child.{name}"
            for position, name in zip(positions, names, strict=True)
        )
        query += f" and not exists (select 1 from {source} as parent where {match})"
    orphans = alteration.session.rows_within(alteration.transaction, f"{query} limit 1")
    if orphans:
        columns = ", ".join(table.columns[column].name for column in key.columns)
        message = (
            f"FOREIGN KEY constraint failed: {table.name} ({columns}) has rows referencing a missing"
            f" '{key.parent_table}'"
        )
        error = violation(message, table, "foreign key", key.columns, key.name, orphans[0])
        raise error.located(alteration.position)
