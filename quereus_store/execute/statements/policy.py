"""Whether a schema change may run in an explicit transaction (dml-transactions-constraints, section 14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quereus_store.errors import StatusCode, sql_error
from quereus_store.execute.statements.definitions import default_module
from quereus_store.modules.contract import DdlTransactionality
from quereus_store.schema.manager import MAIN
from quereus_store.schema.objects import fold
from quereus_store.sql import nodes

if TYPE_CHECKING:
    from quereus_store.execute.session import Session

_ESCAPES = {
    DdlTransactionality.NON_TRANSACTIONAL: "it survives rollback",
    DdlTransactionality.AUTO_COMMIT: "it survives rollback and force-commits buffered writes",
}


def check_policy(session: Session, label: str, module_name: str) -> None:
    """Refuse a change that would escape the open transaction, if the session's policy is strict (ERROR)."""
    transaction = session.transaction
    if transaction is None or not transaction.explicit:
        return
    if session.options["ddl_transaction_policy"] != "strict":
        return
    module = session.engine.module(module_name)
    tier = module.ddl_transactionality
    if tier is DdlTransactionality.TRANSACTIONAL:
        return
    raise sql_error(
        StatusCode.ERROR,
        f"{label} is not allowed inside an explicit transaction under ddl_transaction_policy = strict:"
        f" module '{module.name}' declares ddlTransactionality = '{tier.value}', so the schema change would"
        f" escape the transaction ({_ESCAPES[tier]}). Run it in autocommit mode, or set"
        " ddl_transaction_policy = permissive.",
    )


def check_policy_of_nothing(
    session: Session, label: str, name: nodes.ObjectName, module: nodes.ModuleClause | None
) -> None:
    """The same for IF NOT EXISTS where there is nothing to do: the statement counts, not what comes of it."""
    usual = default_module(session, name.schema or MAIN, session.options["default_vtab_module"])
    wanted = usual if module is None else module.name
    if fold(wanted) in session.engine.modules:
        check_policy(session, label, wanted)
