"""ALTER TABLE, and the tag verbs of views and indexes.

==================  ====================================================================
``alteration``      what all forms work on, and the steps they are made of
``adding``          ADD COLUMN
``dropping``        DROP COLUMN
``renames``         RENAME TO, RENAME COLUMN
``attributes``      ALTER COLUMN: nullability, type, default, collation
``constraints``     ADD, DROP, RENAME CONSTRAINT
``keys``            ALTER PRIMARY KEY
``tags``            SET, ADD, DROP TAGS
``references``      foreign keys and the rows that are there
``programs``        expressions over rows as they stream past
==================  ====================================================================

Every form decides first and changes then; and since the statement runs inside a savepoint, one
that fails halfway leaves nothing behind.  Chapter: alter-and-ddl-lifecycle, sections 6 to 13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quereus_store.errors import Error, StatusCode, sql_error, unsupported
from quereus_store.execute.results import Result
from quereus_store.execute.statements.alter import (
    adding,
    attributes,
    constraints,
    dropping,
    keys,
    renames,
    tags,
)
from quereus_store.execute.statements.alter.alteration import Alteration
from quereus_store.execute.statements.announcing import announce_alteration
from quereus_store.execute.statements.policy import check_policy
from quereus_store.execute.transactions import Transaction
from quereus_store.schema.manager import MAIN, resolve_table
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of ALTER TABLE: what it does, what policy messages call it, who may take it."""

    run: Callable[[Alteration, Any], None]
    arm: str
    for_maintained: bool = False


def _maintained(alteration: Alteration, action: nodes.AlterAction) -> None:
    maintenance = alteration.engine.maintenance
    if maintenance is None:
        raise unsupported("ALTER TABLE ... MAINTAINED", alteration.position)
    if isinstance(action, nodes.SetMaintained):
        maintenance.attach(alteration.session, alteration.transaction, alteration.table, action)
    else:
        maintenance.detach(alteration.session, alteration.transaction, alteration.table)


_FORMS: Mapping[type[nodes.AlterAction], _Form] = MappingProxyType(
    {
        nodes.RenameTable: _Form(renames.rename_table, "renameTable", for_maintained=True),
        nodes.RenameColumn: _Form(renames.rename_column, "renameColumn"),
        nodes.DropColumn: _Form(dropping.drop_column, "dropColumn"),
        nodes.AddColumn: _Form(adding.add_column, "addColumn"),
        nodes.AddConstraint: _Form(constraints.add_constraint, "addConstraint", for_maintained=True),
        nodes.DropConstraint: _Form(constraints.drop_constraint, "dropConstraint"),
        nodes.RenameConstraint: _Form(constraints.rename_constraint, "renameConstraint"),
        nodes.AlterPrimaryKey: _Form(keys.alter_primary_key, "alterPrimaryKey"),
        nodes.SetNotNull: _Form(attributes.set_not_null, "alterColumn"),
        nodes.DropNotNull: _Form(attributes.drop_not_null, "alterColumn"),
        nodes.SetDataType: _Form(attributes.set_data_type, "alterColumn"),
        nodes.SetDefault: _Form(attributes.set_default, "alterColumn"),
        nodes.DropDefault: _Form(attributes.drop_default, "alterColumn"),
        nodes.SetCollation: _Form(attributes.set_collation, "alterColumn"),
        nodes.ChangeTags: _Form(tags.change_table_tags, "setTags"),
        nodes.SetMaintained: _Form(_maintained, "setMaintained", for_maintained=True),
        nodes.DropMaintained: _Form(_maintained, "dropMaintained", for_maintained=True),
    }
)


def alter_table(session: Session, statement: nodes.AlterTable, parameters: Any) -> Result:
    """Run one form of ALTER TABLE on a table of the schema path."""
    session.write(lambda transaction: _alter(session, transaction, statement))
    return Result()


def _alter(session: Session, transaction: Transaction, statement: nodes.AlterTable) -> None:
    table = resolve_table(
        transaction.catalog,
        session.schema_path,
        statement.name.schema,
        statement.name.name,
        statement.position,
    )
    action = statement.action
    form = _FORMS[type(action)]
    check_policy(session, _label(table.name, action, form), table.module)
    if table.derivation is not None and not form.for_maintained:
        raise _shape_is_derived(statement)
    try:
        form.run(Alteration(session, transaction, table, statement.position), action)
        announce_alteration(transaction, table, statement)
    except Error as error:
        error.located(statement.position)
        raise


def _label(table: str, action: nodes.AlterAction, form: _Form) -> str:
    if isinstance(action, nodes.AddConstraint):
        return f"ALTER TABLE {table} ADD CONSTRAINT"
    if isinstance(action, nodes.ChangeTags) and action.change.operation is nodes.TagOperation.DROP:
        return f"ALTER TABLE {table} (dropTags)"
    return f"ALTER TABLE {table} ({form.arm})"


def _shape_is_derived(statement: nodes.AlterTable) -> Error:
    name = statement.name.name
    if isinstance(statement.action, nodes.ChangeTags):
        message = (
            f"cannot ALTER TABLE '{name}': it is a materialized view — use ALTER MATERIALIZED VIEW for tags"
        )
    else:
        message = (
            f"cannot ALTER '{name}': it is a materialized view — its shape is defined by the view body"
            " (drop and recreate to change it)"
        )
    return sql_error(StatusCode.ERROR, message, statement.position)


def alter_object_tags(session: Session, statement: nodes.AlterObjectTags, parameters: Any) -> Result:
    """Change the tags of a view, a materialized view or an index."""
    schema = statement.name.schema or MAIN
    session.write(
        lambda transaction: transaction.change_catalog(
            tags.with_object_tags(transaction.catalog, statement, schema)
        )
    )
    return Result()
