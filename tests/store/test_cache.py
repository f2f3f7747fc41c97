"""The cache of decoded batches: served when nothing changed, never when something did."""

from __future__ import annotations

from typing import Any

import pytest

from quereus_store.modules.contract import AccessKind, AccessPath, Comparison, Row
from quereus_store.schema.objects import ColumnSchema, TableSchema
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


@pytest.fixture
def keyed(module: StoreModule) -> TableSchema:
    """The same rows under a key that has no NULL."""
    return create(module, table("k", (not_null("id"), *columns(name=TEXT)), "id"), ROWS)


def not_null(name: str) -> ColumnSchema:
    return ColumnSchema(name, INTEGER, nullable=False)


RANGES = [
    (Comparison.GREATER_OR_EQUAL, Comparison.LESS, low, high)
    for low, high in [(5, 20), (0, 2500), (900, 1100), (-5, 3), (2400, 9999), (30, 20), (1000, 1000)]
] + [
    (Comparison.GREATER, None, 700, None),
    (None, Comparison.LESS_OR_EQUAL, None, 1700),
    (Comparison.GREATER, Comparison.LESS_OR_EQUAL, 999, 1000),
    (Comparison.GREATER, Comparison.LESS, 3.5, 5.5),
    (None, Comparison.LESS, None, "text"),
    (None, None, None, None),
]


def in_range(module: StoreModule, schema: TableSchema, case: tuple[Any, ...], reverse: bool) -> list[Row]:
    lower, upper, low, high = case
    path = AccessPath(AccessKind.RANGE, lower=lower, upper=upper, reverse=reverse)
    with reading(module) as transaction:
        return flat(module.table(schema).range(transaction, path, (), low, high))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("case", RANGES)
def test_ranges_of_the_key_are_slices(
    module: StoreModule, keyed: TableSchema, case: tuple[Any, ...], reverse: bool
) -> None:
    read = in_range(module, keyed, case, reverse)
    assert all_rows(module, keyed) == ROWS
    assert in_range(module, keyed, case, reverse) == read
    with writing(module) as transaction:
        module.table(keyed).delete(transaction, [ROWS[1000]])
    assert in_range(module, keyed, case, reverse) == [row for row in read if row[0] != 1000]


def test_rows_of_one_leading_value_are_a_slice(module: StoreModule) -> None:
    rows = [(a, b) for a in range(5) for b in range(700)]
    schema = create(module, table("t", (not_null("a"), not_null("b")), "a b"), rows)
    path = AccessPath(AccessKind.RANGE, equal=1)
    assert all_rows(module, schema) == rows
    with reading(module) as transaction:
        found = [flat(module.table(schema).range(transaction, path, (a,), None, None)) for a in range(6)]
    assert found == [[row for row in rows if row[0] == a] for a in range(6)]


def test_reading_most_of_a_table_twice_gathers_it(module: StoreModule, keyed: TableSchema) -> None:
    most = (Comparison.GREATER, None, 500, None)
    assert module.cache is not None
    for _ in range(2):
        assert in_range(module, keyed, (None, Comparison.LESS, None, 100), False) == ROWS[:100]
        assert module.cache.used == 0
    for used in (False, True, True):
        assert in_range(module, keyed, most, False) == ROWS[501:]
        assert bool(module.cache.used) is used


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
