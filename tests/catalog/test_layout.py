"""The map of the key space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quereus_store.backends.memory import MemoryBackend
from quereus_store.catalog.layout import (
    EntryKind,
    entry_key,
    parse_entry_key,
    parse_store,
    store_prefix,
    store_range,
    successor,
)
from quereus_store.catalog.meta import allocate_store, stamp
from quereus_store.errors import Error

IDS = st.integers(0, 2**60)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.text("\0\1\2.a", max_size=6)


@given(IDS, IDS)
def test_prefixes_order_as_ids_and_none_starts_another(left: int, right: int) -> None:
    one, other = store_prefix(left), store_prefix(right)
    assert (one < other) == (left < right)
    assert left == right or not one.startswith(other)


@given(IDS, st.binary(max_size=5))
def test_a_store_is_one_range(store: int, rest: bytes) -> None:
    lower, upper = store_range(store)
    assert lower <= store_prefix(store) + rest < upper
    assert parse_store(store_prefix(store) + rest) == store
    assert store_prefix(store + 1) >= upper


def test_where_prefixes_grow() -> None:
    assert store_prefix(0xEF) == b"\xef"
    assert store_prefix(0xF0) == b"\xf0\xf0"
    assert store_prefix(0x100) == b"\xf1\x01\x00"
    assert successor(store_prefix(0xFF)) == b"\xf1\x00"


@given(NAMES, NAMES, NAMES, NAMES)
def test_no_two_pairs_of_names_share_a_key(schema: str, name: str, schema2: str, name2: str) -> None:
    key = entry_key(EntryKind.TABLE, schema, name)
    assert parse_entry_key(key) == (EntryKind.TABLE, schema.lower(), name.lower())
    same = (schema.lower(), name.lower()) == (schema2.lower(), name2.lower())
    assert (entry_key(EntryKind.TABLE, schema2, name2) == key) == same


def test_names_that_have_no_utf8() -> None:
    with pytest.raises(Error, match=r'the identifier "a\ud800" containing an unpaired surrogate \(U\+D800'):
        entry_key(EntryKind.VIEW, "main", "a\ud800")


@pytest.mark.parametrize("key", [b"\1tmain", b"\1xmain\0t", b"\1tma\xff\0t", b"\1"])
def test_keys_that_name_no_object(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_entry_key(key)


def test_indexes_without_entries_come_before_rows() -> None:
    with MemoryBackend().write(0.0) as transaction:
        stamp(transaction)
        assert [allocate_store(transaction) for _ in range(2)] == [128, 129]
        leading = [allocate_store(transaction, leading=True) for _ in range(114)]
        assert leading == [*range(16, 128), 130, 131]
        assert allocate_store(transaction) == 132
