"""What these tests share: a small database, ways to spoil it, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quereus_store
from quereus_store import Connection, Error
from quereus_store.backends import open_backend
from quereus_store.backends.contract import WriteTransaction
from quereus_store.errors import StatusCode

SCHEMA = """
create table crew (id integer primary key, nick text null);
create index by_nick on crew (nick);
create table ship (name text primary key);
insert into crew values (1, 'Ann'), (2, 'Bo'), (3, null);
insert into ship values ('Argo');
"""
CREW = [(1, "Ann"), (2, "Bo"), (3, None)]


def make(path: Path, backend: str) -> None:
    """A database with two tables."""
    with quereus_store.connect(path, backend=backend) as connection:
        connection.executescript(SCHEMA)


def crew(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute("select * from crew order by id").fetchall()


@contextmanager
def refused(kind: type[Error], code: StatusCode, *texts: object) -> Iterator[None]:
    """The block raises this very class with this code, and the message says all of these texts."""
    with pytest.raises(Error) as caught:
        yield
    error = caught.value
    assert (type(error), error.code) == (kind, code), error
    for text in texts:
        assert str(text) in str(error)


@contextmanager
def storage(path: Path, backend: str) -> Iterator[WriteTransaction]:
    """A transaction under the engine's feet; committed at the end of the block."""
    opened = open_backend(backend, path)
    try:
        with opened.write() as transaction:
            yield transaction
            transaction.commit()
    finally:
        opened.close()
