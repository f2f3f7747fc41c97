"""What a statement gives back: columns, batches of rows, a row count.

A result may still be reading: its batches come from a pinned snapshot as they
are asked for.  :meth:`Result.close` lets the snapshot go; so does reading to the
end.  Before the same transaction writes, what is left of an open result is read
ahead (:meth:`Result.drain`), so that a statement never sees a later one's work.

Rows are handed out as the tables keep them, but for documents: those are copied, so that
a caller may change what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from quereus_store.errors import Error
from quereus_store.modules.contract import Row
from quereus_store.plan.expressions import Column
from quereus_store.sql.nodes import Statement
from quereus_store.types import ANY, JSON
from quereus_store.types.json import copy_document

Batches = Iterable[list[Row]]


class Result:
    """Rows of a statement; without any ``columns`` is None, where nothing changed ``row_count`` is -1.

    ``documents`` are the positions of columns that may hold documents (:func:`document_columns`).
    Errors of its rows are told where ``statement`` begins.
    """

    __slots__ = ("__weakref__", "_batches", "_documents", "_release", "_statement", "columns", "row_count")

    def __init__(
        self,
        columns: tuple[Column, ...] | None = None,
        batches: Batches = (),
        row_count: int = -1,
        release: Callable[[], Any] | None = None,
        documents: tuple[int, ...] = (),
        statement: Statement | None = None,
    ) -> None:
        self.columns = columns
        self.row_count = row_count
        self._batches = iter(batches)
        self._release = release
        self._documents = documents
        self._statement = statement

    def batches(self) -> Iterator[list[Row]]:
        """The rows not read yet, a batch at a time."""
        return iter(self.next_batch, None)

    def next_batch(self) -> list[Row] | None:
        """The next batch that has rows; None at the end, when the snapshot is let go."""
        try:
            for batch in self._batches:
                if batch:
                    return batch if not self._documents else detached(batch, self._documents)
        except BaseException as error:
            self.close()
            self._locate(error)
            raise
        if self._release is not None:
            self.close()
        return None

    def all_rows(self) -> list[Row]:
        """Every row not read yet."""
        try:
            rows = list(chain.from_iterable(self._batches))
        except Error as error:
            self._locate(error)
            raise
        finally:
            self.close()
        return rows if not self._documents else detached(rows, self._documents)

    def drain(self) -> None:
        """Read the rest now and let the snapshot go; what fails in it fails when the caller comes to it."""
        batches: list[list[Row]] = []
        failure: Exception | None = None
        try:
            batches += self._batches
        except Exception as error:
            failure = error
            self._locate(error)
        self.close()
        self._batches = iter(batches) if failure is None else _failing(batches, failure)

    def _locate(self, error: BaseException) -> None:
        if self._statement is not None and isinstance(error, Error):
            error.of_statement(self._statement.position)

    def close(self) -> None:
        """Let the snapshot go; may be repeated."""
        release, self._release = self._release, None
        if release is not None:
            release()


def _failing(batches: list[list[Row]], failure: Exception) -> Iterator[list[Row]]:
    yield from batches
    raise failure


def document_columns(columns: tuple[Column, ...] | None) -> tuple[int, ...]:
    """The positions of columns that may hold documents."""
    return tuple([i for i, column in enumerate(columns or ()) if column.type is JSON or column.type is ANY])


def detached(rows: list[Row], documents: tuple[int, ...]) -> list[Row]:
    """Rows whose documents, at these positions, are copies."""
    return [_detached(row, documents) for row in rows]


def _detached(row: Row, documents: tuple[int, ...]) -> Row:
    for position in documents:
        value = row[position]
        if type(value) is dict or type(value) is list:
            row = (*row[:position], copy_document(value), *row[position + 1 :])
    return row
