"""Writing the rows of a query to a Parquet file, one row group after the other.

The Arrow type of a column stands at the head of the file's rows, before most of them are known.  So each
column starts with the form that its declared type suggests; when a value does not fit, the column gets
a wider form and writing starts over.  A column is widened twice at most.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from quereus_store.api.arrow import ARROW_TYPES
from quereus_store.api.dumping import json_source
from quereus_store.cli.transfer.formats import column_names
from quereus_store.cli.transfer.parquet_format import ENCODING, KEY, MIXED, TYPE, load_pyarrow, mixed_text

if TYPE_CHECKING:
    from quereus_store import Connection

_FETCHED_AT_ONCE = 2000
_ROWS_A_GROUP = 50_000

#: The form that a column of a declared type starts with; columns of other types start as ``NULL``.
_FORMS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in ARROW_TYPES},
        **dict.fromkeys(("DATE", "TIME", "DATETIME", "TIMESPAN"), "TEXT"),
    }
)
_FORM_OF_KIND: Mapping[type, str] = MappingProxyType(
    {int: "INTEGER", float: "REAL", str: "TEXT", bool: "BOOLEAN", bytes: "BLOB"}
)
_KIND_OF_FORM = MappingProxyType({form: kind for kind, form in _FORM_OF_KIND.items()})


class _Misfit(Exception):
    """Values do not fit the form of a column."""

    def __init__(self, column: int, wider: str) -> None:
        super().__init__(column, wider)
        self.column = column
        self.wider = wider


def write_parquet(
    connection: Connection, sql: str, key: Sequence[str], stream: BinaryIO, progress: Callable[[int], None]
) -> int:
    """Write the rows of a query; returns their number.

    :param key: the columns that are the key of what is read, if it is a table.
    :param stream: a file that can be read from the start again, for what did not fit at first.
    :raises CommandError: without ``pyarrow``.
    """
    load_pyarrow()
    widened: dict[int, str] = {}
    while True:
        stream.seek(0)
        stream.truncate()
        try:
            # A transaction for each attempt: what a statement of a failed one has changed is taken back.
            with connection.transaction():
                return _Attempt(connection, sql, key, widened).write(stream, progress)
        except _Misfit as misfit:
            widened[misfit.column] = misfit.wider


class _Attempt:
    """One pass over the rows, with the forms of columns that are known by then."""

    def __init__(self, connection: Connection, sql: str, key: Sequence[str], widened: dict[int, str]) -> None:
        self._pyarrow, self._parquet = load_pyarrow()
        self._cursor = connection.execute(sql)
        column_names(self._cursor)
        columns = self._cursor.description or ()
        self._forms = [
            widened.get(position, _FORMS.get(column[1], "NULL")) for position, column in enumerate(columns)
        ]
        self._schema = self._pyarrow.schema(
            # What a query gives may always be NULL; of a table, its constraints tell.
            [
                self._field(column, form, not key or column[6])
                for column, form in zip(columns, self._forms, strict=True)
            ],
            metadata={KEY: json.dumps(list(key)).encode()} if key else None,
        )

    def write(self, stream: BinaryIO, progress: Callable[[int], None]) -> int:
        count = 0
        group: list[Any] = []
        in_group = 0
        with self._parquet.ParquetWriter(stream, self._schema) as writer:
            while rows := self._cursor.fetchmany(_FETCHED_AT_ONCE):
                arrays = [
                    self._array(position, values) for position, values in enumerate(zip(*rows, strict=True))
                ]
                group.append(self._pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema))
                in_group += len(rows)
                count += len(rows)
                if in_group >= _ROWS_A_GROUP:
                    writer.write_table(self._pyarrow.Table.from_batches(group), in_group)
                    group, in_group = [], 0
                progress(count)
            if group:
                writer.write_table(self._pyarrow.Table.from_batches(group), in_group)
        return count

    def _field(self, column: Sequence[Any], form: str, nullable: bool) -> Any:
        name, declared, *_ = column
        metadata = {TYPE: str(declared).encode()}
        if form == "MIXED":
            metadata[ENCODING] = MIXED
        return self._pyarrow.field(
            name, self._type(form), nullable=nullable or form == "NULL", metadata=metadata
        )

    def _type(self, form: str) -> Any:
        factory = {"NULL": "null", "MIXED": "string"}.get(form) or ARROW_TYPES[form]
        return getattr(self._pyarrow, factory)()

    def _array(self, position: int, values: Sequence[Any]) -> Any:
        """The values of a column in its form; raises :class:`_Misfit` with the form they need."""
        form = self._forms[position]
        if form == "MIXED":
            return self._pyarrow.array(map(mixed_text, values), self._pyarrow.string())
        if form == "JSON":
            return self._pyarrow.array(
                [None if value is None else json_source(value) for value in values], self._pyarrow.string()
            )
        kinds = set(map(type, values)) - {type(None)}
        if kinds <= {_KIND_OF_FORM.get(form)}:
            try:
                return self._pyarrow.array(values, self._type(form))
            except (self._pyarrow.ArrowException, OverflowError, UnicodeEncodeError):
                raise _Misfit(position, "MIXED") from None
        single = kinds.pop() if form == "NULL" and len(kinds) == 1 else None
        raise _Misfit(position, "MIXED" if single is None else _FORM_OF_KIND.get(single, "MIXED"))
