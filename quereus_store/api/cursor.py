"""The cursor: PEP 249's way through a result.

Rows come in batches from the engine.  The cursor keeps the current batch and a
position in it; ``fetchall`` joins batches without touching single rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from quereus_store.api.bound import BoundToProcess
from quereus_store.errors import InterfaceError, StatusCode, sql_error

if TYPE_CHECKING:
    from quereus_store.api.connection import Connection
    from quereus_store.execute.results import Result

Description = tuple[tuple[str, str, None, None, None, None, bool], ...]


class Cursor(BoundToProcess):
    """Runs statements and hands out their rows.

    ``rowcount`` is the number of rows changed, -1 after a query.  ``lastrowid``
    is always None: rows are known by their keys, there is no hidden row number.
    """

    lastrowid = None

    __slots__ = ("_batch", "_closed", "_position", "_result", "arraysize", "connection", "row_factory")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.row_factory: Callable[[Cursor, tuple[Any, ...]], Any] | None = connection.row_factory
        self._result: Result | None = None
        self._batch: Sequence[tuple[Any, ...]] = ()
        self._position = 0
        self._closed = False

    # -- running -----------------------------------------------------------------

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Run one statement; parameters are a sequence for ``?`` or a mapping for ``:name``."""
        self._reset()
        self._result = self.connection.run(sql, parameters)
        return self

    def executemany(self, sql: str, parameter_sets: Any) -> Cursor:
        """Run one INSERT, UPDATE or DELETE for many sets of parameters, as one atomic step."""
        self._reset()
        self._result = self.connection.run_many(sql, parameter_sets)
        return self

    def executescript(self, sql: str) -> Cursor:
        """Run all statements of a script."""
        self._reset()
        self.connection.executescript(sql)
        return self

    def _reset(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self._result is not None:
            self._result.close()
            self._result = None
        self._batch = ()
        self._position = 0

    # -- what came ---------------------------------------------------------------

    @property
    def description(self) -> Description | None:
        """Name, type name and nullability of each column, in PEP 249's seven places; None without rows."""
        result = self._result
        if result is None or result.columns is None:
            return None
        return tuple(
            (column.name, column.type.name, None, None, None, None, column.nullable)
            for column in result.columns
        )

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed; -1 after a query or before any statement."""
        return -1 if self._result is None else self._result.row_count

    def fetchone(self) -> Any:
        """The next row, or None at the end."""
        position = self._position
        if position >= len(self._batch):
            if not self._advance():
                return None
            position = 0
        self._position = position + 1
        row = self._batch[position]
        return row if self.row_factory is None else self.row_factory(self, row)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Up to ``size`` (default ``arraysize``) more rows."""
        wanted = self.arraysize if size is None else size
        rows: list[Any] = []
        while len(rows) < wanted:
            if self._position >= len(self._batch) and not self._advance():
                break
            end = self._position + wanted - len(rows)
            rows += self._batch[self._position : end]
            self._position = min(end, len(self._batch))
        return self._made(rows)

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        rows: list[Any] = list(self._batch[self._position :])
        self._batch = ()
        self._position = 0
        result = self._readable()
        if result is not None:
            rows = rows + result.all_rows() if rows else result.all_rows()
        return self._made(rows)

    def fetch_batches(self) -> Iterator[list[Any]]:
        """The rows that are left in lists of about a thousand, as the engine makes them."""
        if self._position < len(self._batch):
            yield self._made(list(self._batch[self._position :]))
            self._batch = ()
        while self._advance():
            self._position = len(self._batch)
            yield self._made(list(self._batch))

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def _made(self, rows: list[Any]) -> list[Any]:
        factory = self.row_factory
        return rows if factory is None else [factory(self, row) for row in rows]

    def _advance(self) -> bool:
        """Go to the next batch; False at the end."""
        self._position = 0
        self._batch = ()
        result = self._result
        if result is None or self.connection.closed:
            result = self._readable()
            if result is None:
                return False
        batch = result.next_batch()
        if batch is None:
            return False
        self._batch = batch
        return True

    def _readable(self) -> Result | None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self.connection.closed:
            raise InterfaceError("Database is closed")
        return self._result

    # -- other shapes --------------------------------------------------------------

    def arrow(self) -> Any:
        """The rows that are left as a ``pyarrow.Table``; needs ``pyarrow``."""
        from quereus_store.api.arrow import arrow_table

        return arrow_table(self)

    def df(self) -> Any:
        """The rows that are left as a ``pandas.DataFrame``; needs ``pandas``."""
        try:
            import pandas
        except ImportError as missing:
            raise sql_error(StatusCode.MISUSE, "Cursor.df() needs the package pandas") from missing
        names = [column[0] for column in self.description or ()]
        return pandas.DataFrame.from_records(self._plain_rows(), columns=names)

    def _plain_rows(self) -> list[tuple[Any, ...]]:
        factory, self.row_factory = self.row_factory, None
        try:
            return self.fetchall()
        finally:
            self.row_factory = factory

    # -- end -------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the result; the cursor cannot be used any more."""
        if not self._closed:
            self._reset()
            self._closed = True

    def setinputsizes(self, sizes: Any) -> None:
        """PEP 249; does nothing."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """PEP 249; does nothing."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
