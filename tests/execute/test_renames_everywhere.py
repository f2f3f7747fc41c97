"""RENAME TO and RENAME COLUMN reach every kind of reference, and what it says outlives a reopening.

Each kind defines something by the names ``{t}`` and ``{c}`` and says what must come of a few statements
that need it.  They are run with the old names and, in a second database, after the renames with the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import quereus_store
from quereus_store import Connection, Error

OLD, NEW = ("item", "cost"), ("article", "price")

TABLE = "create table item (id integer primary key, cost integer null, note text null{more})"
ROWS = "insert into {t} (id, {c}) values (1, 10), (2, 200)"


@dataclass(frozen=True)
class Kind:
    """A kind of reference: more of the table, what is made beside it, and statements that need it."""

    needs: tuple[str, ...]
    more: str = ""
    beside: str = ""


KINDS = {
    "a column's check": Kind(
        ("insert into {t} (id, {c}, v) values (3, 5, 9)",), ", v integer null check (v < cost)"
    ),
    "a table's check": Kind(("update {t} set {c} = -1",), ", check (item.cost > 0)"),
    "a check of old and new": Kind(
        ("update {t} set {c} = {c} - 1", "update {t} set {c} = {c} + 1 returning {c}"),
        ", check on update (new.cost > old.cost)",
    ),
    "a check that reads the table": Kind(
        ("insert into {t} (id, {c}) values (3, 1000)",), ", check ((select sum(cost) from item) < 1000)"
    ),
    "another table's check": Kind(
        ("insert into other values (3)", "insert into other values (200)"),
        beside="create table other (v integer primary key,"
        " check (v in (select cost from item where item.cost > 9)))",
    ),
    "a default": Kind(
        ("insert into {t} (id, {c}) values (3, 7) returning twice",),
        ", twice integer null default (new.cost * 2)",
    ),
    "another table's default": Kind(
        ("insert into other (id) values (1) returning v",),
        beside="create table other (id integer primary key,"
        " v integer default ((select max(cost) from main.item)))",
    ),
    "a stored generated column": Kind(
        ("update {t} set {c} = 3 where id = 1", "select twice from {t}"),
        ", twice integer null generated always as (item.cost * 2) stored",
    ),
    "a virtual generated column": Kind(
        ("update {t} set {c} = 3 where id = 1", "select twice from {t}"),
        ", twice integer null generated always as (cost * 2) virtual",
    ),
    "a unique constraint": Kind(("insert into {t} (id, {c}) values (3, 10)",), ", unique (cost)"),
    "a foreign key's own column": Kind(
        (
            "insert into {t} (id, {c}) values (3, 5)",
            "insert into {t} (id, {c}) values (3, 10)",
            "delete from other",
        ),
        ", foreign key (cost) references other (v)",
        "create table other (v integer primary key); insert into other values (10), (200)",
    ),
    "a foreign key's parent": Kind(
        (
            "insert into other values (1, 5)",
            "insert into other values (1, 10)",
            "delete from {t} where id = 1",
            "update {t} set {c} = 11 where id = 1",
            "select * from other",
        ),
        beside="create table other (id integer primary key,"
        " v integer references item (cost) on update cascade)",
    ),
    "a foreign key to itself": Kind(
        ("insert into {t} (id, {c}, up) values (3, 7, 8)", "insert into {t} (id, {c}, up) values (3, 7, 10)"),
        ", up integer null references item (cost)",
    ),
    "an index": Kind(("select id from {t} where {c} = 200",), beside="create index i on item (cost)"),
    "a partial index": Kind(
        (
            "insert into {t} (id, {c}, note) values (3, 300, 'x')",
            "insert into {t} (id, {c}, note) values (4, 400, 'x')",
            "insert into {t} (id, {c}, note) values (5, 4, 'x')",
        ),
        beside="create unique index i on item (note) where item.cost > 100",
    ),
    "a view": Kind(
        ("select * from v",), beside="create view v as select i.id, i.cost + 1 as x from item as i"
    ),
    "a view of a star": Kind(
        ("select id, {c} from v",), beside="create view v as select * from item where cost > 50"
    ),
    "a view of a view": Kind(
        ("select {c} from w",),
        beside="create view v as select cost from item;create view w as select v.cost from v where cost > 50",
    ),
    "a view that is written through": Kind(
        (
            "insert into v (id) values (3) returning id",
            "update v set x = 9 where id = 1",
            "select {c} from {t}",
        ),
        beside="create view v as select id, cost as x from item with defaults (cost = 77)",
    ),
    "a materialized view": Kind(
        ("select * from v", "insert into {t} (id, {c}) values (3, 200)", "select * from v"),
        beside="create materialized view v as select cost as x, count(*) as n from item group by cost",
    ),
    "an assertion": Kind(
        ("insert into {t} (id, {c}) values (3, 5000)",),
        beside="create assertion a check (not exists (select 1 from item where item.cost > 1000))",
    ),
    "an assertion over a view": Kind(
        ("insert into {t} (id, {c}) values (3, 5000)",),
        beside="create view v as select cost from item;"
        "create assertion a check ((select max(cost) from v) < 1000)",
    ),
    "another schema's view": Kind(
        ("select * from temp.v",), beside="create view temp.v as select cost + 1 as x from main.item"
    ),
}


@pytest.fixture(params=["memory", "lmdb", "leveldb"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> list[Any]:
    """Two databases; each is opened by its function."""

    def opened(name: str) -> Connection:
        if request.param == "memory":
            return quereus_store.connect(":memory:")
        return quereus_store.connect(tmp_path / name, backend=request.param, synchronous="off")

    return [request.param, opened]


def make(con: Connection, kind: Kind) -> None:
    for sql in kind.beside.split(";") if ", foreign key (cost)" in kind.more else ():
        con.execute(sql)
    con.execute(TABLE.format(more=kind.more))
    con.execute(ROWS.format(t="item", c="cost"))
    if ", foreign key (cost)" not in kind.more:
        con.executescript(kind.beside)


def answers(con: Connection, kind: Kind, names: tuple[str, str]) -> list[Any]:
    """What each statement gives: rows, or the code of its error and what is left of the message."""
    found: list[Any] = []
    for sql in kind.needs:
        try:
            found.append(con.execute(sql.format(t=names[0], c=names[1])).fetchall())
        except Error as error:
            message = error.message.split(" (")[0]
            for old, new in zip(OLD, NEW, strict=True):
                message = message.replace(new, old)
            found.append((error.code.name, message))
    found.append(con.execute("select * from " + names[0]).fetchall())
    return found


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reference_of_every_kind_follows(places: Any, kind: str, reopened: bool) -> None:
    backend, opened = places
    if reopened and (backend == "memory" or "temp" in KINDS[kind].beside):
        pytest.skip("nothing lasts")
    with opened("as it was") as con:
        make(con, KINDS[kind])
        expected = answers(con, KINDS[kind], OLD)
    with opened("renamed") as con:
        make(con, KINDS[kind])
        con.execute("alter table item rename column cost to price")
        con.execute("alter table item rename to article")
        if not reopened:
            assert answers(con, KINDS[kind], NEW) == expected
            return
    with opened("renamed") as con:
        assert answers(con, KINDS[kind], NEW) == expected
        assert con.database.check() == []
