"""DECLARE LENS, and APPLY SCHEMA of a logical schema (view-updates-and-lenses, section 12).

Declarations are kept in the database's engine until the process ends; what APPLY makes of
them is part of the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quereus_store.errors import SourcePosition
from quereus_store.execute.results import Result
from quereus_store.execute.statements.definitions import table_settings, table_surroundings
from quereus_store.execute.transactions import Transaction
from quereus_store.modules.contract import LensListener
from quereus_store.plan.lenses.deploying import Lens, check_overrides, deployed
from quereus_store.schema.objects import LensSnapshot, TableSchema, fold
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session


def declare_lens(session: Session, statement: nodes.DeclareLens, parameters: Any) -> Result:
    """Remember a lens; an earlier one of the same logical schema is forgotten."""
    check_overrides(statement)
    session.engine.lenses[fold(statement.schema)] = statement
    return Result()


def deploy(
    session: Session,
    declaration: nodes.DeclareSchema,
    position: SourcePosition | None,
    *,
    dry_run: bool = False,
) -> None:
    """Make a logical schema as it is declared, under its lens if one is declared."""

    def change(transaction: Transaction) -> None:
        surroundings = replace(table_surroundings(session, transaction), check_expressions=None)
        settings = replace(table_settings(session, declaration.name), default_module_arguments={})
        wanted = Lens(declaration, session.engine.lenses.get(fold(declaration.name)), settings, surroundings)
        context = session.bind_context(transaction, {})
        catalog = deployed(context, _Services(session, transaction), wanted, position)
        if not dry_run:
            transaction.change_catalog(catalog)

    session.write(change)
    if not dry_run:
        _notify(session, declaration.name)


def _notify(session: Session, name: str) -> None:
    """Tell the modules that ask for it; what one of them raises fails APPLY, but the deployment stays."""
    listeners = [module for module in session.engine.modules.values() if isinstance(module, LensListener)]
    if not listeners:
        return

    def snapshot(transaction: Transaction) -> tuple[LensSnapshot, ...]:
        schema = transaction.catalog.schema(name)
        return () if schema is None or schema.lens is None else schema.lens.snapshot

    deployed_tables = session.write(snapshot)
    for listener in listeners:
        listener.notify_lens_deployment(name, deployed_tables)


@dataclass(frozen=True, slots=True)
class _Services:
    """What the prover asks, answered within one transaction."""

    session: Session
    transaction: Transaction

    def evaluate(self, expression: nodes.Expression) -> Any:
        """The value of an expression over constants."""
        query = nodes.Query(nodes.Select((nodes.ResultColumn(expression),)))
        for batch in self.session.query_within(self.transaction, query, ()):
            for (value,) in batch:
                return value
        return None

    def row_count(self, table: TableSchema) -> float:
        """About how many rows a table has."""
        return self.session.engine.row_count(table)

    def tolerates_nulls(self, table: TableSchema) -> bool:
        """What the table's module declares (flag ``permits_grandfathered_nulls``)."""
        module = self.session.engine.module(table.module)
        return bool(getattr(module, "permits_grandfathered_nulls", False))
