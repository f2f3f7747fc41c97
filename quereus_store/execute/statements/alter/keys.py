"""ALTER PRIMARY KEY (alter-and-ddl-lifecycle, section 11).

The rows move to their new keys; where two of them would meet, nothing has happened.  Foreign keys
that name no parent columns mean the new key from now on.
"""

from __future__ import annotations

from dataclasses import replace

from quereus_store.errors import StatusCode
from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.execute.statements.alter.attributes import with_column
from quereus_store.schema.clauses import key_parts
from quereus_store.schema.objects import CollationRank, PrimaryKey, TableSchema, fold
from quereus_store.sql import nodes


def alter_primary_key(alteration: Alteration, action: nodes.AlterPrimaryKey) -> None:
    """Another primary key; an empty one admits at most one row."""
    table = alteration.table
    seen = set()
    for part in action.columns:
        alteration.column(part.name)
        if fold(part.name) in seen:
            raise alteration.error(
                StatusCode.ERROR, f"Duplicate column '{part.name}' in PRIMARY KEY definition"
            )
        seen.add(fold(part.name))
    old = table.primary_key
    # A conflict clause on the column itself goes with the old key, one on the table stays.
    conflict = None if old.of_column else old.conflict
    table = _with_key_collation(alteration, table, action)
    parts = key_parts(action.columns, table.columns)
    new = replace(table, primary_key=PrimaryKey(parts, conflict=conflict))
    alteration.publish(alteration.rewrite(new))


def _with_key_collation(
    alteration: Alteration, table: TableSchema, action: nodes.AlterPrimaryKey
) -> TableSchema:
    """The table whose text columns without a COLLATE take the key collation of USING, as at CREATE TABLE."""
    wanted = table.module_arguments.get("collation")
    if not isinstance(wanted, str):
        return table
    name = alteration.engine.collations.get(wanted).name
    for part in action.columns:
        position, column = alteration.column(part.name)
        if column.type.is_textual and column.collation_rank is CollationRank.DEFAULT:
            table = with_column(table, position, replace(column, collation=name))
    return table
