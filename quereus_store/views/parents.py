"""Foreign keys onto a maintained table: what its derived changes mean for the rows that refer to it.

A derived DELETE, or an UPDATE of a referenced column, is one for foreign keys too: RESTRICT refuses the
statement that changed the source; CASCADE and its kin change the children.  The children change after
all maintained tables have followed the statement, so that no table is computed from a half-way
state; what depends on them follows in another round.

Chapter: views-and-maintained-tables, section 8.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from quereus_store.execute.dml.foreign_keys.parents import ParentSide, parent_side
from quereus_store.execute.dml.generation import Workshop
from quereus_store.execute.dml.runtime import MutationRuntime
from quereus_store.schema.objects import Operation, TableSchema
from quereus_store.views.rows import Difference

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction

FollowUp = Callable[[], None]


class DerivedParent:
    """The foreign keys that refer to one maintained table, looked up once per catalog."""

    def __init__(self, table: TableSchema) -> None:
        self._table = table
        self._known: tuple[int, bool] | None = None
        self._on_delete: ParentSide | None = None
        self._on_update: ParentSide | None = None

    def before(self, session: Session, transaction: Transaction, difference: Difference) -> list[FollowUp]:
        """Raise CONSTRAINT for changes that children forbid; gives what is to be done to the others."""
        asked = (transaction.catalog.version, bool(session.options["foreign_keys"]))
        if asked != self._known:
            self._look_up(session, transaction)
            self._known = asked
        waiting: list[FollowUp] = []
        if self._on_delete is not None and difference.deleted:
            runtime = _runtime(session, transaction)
            self._on_delete.before(runtime, difference.deleted)
            waiting.append(partial(self._on_delete.after, runtime, difference.deleted))
        if self._on_update is not None and difference.old:
            runtime = _runtime(session, transaction)
            self._on_update.before(runtime, difference.old, difference.new)
            waiting.append(partial(self._on_update.after, runtime, difference.old, difference.new))
        return waiting

    def _look_up(self, session: Session, transaction: Transaction) -> None:
        self._on_delete = self._on_update = None
        if session.options["foreign_keys"]:
            workshop = Workshop(session.engine, session.bind_context(transaction, {}))
            columns = range(len(self._table.columns))
            self._on_delete = parent_side(workshop, self._table, Operation.DELETE, (), True)
            self._on_update = parent_side(workshop, self._table, Operation.UPDATE, columns, True)


def _runtime(session: Session, transaction: Transaction) -> MutationRuntime:
    return MutationRuntime(session, transaction, (), [])
