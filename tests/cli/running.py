"""The ``quereus`` command within a test, and a look at what it left."""

from collections.abc import Callable, Sequence

import quereus_store

Run = Callable[..., tuple[int, str, str]]
"""Takes the words of a command; gives exit status, output and errors."""


def rows_of(path: str, sql: str) -> Sequence[tuple[object, ...]]:
    with quereus_store.connect(path) as connection:
        return connection.execute(sql).fetchall()
