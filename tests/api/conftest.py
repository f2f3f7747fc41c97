"""A connection to a small database, in memory and in files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection


@pytest.fixture(params=["memory", "lmdb", "leveldb"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    options = {} if request.param == "memory" else {"backend": request.param, "synchronous": "off"}
    place = ":memory:" if request.param == "memory" else tmp_path / "db"
    with quereus_store.connect(place, **options) as connection:
        connection.executescript(
            """
            create table crew (id integer primary key, nick text, rank integer null);
            insert into crew values (1, 'Ann', 3), (2, 'Bo', null), (3, 'Cy', 1);
            """
        )
        yield connection
