"""What a definition is checked against: the session's options, and the expressions it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quereus_store.execute.transactions import Transaction
from quereus_store.plan.binder.definitions import check_table_expressions
from quereus_store.schema.builder import Surroundings, TableSettings
from quereus_store.schema.objects import TableSchema, fold

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def table_settings(session: Session) -> TableSettings:
    """What the session's options say about what a CREATE TABLE leaves open."""
    options = session.options
    return TableSettings(
        nullable_by_default=options["default_column_nullability"] == "nullable",
        default_collation=options["default_collation"],
        default_module=options["default_vtab_module"],
        default_module_arguments=options["default_vtab_args"],
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
