"""The committed state of tables that the running transaction has altered or created.

``committed.t`` has the columns that ``t`` has now, but the snapshot holds rows of the shape that it had
when the transaction began.  So each of the transaction's ALTERs that rewrote rows is done to them once
more, as they are read (dml-transactions-constraints, section 15).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quereus_store.execute.notification.images import place_of, reshaped
from quereus_store.modules.contract import Row
from quereus_store.schema.manager import tables_of
from quereus_store.schema.objects import TableSchema

if TYPE_CHECKING:
    from quereus_store.execute.engine import Engine
    from quereus_store.execute.notification.events import Reshape
    from quereus_store.execute.transactions import ReadView


def committed_rows(engine: Engine, view: ReadView, table: TableSchema) -> Iterator[Row]:
    """The rows that a table had when the transaction began, in its present shape; none if it is new."""
    place = place_of(table)
    since: list[Reshape] = []
    for reshape in reversed(view.reshapes):
        if place_of(reshape.after) == place:
            since.insert(0, reshape)
            place = place_of(reshape.before)
    before = next((each for each in tables_of(view.started_with) if place_of(each) == place), None)
    if before is None:
        return
    for batch in engine.table(before).scan(view.snapshot(before.module)):
        rows: Sequence[Row] = batch
        for reshape in since:
            rows = reshaped(rows, reshape)
        yield from rows
