"""The runtime of a mutation: a query's, with what its parts share.

The fast program, the careful one and deferred checks of one statement are
compiled separately and read in different sets of transactions, but members of
the statement run once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quereus_store.execute.codegen.compiler import TransactionUse
from quereus_store.execute.runtime import Parameters, Runtime
from quereus_store.modules.contract import Row
from quereus_store.schema.objects import fold

if TYPE_CHECKING:
    from quereus_store.execute.transactions import Transaction

Reads = tuple[tuple[str, str], ...]


class MutationRuntime(Runtime):
    """One execution of one mutation; ``follow_ups`` collects the changes whose foreign keys act next.

    ``given`` are the rows that a statement of several mutations hands to each of them, ``context_values``
    those of the mutation context.
    """

    __slots__ = ("context_values", "follow_ups", "given")

    transaction: Transaction

    def __init__(
        self,
        session: Any,
        transaction: Any,
        parameters: Parameters,
        transactions: list[Any],
        parameter_rows: list[Row] | None = None,
    ) -> None:
        self.session = session
        self.transaction = transaction
        self.parameters = parameters
        self.transactions = transactions
        self.parameter_rows = parameter_rows
        self._members = None
        self._mutation_rows = None
        self._common_rows = None
        self.follow_ups: list[Any] | None = None
        self.given: Sequence[list[Row]] = ()
        self.context_values: Sequence[Any] = ()

    def belong_to(self, enclosing: Runtime) -> None:
        """Be a part of the same statement: its common tables are read once for both."""
        self._common_rows = enclosing.share_common_rows()

    def fork(self, reads: Reads, transaction: Any = None) -> MutationRuntime:
        """A runtime for another program of the same statement (perhaps at its transaction's commit)."""
        transaction = transaction or self.transaction
        forked = MutationRuntime(
            self.session, transaction, self.parameters, open_all(reads, transaction), self.parameter_rows
        )
        if self._members:
            if self._mutation_rows is None:
                self._mutation_rows = {}
            forked._members, forked._mutation_rows = self._members, self._mutation_rows
        forked._common_rows = self.share_common_rows()
        forked.follow_ups = self.follow_ups
        forked.given = self.given
        forked.context_values = self.context_values
        return forked


def reads_of(uses: tuple[TransactionUse, ...] | list[TransactionUse], written: frozenset[str]) -> Reads:
    """For each transaction that a program uses: the method that opens it, and the module."""
    return tuple([(_method(use, written), use.module) for use in uses])


def _method(use: TransactionUse, written: frozenset[str]) -> str:
    if use.committed:
        return "snapshot"
    return "writer" if fold(use.module) in written else "reader"


def open_all(reads: Reads, transaction: Any) -> list[Any]:
    """The module transactions of a program."""
    if len(reads) == 1:
        ((method, module),) = reads
        return [getattr(transaction, method)(module)]
    return [getattr(transaction, method)(module) for method, module in reads]
