"""Snapshots, the single writer, savepoints, and what a stale reader gets."""

from __future__ import annotations

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
