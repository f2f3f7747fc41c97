"""Copies of open databases: complete, of one commit, on any storage, or not there at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store.backends import open_backend
from quereus_store.errors import Error, StatusCode
from quereus_store.store.copying import copy_database

BACKENDS = ("lmdb", "leveldb")

SCHEMA = """
create table crew (id integer primary key, nick text unique);
create table letter (title text primary key, crew_id integer references crew (id));
create materialized view per_crew as select crew_id, count(*) as letters from letter group by crew_id;
insert into crew values (1, 'Ann'), (2, 'Bo');
"""


def filled(path: Path, backend: str) -> quereus_store.Connection:
    con = quereus_store.connect(path, backend=backend)
    con.executescript(SCHEMA)
    # Keys longer than LMDB's own limit, and more rows than one commit of the copy holds.
    letters = [
        (f"{number:05d}" + "x" * (600 if number % 1000 == 0 else 0), number % 2 + 1)
        for number in range(21_000)
    ]
    con.executemany("insert into letter values (?, ?)", letters)
    return con


@pytest.mark.parametrize("source", BACKENDS)
@pytest.mark.parametrize("target", BACKENDS)
def test_a_copy_holds_everything(tmp_path: Path, source: str, target: str) -> None:
    with filled(tmp_path / "a", source) as con:
        con.backup(tmp_path / "b", backend=target)
        rows = con.execute("select * from letter order by title").fetchall()
    with quereus_store.connect(tmp_path / "b", backend=target, create=False) as copy:
        assert copy.execute("select * from letter order by title").fetchall() == rows
        assert copy.execute("select * from per_crew order by 1").fetchall() == [(1, 10_500), (2, 10_500)]
        copy.execute("insert into letter values ('new', 1)")
        assert copy.execute("select letters from per_crew where crew_id = 1").fetchall() == [(10_501,)]
        assert list(copy.database.check()) == []
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith("-lock")) == ["a", "b"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_copy_is_of_the_last_commit(tmp_path: Path, backend: str) -> None:
    with quereus_store.connect(tmp_path / "a", backend=backend) as con:
        con.executescript(SCHEMA)
        con.begin()
        con.execute("insert into crew values (3, 'Cy')")
        con.backup(tmp_path / "b")
        con.commit()
    with quereus_store.connect(tmp_path / "b", create=False) as copy:
        assert copy.database.backend == backend
        assert copy.execute("select count(*) from crew").fetchone() == (2,)


def test_a_copy_leaves_free_pages_out(tmp_path: Path) -> None:
    with filled(tmp_path / "a", "lmdb") as con:
        con.execute("delete from letter")
        con.backup(tmp_path / "b")
    assert (tmp_path / "b").stat().st_size < (tmp_path / "a").stat().st_size / 4


def code_of(con: quereus_store.Connection, *arguments: Any, **options: Any) -> StatusCode:
    with pytest.raises(Error) as caught:
        con.backup(*arguments, **options)
    return caught.value.code


def test_what_is_refused(tmp_path: Path) -> None:
    with quereus_store.connect(tmp_path / "a") as con:
        assert code_of(con, tmp_path / "a") is StatusCode.CANTOPEN
        assert code_of(con, tmp_path / "no" / "b") is StatusCode.CANTOPEN
        assert code_of(con, tmp_path / "b", backend="tape") is StatusCode.MISUSE
        assert code_of(con, tmp_path / "b", backend="memory") is StatusCode.MISUSE
    assert not (tmp_path / "b").exists()
    with quereus_store.connect(":memory:") as con:
        assert code_of(con, tmp_path / "b") is StatusCode.UNSUPPORTED


def test_a_failed_copy_leaves_nothing(tmp_path: Path) -> None:
    class Failing:
        def scan(self, *_: Any, **__: Any) -> Any:
            yield [(b"key", b"value")]
            raise OSError(5, "Input/output error")

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *_: Any) -> None: ...

    source: Any = open_backend("memory")
    source.read = Failing
    with pytest.raises(Error, match="Input/output error"):
        copy_database(source, tmp_path / "b", "lmdb")
    assert list(tmp_path.iterdir()) == []
