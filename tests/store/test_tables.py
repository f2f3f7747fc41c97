"""Reading and writing one table, on every backend."""

from __future__ import annotations

import math

import pytest

from quereus_store.modules.contract import AccessKind, AccessPath, UniqueViolation
from quereus_store.schema.objects import ColumnSchema
from quereus_store.store import StoreModule
from quereus_store.types import ANY, BLOB, INTEGER, JSON, REAL, TEXT
from tests.store.support import (
    all_rows,
    columns,
    create,
    flat,
    index,
    reading,
    seek,
    table,
    with_indexes,
    writing,
)

CREW = columns(id=INTEGER, name=TEXT, ship=TEXT)
ROWS = [(1, "Ada", "Orion"), (2, "Bob", "Orion"), (3, "Cyd", "Vega"), (4, None, "Vega")]


def test_rows_come_back_in_key_order(module: StoreModule) -> None:
    crew = create(module, table("crew", CREW, "id"), [ROWS[2], ROWS[0], ROWS[3], ROWS[1]])
    assert all_rows(module, crew) == ROWS
    assert all_rows(module, crew, reverse=True) == ROWS[::-1]
    with reading(module) as transaction:
        handle = module.table(crew)
        assert handle.count(transaction) == 4
        assert handle.point(transaction, (3,)) == ROWS[2]
        assert handle.point(transaction, (9,)) is None
        assert handle.points(transaction, [(4,), (9,), (4,), (1,)]) == [ROWS[3], None, ROWS[3], ROWS[0]]


def test_a_descending_and_a_composite_key(module: StoreModule) -> None:
    legs = create(module, table("legs", columns(a=INTEGER, b=TEXT), "-a b"), [(1, "x"), (2, "y"), (2, "x")])
    assert all_rows(module, legs) == [(2, "x"), (2, "y"), (1, "x")]
    assert seek(module, legs, None, 2) == [(2, "x"), (2, "y")]
    assert seek(module, legs, None, 2, low=(">", "x")) == [(2, "y")]
    assert seek(module, legs, None, high=("<", 2)) == [(1, "x")]


def test_ranges_take_bounds_of_another_class(module: StoreModule) -> None:
    numbers = create(module, table("numbers", columns(n=INTEGER), "n"), [(n,) for n in (-3, 0, 2, 7)])
    assert seek(module, numbers, None, low=(">", -0.5), high=("<", 2.5)) == [(0,), (2,)]
    assert seek(module, numbers, None, low=(">=", 2.0)) == [(2,), (7,)]
    assert seek(module, numbers, None, high=("<", "text")) == [(-3,), (0,), (2,), (7,)]
    assert seek(module, numbers, None, low=(">", "text")) == []
    assert seek(module, numbers, None, low=(">=", 7), high=("<=", -3)) == []
    with reading(module) as transaction:
        assert module.table(numbers).point(transaction, (2.0,)) == (2,)
        assert module.table(numbers).point(transaction, (1.5,)) is None


def test_an_empty_key_admits_one_row(module: StoreModule) -> None:
    one = create(module, table("one", columns(k=TEXT)), [("a",)])
    with writing(module) as transaction, pytest.raises(UniqueViolation) as caught:
        module.table(one).insert(transaction, [("b",)])
    assert caught.value.constraint is None
    assert caught.value.existing == ("a",)
    assert all_rows(module, one) == [("a",)]


def test_values_come_back_exactly(module: StoreModule) -> None:
    row = (1, 2**70, 3.0, -0.0, math.inf, b"\0\xff", "\0\U0001f600", True, {"b": [1, 1.0, None], "a": "x"})
    names = "abcdefghi"
    kept = create(
        module, table("kept", [ColumnSchema(name, ANY, nullable=True) for name in names], "a"), [row]
    )
    (back,) = all_rows(module, kept)
    assert repr(back) == repr(row)


