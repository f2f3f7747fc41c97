"""Ranges over keys of mixed classes, in both directions, against the order of the types themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.modules.contract import AccessKind, AccessPath, Comparison, Row
from quereus_store.schema.objects import TableSchema
from quereus_store.store import StoreModule
from quereus_store.store.open import open_store
from quereus_store.types import ANY, INTEGER
from quereus_store.types.sortkeys import any_order_key
from tests.store.support import Engine, columns, create, flat, index, reading, table, with_indexes, writing

VALUES = st.one_of(
    st.sampled_from(
        [None, 0, -0.0, True, 1, 1.5, 2**53, 2.0**53, 2**53 + 1, 10**400, -(10**400), float("inf")]
    ),
    st.sampled_from(["", "a", "a\0", "a" * 600, "a" * 600 + "b", "b", b"", b"\0", b"\xff", "\U0001f600"]),
    st.integers(-3, 3),
    st.floats(-3, 3),
)
PROBES = VALUES.filter(lambda value: value is not None)
ROWS = st.lists(st.tuples(VALUES, st.integers(0, 2)), max_size=25)


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[bool, tuple[StoreModule, TableSchema]]]:
    """For both directions a table ``(n, v, w)`` with key n and an index over (v, w)."""
    made = {}
    for descending in (False, True):
        module = open_store(None, "memory")
        module.attach(Engine())
        schema = table("t", columns(n=INTEGER, v=ANY, w=INTEGER), "n")
        by = index(schema, "by", "-v" if descending else "v", "w")
        made[descending] = module, create(module, with_indexes(schema, by))
    yield made
    for module, _ in made.values():
        module.close()


@settings(max_examples=150, deadline=None)
@given(
    rows=ROWS,
    low=st.none() | st.tuples(st.sampled_from([">", ">="]), PROBES),
    high=st.none() | st.tuples(st.sampled_from(["<", "<="]), PROBES),
    descending=st.booleans(),
    reverse=st.booleans(),
)
def test_a_range_holds_what_compares_so(
    databases: dict[bool, tuple[StoreModule, TableSchema]],
    rows: list[tuple[Any, int]],
    low: tuple[str, Any] | None,
    high: tuple[str, Any] | None,
    descending: bool,
    reverse: bool,
) -> None:
    module, schema = databases[descending]
    stored: list[Row] = [(number, *row) for number, row in enumerate(rows)]
    handle = module.table(schema)
    with writing(module) as transaction:
        handle.delete(transaction, flat(handle.scan(transaction)))
        handle.insert(transaction, stored)
    expected = sorted(stored, key=lambda row: (row[2], row[0]))
    expected.sort(key=lambda row: any_order_key(row[1]), reverse=descending)
    path = AccessPath(
        AccessKind.RANGE,
        "by",
        0,
        Comparison(low[0]) if low else None,
        Comparison(high[0]) if high else None,
        reverse,
    )
    inside = [row for row in expected if within(row[1], low, high)]
    with reading(module) as transaction:
        found = flat(handle.range(transaction, path, (), low and low[1], high and high[1]))
    assert found == (inside[::-1] if reverse else inside)


def within(value: Any, low: tuple[str, Any] | None, high: tuple[str, Any] | None) -> bool:
    if low is None and high is None:
        return True
    if value is None:
        return False
    key = any_order_key(value)
    above = low is None or key > any_order_key(low[1]) or (low[0] == ">=" and key == any_order_key(low[1]))
    below = (
        high is None or key < any_order_key(high[1]) or (high[0] == "<=" and key == any_order_key(high[1]))
    )
    return above and below


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, probes=st.lists(st.tuples(VALUES, st.integers(0, 2)), max_size=5), parts=st.integers(1, 2))
def test_many_prefixes_at_once(
    databases: dict[bool, tuple[StoreModule, TableSchema]],
    rows: list[tuple[Any, int]],
    probes: list[tuple[Any, int]],
    parts: int,
) -> None:
    module, schema = databases[False]
    stored: list[Row] = [(number, *row) for number, row in enumerate(rows)]
    handle = module.table(schema)
    with writing(module) as transaction:
        handle.delete(transaction, flat(handle.scan(transaction)))
        handle.insert(transaction, stored)
    wanted = [probe[:parts] for probe in probes + rows]
    path = AccessPath(AccessKind.RANGES, "by", parts)
    with reading(module) as transaction:
        found = handle.ranges(transaction, path, wanted)
    for probe, matches in zip(wanted, found, strict=True):
        same = [
            row
            for row in stored
            if list(map(any_order_key, row[1 : 1 + parts])) == list(map(any_order_key, probe))
        ]
        assert matches == sorted(same, key=lambda row: (row[2], row[0]))
