"""What a mutation gives back, and how it fails.

An ordinary error undoes the statement and nothing else.  Two clauses ask for
something different (dml-transactions-constraints, section 4), which the session
has to carry out: OR FAIL keeps the rows written before the failure, OR ROLLBACK
ends the transaction.  :class:`StatementFailed` carries the error together with
that wish.
"""

from __future__ import annotations

from typing import NamedTuple

from quereus_store.errors import Error
from quereus_store.modules.contract import Row


class MutationOutcome(NamedTuple):
    """The number of rows written by the statement itself, and RETURNING's rows in write order."""

    row_count: int
    rows: list[Row]


class StatementFailed(Exception):
    """A statement failed under OR FAIL (``keeps_changes``) or OR ROLLBACK (``ends_transaction``)."""

    def __init__(
        self, error: Error, *, keeps_changes: bool = False, ends_transaction: bool = False
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.keeps_changes = keeps_changes
        self.ends_transaction = ends_transaction


class Trouble(Exception):
    """The fast way met a row that needs the careful one; nothing has been written."""
