"""Tables and indexes are made, changed and dropped inside transactions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quereus_store.modules.contract import AccessKind, AccessPath, Row, UniqueViolation
from quereus_store.schema.objects import ColumnSchema, KeyPart, PrimaryKey, TableSchema
from quereus_store.store import StoreModule, building
from quereus_store.store.check import check_table
from quereus_store.types import INTEGER, TEXT
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

COLUMNS = columns(id=INTEGER, name=TEXT, n=INTEGER)
ROWS: list[Row] = [(number, f"name {number:04}", number % 7) for number in range(3000)]


@pytest.fixture
def schema(module: StoreModule) -> TableSchema:
    """3,000 rows with an index over n and a unique one over name."""
    made = table("t", COLUMNS, "id")
    made = with_indexes(made, index(made, "by_n", "n"), index(made, "by_name", "name", unique=True))
    return create(module, made, ROWS)


def in_order(module: StoreModule, schema: TableSchema) -> bool:
    with reading(module) as transaction:
        return check_table(module, transaction, schema) == []


def test_rollback_undoes_every_kind_of_change(module: StoreModule, schema: TableSchema) -> None:
    transaction = module.begin_write(1.0)
    module.create_table(transaction, table("other", COLUMNS, "id"))
    module.create_index(transaction, schema, index(schema, "by_both", "n", "name"))
    module.drop_index(transaction, schema, schema.indexes[0])
    wider = replace(schema, columns=(*COLUMNS, ColumnSchema("x", INTEGER)))
    module.rewrite_table(transaction, schema, wider, lambda rows: [(*row, 1) for row in rows])
    module.drop_table(transaction, schema)
    transaction.rollback()
    assert all_rows(module, schema) == ROWS
    assert in_order(module, schema)


def test_a_savepoint_undoes_a_drop(module: StoreModule, schema: TableSchema) -> None:
    with writing(module) as transaction:
        mark = transaction.savepoint()
        module.drop_table(transaction, schema)
        assert module.table(schema).count(transaction) == 0
        transaction.rollback_to(mark)
        assert module.table(schema).count(transaction) == 3000
        transaction.release(mark)
    assert in_order(module, schema)


def test_a_dropped_table_leaves_no_key(module: StoreModule, schema: TableSchema) -> None:
    with writing(module) as transaction:
        module.save_statistics(transaction, schema, {"rowCount": 3000})
        module.drop_table(transaction, schema)
    with reading(module) as transaction:
        assert transaction.kv.count(b"\x01", None) == 0


def test_an_index_is_built_in_bounded_pieces(
    module: StoreModule, schema: TableSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "ENTRIES_AT_ONCE", 700)
    with writing(module) as transaction:
        built = module.create_index(transaction, schema, index(schema, "down", "-n", "name"))
    after = with_indexes(schema, built)
    assert seek(module, after, "down") == sorted(ROWS, key=lambda row: (-row[2], row[1]))
    assert in_order(module, after)
    with writing(module) as transaction:
        module.drop_index(transaction, after, built)
    assert in_order(module, schema)


def test_adding_a_column_touches_no_index(module: StoreModule, schema: TableSchema) -> None:
    wider = replace(schema, columns=(*COLUMNS, ColumnSchema("x", TEXT)))
    with writing(module) as transaction:
        new = module.rewrite_table(
            transaction, schema, wider, lambda rows: [(*row, row[1].upper()) for row in rows]
        )
    assert new == wider
    assert all_rows(module, new) == [(*row, row[1].upper()) for row in ROWS]
    assert in_order(module, new)


def test_dropping_a_column_before_the_key(module: StoreModule) -> None:
    old = table("t", columns(x=TEXT, id=INTEGER, n=INTEGER), "id")
    old = create(module, with_indexes(old, index(old, "by_n", "n")), [("x", 2, 5), ("y", 1, 6)])
    new = replace(
        old,
        columns=old.columns[1:],
        primary_key=PrimaryKey((KeyPart(0),)),
        indexes=(replace(old.indexes[0], parts=(replace(old.indexes[0].parts[0], column=1),)),),
    )
    with writing(module) as transaction:
        new = module.rewrite_table(transaction, old, new, lambda rows: [row[1:] for row in rows])
    assert all_rows(module, new) == [(1, 6), (2, 5)]
    assert seek(module, new, "by_n") == [(2, 5), (1, 6)]
    assert in_order(module, new)


def test_changing_values_rebuilds_the_indexes_over_them(module: StoreModule, schema: TableSchema) -> None:
    with writing(module) as transaction:
        new = module.rewrite_table(
            transaction, schema, schema, lambda rows: [(row[0], row[1], -row[2]) for row in rows]
        )
    assert [row[2] for row in seek(module, new, "by_n", high=("<", -4))] == [-6] * 428 + [-5] * 428
    assert in_order(module, new)


def test_a_new_key_moves_the_rows(module: StoreModule, schema: TableSchema) -> None:
    rekeyed = replace(schema, primary_key=PrimaryKey((KeyPart(1, descending=True), KeyPart(0))))
    with writing(module) as transaction:
        module.save_statistics(transaction, schema, {"rowCount": 3000})
        new = module.rewrite_table(transaction, schema, rekeyed, None)
    assert all_rows(module, new) == ROWS[::-1]
    assert in_order(module, new)
    with reading(module) as transaction:
        assert module.table(new).count(transaction) == 3000
    assert module.statistics(new) == {"rowCount": 3000}


def test_keys_that_collide_under_a_new_schema(module: StoreModule, schema: TableSchema) -> None:
    rekeyed = replace(schema, primary_key=PrimaryKey((KeyPart(2),)))
    with writing(module) as transaction:
        with pytest.raises(UniqueViolation) as caught:
            module.rewrite_table(transaction, schema, rekeyed, None)
        assert flat(module.table(schema).scan(transaction)) == ROWS
    assert caught.value.constraint is None
    assert in_order(module, schema)
    with writing(module) as transaction:
        with pytest.raises(UniqueViolation) as caught:
            module.rewrite_table(
                transaction, schema, schema, lambda rows: [(row[0], row[1][:7], row[2]) for row in rows]
            )
        assert flat(module.table(schema).scan(transaction)) == ROWS
    assert caught.value.constraint is not None
    assert caught.value.constraint.name == "by_name"
    assert in_order(module, schema)


def test_keys_that_change_only_in_a_later_batch(module: StoreModule, schema: TableSchema) -> None:
    with writing(module) as transaction:
        new = module.rewrite_table(
            transaction,
            schema,
            schema,
            lambda rows: [(r[0] if r[0] < 2500 else -r[0], r[1], r[2]) for r in rows],
        )
    expected = sorted((r[0] if r[0] < 2500 else -r[0], r[1], r[2]) for r in ROWS)
    assert all_rows(module, new) == expected
    assert in_order(module, new)


def test_a_rename_moves_no_rows(module: StoreModule, schema: TableSchema) -> None:
    renamed = replace(schema, name="somewhere_else")
    assert all_rows(module, renamed) == ROWS


def test_a_range_over_an_index_that_is_dropped_meanwhile(module: StoreModule, schema: TableSchema) -> None:
    path = AccessPath(AccessKind.RANGE, "by_n", 1)
    with writing(module) as transaction:
        found = module.table(schema).range(transaction, path, (3,), None, None)
        first = list(next(found))
        module.drop_index(transaction, schema, schema.indexes[0])
        assert first + flat(found) == [row for row in ROWS if row[2] == 3]
