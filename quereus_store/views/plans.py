"""Strategies: the ways to bring a maintained table up to date.

Whatever strategy runs, the table equals its body afterwards; they differ in cost.

Chapter: views-and-maintained-tables, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from quereus_store.execute.engine import Engine
from quereus_store.modules.contract import Row
from quereus_store.views.body import TableKey
from quereus_store.views.graph import Member
from quereus_store.views.programs import Program
from quereus_store.views.rows import Delta, Difference, RowSet

if TYPE_CHECKING:
    from quereus_store.execute.session import Session
    from quereus_store.execute.transactions import Transaction


class Strategy(Protocol):
    """One way to bring a table up to date."""

    name: str

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """How the stored rows have to change, given what happened to the sources."""
        ...


class Rebuild:
    """Compute the whole body and write what differs."""

    name = "rebuild"

    def __init__(self, engine: Engine, member: Member) -> None:
        self._engine = engine
        self._table = member.table
        self._rows = RowSet(member.table)
        self.program = Program(engine, member.body.context, member.body.plan)

    def difference(
        self, session: Session, transaction: Transaction, deltas: Mapping[TableKey, Delta]
    ) -> Difference:
        """The stored rows against the body's."""
        wanted = self.program.rows(session, transaction)
        return self._rows.difference(self.stored(transaction), wanted)

    def stored(self, transaction: Transaction) -> list[Row]:
        """All rows of the table."""
        handle = self._engine.table(self._table)
        reader = transaction.reader(self._table.module)
        return [row for batch in handle.scan(reader) for row in batch]


class Strategies:
    """The strategies of each member, made when first needed and kept with its body."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def choose(self, member: Member, deltas: Mapping[TableKey, Delta]) -> Strategy:
        """The cheapest strategy for these changes."""
        return self.rebuild(member)

    def rebuild(self, member: Member) -> Rebuild:
        """The strategy that is always right."""
        kept = member.body.programs
        found = kept.get("rebuild")
        if not isinstance(found, Rebuild) or found._table is not member.table:
            found = kept["rebuild"] = Rebuild(self._engine, member)
        return found
