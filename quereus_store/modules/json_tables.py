"""The JSON modules: tables over the values of one document, given when the table is created.

``create table t using json_tree('{"a": [1, 2]}')`` has the columns and the rows of the table function of the
same name.  The rows are made once and lie in memory, so such a table may be indexed and joined like any
other; it shows its document and takes no changes.

Chapter: sql-ddl, sections 6.1 and 6.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quereus_store.errors import Error, StatusCode, sql_error
from quereus_store.functions.json_values import read_document
from quereus_store.functions.table_functions import json_each, json_tree
from quereus_store.modules.contract import Row
from quereus_store.modules.memory.module import MemoryModule
from quereus_store.modules.memory.table import MemoryTable
from quereus_store.modules.memory.transactions import Writer
from quereus_store.schema.objects import TableSchema

COLUMNS = """create table described (
    key any null, value any null, type text, atom any null,
    id integer primary key, parent integer null, fullkey text, path text
)"""


class JsonTable(MemoryTable):
    """A table that shows a document: read like one in memory, never written."""

    def insert(self, transaction: Writer, rows: Sequence[Row]) -> None:
        """Refused (READONLY)."""
        raise self._read_only()

    def delete(self, transaction: Writer, rows: Sequence[Row]) -> None:
        """Refused (READONLY)."""
        raise self._read_only()

    def update(self, transaction: Writer, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Refused (READONLY)."""
        raise self._read_only()

    def fill(self, transaction: Writer, rows: Sequence[Row]) -> None:
        """Store the rows of the document in a table that was just made."""
        super().insert(transaction, rows)

    def _read_only(self) -> Error:
        return sql_error(
            StatusCode.READONLY,
            f"Table '{self.schema.name}' is read-only: module '{self.schema.module}' shows the document "
            "that the table was created with",
        )


class JsonModule(MemoryModule):
    """Tables whose rows a function makes of a document (contract: ``Module`` and ``ColumnSource``)."""

    table_class = JsonTable
    definition = COLUMNS
    get_backing_host = None  # type: ignore[assignment]

    def __init__(self, name: str, rows_of: Callable[..., Iterable[Row]]) -> None:
        super().__init__(name)
        self._rows_of = rows_of

    def create_table(self, transaction: Writer, schema: TableSchema) -> TableSchema:
        """Make a table of the document, and the path in it, among the module's arguments."""
        try:
            rows = list(self._rows_of(read_document, *schema.module_arguments.values()))
        except Error as error:
            raise sql_error(error.code, error.message.removeprefix("Error: ")) from error
        schema = super().create_table(transaction, schema)
        table = self.table(schema)
        assert isinstance(table, JsonTable)
        table.fill(transaction, rows)
        return schema


def json_modules() -> tuple[JsonModule, ...]:
    """One module for the children of a container, one for all values below it."""
    return JsonModule("json_each", json_each), JsonModule("json_tree", json_tree)
