"""RENAME TO and RENAME COLUMN (alter-and-ddl-lifecycle, section 7).

A rename is a change of the catalog alone: rows and indexes are kept under ids, so nothing moves.
Everything that refers to the renamed thing is rewritten by :mod:`quereus_store.schema.rename`.
"""

from __future__ import annotations

from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.schema import rename
from quereus_store.sql import nodes


def rename_table(alteration: Alteration, action: nodes.RenameTable) -> None:
    """Give the table another name, and with it whatever names the table."""
    alteration.transaction.change_catalog(
        rename.rename_table(
            alteration.catalog,
            alteration.table,
            action.new_name,
            alteration.session.schema_path,
            alteration.position,
        )
    )


def rename_column(alteration: Alteration, action: nodes.RenameColumn) -> None:
    """Give a column another name, and with it whatever names the column, through views too."""
    alteration.transaction.change_catalog(
        rename.rename_column(
            alteration.catalog,
            alteration.table,
            action.old_name,
            action.new_name,
            alteration.session.schema_path,
            alteration.position,
        )
    )
