"""A statement that fails in its middle leaves nothing: each kind of failure, on each backend.

The failing row comes after rows that pass, so something has been written, evicted, cascaded or logged
when the error comes, by itself and within a transaction.  Afterwards all tables, what every index finds,
the maintained table, what waits for the commit, and the catalog are as before.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, Error
from quereus_store.cli.checking import check_database
from quereus_store.errors import StatusCode

SCHEMA = """
create table item (
    id integer primary key,
    code text null unique,
    n integer not null check (n < 100),
    doubled integer generated always as (n * 2) stored,
    r real null,
    check on delete (n <> 7)
);
create index by_n on item (n);
create unique index by_r on item (r) where n > 50;
create table log (at integer primary key, what text);
create table parent (id integer primary key, name text);
create table child (
    id integer primary key,
    up integer not null references parent (id) on delete cascade on update cascade,
    n integer null unique check (n <> 13)
);
create index by_up on child (up);
create table toy (id integer primary key, owner integer references child (id));
create table pet (id integer primary key, keeper integer not null references parent (id) on delete set null);
create table few (id integer primary key, check ((select count(*) from few) <= 3));
create assertion enough check ((select coalesce(sum(n), 0) from item) < 500);
create materialized view total as select up, count(*) as c, sum(n) as s from child group by up;
create view both as select c.id, c.n, c.up, p.name from child as c inner join parent as p on c.up = p.id;
insert into item (id, code, n, r) values
    (1, 'a', 1, 1.5), (2, 'b', 2, null), (3, null, 7, 2.5), (4, 'd', 60, 9.5), (5, 'e', 5, 9.5);