def test_keys_of_any_length(module: StoreModule) -> None:
    texts = [letter * length for letter in "ab" for length in (1, 499, 500, 511, 5000)]
    words = table("words", columns(word=TEXT, n=INTEGER), "word")
    words = with_indexes(words, index(words, "again", "word", unique=True))
    words = create(module, words, [(text, number) for number, text in enumerate(texts)])
    assert [row[0] for row in all_rows(module, words)] == sorted(texts)
    assert [row[0] for row in seek(module, words, "again", low=(">", "a" * 499))] == sorted(texts)[2:]
    assert seek(module, words, "again", "b" * 5000) == [("b" * 5000, 9)]


def test_an_index_finds_rows_in_its_order(module: StoreModule) -> None:
    crew = table("crew", CREW, "id")
    crew = create(module, with_indexes(crew, index(crew, "by_ship", "-ship", "name")), ROWS)
    assert seek(module, crew, "by_ship") == [ROWS[3], ROWS[2], ROWS[0], ROWS[1]]
    assert seek(module, crew, "by_ship", reverse=True) == [ROWS[1], ROWS[0], ROWS[2], ROWS[3]]
    assert seek(module, crew, "by_ship", "Orion") == ROWS[:2]
    assert seek(module, crew, "by_ship", "Vega", low=(">", "A")) == [ROWS[2]]
    assert seek(module, crew, "by_ship", "Vega", None) == [ROWS[3]]
    path = AccessPath(AccessKind.RANGES, "by_ship", 1)
    with reading(module) as transaction:
        found = module.table(crew).ranges(transaction, path, [("Vega",), ("Lyra",), ("Orion",)])
    assert found == [[ROWS[3], ROWS[2]], [], ROWS[:2]]


def test_an_index_follows_changes(module: StoreModule) -> None:
    crew = table("crew", CREW, "id")
    crew = create(module, with_indexes(crew, index(crew, "by_ship", "ship")), ROWS)
    with writing(module) as transaction:
        handle = module.table(crew)
        handle.update(transaction, [ROWS[0]], [(1, "Ada", "Vega")])
        handle.update(transaction, [ROWS[1]], [(20, "Bob", "Orion")])
        handle.delete(transaction, [ROWS[2]])
    assert seek(module, crew, "by_ship", "Vega") == [(1, "Ada", "Vega"), ROWS[3]]
    assert seek(module, crew, "by_ship", "Orion") == [(20, "Bob", "Orion")]


def test_partial_and_expression_indexes(module: StoreModule) -> None:
    crew = table("crew", CREW, "id")
    crew = with_indexes(
        crew,
        index(crew, "named", "name", where=lambda row: row[1] is not None),
        index(crew, "by_length", lambda row: None if row[1] is None else len(row[1])),
    )
    crew = create(module, crew, [*ROWS, (5, "Dora", "Lyra")])
    assert seek(module, crew, "named") == [*ROWS[:3], (5, "Dora", "Lyra")]
    assert seek(module, crew, "by_length", 4) == [(5, "Dora", "Lyra")]
    assert seek(module, crew, "by_length", high=("<", 4)) == ROWS[:3]
    with writing(module) as transaction:
        module.table(crew).update(transaction, [ROWS[0], ROWS[3]], [(1, None, "Orion"), (4, "Eve", "Vega")])
    assert [row[0] for row in seek(module, crew, "named")] == [2, 3, 5, 4]
    assert [row[0] for row in seek(module, crew, "by_length", 3)] == [2, 3, 4]


