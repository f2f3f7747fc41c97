"""Views take what a statement did as one batch; a statement that reads a view sees it as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import quereus_store
from quereus_store.views.writing import TableWriter

SCHEMA = """
create table t (id integer primary key, g text, n integer);
create table p (id integer primary key, name text);
insert into p values (0, 'zero'), (1, 'one');
create materialized view high as select id, n from t where n > 1;
create materialized view named as select t.id, p.name from t join p on p.id = t.n;
create materialized view per_g as select g, count(*) as c, sum(n) as s from t group by g;
create materialized view per_c as select c, count(*) as groups from per_g group by c;
"""
VIEWS = ("high", "named", "per_g", "per_c")


@pytest.fixture
def con() -> Iterator[Any]:
    with quereus_store.connect(":memory:") as connection:
        connection.executescript(SCHEMA)
        connection.executemany(
            "insert into t values (?, ?, ?)", [(n, "abc"[n % 3], n % 4) for n in range(300)]
        )
        yield connection


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tables to which a batch of derived rows was written."""
    names: list[str] = []
    plain = TableWriter.write

    def write(self: TableWriter, *given: Any, **named: Any) -> Any:
        names.append(self._table.name)
        return plain(self, *given, **named)

    monkeypatch.setattr(TableWriter, "write", write)
    return names


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t select id + 1000, g, 2 from t",
        "update t set n = n + 2 where id % 3 = 1",
        "delete from t where id % 2 = 0",
        "insert or replace into t select id, 'd', 3 from t where id < 100",
        "delete from t",
    ],
)
def test_a_statement_is_one_batch_for_each_view(con: Any, written: list[str], statement: str) -> None:
    con.execute(statement)
    assert sorted(written) == sorted(set(written))
    assert set(written) >= {"high", "per_g"}
    assert con.database.check() == []


def test_many_sets_of_parameters_are_one_batch(con: Any, written: list[str]) -> None:
    con.executemany("insert into t values (?, 'z', ?)", [(n, n % 4) for n in range(1000, 3000)])
    assert sorted(written) == sorted(VIEWS)
    assert con.execute("select * from per_g where g = 'z'").fetchone() == ("z", 2000, 3000)


def test_what_a_statement_does_not_change_is_not_written(con: Any, written: list[str]) -> None:
    con.execute("update t set n = n, g = g")
    con.execute("update t set n = 1 where n = 1")
    assert written == []


def test_a_statement_that_reads_a_view_reads_it_as_it_was(con: Any, written: list[str]) -> None:
    before = con.execute("select c from per_g order by g").fetchall()
    rows = con.execute(
        "insert into t"
        " select 1000 + row_number() over (order by g), 'b' || c, (select count(*) from high) from per_g"
        " returning n, (select max(c) from per_g)"
    ).fetchall()
    assert rows == [(150, 100)] * 3
    assert sorted(written) == sorted(set(written))
    assert con.execute("select c from per_g where g in ('a', 'b', 'c') order by g").fetchall() == before
    assert con.execute("select count(*) from high").fetchone() == (153,)
    con.execute("update t set n = (select c from per_g where per_g.g = t.g)")
    assert con.execute("select s from per_g where g = 'a'").fetchone() == (100 * 100,)
    con.execute("delete from t where id in (select id from named union select id from high)")
    assert con.database.check() == []


def test_what_a_failing_statement_keeps_is_followed(con: Any) -> None:
    con.execute("begin")
    with pytest.raises(quereus_store.IntegrityError):
        con.execute(
            "insert or fail into t values (1000, 'q', 1), (1001, 'q', 1), (5, 'q', 1), (1002, 'q', 1)"
        )
    assert con.execute("select c from per_g where g = 'q'").fetchall() == [(2,)]
    con.execute("commit")
    assert con.database.check() == []


def test_a_failure_in_a_view_fails_the_statement(con: Any) -> None:
    con.execute(
        "create table few (g text primary key, c integer check (c < 102)) maintained as"
        " select g, count(*) as c from t group by g"
    )
    con.execute("begin")
    con.execute("insert into t values (1000, 'a', 1)")
    with pytest.raises(quereus_store.IntegrityError, match=r"row derived into maintained table 'main.few'"):
        con.execute("insert into t values (1001, 'b', 1), (1002, 'a', 1)")
    assert con.execute("select g, c from few order by g").fetchall() == [("a", 101), ("b", 100), ("c", 100)]
    assert con.execute("select count(*) from t").fetchone() == (301,)
    con.execute("commit")
    assert con.database.check() == []