insert into parent values (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four');
insert into child values (10, 1, 1), (11, 1, 2), (20, 2, 3), (30, 3, 4);
insert into toy values (100, 20);
insert into pet values (7, 3);
insert into few values (1), (2);
"""

CONSTRAINT, MISMATCH, ERROR = StatusCode.CONSTRAINT, StatusCode.MISMATCH, StatusCode.ERROR

ONE_LOGGED = "with w as (insert into log (at, what) values (1, 'x') returning at)"

ROWS: dict[str, tuple[str, StatusCode]] = {
    "NOT NULL": ("insert into item (id, n) values (6, 6), (7, null)", CONSTRAINT),
    "NOT NULL, update": ("update item set n = nullif(n, 5)", CONSTRAINT),
    "primary key": ("insert into item (id, n) values (6, 6), (1, 1)", CONSTRAINT),
    "primary key within": ("insert into item (id, n) values (6, 6), (6, 7)", CONSTRAINT),
    "primary key, moved": ("update item set id = case id when 4 then 5 else id + 100 end", CONSTRAINT),
    "unique": ("insert into item (id, code, n) values (6, 'f', 6), (7, 'a', 7)", CONSTRAINT),
    "unique, update": ("update item set code = case id when 1 then 'z' else 'y' end", CONSTRAINT),
    "unique, partial": ("update item set n = n + 50 where id in (1, 5)", CONSTRAINT),
    "check": ("insert into item (id, n) values (6, 6), (7, 100)", CONSTRAINT),
    "check, update": ("update item set n = n + 45", CONSTRAINT),
    "check on delete": ("delete from item", CONSTRAINT),
    "conversion": ("insert into item (id, n) values (6, 6), (7, 'seven')", MISMATCH),
    "conversion, update": ("update item set n = case id when 5 then 'five' else 9 end", MISMATCH),
    "user function": ("update item set n = fails_at(id, 4)", ERROR),
    "user function in where": ("delete from item where fails_at(id, 4) > 0", ERROR),
    "user function, insert": ("insert into item (id, n) select id + 10, fails_at(id, 4) from item", ERROR),
    "user function in returning": ("update item set n = n + 1 returning fails_at(id, 4)", ERROR),
    "user function in returning, insert": (
        "insert into item (id, n) values (6, 6), (7, 8) returning fails_at(id, 7)",
        ERROR,
    ),
    "user function in returning, delete": (
        "delete from item where id <> 3 returning fails_at(id, 4)",
        ERROR,
    ),
    "user function in returning, maintained": (
        "update child set n = n + 20 returning fails_at(id, 20)",
        ERROR,
    ),
    "subquery of many rows": (
        "update item set code = (select what from log union all select 'x' from few where item.id = 4)",
        ERROR,
    ),
    "or replace, then check": (
        "insert or replace into item (id, code, n) values (6, 'a', 6), (7, 'b', 100)",
        CONSTRAINT,
    ),
    "or replace, then restrict": ("insert or replace into child values (40, 1, 1), (41, 1, 3)", CONSTRAINT),
    "or replace, then a child's child": (
        "insert or replace into parent values (1, 'x'), (2, 'y')",
        CONSTRAINT,
    ),
    "or abort": ("insert or abort into item (id, n) values (6, 6), (1, 1)", CONSTRAINT),
    "or ignore, conversion": ("insert or ignore into item (id, n) values (6, 6), (7, 'seven')", MISMATCH),
    "upsert, then check": (
        "insert into item (id, n) values (1, 6), (2, 7) "
        "on conflict (id) do update set n = n + excluded.n + item.id * 46",
        CONSTRAINT,
    ),
    "upsert, then unique": (
        "insert into item (id, n) values (8, 8), (1, 6), (2, 7) on conflict (id) do update set code = 'd'",
        CONSTRAINT,
    ),
    "upsert, then another key": (
        "insert into item (id, code, n) values (1, 'x', 6), (9, 'a', 7) "
        "on conflict (id) do update set n = 50",
        CONSTRAINT,
    ),
    "restrict, delete": ("delete from child where id in (10, 20)", CONSTRAINT),
    "restrict, update": ("update child set id = id + 500", CONSTRAINT),
    "restrict behind a cascade": ("delete from parent where id in (1, 2)", CONSTRAINT),
    "set null into NOT NULL": ("delete from parent where id in (1, 3)", CONSTRAINT),
    "cascaded update, child's own rule": ("update parent set id = id + 1000", CONSTRAINT),
    "child at once": ("insert or rollback into child values (50, 1, 50), (51, 99, 51)", CONSTRAINT),
    "update from": ("update item set n = c.n + 98 from child as c where c.id = item.id + 9", CONSTRAINT),
    "delete using": ("delete from item using few where few.id <= 2", CONSTRAINT),
    "through a join": (
        "update both set name = name || '!', n = case id when 30 then 13 else n end where up > 1",
        CONSTRAINT,
    ),
    "a member writes first": (
        f"{ONE_LOGGED} update item set n = n + 95 where id >= (select at from w)",
        CONSTRAINT,
    ),
    "a member nobody reads": (
        f"{ONE_LOGGED} insert into item (id, n) values (6, 6), (1, 1)",
        CONSTRAINT,
    ),
    "a query over a member fails": (
        "with w as (insert into log (at, what) values (1, 'x'), (2, 'y') returning at) "
        "select fails_at(at, 2) from w",
        ERROR,
    ),
    "a later member fails": (
        f"{ONE_LOGGED}, v as (delete from item returning id) select 1",
        CONSTRAINT,
    ),
}
"""Statements that fail by themselves: the error's code."""

AT_COMMIT: dict[str, str] = {
    "foreign key": "insert into child values (60, 1, 50), (61, 99, 51)",
    "foreign key, update": "update child set up = up * 2 where id <> 20",
    "check that reads": "insert into few values (3), (4)",
    "assertion": "insert into item (id, n) select id + 100, 99 from item",
    "assertion, update": "update item set n = 99 - id where id <> 5;"
    "update item set r = n * 3; update item set id = id + 3000;"
    "insert into item (id, n) values (10, 98), (11, 97)",
}
"""What a commit refuses, as a statement's own commit and as a transaction's."""

SCHEMA_CHANGES: dict[str, str] = {
    "unique index": "create unique index again on child (up)",
    "partial unique index": "create unique index again on child (up) where n > 0",
    "index with an unknown column": "create index again on child (nothing)",
    "table as": "create table again as select fails_at(id, 4) as f from item",
    "table with a bad default": "create table again (id integer primary key, v integer default 'x')",
    "view that maintains": "create materialized view again as select fails_at(id, 4) as f from item",
    "add column, check": "alter table item add column x integer default (new.n) check (x < 60)",
    "add column, foreign key": "alter table item add column x integer default (new.n) references parent (id)",
    "add column, unique": "alter table item add column x integer default 1 unique",
    "add column, not null": "alter table item add column x integer default (nullif(new.n, 5))",
    "add column, function": "alter table item add column x integer default (fails_at(new.id, 4))",
    "add column, generated": "alter table item add column x integer generated always as (fails_at(id, 4))",
    "drop column": "alter table item drop column n",
    "add unique": "alter table child add constraint k unique (up)",
    "add foreign key": "alter table item add constraint k foreign key (n) references parent (id)",
    "set not null": "alter table item alter column code set not null",
    "set data type": "alter table item alter column code set data type integer",
    "set collate": "alter table parent alter column name set collate nowhere",
    "primary key": "alter table child alter primary key (up)",
    "rename": "alter table item rename to child",
    "rename column": "alter table item rename column n to code",
    "rename constraint": "alter table child rename constraint nothing to k",
    "drop table": "drop table parent",
    "drop index": "drop index nothing",
    "tags": "alter table item drop tags (nothing)",
    "maintained": "alter table log set maintained as select id as at, fails_at(id, 4) as what from item",
}

STATEMENTS_BEFORE = (
    "insert into parent values (5, 'five')",
    "update child set n = n + 1 where id = 30",
    "insert into child values (50, 5, 9)",
    "insert into log values (77, 'before')",
)
"""What a transaction has done before: it must stay."""


class FailsAt:
    """A function of the program that fails for one value."""

    def __call__(self, value: Any, bad: Any) -> Any:
        if value == bad:
            raise RuntimeError("this value is bad")
        return value


PROBES: dict[tuple[str, str], tuple[Any, ...]] = {
    ("item", "n"): (1, 2, 5, 6, 7, 8, 9, 51, 60, 70, 99),
    ("item", "code"): ("a", "b", "d", "e", "f", "x", "y", "z"),
    ("item", "r"): (1.5, 2.5, 9.5),
    ("child", "up"): (1, 2, 3, 4, 5, 6, 99),
    ("child", "n"): (1, 2, 3, 4, 5, 9, 10),
}
"""Values to look for by the indexes: those that are there, and those that failing statements write."""


class Place:
    """A database that is made anew when a test has left it other than it was."""

    def __init__(self, backend: str, folder: Path) -> None:
        self._backend = backend
        self._paths = (folder / f"{number}" for number in range(1000))
        self.connection = self._make()
        self.first = state(self.connection)

    def _make(self) -> Connection:
        if self._backend == "memory":
            connection = quereus_store.connect(":memory:")
        else:
            connection = quereus_store.connect(next(self._paths), backend=self._backend, synchronous="off")
        connection.create_function("fails_at", 2, FailsAt(), deterministic=True)
        connection.executescript(SCHEMA)
        return connection

    def ready(self) -> Connection:
        """The connection, with everything as in the beginning."""
        if self.connection.in_transaction or state(self.connection) != self.first:
            self.connection.close()
            self.connection = self._make()
        return self.connection


@pytest.fixture(params=["memory", "lmdb", "leveldb"], scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(request.param, tmp_path_factory.mktemp("db"))
    yield place
    sound(place.connection)
    place.connection.close()


@pytest.fixture
def con(place: Place) -> Connection:
    return place.ready()


def state(con: Connection) -> list[Any]:
    """All that can be seen: the catalog, rows by scan, rows by each index."""
    seen: list[Any] = [con.execute("select type, name, tbl_name, sql from schema()").fetchall()]
    for table in ("item", "log", "parent", "child", "toy", "pet", "few", "total"):
        seen.append((table, con.execute(f"select * from {table}").fetchall()))
    for (table, column), values in PROBES.items():
        sql = f"select id from {table} where {column} = ?"
        seen += [con.execute(sql, (value,)).fetchall() for value in values]
    return seen


def sound(con: Connection) -> None:
    """Rows, indexes, constraints and the maintained table agree."""
    report = io.StringIO()
    assert check_database(con, report), report.getvalue()


def refused(con: Connection, sql: str, code: StatusCode | None = None) -> None:
    with pytest.raises(Error) as caught:
        con.execute(sql).fetchall()
    assert caught.value.code is not StatusCode.INTERNAL, caught.value
    if code is not None:
        assert caught.value.code is code, caught.value


def leaves_nothing(con: Connection, sql: str, code: StatusCode | None = None) -> None:
    """The statement fails, by itself and in the midst of a transaction, which stays as it was."""
    beginning = state(con)
    refused(con, sql, code)
    assert not con.in_transaction
    assert state(con) == beginning
    con.execute("begin")
    for statement in STATEMENTS_BEFORE:
        con.execute(statement)
    before = state(con)
    refused(con, sql, code)
    if "or rollback" in sql:
        assert not con.in_transaction
        assert state(con) == beginning
        return
    assert state(con) == before
    # What the maintained table is told next must not contain what the failed statement did.
    con.execute("update child set n = n where id = 10")
    assert state(con) == before
    con.execute("savepoint s")
    con.execute("insert into log values (78, 'after')")
    refused(con, sql, code)
    con.execute("rollback to s")
    assert state(con) == before
    con.execute("rollback")
    assert state(con) == beginning


@pytest.mark.parametrize("kind", ROWS)
def test_a_change_of_rows(con: Connection, kind: str) -> None:
    sql, code = ROWS[kind]
    leaves_nothing(con, sql, code)


@pytest.mark.parametrize("kind", SCHEMA_CHANGES)
def test_a_change_of_the_schema(con: Connection, kind: str) -> None:
    leaves_nothing(con, SCHEMA_CHANGES[kind])


def test_a_transaction_goes_on_and_commits(con: Connection) -> None:
    con.execute("begin")
    for statement in (*STATEMENTS_BEFORE, "alter table log add column more integer default 3"):
        con.execute(statement)
    before = state(con)
    for sql, _ in ROWS.values():
        if "or rollback" not in sql and "into log" not in sql:
            refused(con, sql)
    for sql in SCHEMA_CHANGES.values():
        refused(con, sql)
    assert state(con) == before
    con.execute("commit")
    assert state(con) == before
    assert con.execute("select at, more from log").fetchall() == [(77, 3)]
    sound(con)


@pytest.mark.parametrize("kind", AT_COMMIT)
def test_a_change_that_the_commit_refuses(con: Connection, kind: str) -> None:
    before = state(con)
    *first, last = AT_COMMIT[kind].split(";")
    if not first:
        refused(con, last, CONSTRAINT)
        assert not con.in_transaction
        assert state(con) == before
    con.execute("begin")
    for statement in (*STATEMENTS_BEFORE, *first, last):
        con.execute(statement)
    refused(con, "commit", CONSTRAINT)
    assert not con.in_transaction
    assert state(con) == before


@pytest.mark.parametrize(
    "sql",
    [
        "insert into item (id, n) values (?, ?)",
        "insert into item (id, n) values (?, ?) on conflict (id) do update set n = excluded.n",
        "insert or replace into item (id, n) values (?, ?)",
    ],
)
def test_many_sets_of_parameters(con: Connection, sql: str) -> None:
    before = state(con)
    for bad in ((31, 100), (32, None), (33, "x"), (None, 1)):
        with pytest.raises(Error):
            con.executemany(sql, [(10, 1), (4, 70), (11, 2), bad, (12, 3)])
        assert state(con) == before


def test_many_sets_for_update_and_delete(con: Connection) -> None:
    before = state(con)
    with pytest.raises(Error):
        con.executemany("update item set n = ? where id = ?", [(8, 1), (9, 2), (100, 4)])
    assert state(con) == before
    with pytest.raises(Error):
        con.executemany("delete from item where id = ?", [(1,), (2,), (3,)])
    assert state(con) == before
    with pytest.raises(Error):
        con.executemany("delete from parent where id = ?", [(1,), (2,)])
    assert state(con) == before


def test_a_handler_that_stops_the_statement(con: Connection) -> None:
    con.execute("create table big (id integer primary key, v integer)")
    con.execute("insert into big select value, 1 from generate_series(1, 5000)")
    con.execute("create index by_v on big (v)")
    statements = (
        "update big set v = v + 1",
        "delete from big",
        "insert into big select id + 10000, v from big",
        "alter table big add column w integer default (new.v + 1)",
        "alter table big alter column v set data type text",
        "alter table big alter primary key (v, id)",
    )
    before = con.execute("select * from big").fetchall()
    for sql in statements:
        for calls in (1, 2, 4):
            left = calls

            def stop() -> int:
                nonlocal left
                left -= 1
                return left <= 0

            con.set_progress_handler(stop, 1000)
            try:
                with pytest.raises(Error) as caught:
                    con.execute(sql)
            finally:
                con.set_progress_handler(None, 0)
            assert caught.value.code in (StatusCode.INTERRUPT, StatusCode.ABORT)
            assert con.execute("select * from big").fetchall() == before
    sound(con)