def test_nocase_and_json_keys(module: StoreModule) -> None:
    tags = [ColumnSchema("tag", TEXT, collation="NOCASE"), ColumnSchema("data", JSON, nullable=True)]
    kept = table("tags", tags, "tag")
    kept = create(
        module, with_indexes(kept, index(kept, "u", "data", unique=True)), [("Fig", {"a": 1, "b": [2]})]
    )
    with writing(module) as transaction:
        handle = module.table(kept)
        assert handle.point(transaction, ("FIG",)) == ("Fig", {"a": 1, "b": [2]})
        with pytest.raises(UniqueViolation):
            handle.insert(transaction, [("fIG", None)])
        with pytest.raises(UniqueViolation):
            handle.insert(transaction, [("Plum", {"b": [2.0], "a": 1})])
        handle.update(transaction, [("Fig", {"a": 1, "b": [2]})], [("fig", {"a": True})])
    assert all_rows(module, kept) == [("fig", {"a": True})]


def test_text_that_cannot_be_a_key_is_refused_before_anything_is_written(module: StoreModule) -> None:
    crew = table("crew", CREW, "id")
    crew = create(module, with_indexes(crew, index(crew, "by_name", "name")))
    with writing(module) as transaction:
        with pytest.raises(Exception, match="unpaired surrogate"):
            module.table(crew).insert(transaction, [(1, "fine", "x"), (2, "\ud800", "x")])
        assert module.table(crew).count(transaction) == 0
        module.table(crew).insert(transaction, [(3, "fine", "\ud800")])
    assert all_rows(module, crew) == [(3, "fine", "\ud800")]


def test_a_scan_of_a_writer_stays_as_it_began(module: StoreModule) -> None:
    rows = [(number, "x", None) for number in range(5000)]
    crew = create(module, table("crew", CREW, "id"), rows)
    with writing(module) as transaction:
        handle = module.table(crew)
        scan = handle.scan(transaction)
        backwards = handle.scan(transaction, reverse=True)
        seen = list(next(scan))
        handle.delete(transaction, rows[1000:4000])
        handle.insert(transaction, [(9000, "new", None)])
        assert seen + flat(scan) == rows
        assert flat(backwards) == rows[::-1]
        assert handle.count(transaction) == 2001
        assert len(flat(handle.scan(transaction))) == 2001


def test_a_reader_keeps_its_snapshot(module: StoreModule) -> None:
    crew = create(module, table("crew", CREW, "id"), ROWS)
    with reading(module) as before:
        with writing(module) as transaction:
            module.table(crew).delete(transaction, ROWS[:2])
        handle = module.table(crew)
        assert flat(handle.scan(before)) == ROWS
        assert handle.count(before) == 4
        assert handle.point(before, (1,)) == ROWS[0]
    assert all_rows(module, crew) == ROWS[2:]


def test_a_table_that_others_do_not_see_yet(module: StoreModule) -> None:
    with writing(module) as transaction:
        crew = module.create_table(transaction, table("crew", CREW, "id"))
        module.table(crew).insert(transaction, ROWS)
        assert flat(module.table(crew).scan(transaction)) == ROWS
    assert all_rows(module, crew) == ROWS
    with writing(module) as transaction:
        module.drop_table(transaction, crew)
    with reading(module) as transaction:
        assert module.table(crew).count(transaction) == 0


def test_the_number_of_rows_is_exact_after_everything(module: StoreModule) -> None:
    crew = create(module, table("crew", columns(id=INTEGER, x=REAL, b=BLOB), "id"))
    handle = module.table(crew)
    with writing(module) as transaction:
        handle.insert(transaction, [(number, 0.5, b"") for number in range(10)])
        mark = transaction.savepoint()
        handle.delete(transaction, [(number, 0.5, b"") for number in range(5)])
        assert handle.count(transaction) == 5
        transaction.rollback_to(mark)
        assert handle.count(transaction) == 10
        with pytest.raises(UniqueViolation):
            handle.insert(transaction, [(77, 0.5, b""), (3, 0.5, b"")])
        assert handle.count(transaction) == 10
        handle.update(transaction, [(0, 0.5, b"")], [(100, 0.5, b"")])
    with reading(module) as transaction:
        assert handle.count(transaction) == 10
        assert handle.point(transaction, (77,)) is None
