"""Snapshots, the single writer, savepoints, and what a stale reader gets."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from quereus_store.errors import Error, StatusCode
from quereus_store.schema.objects import TableSchema
from quereus_store.store import StoreModule
from quereus_store.types import INTEGER
from tests.store.support import all_rows, columns, create, flat, reading, table, writing


@pytest.fixture
def schema(module: StoreModule) -> TableSchema:
    return create(module, table("t", columns(id=INTEGER, n=INTEGER), "id"), [(1, 10), (2, 20)])


def code_of(caught: Any) -> StatusCode:
    assert isinstance(caught.value, Error)
    return caught.value.code


def test_a_second_writer_is_busy(module: StoreModule, schema: TableSchema) -> None:
    with writing(module):
        with pytest.raises(Error) as caught:
            module.begin_write(0.0)
        assert code_of(caught) is StatusCode.BUSY
    with writing(module) as transaction:
        module.table(schema).insert(transaction, [(3, 30)])


def test_a_reader_whose_snapshot_is_stale_cannot_become_the_writer(
    module: StoreModule, schema: TableSchema
) -> None:
    with reading(module) as before:
        with writing(module) as transaction:
            module.table(schema).insert(transaction, [(3, 30)])
        with pytest.raises(Error) as caught:
            module.begin_write(1.0, before)
        assert code_of(caught) is StatusCode.BUSY
        assert "has committed since" in str(caught.value)
    with reading(module) as now:
        transaction = module.begin_write(1.0, now)
        assert module.table(schema).count(transaction) == 3
        transaction.rollback()


def test_a_transaction_that_wrote_nothing_makes_nobody_stale(
    module: StoreModule, schema: TableSchema
) -> None:
    with reading(module) as before:
        with writing(module):
            pass
        transaction = module.begin_write(1.0, before)
        transaction.rollback()


def test_savepoints_nest(module: StoreModule, schema: TableSchema) -> None:
    handle = module.table(schema)
    with writing(module) as transaction:
        outer = transaction.savepoint()
        handle.insert(transaction, [(3, 30)])
        inner = transaction.savepoint()
        assert inner > outer
        handle.delete(transaction, [(1, 10)])
        handle.update(transaction, [(2, 20)], [(2, 21)])
        transaction.rollback_to(inner)
        assert flat(handle.scan(transaction)) == [(1, 10), (2, 20), (3, 30)]
        handle.insert(transaction, [(4, 40)])
        transaction.release(inner)
        with pytest.raises(Error):
            transaction.rollback_to(inner)
        assert handle.count(transaction) == 4
        transaction.rollback_to(outer)
        transaction.rollback_to(outer)
        assert flat(handle.scan(transaction)) == [(1, 10), (2, 20)]
        handle.insert(transaction, [(5, 50)])
    assert all_rows(module, schema) == [(1, 10), (2, 20), (5, 50)]


def test_a_finished_transaction_cannot_be_used(module: StoreModule, schema: TableSchema) -> None:
    transaction = module.begin_write(1.0)
    module.table(schema).insert(transaction, [(3, 30)])
    transaction.commit()
    for use in (
        lambda: module.table(schema).point(transaction, (1,)),
        lambda: module.table(schema).insert(transaction, [(9, 9)]),
        transaction.savepoint,
        transaction.commit,
    ):
        with pytest.raises(Error) as caught:
            use()
        assert code_of(caught) is StatusCode.MISUSE


def test_a_reader_cannot_write(module: StoreModule, schema: TableSchema) -> None:
    with reading(module) as transaction:
        for write in (module.table(schema).insert, module.table(schema).delete):
            with pytest.raises(Error, match="a read transaction cannot write"):
                write(transaction, [(3, 30)])
        mark = transaction.savepoint()
        transaction.rollback_to(mark)
        transaction.release(mark)
    transaction.rollback()
    assert all_rows(module, schema) == [(1, 10), (2, 20)]


def test_a_closed_database_says_so(module: StoreModule, schema: TableSchema) -> None:
    module.close()
    for begin in (module.begin_read, lambda: module.begin_write(1.0)):
        with pytest.raises(Error) as caught:
            begin()
        assert code_of(caught) is StatusCode.MISUSE
    module.close()


@pytest.mark.parametrize("durable", [True, False])
def test_durability_is_passed_on(
    module: StoreModule, schema: TableSchema, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    transaction = module.begin_write(1.0, durable=durable)
    kind = type(transaction.kv)
    commit: Any = kind.commit

    def spy(self: Any, durable: bool = True) -> None:
        seen.append(durable)
        commit(self, durable)

    monkeypatch.setattr(kind, "commit", spy)
    module.table(schema).insert(transaction, [(3, 30)])
    transaction.commit()
    assert seen == [durable]


def test_threads_read_while_one_writes(module: StoreModule) -> None:
    schema = create(
        module, table("accounts", columns(id=INTEGER, n=INTEGER), "id"), [(i, 100) for i in range(20)]
    )
    handle = module.table(schema)
    steps = 60
    done = threading.Event()

    def move() -> int:
        for step in range(steps):
            with writing(module) as transaction:
                source, target = handle.points(transaction, [(step % 20,), ((step * 7 + 3) % 20,)])
                assert source is not None
                assert target is not None
                if source != target:
                    new = [(source[0], source[1] - 1), (target[0], target[1] + 1)]
                    handle.update(transaction, [source, target], new)
        done.set()
        return steps

    def look() -> int:
        looks = 0
        while not done.is_set() or not looks:
            with reading(module) as transaction:
                rows = flat(handle.scan(transaction))
                assert sum(row[1] for row in rows) == 2000
                assert handle.points(transaction, [(row[0],) for row in rows]) == rows
            looks += 1
        return looks

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(job) for job in (look, look, move)]
        assert all(job.result(timeout=60) for job in jobs)
