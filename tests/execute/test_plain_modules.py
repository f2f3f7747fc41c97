"""A module of somebody else's that has what every module must have, and nothing more."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

import quereus_store
from quereus_store.modules.contract import (
    REQUIRED,
    AccessKind,
    AccessPath,
    AccessPlan,
    AccessRequest,
    Batch,
    Comparison,
    Conflict,
    DdlTransactionality,
    EngineServices,
    Row,
    UniqueViolation,
)
from quereus_store.schema.objects import TableSchema


class Pile:
    """A transaction: all rows of all tables, copied."""

    def __init__(self, module: PileModule, writable: bool) -> None:
        self.module, self.writable = module, writable
        self.piles = dict(module.piles)
        self.marks: list[dict[int, list[Row]]] = []

    def savepoint(self) -> int:
        self.marks.append(dict(self.piles))
        return len(self.marks) - 1

    def rollback_to(self, token: int) -> None:
        self.piles = dict(self.marks[token])
        del self.marks[token + 1 :]

    def release(self, token: int) -> None:
        del self.marks[token:]

    def commit(self) -> None:
        self.module.piles = self.piles
        self.rollback()

    def rollback(self) -> None:
        if self.writable:
            self.writable = False
            self.module.writing.release()


class PileTable:
    """A sorted list that is searched from one end to the other."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema

    def key(self, row: Row) -> Row:
        return tuple(row[part.column] for part in self.schema.primary_key.parts)

    def scan(self, transaction: Pile, reverse: bool = False) -> Iterator[Batch]:
        rows = transaction.piles[self.schema.storage_id]
        if rows:
            yield rows[::-1] if reverse else rows

    def point(self, transaction: Pile, key: Row) -> Row | None:
        POINTS.append(key)
        rows = transaction.piles[self.schema.storage_id]
        return next((row for row in rows if self.key(row) == key), None)

    def points(self, transaction: Pile, keys: Sequence[Row]) -> list[Row | None]:
        return [self.point(transaction, key) for key in keys]

    def count(self, transaction: Pile) -> int:
        return len(transaction.piles[self.schema.storage_id])

    def insert(self, transaction: Pile, rows: Sequence[Row]) -> None:
        kept = transaction.piles[self.schema.storage_id]
        for row in rows:
            for conflict in (found for found in kept if self.key(found) == self.key(row)):
                raise UniqueViolation(None, row, conflict)
            kept = sorted([*kept, row], key=self.key)
        transaction.piles[self.schema.storage_id] = kept

    def delete(self, transaction: Pile, rows: Sequence[Row]) -> None:
        kept = transaction.piles[self.schema.storage_id]
        transaction.piles[self.schema.storage_id] = [row for row in kept if row not in rows]

    def update(self, transaction: Pile, old: Sequence[Row], new: Sequence[Row]) -> None:
        for before, after in zip(old, new, strict=True):
            self.delete(transaction, [before])
            self.insert(transaction, [after])

    def conflicts(self, transaction: Pile, row: Row, replacing: Row | None = None) -> list[Conflict]:
        kept = transaction.piles[self.schema.storage_id]
        return [
            Conflict(None, found) for found in kept if self.key(found) == self.key(row) and found != replacing
        ]


POINTS: list[Row] = []


class PileModule:
    """Serves one key by equality and everything else by a scan."""

    name = "pile"
    persistent = False
    ddl_transactionality = DdlTransactionality.TRANSACTIONAL

    def __init__(self) -> None:
        self.piles: dict[int, list[Row]] = {}
        self.made = 0
        self.writing = threading.Lock()
        self.requests: list[AccessRequest] = []

    def attach(self, services: EngineServices) -> None:
        pass

    def begin_read(self) -> Pile:
        return Pile(self, writable=False)

    def begin_write(self, timeout: float, snapshot: Any = None, durable: bool = True) -> Pile:
        assert self.writing.acquire(timeout=timeout)
        return Pile(self, writable=True)

    def table(self, schema: TableSchema) -> PileTable:
        return PileTable(schema)

    def plan_access(self, schema: TableSchema, request: AccessRequest) -> AccessPlan:
        self.requests.append(request)
        key = schema.primary_key.parts
        for place, constraint in enumerate(request.constraints):
            if (
                len(key) == 1
                and constraint.column == key[0].column
                and constraint.operator is Comparison.EQUAL
            ):
                path = AccessPath(AccessKind.POINT, equal=1)
                return AccessPlan(path, (place,), at_most_one=True, cost=1.0, rows=1.0)
        return AccessPlan(AccessPath(AccessKind.SCAN), cost=100.0, rows=100.0)

    def create_table(self, transaction: Pile, schema: TableSchema) -> TableSchema:
        self.made += 1
        transaction.piles[self.made] = []
        return replace(schema, storage_id=self.made)

    def drop_table(self, transaction: Pile, schema: TableSchema) -> None:
        del transaction.piles[schema.storage_id]

    def close(self) -> None:
        pass


