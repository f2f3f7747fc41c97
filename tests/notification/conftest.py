"""One database with a table and a view, on each storage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection


@pytest.fixture(params=["memory", "lmdb", "leveldb"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    backend = request.param
    made = (
        quereus_store.connect(":memory:")
        if backend == "memory"
        else quereus_store.connect(tmp_path / "db", backend=backend)
    )
    with made as connection:
        connection.execute("create table tank (id integer primary key, name text, litres real)")
        yield connection


def another(con: Connection) -> Connection:
    """A second connection to the same database, which lives as long as the test."""
    if con.database.path is None:
        return Connection(con.database)
    return quereus_store.connect(con.database.path, backend=con.database.backend)
