"""What a data-modifying statement leaves: how many rows it changed and what RETURNING gave; or a failure."""

from __future__ import annotations

from typing import NamedTuple

from quereus_store.errors import Error
from quereus_store.modules.contract import Row


class MutationOutcome(NamedTuple):
    """Rows that the statement itself wrote, and RETURNING's rows in write order."""

    row_count: int
    rows: list[Row]


class StatementFailed(Exception):
    """A failure that does not simply undo the statement (dml-transactions-constraints, section 4).

    ``keeps_changes``: OR FAIL leaves the rows before the failing one.
    ``ends_transaction``: OR ROLLBACK undoes the whole transaction.
    """

    def __init__(self, error: Error, *, keeps_changes: bool = False, ends_transaction: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.keeps_changes = keeps_changes
        self.ends_transaction = ends_transaction


class Trouble(Exception):
    """The fast way met a row that needs the careful one; nothing has been written."""


class Skipped(Exception):
    """A row is left out (IGNORE, DO NOTHING)."""
