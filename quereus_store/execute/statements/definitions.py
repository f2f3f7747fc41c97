"""What a definition is checked against: the session's options, and the expressions it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quereus_store.errors import SourcePosition, StatusCode, sql_error
from quereus_store.execute.transactions import Transaction
from quereus_store.plan.binder.definitions import check_table_expressions
from quereus_store.schema.builder import Surroundings, TableSettings
from quereus_store.schema.clauses import plain_arguments
from quereus_store.schema.manager import MAIN, TEMP
from quereus_store.schema.objects import TableSchema, fold

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_VOLATILE = "memory"
"""The module of tables that nobody asked to keep."""


def table_settings(session: Session, schema: str = MAIN) -> TableSettings:
    """What the session's options say about what a CREATE TABLE leaves open."""
    options = session.options
    module, arguments = options["default_vtab_module"], options["default_vtab_args"]
    usual = default_module(session, schema, module)
    return TableSettings(
        nullable_by_default=options["default_column_nullability"] == "nullable",
        default_collation=options["default_collation"],
        default_module=usual,
        default_module_arguments=plain_arguments(arguments) if usual == module else {},
    )


def default_module(session: Session, schema: str, wanted: str) -> str:
    """Where a table of a schema lives that names no module: in memory if the schema is not kept.

    An attached database keeps all its tables itself.
    """
    attached = session.engine.attachments.databases.get(fold(schema))
    if attached is not None:
        return attached.module.name
    module = session.engine.modules.get(fold(wanted))
    if fold(schema) == TEMP and module is not None and module.persistent:
        return _VOLATILE
    return wanted


def check_lifetime(
    session: Session, schema: str, module: str, position: SourcePosition | None = None
) -> None:
    """What schema ``temp`` holds is forgotten, so its rows may not be kept (ERROR).

    An attached database keeps the rows of its own tables, all of them and no others.
    """
    attached = session.engine.attachments.databases.get(fold(schema))
    module_of = session.engine.attachments.name_of(fold(module))
    if module_of != (attached.name if attached is not None else MAIN):
        raise sql_error(
            StatusCode.ERROR,
            f"a table of schema {schema} cannot use module '{module}', which belongs to database {module_of}:"
            " leave USING out",
            position,
        )
    if fold(schema) == TEMP and session.engine.module(module).persistent:
        raise sql_error(
            StatusCode.ERROR,
            f"a table of schema temp cannot use module '{module}', which keeps its rows: leave USING out",
            position,
        )


def table_surroundings(session: Session, transaction: Transaction) -> Surroundings:
    """The collations, types and modules that a definition may name, and the check of its expressions."""
    engine = session.engine

    def find_module(name: str) -> str | None:
        module = engine.modules.get(fold(name))
        return module.name if module is not None else None

    return Surroundings(
        collations=engine.collations,
        types=engine.types,
        find_module=find_module,
        check_expressions=lambda table: check_expressions(session, transaction, table),
    )


def check_expressions(session: Session, transaction: Transaction, table: TableSchema) -> None:
    """Bind the defaults, checks and generated columns of a table, so that what is wrong shows at once."""
    check_table_expressions(session.bind_context(transaction, {}), table)
