"""The cache of decoded batches: served when nothing changed, never when something did."""

from __future__ import annotations

import pytest

from quereus_store.schema.objects import TableSchema
from quereus_store.store import StoreModule
from quereus_store.store.cache import BatchCache, estimate_size
from quereus_store.types import INTEGER, TEXT
from tests.store.conftest import OpenModule
from tests.store.support import Engine, all_rows, columns, create, flat, reading, table, writing

ROWS = [(number, f"name {number}") for number in range(2500)]


@pytest.fixture
def schema(module: StoreModule) -> TableSchema:
    return create(module, table("t", columns(id=INTEGER, name=TEXT), "id"), ROWS)


def served(module: StoreModule, schema: TableSchema) -> bool:
    """Whether two scans hand out the very same lists."""
    with reading(module) as transaction:
        first = list(module.table(schema).scan(transaction))
        second = list(module.table(schema).scan(transaction))
        assert first == second
        return all(a is b for a, b in zip(first, second, strict=True))


def test_an_unchanged_table_is_served_from_memory(module: StoreModule, schema: TableSchema) -> None:
    assert served(module, schema)
    first = all_rows(module, schema)
    assert first == ROWS
    assert all_rows(module, schema, reverse=True) == ROWS[::-1]
    assert all_rows(module, schema) == ROWS


def test_a_commit_makes_it_stale_for_later_snapshots_only(module: StoreModule, schema: TableSchema) -> None:
    with reading(module) as before:
        assert flat(module.table(schema).scan(before)) == ROWS
        with writing(module) as transaction:
            module.table(schema).delete(transaction, ROWS[:1])
        assert all_rows(module, schema) == ROWS[1:]
        assert flat(module.table(schema).scan(before)) == ROWS
        assert all_rows(module, schema) == ROWS[1:]


def test_own_changes_are_seen_at_once(module: StoreModule, schema: TableSchema) -> None:
    assert all_rows(module, schema) == ROWS
    with writing(module) as transaction:
        handle = module.table(schema)
        assert flat(handle.scan(transaction)) == ROWS
        mark = transaction.savepoint()
        handle.update(transaction, [ROWS[0]], [(0, "changed")])
        assert next(iter(handle.scan(transaction)))[0] == (0, "changed")
        transaction.rollback_to(mark)
        assert flat(handle.scan(transaction)) == ROWS
    assert all_rows(module, schema) == ROWS


def test_a_rolled_back_change_leaves_the_cache_right(module: StoreModule, schema: TableSchema) -> None:
    transaction = module.begin_write(1.0)
    module.table(schema).update(transaction, [ROWS[0]], [(0, "changed")])
    assert flat(module.table(schema).scan(transaction))[0] == (0, "changed")
    transaction.rollback()
    assert all_rows(module, schema) == ROWS
    with writing(module) as transaction:
        module.table(schema).update(transaction, [ROWS[0]], [(0, "other")])
    assert all_rows(module, schema)[0] == (0, "other")


def test_an_abandoned_scan_caches_nothing(module: StoreModule, schema: TableSchema) -> None:
    with reading(module) as transaction:
        next(iter(module.table(schema).scan(transaction)))
    assert module.cache is not None
    assert module.cache.used == 0


def test_a_table_that_does_not_fit_is_streamed(open_module: OpenModule) -> None:
    module = open_module(cache_size=10_000)
    schema = create(module, table("t", columns(id=INTEGER, name=TEXT), "id"), ROWS)
    assert not served(module, schema)
    assert module.cache is not None
    assert module.cache.used == 0
    small = create(module, table("small", columns(id=INTEGER), "id"), [(1,), (2,)])
    assert served(module, small)


def test_no_cache_at_all(open_module: OpenModule) -> None:
    module = open_module(cache_size=0)
    schema = create(module, table("t", columns(id=INTEGER, name=TEXT), "id"), ROWS)
    assert module.cache is None
    assert not served(module, schema)


def test_two_modules_over_one_backend_agree(module: StoreModule, schema: TableSchema) -> None:
    """Stands for two processes: the second module knows of the first one's commits by the key space alone."""
    other = StoreModule(module.backend)
    other.attach(Engine())
    assert all_rows(other, schema) == ROWS
    with writing(module) as transaction:
        module.table(schema).insert(transaction, [(9999, "late")])
    assert all_rows(other, schema) == [*ROWS, (9999, "late")]
    assert all_rows(module, schema) == [*ROWS, (9999, "late")]


def test_the_least_recently_used_table_goes() -> None:
    batch = [(1, "x")]
    size = estimate_size(batch, 10)
    cache = BatchCache(2 * size)
    for store in (1, 2):
        assert cache.reserve(store, batch, 10) == size
        cache.put(store, 1, [batch], size)
    assert cache.get(1, 1) == [batch]
    assert cache.reserve(3, batch, 10) == size
    cache.put(3, 1, [batch], size)
    assert cache.get(2, 1) is None
    assert cache.get(1, 1) == [batch]
    assert cache.get(1, 2) is None
    assert cache.used == 2 * size


def test_an_older_state_never_replaces_a_newer_one() -> None:
    cache = BatchCache(1000)
    cache.put(1, 5, [[(5,)]], 10)
    cache.put(1, 4, [[(4,)]], 10)
    assert cache.get(1, 5) == [[(5,)]]
    assert cache.reserve(1, [(1,) * 1000], 100) is None


def test_documents_count_with_what_is_in_them() -> None:
    assert estimate_size([({"a": ["x" * 1000]},)], 1) > 1000
