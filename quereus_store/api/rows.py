"""Row factories: what a fetched row looks like.

A row is a tuple.  ``connection.row_factory = Row`` gives rows that are also
read by name, :func:`dict_row` gives dictionaries; any callable that takes the
cursor and the tuple will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Row:
    """A row that is read by position, by slice and by column name in any case."""

    __slots__ = ("_names", "_values")

    def __init__(self, cursor: Any, values: tuple[Any, ...]) -> None:
        self._values = values
        self._names = tuple(column[0] for column in cursor.description)

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            folded = key.lower()
            for position, name in enumerate(self._names):
                if name.lower() == folded:
                    return self._values[position]
            raise IndexError(f"no column named {key!r} in the row")
        return self._values[key]

    def keys(self) -> list[str]:
        """The column names."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return self._names == other._names and self._values == other._values
        return self._values == other

    def __hash__(self) -> int:
        return hash((self._names, self._values))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._names, self._values, strict=True))
        return f"Row({fields})"


def dict_row(cursor: Any, values: tuple[Any, ...]) -> dict[str, Any]:
    """A row as a dictionary; of columns with the same name the last one counts."""
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}