@pytest.fixture
def con() -> Iterator[quereus_store.Connection]:
    con = quereus_store.connect(":memory:")
    con.database.register_module(PileModule())  # type: ignore[arg-type]
    con.executescript(
        """create table t (id integer primary key, v text, n integer null) using pile;
           insert into t values (2, 'b', 5), (1, 'a', null), (3, 'c', 7);"""
    )
    yield con
    con.close()


def rows(con: quereus_store.Connection, sql: str) -> list[Row]:
    return con.execute(sql).fetchall()


def test_what_the_module_does_not_serve_the_engine_does(con: quereus_store.Connection) -> None:
    POINTS.clear()
    assert rows(con, "select v from t where id = 2 and n > 4") == [("b",)]
    assert rows(con, "select v from t where id = 2 and id = 3") == []
    assert set(POINTS) <= {(2,), (3,)}
    assert POINTS
    assert rows(con, "select v from t where id in (3, 1) and v < 'c'") == [("a",)]
    assert rows(con, "select id from t order by n desc nulls last, id") == [(3,), (2,), (1,)]
    assert rows(con, "select id from t order by id desc limit 1 offset 1") == [(2,)]


def test_rows_change_and_come_back(con: quereus_store.Connection) -> None:
    with pytest.raises(quereus_store.IntegrityError, match="UNIQUE constraint failed: t PK"):
        con.execute("insert into t values (4, 'd', 1), (1, 'x', 1)")
    con.execute("insert or replace into t values (1, 'r', 1)")
    con.execute("insert into t values (1, 'x', 1) on conflict (id) do update set v = excluded.v")
    con.executescript("begin; delete from t where id = 3; savepoint s; update t set id = 9 where id = 2;")
    assert rows(con, "select id, v from t") == [(1, "x"), (9, "b")]
    con.execute("rollback to s")
    assert rows(con, "select id, v from t") == [(1, "x"), (2, "b")]
    con.execute("rollback")
    assert rows(con, "select id, v from t") == [(1, "x"), (2, "b"), (3, "c")]


ALTERATIONS = [
    ("add column z integer default 3", [(1, "a", None, 3), (2, "b", 5, 3), (3, "c", 7, 3)]),
    ("drop column n", [(1, "a"), (2, "b"), (3, "c")]),
    ("rename column n to m", [(1, "a", None), (2, "b", 5), (3, "c", 7)]),
    ("alter column n set data type text", [(1, "a", None), (2, "b", "5"), (3, "c", "7")]),
    ("alter primary key (v desc, id)", [(1, "a", None), (2, "b", 5), (3, "c", 7)]),
    ("alter primary key (v)", [(1, "a", None), (2, "b", 5), (3, "c", 7)]),
]


@pytest.mark.parametrize(("action", "expected"), ALTERATIONS)
def test_a_table_is_altered_by_making_another(
    con: quereus_store.Connection, action: str, expected: list[Row]
) -> None:
    con.execute("begin")
    con.execute(f"alter table t {action}")
    assert sorted(rows(con, "select * from t"), key=repr) == sorted(expected, key=repr)
    con.execute("rollback")
    assert rows(con, "select * from t") == [(1, "a", None), (2, "b", 5), (3, "c", 7)]
    con.execute("insert into t values (4, 'd', null)")
    assert rows(con, "select count(*) from t") == [(4,)]


def test_an_alteration_that_fails_leaves_the_table(con: quereus_store.Connection) -> None:
    con.execute("insert into t values (4, 'a', 1)")
    with pytest.raises(quereus_store.IntegrityError, match="primary key collides under the new key"):
        con.execute("alter table t alter primary key (v)")
    assert rows(con, "select id from t") == [(1,), (2,), (3,), (4,)]


def test_indexes_are_refused(con: quereus_store.Connection) -> None:
    with pytest.raises(quereus_store.Error) as refused:
        con.execute("create index i on t (v)")
    assert refused.value.message == (
        "Virtual table module 'pile' for table 't' does not support CREATE INDEX."
    )
    with pytest.raises(quereus_store.Error, match="does not support CREATE INDEX"):
        con.execute("alter table t add unique (v)")


def test_a_view_over_it_is_maintained_elsewhere(con: quereus_store.Connection) -> None:
    con.execute("create materialized view m as select id, v from t where n is not null")
    con.execute("insert into t values (8, 'h', 1)")
    assert rows(con, "select id from m") == [(2,), (3,), (8,)]
    with pytest.raises(quereus_store.Error, match="module 'pile' cannot host a materialized-view backing"):
        con.execute("create materialized view m2 using pile as select id from t")


@pytest.mark.parametrize("method", REQUIRED)
def test_a_module_that_lacks_something_is_not_registered(method: str) -> None:
    lacking = type("Lacking", (PileModule,), {method: None})()
    with quereus_store.connect(":memory:") as con, pytest.raises(quereus_store.Error) as refused:
        con.database.register_module(lacking)
    assert refused.value.code is quereus_store.StatusCode.MISUSE
    assert method in refused.value.message
